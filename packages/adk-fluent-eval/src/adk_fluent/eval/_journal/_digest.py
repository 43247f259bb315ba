"""What a value says, as a digest that is the same in every process.

Of functions it is their code, what is in their closures, and what they use of their modules; of
objects what pickle would keep of them. `adk_fluent.ir` has digests of pipelines.
"""

from __future__ import annotations

import copyreg
import dis
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple, cast

from adk_fluent.eval._journal._modules import (
    Import,
    file_of,
    is_library,
    is_near,
    is_users,
    modules_of,
    read_source,
)
from adk_fluent.ir import Node, content_hash

_ATOMS: Final = (type(None), bool, int, float, complex, str, type(...), type(NotImplemented))
_DEEPEST: Final = 100  # values in values
_MOST: Final = 200_000  # values in one
_USED: Final = 2_000  # functions and classes that are met by way of modules
_FILES: Final = 500  # that are met by way of imports
#: They hold nothing that decides anything.
_EMPTY: Final = frozenset({"_thread.lock", "_thread.RLock", "_abc._abc_data"})
_CACHED: Final = type(cache(int))
_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_FILLING: Final = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PUSH_NULL"})
_ATTRIBUTE: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
#: Where values come from that are what they say; others are live, such as clients.
_VALUES: Final = frozenset(
    {"builtins", "collections", "datetime", "decimal", "fractions", "operator", "pathlib", "re"}
)
#: They say nothing but what they are of.
_MUTE: Final = frozenset({"generator", "memoryview", "coroutine", "async_generator"})
_OF_CLASS: Final = cast("Mapping[str, Any]", vars(type))
_MODEL: Final = ("google.adk.models.base_llm", "BaseLlm")


class Digest(NamedTuple):
    """What a value says.

    Attributes:
        text: 16 hexadecimal digits.
        unsure: Types of what is in it and may say anything: nobody can tell.
    """

    text: str
    unsure: tuple[str, ...] = ()


class Read(NamedTuple):
    """What there is to a piece of code.

    Attributes:
        text: What it does, as a digest.
        names: What it uses of its module, with the attributes that it takes of it.
        imports: What it imports itself.
    """

    text: str
    names: tuple[tuple[str, ...], ...]
    imports: tuple[Import, ...]


class Digester:
    """Makes digests; what it has read of code it knows."""

    def __init__(self) -> None:
        self._codes: dict[int, tuple[CodeType, Read]] = {}
        self._files: dict[str, tuple[str, tuple[Import, ...]]] = {}

    def digest(self, value: Any) -> Digest:
        """The digest of a value, whatever it is."""
        teller = _Teller(self)
        told = [teller.tell(value), *teller.made()]
        return Digest(digest_of_text(json.dumps(told)), tuple(sorted(teller.unsure)))

    def code(self, code: CodeType) -> Read:
        """What there is to a piece of code."""
        known = self._codes.get(id(code))
        if known is None:
            told, names, imports = _code(code)
            read = Read(digest_of_text(json.dumps(told)), tuple(sorted(names)), tuple(imports))
            known = self._codes[id(code)] = (code, read)  # keeps it alive
        return known[1]

    def file(self, path: str) -> tuple[str, tuple[Import, ...]]:
        """The digest of a module's file, but for its comments, and what it imports.

        Raises:
            OSError: It cannot be read.
        """
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = read_source(Path(path).read_bytes())
        return known


def digest_of_text(text: str) -> str:
    """A text as 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Teller:
    """Takes one value apart, until nothing is left but texts.

    Functions and classes are told once each, after the value, for they may know one another.
    """

    def __init__(self, digester: Digester) -> None:
        self.unsure: set[str] = set()
        self._digester = digester
        self._open: dict[int, int] = {}  # what is being told, and how deep it is
        self._made: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._told: dict[int, tuple[Any, Any]] = {}  # with the values, which it keeps alive
        self._upmost = _DEEPEST  # of what is being told and was met again
        self._doubts = 0
        self._strict = True
        self._left = _MOST

    def tell(self, value: Any) -> Any:
        """A value as lists of texts."""
        kind = cast("type[Any]", type(value))
        if kind in _ATOMS:
            return [kind.__name__, _text(value)]
        if id(value) in self._told:
            return self._told[id(value)][1]
        depth = len(self._open)
        if id(value) in self._open:
            self._upmost = min(self._upmost, self._open[id(value)])
            return ["again", depth - self._open[id(value)]]
        self._left -= 1
        if self._left < 0 or depth >= _DEEPEST:
            return self._unsure(kind)
        upmost, self._upmost, doubts = self._upmost, _DEEPEST, self._doubts
        self._open[id(value)] = depth
        told = self._short(self._guarded(self._compound, value, kind))
        del self._open[id(value)]
        if self._upmost >= depth and self._doubts == doubts:  # the same wherever it is met
            self._told[id(value)] = (value, told)
        self._upmost = min(upmost, self._upmost)
        return told

    def _short(self, told: Any) -> Any:
        """It as a digest: what is shared may be met very often."""
        return told if told[0] in {"made", "unsure"} else digest_of_text(json.dumps(told))

    def made(self) -> Iterator[Any]:
        """The functions and classes that were met, and then those of their modules."""
        told = 0
        for each in self._made:  # which grows
            while told < len(self._made):
                yield self._guarded(self._definition, self._made[told])
                told += 1
            self._strict = False  # what others made is not what a case says
            yield self._guarded(self._used, each)
        while told < len(self._made):
            yield self._guarded(self._definition, self._made[told])
            told += 1

    def _guarded(self, tell: Callable[..., Any], value: Any, *more: Any) -> Any:
        try:
            return tell(value, *more)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001  # it is the user's object: anything may happen
            return self._unsure(cast("type[Any]", type(value)))

    def _unsure(self, kind: type) -> Any:
        path = path_of(kind)
        if self._strict or is_users(path) or issubclass(kind, FunctionType | type):
            self._doubt(path.removeprefix("builtins."))
        self._doubts += 1
        return ["unsure", path]

    def _doubt(self, what: str) -> None:
        self.unsure.add(what)
        self._doubts += 1

    # --- data ------------------------------------------------------------------------------------

    def _compound(self, value: Any, kind: type) -> Any:  # noqa: PLR0911  # a row for each sort
        if isinstance(value, Enum):
            return ["enum", kind.__qualname__, value.name, self.tell(value.value)]
        if isinstance(value, bytes | bytearray):
            return ["bytes", hashlib.sha256(value).hexdigest()]
        if isinstance(value, str | int | float):
            return ["text", self.tell(kind), _text(value), self._state(value)]
        if isinstance(value, Mapping):
            rows = [*cast("Mapping[Any, Any]", value).items()]
            rows.sort(key=lambda row: _rank(row[0]))
            return ["map", self._kind(value, dict), [[self.tell(a), self.tell(b)] for a, b in rows]]
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            return ["list", self._kind(value, list, tuple), [self.tell(each) for each in items]]
        if isinstance(value, AbstractSet):
            ranked = sorted(cast("AbstractSet[Any]", value), key=_rank)
            told = sorted(json.dumps(self.tell(each)) for each in ranked)
            return ["set", self._kind(value, set, frozenset), told]
        return self._live(value, kind)

    def _kind(self, value: Any, *plain: type) -> Any:
        kind = cast("type[Any]", type(value))
        return None if kind in plain else [self.tell(kind), self._state(value)]

    def _live(self, value: Any, kind: type) -> Any:  # noqa: PLR0911  # a row for each sort
        if isinstance(value, FunctionType | type):
            return self._number(value)
        if isinstance(value, MethodType):
            return ["method", self.tell(value.__func__), self.tell(value.__self__)]
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, staticmethod | classmethod):
            return ["static", kind.__name__, self.tell(cast("Any", value).__func__)]
        if isinstance(value, property):
            return ["property", *(self.tell(each) for each in (value.fget, value.fset))]
        if isinstance(value, cached_property):
            return ["property", self.tell(cast("Any", value).func)]
        if path_of(kind) in _EMPTY:
            return ["empty", path_of(kind)]
        if path_of(kind) == "_contextvars.ContextVar":
            return ["variable", value.name]
        if any((each.__module__, each.__name__) == _MODEL for each in kind.__mro__):
            return ["model", path_of(kind), str(value.model)]  # it holds keys and connections
        return self._object(value, kind)

    def _object(self, value: Any, kind: type) -> Any:
        if hasattr(kind, "to_ir"):
            value = value.to_ir()
        if isinstance(value, Node):
            return ["pipeline", content_hash(value)]
        if not is_library(str(getattr(kind.__getstate__, "__module__", "builtins"))):
            return self._reduced(value, kind)  # it says itself what there is to it
        if hasattr(kind, "__pydantic_core_schema__"):
            parts = (value.__dict__, value.__pydantic_extra__, value.__pydantic_private__)
            return ["data", self.tell(kind), *(self.tell(_set(each)) for each in parts)]
        if is_dataclass(value):
            rows = [(each.name, getattr(value, each.name)) for each in fields(value)]
            names = {name for name, _ in rows}
            state: dict[str, Any] = getattr(value, "__dict__", {})
            more = {name: each for name, each in state.items() if name not in names}
            return ["data", self.tell(kind), self.tell(dict(rows)), self.tell(more or None)]
        return self._reduced(value, kind)

    def _reduced(self, value: Any, kind: type) -> Any:
        """An object as pickle sees it.

        Raises:
            TypeError: It is nothing that can be kept, such as a connection.
        """
        reduce = copyreg.dispatch_table.get(kind)
        reduced: Any = value.__reduce_ex__(4) if reduce is None else reduce(value)
        if isinstance(reduced, str):  # it is found by its name
            if isinstance(value, _CACHED):
                return ["cached", self.tell(cast("Any", value).__wrapped__)]
            return ["named", path_of(kind), str(getattr(value, "__module__", None)), reduced]
        make, args, state, items, rows = (*reduced, None, None, None)[:5]
        given = (make, args, state, items and [*items], rows and [*rows])
        return ["object", self.tell(kind), [self.tell(each) for each in given]]

    def _state(self, value: Any) -> Any:
        """What somebody has set of a value beside what it is."""
        return self.tell(getattr(value, "__dict__", None) or None)

    # --- functions and classes -------------------------------------------------------------------

    def _number(self, value: Any) -> Any:
        if isinstance(value, type) and is_library(value.__module__):
            return ["type", path_of(value)]
        number = self._numbers.get(id(value))
        if number is None:
            if not self._strict and len(self._made) >= _USED:
                self._doubt(f"what {_name(value)} uses")
                return ["far", _name(value)]
            number = self._numbers[id(value)] = len(self._made)
            self._made.append(value)
        return ["made", number]

    def _definition(self, value: Any) -> Any:
        return self._class(value) if isinstance(value, type) else self._function(value)

    def _function(self, function: FunctionType) -> Any:
        home = _module_of(function)
        text = home if is_library(home) else self._digester.code(function.__code__).text
        strict, self._strict = self._strict, self._strict or is_users(home)
        cells: list[Any] = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self.tell(cell.cell_contents))
            except ValueError:  # it is not bound yet
                cells.append(None)
        given = (function.__defaults__, function.__kwdefaults__, function.__dict__ or None)
        more = [self.tell(each) for each in given]
        self._strict = strict
        return ["function", function.__qualname__, text, cells, more]

    def _class(self, kind: type) -> Any:
        rows: list[Any] = []
        members: list[tuple[str, Any]] = sorted(vars(kind).items())
        for name, each in members:
            is_code = isinstance(each, FunctionType | staticmethod | classmethod)
            if is_code or not (name.startswith("__") or name == "_abc_impl"):
                is_told = is_code or isinstance(each, property | cached_property | type)
                rows.append([name, self.tell(each) if is_told else self._besides(each)])
        return ["class", kind.__qualname__, [self.tell(each) for each in kind.__bases__], rows]

    def _used(self, function: Any) -> Any:
        """What a function uses of its module and of others, and what it imports."""
        if isinstance(function, type) or is_library(_module_of(function)):
            return None
        home, read = _module_of(function), self._digester.code(function.__code__)
        rows: list[Any] = []
        for name, *attributes in read.names:
            each = function.__globals__.get(name)
            if each is None:
                if name == "__import__":
                    self._doubt(name)
                continue
            path = [name]
            while attributes and isinstance(each, ModuleType) and is_near(each.__name__, home):
                if attributes[0] not in vars(each):
                    break  # the module makes it when it is asked: all of it counts
                path.append(attributes.pop(0))
                each = vars(each)[path[-1]]
            if attributes[:1] == ["import_module"] and getattr(each, "__name__", "") == "importlib":
                self._doubt("importlib.import_module")
            rows.append([path, self._guarded(self._of_module, each, home)])
        package = str(function.__globals__.get("__package__") or "")
        return [rows, self._imported(read.imports, package, home)]

    def _of_module(self, value: Any, home: str) -> Any:
        """What a module holds by a name, as a function of the module `home` uses it."""
        if isinstance(value, FunctionType | type | _CACHED):
            return self.tell(value) if is_near(_home(value), home) else _name(value)
        return self._besides(value)

    def _besides(self, value: Any) -> Any:
        """What a module or a class holds beside its code.

        Values and collections, and objects of the user's classes; of other objects, such as
        clients, nothing counts but what they are.
        """
        kind = cast("type[Any]", type(value))
        module, path = path_of(kind).partition(".")[0], path_of(kind)
        is_mutable = isinstance(value, list | dict | set | bytearray)
        is_code = isinstance(value, partial | MethodType | BuiltinFunctionType | ModuleType)
        is_value = module in _VALUES and kind.__name__ not in _MUTE
        is_said = hasattr(kind, "to_ir") or hasattr(kind, "__pydantic_core_schema__")
        is_data = isinstance(value, Enum | tuple | frozenset) or is_dataclass(value)
        if not any((is_mutable, is_code, is_value, is_said, is_data, is_users(path))):
            return ["of", path]
        strict, doubts = self._strict, self._doubts
        self._strict = is_mutable or is_users(path)
        told = self.tell(value)
        self._strict = strict
        return told if self._doubts == doubts else ["of", path]

    # --- modules ---------------------------------------------------------------------------------

    def _module(self, module: ModuleType) -> Any:
        """A module that is used as a whole: of the user's, all that it says and imports."""
        name = module.__name__
        if not is_users(name):
            return ["module", name]
        file = getattr(module, "__file__", None)
        if file is None and not hasattr(module, "__path__"):
            self._doubt(f"module {name}")
            return ["module", name]
        return ["module", name, self._files({name: file} if file else {name: None}, name)]

    def _imported(self, imports: Sequence[Import], package: str, home: str) -> Any:
        """What is imported while a function runs, whether or not it was imported before."""
        return self._files(dict.fromkeys(modules_of(imports, package)), home) if imports else None

    def _files(self, todo: dict[str, str | None], home: str) -> Any:
        """The files of modules, and of those that they import."""
        rows: dict[str, str] = {}
        while todo:
            name, path = todo.popitem()
            if name in rows or not is_near(name, home):
                continue
            if len(rows) >= _FILES:
                self._doubt(f"what {name} imports")
                break
            place, is_package = (path, path.endswith("__init__.py")) if path else file_of(name)
            rows[name] = ""
            if place is None:
                if not is_package and name in sys.modules:
                    self._doubt(f"module {name}")  # somebody made it without a file
                continue
            try:
                rows[name], imports = self._digester.file(place)
            except OSError:
                self._doubt(f"module {name}")
                continue
            package = name if is_package else name.rpartition(".")[0]
            todo |= dict.fromkeys(modules_of(imports, package))
        return sorted(rows.items())


def _code(code: CodeType) -> tuple[list[Any], set[tuple[str, ...]], list[Import]]:
    """What a function does, without where it stands; code that it holds is code, too."""
    names, imports = _uses(code)
    held: list[Any] = []
    for each in code.co_consts:
        if isinstance(each, CodeType):
            told, more, others = _code(each)
            names |= more
            imports += others
        else:
            told = _Teller(Digester()).tell(each)
        held.append(told)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    words = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    does = [code.co_code.hex(), code.co_exceptiontable.hex(), counts, words, held]
    return does, names, imports


def _uses(code: CodeType) -> tuple[set[tuple[str, ...]], list[Import]]:
    """The globals that code uses, with the attributes that it takes of them, and its imports."""
    names: set[tuple[str, ...]] = set()
    imports: list[Import] = []
    path: list[str] = []
    before: list[Any] = [0, None]
    for each in dis.get_instructions(code):
        if each.opname in _FILLING:
            continue
        if path and each.opname in _ATTRIBUTE:
            path.append(each.argval)
            continue
        if path:
            names.add(tuple(path))
        path = [each.argval] if each.opname in _GLOBAL else []
        if each.opname == "IMPORT_NAME":
            imports.append(Import(each.argval, before[-2] or 0, tuple(before[-1] or ())))
        before = [before[-1], each.argval]
    return names, imports


def _set(fields: dict[str, Any] | None) -> dict[str, Any]:
    """What is set of a model: others come with versions of its library."""
    return {name: each for name, each in (fields or {}).items() if each is not None}


def _module_of(function: FunctionType) -> str:
    """Where its code is; `functools.wraps` says otherwise."""
    return str(function.__globals__.get("__name__", ""))


def _home(value: Any) -> str:
    return str(getattr(value, "__module__", ""))


def name_of_type(value: Any) -> str:
    """What a value is, whatever it says itself."""
    return path_of(cast("type[Any]", type(value))).rpartition(".")[2]


def path_of(kind: type) -> str:
    """Where a class is, whatever its metaclass says."""
    module, name = (_OF_CLASS[each].__get__(kind) for each in ("__module__", "__qualname__"))
    return f"{module}.{name}" if isinstance(module, str) else str.__str__(name)


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", ""))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return hex(value)  # long ones have no decimals
    return float.__repr__(value) if isinstance(value, float) else repr(value)


def _rank(value: Any) -> tuple[str, str]:
    """An order that is the same in every process, of what can be told so."""
    kind = cast("type[Any]", type(value))
    text = repr(value) if kind in _ATOMS else _name(value)
    return path_of(kind), text
