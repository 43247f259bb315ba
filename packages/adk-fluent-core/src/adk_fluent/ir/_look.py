"""A node with everything in its fields, looked at once for all rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._node import Node
from adk_fluent.ir._record import schema_of
from adk_fluent.ir._types import (
    anything,
    exact_types,
    field_tests,
    hints_of,
    is_scalar,
    is_value,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        _fields_of(type(node))(self, "", node, todo)
        for field, part in todo:  # which grows meanwhile
            if isinstance(part, _SEVERAL):
                items = cast("Iterable[Any]", part)
                todo += [(field, each) for each in items if type(each) not in _SCALARS]
            elif is_value(part):
                _fields_of(class_of(part))(self, field, part, todo)
            else:
                self.strange.append((field, part))
        self.children: tuple[Node, ...] = () if self.misfits else node.children

    def misfit(self, field: str, record: Any, name: str, value: Any) -> None:
        """Note a value that is not of the type that its field has."""
        what = misfit(name, record.__record__.fields[name].annotation, value)
        self.misfits.append(f"{field}: {class_of(record).__name__}.{what}" if field else what)


#: Looks at the fields of a record that stands in a field of a node, and adds what is in them.
_Fields = Callable[[Look[Any], str, Any, list[tuple[str, Any]]], None]


@cache
def _fields_of(cls: type) -> _Fields:
    """Compile what looks at the fields of a record class.

    Most fields of most records are at their very defaults. What is made for one class passes over
    them, and so takes half as long as a loop over all fields.
    """
    schema, tests, hints = schema_of(cls), field_tests(cls), hints_of(cls)
    space: dict[str, Any] = {"_scalars": _SCALARS}
    lines = ["def fields(look, field, record, todo):"]
    for name, spec in schema.fields.items():
        hint = hints.get(name)
        space[f"_default_{name}"] = spec.default
        space[f"_exact_{name}"] = exact_types(hint)
        space[f"_fits_{name}"] = tests.get(name, anything)
        lines += (
            f"  value = record.{name}",
            f"  if value is not _default_{name}:",
            f"    if type(value) not in _exact_{name} and not _fits_{name}(value):",
            f"      look.misfit(field, record, {name!r}, value)",
        )
        if name not in schema.compared or (cls.__name__, name) in OPEN:
            continue
        if name == "key" or name.endswith("_key"):
            path = f"{cls.__name__}.{name}"
            lines.append(f"    elif value == '': look.nameless.append({path!r})")
        if not is_scalar(hint):
            lines.append("    elif type(value) not in _scalars:")
            lines.append(f"      todo.append((field or {name!r}, value))")
    exec("\n".join(lines), space)  # noqa: S102  # nothing but the names of fields and classes
    return space["fields"]
