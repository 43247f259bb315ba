"""IR as JSON: a flat table of nodes, children before parents, the root last.

::

    {"format": "adk-fluent-ir", "version": 1, "nodes": [
      {"kind": "AgentNode", "data": {"name": "draft", "model": "gemini-2.5-flash"}},
      {"kind": "FunctionNode",
       "data": {"name": "count", "fn": {"ref": "count", "path": "shop.steps:count"}}},
      {"kind": "SequenceNode", "data": {"name": "main"}, "children": {"steps": [0, 1]}}]}

A field at its default is left out. A `Ref` is a name, a path where the object can be imported, and
a ``key`` where several objects have the name; what it holds is never written, but for a record
that `function` made, whose fields stand in ``record``. JSON's arrays are tuples; an object with
``$`` is the value that ``$`` names. The settings of a `MiddlewareRef` stand as they are: arrays are
lists, and objects are mappings. `_load.py` reads all this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from math import isfinite
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Union, cast, get_args, get_origin

from adk_fluent.errors import IRFormatError
from adk_fluent.ir._functions import is_function
from adk_fluent.ir._kinds import class_of, kind_name, path_of, reference_of
from adk_fluent.ir._look import OPEN
from adk_fluent.ir._node import to_rows
from adk_fluent.ir._path import import_path, name_of_object
from adk_fluent.ir._record import schema_of
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._state import UNSET
from adk_fluent.ir._types import is_value
from adk_fluent.ir._values import MiddlewareRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir._node import Node

FORMAT: Final = "adk-fluent-ir"
VERSION: Final = 1

#: Data nested deeper than this is neither written nor read.
MAX_DEPTH: Final = 50

#: Fields that hold middlewares: those that a name and settings are enough for are written as such.
_STACKS: Final = frozenset(
    {("AppNode", "middlewares"), ("ExecutionConfig", "middlewares"), ("MiddlewareNode", "stack")}
)

#: Types that a file may name without permission.
TYPES: Final[dict[str, Any]] = {
    f"{each.__module__}:{each.__qualname__}": each
    for each in (
        *(bool, bytes, complex, dict, float, frozenset, int, list, object, set, str, tuple, type),
        cast("type", Any),
        NoneType,
    )
}


def to_data(root: Node, *, locations: bool = False) -> dict[str, Any]:
    """A pipeline as what JSON can hold: dicts with str keys, lists, str, int, float, bool, None.

    Args:
        root: The pipeline.
        locations: Write the source lines of nodes too; they name files of this machine.

    Raises:
        IRFormatError: A field holds what only a `Ref` may hold.
    """
    return _Writer().graph(root, locations=locations)


def to_json(root: Node, *, locations: bool = False) -> str:
    """A pipeline as JSON text; see `to_data`. The same pipeline gives the same text."""
    import json  # noqa: PLC0415  # whoever only builds a pipeline does not need it

    data = to_data(root, locations=locations)
    return json.dumps(data, allow_nan=False, separators=(",", ":"))


def _named(kind: type, name: str, value: Any) -> Any:
    """A field's value; of a stack, references in the place of objects that know theirs."""
    if (kind.__name__, name) not in _STACKS or not isinstance(value, tuple):
        return value
    return tuple([_reference(each) for each in cast("tuple[Any, ...]", value)])


def _reference(each: Any) -> Any:
    found = reference_of(each.value if isinstance(each, Ref) else each)
    return each if found is None else found


def registry_of(root: Node) -> dict[str, Any]:
    """The live objects of a pipeline under the names that `from_json` looks for.

    A program that builds the pipeline anyway can load its file with ``registry=registry_of(...)``.
    """
    writer = _Writer()
    writer.graph(root, locations=False)
    return writer.registry


class _Writer:
    def __init__(self) -> None:
        self.registry: dict[str, Any] = {}
        self.keys: dict[int, str] = {}
        self.named: Counter[str] = Counter()
        self.depth = 0
        self.where = ""

    def graph(self, root: Node, *, locations: bool) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = []
        for kind, data, links in to_rows(root):
            row: dict[str, Any] = {"kind": kind_name(kind), "data": {}}
            for name, value in data.items():
                if locations or name != "location":
                    self.where = f"{kind.__name__} {data.get('name')!r}: {name}"
                    row["data"][name] = self.value(_named(kind, name, value))
            fields = schema_of(kind).fields
            below = {name: at for name, at in links.items() if not fields[name].is_default(at)}
            if below:
                row["children"] = {
                    name: list(at) if isinstance(at, tuple) else at for name, at in below.items()
                }
            nodes.append(row)
        return {"format": FORMAT, "version": VERSION, "nodes": nodes}

    def value(self, value: Any, *, free: bool = False) -> Any:
        """What JSON can hold of a value; `free` where a user may have put anything."""
        if value is None or class_of(value) in (bool, int, str):
            return value
        if self.depth == MAX_DEPTH:
            raise IRFormatError(f"{self.where} is nested deeper than {MAX_DEPTH} levels")
        self.depth += 1
        written = self.compound(value, free=free)
        self.depth -= 1
        return written

    def compound(self, value: Any, *, free: bool) -> Any:  # noqa: PLR0911  # a row for each form
        kind = class_of(value)
        if isinstance(value, Ref):
            return self.ref(value)
        if kind is tuple:
            return self.each(value, free=free)
        if is_value(value):
            return self.record(value, kind_name(kind))
        if value is UNSET or value is ...:
            return {"$": "unset" if value is UNSET else "ellipsis"}
        if isinstance(value, Enum):
            return {"$": "enum", "of": kind_name(kind), "name": value.name}
        if kind is float:
            return value if isfinite(value) else {"$": "float", "text": str(value)}
        if kind is bytes:
            return {"$": "bytes", "hex": value.hex()}
        if kind in (list, set, frozenset):
            items = self.each(value, free=free)
            return {"$": kind.__name__, "items": items if kind is list else sorted(items, key=repr)}
        if isinstance(value, Mapping):
            rows = cast("Mapping[Any, Any]", value).items()
            return {"$": "map", "rows": [self.each(row, free=free) for row in rows]}
        if free:
            return self.type_form(value)
        raise IRFormatError(
            f"{self.where} holds a {kind.__name__}",
            help="a live object belongs in a Ref; anything else in tuples, numbers and text",
        )

    def each(self, values: Iterable[Any], *, free: bool) -> list[Any]:
        return [self.value(v, free=free) for v in values]

    def record(self, record: Any, tag: str) -> dict[str, Any]:
        kind = class_of(record)
        written: dict[str, Any] = {"$": tag}
        for name, spec in schema_of(kind).fields.items():
            value = getattr(record, name)
            if spec.is_default(value):
                continue
            if kind is MiddlewareRef and name == "config":
                written[name] = self.plain(value)
            else:
                free = (kind.__name__, name) in OPEN
                written[name] = self.value(_named(kind, name, value), free=free)
        return written

    def plain(self, value: Any) -> Any:
        """Settings, as people write them by hand."""
        kind = class_of(value)
        if value is None or kind in (bool, int, str):
            return value
        if self.depth == MAX_DEPTH:
            raise IRFormatError(f"{self.where} is nested deeper than {MAX_DEPTH} levels")
        self.depth += 1
        if kind is float:
            written = self.value(value)
        elif kind in (list, tuple):
            written = [self.plain(each) for each in value]
        elif isinstance(value, Mapping):
            rows = cast("Mapping[Any, Any]", value)
            for key in rows:
                if class_of(key) is not str:
                    self.unsettable(f"a key that is a {class_of(key).__name__}")
            written = {key: self.plain(each) for key, each in rows.items()}
            if "$" in written:  # which would be read as something else
                written = self.value(rows)
        else:
            self.unsettable(f"a {kind.__name__}")
        self.depth -= 1
        return written

    def unsettable(self, what: str) -> NoReturn:
        raise IRFormatError(
            f"{self.where} holds settings with {what}",
            help="settings are text, numbers, booleans, None, and lists and mappings of those",
        )

    def ref(self, ref: Ref) -> dict[str, Any]:
        held, digest = ref.value, {} if ref.digest is None else {"digest": ref.digest}
        if is_function(held):
            return {"ref": ref.name, "record": self.record(held, class_of(held).__name__), **digest}
        return {"ref": ref.name, **self.address(held, ref.name), **digest}

    def address(self, value: Any, name: str) -> dict[str, str]:
        """Where a live object is found again; every object has a key of its own."""
        key = self.keys.get(id(value))
        if key is None:
            self.named[name] += 1
            key = name if self.named[name] == 1 else f"{name}#{self.named[name]}"
            self.keys[id(value)] = key
        path = import_path(value)
        self.registry[path or key] = value
        address = {} if path is None else {"path": path}
        return address if key == name else {**address, "key": key}

    def type_form(self, value: Any) -> dict[str, Any]:
        origin, args = get_origin(value), get_args(value)
        if origin is Literal:
            return {"$": "literal", "args": self.each(args, free=True)}
        if origin in (Union, UnionType):
            return {"$": "union", "args": self.each(args, free=True)}
        if origin is not None:
            return {
                "$": "generic",
                "of": self.value(origin, free=True),
                "args": self.each(args, free=True),
            }
        if isinstance(value, type) and TYPES.get(path_of(value)) is value:
            return {"$": "type", "path": path_of(value)}
        name = name_of_object(value)
        return {"$": "object", "name": name, **self.address(value, name)}
