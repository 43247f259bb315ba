"""IR from JSON. What is read may be hostile: nothing runs but imports that the caller allowed."""

from __future__ import annotations

from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Union, cast, get_origin

from adk_fluent.errors import IRFormatError, nearest_name
from adk_fluent.ir._functions import known_functions
from adk_fluent.ir._json import FORMAT, MAX_DEPTH, TYPES, VERSION
from adk_fluent.ir._kinds import NODES, VALUES
from adk_fluent.ir._legal import verify_node
from adk_fluent.ir._node import Node
from adk_fluent.ir._path import import_path
from adk_fluent.ir._record import MISSING, schema_of
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._state import UNSET
from adk_fluent.ir._types import field_tests, misfit
from adk_fluent.ir._values import MiddlewareRef, Modality

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

#: Places at which nodes may stand in all; a small file can name a node very often.
MAX_PLACES: Final = 1_000_000

_WRITE: Final = "write it with to_json(node)"
_NODES: Final = {kind.__name__: kind for kind in NODES}
_VALUES: Final = {kind.__name__: kind for kind in VALUES if kind is not Ref}


def from_json(
    text: str | bytes,
    registry: Mapping[str, object] | None = None,
    allow_imports: Collection[str] = (),
) -> Node:
    """Read what `to_json` wrote.

    Args:
        text: The JSON text.
        registry: Live objects by path (``"shop.steps:count"``) or by name; see `registry_of`.
        allow_imports: Packages or modules that live objects may be imported from, such as
            ``["shop"]``. Importing a module runs it.

    Raises:
        IRFormatError: The text is no such JSON, its IR is not legal by itself, or a live object is
            neither in the registry nor allowed to be imported.
    """
    import json  # noqa: PLC0415  # whoever only builds a pipeline does not need it

    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise IRFormatError("this is not JSON", found=str(error), help=_WRITE) from error
    return from_data(data, registry, allow_imports)


def from_data(
    data: object,
    registry: Mapping[str, object] | None = None,
    allow_imports: Collection[str] = (),
) -> Node:
    """Read what `to_data` made; see `from_json`."""
    if isinstance(allow_imports, str):
        raise TypeError(f"allow_imports takes a list, such as [{allow_imports!r}], not a str")
    if not isinstance(data, dict):
        help = "to_yaml(node) and to_json(node) write one"
        _fail("the document", "it is no pipeline", data, help)
    document = _object(cast("Any", data), "the document", {"format", "version", "nodes"})
    if document.get("format") != FORMAT:
        _fail("the document", f"its format is not {FORMAT!r}", document.get("format"), _WRITE)
    if document.get("version") != VERSION or isinstance(document["version"], bool):
        _fail("the document", f"its version is not {VERSION}", document.get("version"))
    rows = _array(document.get("nodes"), "nodes")
    if not rows:
        _fail("nodes", "it is empty, but the last node is the root")
    loader = _Loader(registry or {}, tuple(allow_imports))
    for row in rows:
        loader.node(row)
    return loader.made[-1]


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


class _Loader:
    def __init__(self, registry: Mapping[str, object], allowed: tuple[str, ...]) -> None:
        self.registry = registry
        self.allowed = allowed
        self.made: list[Node] = []
        self.places: list[int] = []
        self.depth = 0

    # --- nodes ---------------------------------------------------------------------------------

    def node(self, data: object) -> None:
        where = f"nodes[{len(self.made)}]"
        row = _object(data, where, {"kind", "data", "children"})
        kind = self.record_type(row.get("kind"), _NODES, where)
        if not issubclass(kind, Node):
            _fail(where, f"{kind.__name__} is no kind of node")
        schema = schema_of(kind)
        data_names = {name for name, spec in schema.fields.items() if not spec.child}
        given = _object(row.get("data"), f"{where}.data", data_names)
        values = {n: self.value(v, f"{where}.data.{n}") for n, v in given.items()}
        below = _object(row.get("children", {}), f"{where}.children", set(schema.children))
        links = {n: self.link(v, f"{where}.children.{n}") for n, v in below.items()}
        self.count(links, where)
        nodes = {name: self.held(at) for name, at in links.items()}
        made = self.build(kind, values | nodes, where)
        for violation in verify_node(made):
            raise IRFormatError(f"{where} is not legal", found=str(violation))
        self.made.append(made)

    def link(self, data: object, where: str) -> int | tuple[int, ...] | None:
        """Ids of nodes; only of those above, so that there can be no cycle."""
        if isinstance(data, list):
            return tuple([self.one(each, where) for each in cast("list[object]", data)])
        return None if data is None else self.one(data, where)

    def held(self, at: int | tuple[int, ...] | None) -> Node | tuple[Node, ...] | None:
        if isinstance(at, tuple):
            return tuple([self.made[i] for i in at])
        return None if at is None else self.made[at]

    def one(self, data: object, where: str) -> int:
        if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data < len(self.made):
            _fail(where, "it is not the number of a node above it", data)
        return data

    def count(self, links: Mapping[str, int | tuple[int, ...] | None], where: str) -> None:
        ids = [i for at in links.values() for i in (at if isinstance(at, tuple) else (at,))]
        places = 1 + sum([self.places[i] for i in ids if i is not None])
        if places > MAX_PLACES:
            _fail(where, f"it stands for more than {MAX_PLACES} nodes")
        self.places.append(places)

    def record_type(self, name: object, known: Mapping[str, type], where: str) -> type:
        if not isinstance(name, str):
            _fail(where, "its kind is not text", name)
        if ":" not in name:
            if name not in known:
                _fail(where, f"there is no kind {_short(name)}", help=_nearest(name, known))
            return known[name]
        kind = self.resolve(name, name.rpartition(":")[2], where)
        if not isinstance(kind, type) or "__record__" not in kind.__dict__:
            _fail(where, f"{name} is no kind of node or value")
        return kind

    def build(self, kind: type, values: dict[str, Any], where: str) -> Any:
        fields = schema_of(kind).fields
        for name, spec in fields.items():
            if name not in values and spec.default is MISSING:
                _fail(where, f"{kind.__name__} needs {name!r}")
        tests = field_tests(kind)
        for name, value in values.items():
            if name in tests and not tests[name](value):
                _fail(where, misfit(name, fields[name].annotation, value))
        try:
            return kind(**values)
        except (TypeError, ValueError) as error:  # a class's own check of its values
            raise IRFormatError(f"{where}: {kind.__name__} refuses its values: {error}") from error

    # --- values --------------------------------------------------------------------------------

    def value(self, data: object, where: str) -> Any:
        if data is None or isinstance(data, str | int | float):
            return data
        if self.depth == MAX_DEPTH:
            _fail(where, f"it is nested deeper than {MAX_DEPTH} levels")
        self.depth += 1
        if isinstance(data, list):
            value: Any = self.each(cast("list[object]", data), where)
        else:
            value = self.tagged(_object(data, where), where)
        self.depth -= 1
        return value

    def each(self, data: object, where: str) -> tuple[Any, ...]:
        items = _array(data, where)
        return tuple([self.value(each, f"{where}[{i}]") for i, each in enumerate(items)])

    def tagged(self, data: dict[str, object], where: str) -> Any:
        if "ref" in data:
            return self.ref(data, where)
        tag = data.get("$")
        read = _TAGS.get(tag) if isinstance(tag, str) else None
        if read is not None:
            rest = {name: each for name, each in data.items() if name != "$"}
            try:
                return read(self, rest, where)
            except IRFormatError:
                raise
            except (TypeError, ValueError, KeyError) as error:  # such as a set of what has no hash
                raise IRFormatError(f"{where}: this is no {tag}", found=_short(error)) from error
        return self.record(self.record_type(tag, _VALUES, where), data, where)

    def record(self, kind: type, data: dict[str, object], where: str) -> Any:
        names = set(schema_of(kind).fields)
        rest = {n: v for n, v in _object(data, where, {"$", *names}).items() if n != "$"}
        values: dict[str, Any] = {}
        for name, each in rest.items():
            read = self.plain if kind is MiddlewareRef and name == "config" else self.value
            values[name] = read(each, f"{where}.{name}")
        return self.build(kind, values, where)

    def plain(self, data: object, where: str) -> Any:
        """Settings, as people write them by hand; what has a `$` is a value like any other."""
        if data is None or isinstance(data, str | int | float):
            return data
        if self.depth == MAX_DEPTH:
            _fail(where, f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(data, dict) and "$" in data:
            return self.value(cast("object", data), where)
        self.depth += 1
        value: Any
        if isinstance(data, list):
            items = cast("list[object]", data)
            value = [self.plain(each, f"{where}[{i}]") for i, each in enumerate(items)]
        elif isinstance(data, dict):
            value = {}
            for key, each in cast("dict[object, object]", data).items():
                if not isinstance(key, str):
                    _fail(where, "a name of a setting is not text", key)
                value[key] = self.plain(each, f"{where}.{key}")
        else:
            _fail(where, "a setting is text, a number, a boolean, null, a list or a mapping", data)
        self.depth -= 1
        return value

    def ref(self, data: dict[str, object], where: str) -> Ref:
        if "record" in data:
            rest = {n: v for n, v in data.items() if n != "record"}
            row = _texts(rest, where, {"ref", "digest"}, {"ref"})
            found = self.function(_object(data["record"], f"{where}.record"), f"{where}.record")
        else:
            row = _texts(data, where, {"ref", "path", "key", "digest"}, {"ref"})
            found = self.resolve(row.get("path"), row.get("key", row["ref"]), where)
        return Ref(found, row["ref"], row.get("digest"))

    def function(self, data: dict[str, object], where: str) -> Any:
        """A function that is data. Only its name in files will do: nothing is looked up for it."""
        tag, known = data.get("$"), known_functions()
        if not isinstance(tag, str) or tag not in known:
            _fail(where, f"there is no function {_short(tag)}", help=_nearest(tag, known))
        return self.record(known[tag], data, where)

    def type_or_none(self, data: object, where: str) -> Any:
        form = self.value(data, where)
        if form is not None and not isinstance(form, type) and get_origin(form) is None:
            _fail(where, "it is no type", data)
        return form

    # --- live objects --------------------------------------------------------------------------

    def resolve(self, path: str | None, key: str, where: str) -> Any:
        for known in (path, key):
            if known is not None and known in self.registry:
                return self.registry[known]
        if path is None:
            _fail(
                where,
                f"{_short(key)} cannot be imported, and the registry does not have it",
                help=f"pass registry={{{_short(key)}: <the object>}}",
            )
        module, _, qualname = path.partition(":")
        parts = [*module.replace("-", "_").split("."), *qualname.split(".")]
        if not all(part.isidentifier() for part in parts):
            _fail(where, f"{_short(path)} is no path; one looks like 'package.module:name'")
        if not any(module == each or module.startswith(f"{each}.") for each in self.allowed):
            _fail(
                where,
                f"{path!r} may not be imported",
                help=f"pass registry={{{path!r}: <the object>}} or allow_imports=[{module!r}]",
            )
        return _imported(path, module, qualname, where)


def _imported(path: str, module: str, qualname: str, where: str) -> Any:
    import importlib  # noqa: PLC0415  # keeps `import adk_fluent` light

    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise IRFormatError(f"{where}: {path!r} cannot be imported", found=str(error)) from error
    for part in qualname.split("."):
        found = getattr(found, part, MISSING)
        if found is MISSING or isinstance(found, ModuleType):
            break
    # whoever allowed a module did not allow what it happens to import from elsewhere
    if import_path(found) != path:
        _fail(where, f"{module!r} defines no {qualname!r}", None if found is MISSING else found)
    return found


# --- values that `$` names -----------------------------------------------------------------------


def _read_nothing(value: Any) -> _Reader:
    def read(loader: _Loader, data: dict[str, object], where: str) -> Any:
        _object(data, where, set())
        return value

    return read


def _read_float(loader: _Loader, data: dict[str, object], where: str) -> Any:
    text = _texts(data, where, {"text"}, {"text"})["text"]
    if text not in ("nan", "inf", "-inf"):
        _fail(where, "a float is written as a number", text)
    return float(text)


def _read_bytes(loader: _Loader, data: dict[str, object], where: str) -> Any:
    return bytes.fromhex(_texts(data, where, {"hex"}, {"hex"})["hex"])


def _read_items(make: Callable[[tuple[Any, ...]], Any]) -> _Reader:
    def read(loader: _Loader, data: dict[str, object], where: str) -> Any:
        return make(loader.each(_object(data, where, {"items"}).get("items"), where))

    return read


def _read_map(loader: _Loader, data: dict[str, object], where: str) -> Any:
    return dict(loader.each(_object(data, where, {"rows"}).get("rows"), where))


def _read_enum(loader: _Loader, data: dict[str, object], where: str) -> Any:
    row = _texts(data, where, {"of", "name"}, {"of", "name"})
    of, name = row["of"], row["name"]
    kind = Modality if of == "Modality" else loader.resolve(of, of.rpartition(":")[2], where)
    if not isinstance(kind, type) or not issubclass(kind, Enum):
        _fail(where, f"{_short(of)} is no Enum")
    if name not in kind.__members__:
        _fail(
            where, f"{kind.__name__} has no {_short(name)}", help=_nearest(name, kind.__members__)
        )
    return kind[name]


def _read_type(loader: _Loader, data: dict[str, object], where: str) -> Any:
    path = _texts(data, where, {"path"}, {"path"})["path"]
    if path not in TYPES:
        _fail(where, f"there is no type {_short(path)} in Python", help=_nearest(path, TYPES))
    return TYPES[path]


def _read_generic(loader: _Loader, data: dict[str, object], where: str) -> Any:
    row = _object(data, where, {"of", "args"})
    of: Any = loader.type_or_none(row.get("of"), where)
    return of[loader.each(row.get("args"), where)]


def _read_union(loader: _Loader, data: dict[str, object], where: str) -> Any:
    args = _array(_object(data, where, {"args"}).get("args"), where)
    return Union[tuple([loader.type_or_none(each, where) for each in args])]  # noqa: UP007  # built


def _read_literal(loader: _Loader, data: dict[str, object], where: str) -> Any:
    return Literal[loader.each(_object(data, where, {"args"}).get("args"), where)]


def _read_object(loader: _Loader, data: dict[str, object], where: str) -> Any:
    row = _texts(data, where, {"name", "path", "key"}, {"name"})
    return loader.resolve(row.get("path"), row.get("key", row["name"]), where)


if TYPE_CHECKING:
    _Reader = Callable[[_Loader, dict[str, object], str], Any]

_TAGS: Final[dict[str, _Reader]] = {
    "unset": _read_nothing(UNSET),
    "ellipsis": _read_nothing(...),
    "float": _read_float,
    "bytes": _read_bytes,
    "list": _read_items(list),
    "set": _read_items(set),
    "frozenset": _read_items(frozenset),
    "map": _read_map,
    "enum": _read_enum,
    "type": _read_type,
    "generic": _read_generic,
    "union": _read_union,
    "literal": _read_literal,
    "object": _read_object,
}


# --- the shape of JSON ---------------------------------------------------------------------------


def _object(data: object, where: str, known: Collection[str] | None = None) -> dict[str, object]:
    if not isinstance(data, dict):
        _fail(where, "it is not a JSON object", data)
    found = cast("dict[str, object]", data)
    for name in found:
        if known is not None and name not in known:
            _fail(where, f"there is no field {_short(name)} here", help=_nearest(name, known))
    return found


def _array(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        _fail(where, "it is not a JSON array", data)
    return cast("list[object]", data)


def _texts(
    data: dict[str, object], where: str, known: Collection[str], needed: Collection[str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, text in _object(data, where, known).items():
        if not isinstance(text, str):
            _fail(where, f"{name!r} is not text", text)
        found[name] = text
    for name in needed:
        if name not in found:
            _fail(where, f"{name!r} is missing")
    return found


_NOTHING: Final = object()


def _fail(where: str, what: str, found: object = _NOTHING, help: str | None = None) -> NoReturn:
    shown = None if found is _NOTHING else _short(found)
    raise IRFormatError(f"{where}: {what}", found=shown, help=help)


def _short(found: object) -> str:
    shown = isinstance(found, str | None) or (isinstance(found, int) and found.bit_length() < 64)
    text = repr(found) if shown else type(found).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."


def _nearest(name: object, known: Collection[str]) -> str | None:
    nearest = nearest_name(name, known) if isinstance(name, str) else None
    return None if nearest is None else f"did you mean {nearest!r}?"
