"""A node with everything in its fields, looked at once for all rules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._node import Node
from adk_fluent.ir._record import reader, schema_of
from adk_fluent.ir._types import anything, field_tests, hints_of, is_scalar, is_value, misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
        keys: The fields that hold state keys, the same way: whose it is, and its name.
        strange: What its data fields hold beside text, numbers, tuples, frozensets and records,
            with the field; fields in which only users know what is what are left out.
        children: The nodes below it; none when there are misfits, for those may be anything.
    """

    __slots__ = ("children", "keys", "misfits", "node", "strange")

    def __init__(self, node: N_co) -> None:
        self.node: N_co = node
        self.misfits: list[str] = []
        self.keys: list[tuple[Any, str]] = []
        self.strange: list[tuple[str, Any]] = []
        todo: list[tuple[str, Any]] = []
        self._fields("", node, todo)
        for field, part in todo:  # which grows meanwhile
            if isinstance(part, _SEVERAL):
                items = cast("Iterable[Any]", part)
                todo += [(field, each) for each in items if class_of(each) not in _SCALARS]
            elif is_value(part):
                self._fields(field, part, todo)
            else:
                self.strange.append((field, part))
        self.children: tuple[Node, ...] = () if self.misfits else node.children

    def _fields(self, field: str, record: Any, todo: list[tuple[str, Any]]) -> None:
        kind = class_of(record)
        fields = fields_of(kind)
        for name in fields.keys:
            self.keys.append((record, name))
        for (name, default, fits, deep), value in zip(
            fields.rows, fields.read(record), strict=True
        ):
            if value is default:
                continue
            if not fits(value):
                what = misfit(name, record.__record__.fields[name].annotation, value)
                self.misfits.append(f"{field}: {kind.__name__}.{what}" if field else what)
            elif deep and class_of(value) not in _SCALARS:
                todo.append((field or name, value))


class Fields:
    """What there is to know of the fields of a record class; worked out once.

    Attributes:
        read: Reads the values of all fields.
        rows: Of each field its name, its default, the test of its type, and whether there may be
            anything in its value that rules look at.
        keys: The names of those that hold state keys.
    """

    __slots__ = ("keys", "read", "rows")

    def __init__(self, cls: type, schema: Schema) -> None:
        tests, hints = field_tests(cls), hints_of(cls)
        self.read: Callable[[Any], tuple[Any, ...]] = reader(tuple(schema.fields))
        self.rows = tuple(
            (
                name,
                spec.default,
                tests.get(name, anything),
                name in schema.compared
                and (cls.__name__, name) not in OPEN
                and not is_scalar(hints.get(name)),
            )
            for name, spec in schema.fields.items()
        )
        self.keys = tuple(n for n in schema.compared if n == "key" or n.endswith("_key"))


@cache
def fields_of(cls: type) -> Fields:
    """The fields of a record class."""
    return Fields(cls, schema_of(cls))
