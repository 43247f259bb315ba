"""The source text of IR: what `repr` shows, and what `eval` makes the same IR of.

Evaluating it takes the names of `adk_fluent.ir`, and `typing` where fields have such types. The
text of a live object is never its own repr, which may hold a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from types import EllipsisType, GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.ir._path import import_path

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Levels of nodes that are written out; below them stands ``...``.
DEPTH: Final = 50
#: Nodes that are written out in all: a part that stands in two places is written twice.
NODES: Final = 50_000

_PLAIN: Final = (bool, int, str, bytes, NoneType, EllipsisType, GenericAlias, UnionType)


def source_of(self: Any) -> str:
    """A node or other record as an expression, fields at their defaults left out."""
    return _Writer().record(self, DEPTH)


class _Writer:
    def __init__(self) -> None:
        self.left = NODES

    def record(self, record: Any, depth: int) -> str:
        parts: list[str] = []
        for name, spec in record.__record__.fields.items():
            value: Any = getattr(record, name)
            if not spec.compare or spec.is_default(value):
                continue
            text = self.below(value, depth) if spec.child else value_text(value)
            # every node's name comes first, and reads better without its keyword
            parts.append(text if name == "name" and not parts else f"{name}={text}")
        return f"{type(record).__name__}({', '.join(parts)})"

    def below(self, held: Any, depth: int) -> str:
        if isinstance(held, tuple):
            return _tuple_text([self.below(node, depth) for node in _items(held)])
        if not hasattr(held, "__record__"):
            return value_text(held)  # None, or what an illegal graph holds
        self.left -= 1
        return "..." if depth == 0 or self.left < 0 else self.record(held, depth - 1)


def value_text(value: Any) -> str:
    """The expression for a value of a data field; ``<Type>`` for an object that has none."""
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN or hasattr(kind, "__record__") or _is_ours(kind):
        return repr(value)
    if kind is float:
        return repr(value) if isfinite(value) else f"float('{value}')"
    if kind is tuple:
        return _tuple_text([value_text(v) for v in _items(value)])
    if kind in (list, set, frozenset):
        inner = f"[{', '.join([value_text(v) for v in _items(value)])}]"
        return inner if kind is list else f"{kind.__name__}({inner})"
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return f"{{{', '.join([f'{value_text(k)}: {value_text(v)}' for k, v in rows.items()])}}}"
    return _object_text(value, kind)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("adk_fluent.ir.")


def _object_text(value: Any, kind: type[Any]) -> str:
    if value is NoneType:
        return "type(None)"
    if kind is type and value.__module__ == "builtins":
        return value.__qualname__
    if kind.__module__ == "typing":
        return repr(value)
    path = import_path(value)
    if isinstance(value, Enum):
        path = f"{kind.__module__}:{kind.__qualname__}.{value.name}"
    return f"<{kind.__name__}>" if path is None else f"Ref.load({path!r}).value"


def _items(values: Any) -> Iterable[Any]:
    return values


def _tuple_text(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
