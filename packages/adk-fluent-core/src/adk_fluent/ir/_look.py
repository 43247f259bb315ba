"""A node with everything in its fields, looked at once for all rules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._node import Node
from adk_fluent.ir._record import changes_of, schema_of
from adk_fluent.ir._types import anything, exact_types, field_tests, hints_of, is_scalar, misfit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir._record import Schema

N_co = TypeVar("N_co", bound=Node, covariant=True)

#: Fields that hold what a user gave for others: types, live objects, JSON. Rules look no further.
OPEN: Final = frozenset(
    {
        ("ExecutionConfig", "custom_metadata"),
        ("ExecutionConfig", "middlewares"),
        ("MiddlewareRef", "config"),
        ("Ref", "value"),
        ("StateFieldRef", "default"),
        ("StateFieldRef", "type"),
        ("TelemetryConfig", "custom_exporters"),
    }
)

_SCALARS: Final = frozenset({str, int, float, bool, bytes, type(None)})
_SEVERAL: Final = (tuple, frozenset)


class Look(Generic[N_co]):
    """A node and what is in its fields.

    Attributes:
        node: The node.
        misfits: What is wrong with the types of its fields, and of fields of values in them.
        nameless: The fields, the same way, that hold a state key, which is empty.
        strange: What its data fields hold beside text, numbers, tuples, frozensets and records,
            with the field; fields in which only users know what is what are left out.
        children: The nodes below it; none when there are misfits, for those may be anything.
    """

    __slots__ = ("children", "misfits", "nameless", "node", "strange")

    def __init__(self, node: N_co) -> None:
        self.node: N_co = node
        self.misfits: list[str] = []
        self.nameless: list[str] = []
        self.strange: list[tuple[str, Any]] = []
        todo: list[tuple[str, Any]] = []
        self._fields("", node, cast("Fields", fields_of(type(node))), todo)
        for field, part in todo:  # which grows meanwhile
            if isinstance(part, _SEVERAL):
                items = cast("Iterable[Any]", part)
                todo += [(field, each) for each in items if type(each) not in _SCALARS]
            elif not isinstance(part, Node) and (fields := fields_of(type(part))) is not None:
                self._fields(field, part, fields, todo)
            else:
                self.strange.append((field, part))
        self.children: tuple[Node, ...] = () if self.misfits else node.children

    def _fields(self, field: str, record: Any, fields: Fields, todo: list[tuple[str, Any]]) -> None:
        for name, value in fields.changes(record):
            exact, fits, deep, is_key = fields.rows[name]
            if type(value) not in exact and not fits(value):
                kind = class_of(record).__name__
                what = misfit(name, record.__record__.fields[name].annotation, value)
                self.misfits.append(f"{field}: {kind}.{what}" if field else what)
            elif deep:
                if class_of(value) not in _SCALARS:
                    todo.append((field or name, value))
            elif is_key and value == "":
                self.nameless.append(f"{class_of(record).__name__}.{name}")


class Fields:
    """What there is to know of the fields of a record class; worked out once.

    Attributes:
        changes: Gives the fields that are not at their defaults.
        rows: Of each field types that surely fit, the test of all others, whether there may be
            anything in its value that rules look at, and whether it is a state key.
    """

    __slots__ = ("changes", "rows")

    def __init__(self, cls: type, schema: Schema) -> None:
        tests, hints = field_tests(cls), hints_of(cls)
        self.changes = changes_of(cls)
        self.rows = {
            name: (
                exact_types(hints.get(name)),
                tests.get(name, anything),
                name in schema.compared
                and (cls.__name__, name) not in OPEN
                and not is_scalar(hints.get(name)),
                name in schema.compared and (name == "key" or name.endswith("_key")),
            )
            for name in schema.fields
        }


@cache
def fields_of(cls: type) -> Fields | None:
    """The fields of a record class; None for any other class."""
    return Fields(cls, schema_of(cls)) if hasattr(cls, "__record__") else None
