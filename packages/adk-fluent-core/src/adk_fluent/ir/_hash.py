"""Two hashes of a pipeline, equal in every process, hash seed and supported Python version."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from types import CodeType, FunctionType, MethodType, ModuleType, UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast, get_args, get_origin

from adk_fluent.ir._kinds import class_of, kind_name, path_of, reference_of
from adk_fluent.ir._node import fold
from adk_fluent.ir._path import name_of_object
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._source import text_of
from adk_fluent.ir._types import is_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.ir._node import Node
    from adk_fluent.ir._record import FieldSpec, Schema

#: Raised when hashes of unchanged pipelines change; runs that were paused before cannot resume.
VERSION: Final = 1

#: Values and closures nested deeper than this are known by their type only.
MAX_DEPTH: Final = 50


def structure_hash(root: Node) -> str:
    """What a pipeline is built of: kinds, names, nesting. With the same, a paused run may resume.

    Returns:
        SHA-256 in hexadecimal.
    """
    return _hash_of(root, "structure", lambda _: b"")


def content_hash(root: Node) -> str:
    """What a pipeline says: its structure and every field, except source locations.

    A function counts by module, qualified name, source text, defaults and the plain values in its
    closure; one without source by its names and constants. A middleware that can be written as a
    `MiddlewareRef` counts as that one. Other live objects count by type and name, a model by what
    it is called, too, and one with a method ``__content_key__`` by the plain data that this
    returns. A `Ref` that has a digest counts by the digest alone.

    Returns:
        SHA-256 in hexadecimal.
    """
    return _hash_of(root, "content", _Encoder().fields)


def _hash_of(root: Node, what: str, data_of: Callable[[Node], bytes]) -> str:
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL; whoever only builds does not need it

    kinds: dict[type, bytes] = {}

    def combine(node: Node, below: tuple[bytes, ...]) -> bytes:
        kind = type(node)
        head = kinds.get(kind) or kinds.setdefault(kind, kind_name(kind).encode())
        parts = (head, _utf8(node.name), str(node.shape()).encode(), data_of(node), b"".join(below))
        return sha256(_pack(b"node", parts)).digest()

    return sha256(f"adk-fluent {what} {VERSION}\n".encode() + fold(root, combine)).hexdigest()


def _pack(tag: bytes, parts: Iterable[bytes]) -> bytes:
    """Parts as one part; nothing else packs to the same bytes."""
    return tag + b"(" + b"".join([b"%d:%b" % (len(part), part) for part in parts]) + b")"


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _Encoder:
    """Turns data into bytes; equal data into equal bytes."""

    def __init__(self) -> None:
        self.open: set[int] = set()  # what is being encoded: a value may contain itself
        self.refs: dict[int, tuple[Any, bytes]] = {}  # kept alive, so that no id is used again

    def fields(self, record: Any) -> bytes:
        """The fields that are not at their defaults: a new one does not change old hashes."""
        schema: Schema = record.__record__
        parts: list[bytes] = []
        for name, value in zip(schema.compared, schema.data(record), strict=True):
            spec = schema.fields[name]
            if value is not spec.default and not _is_default(spec, value):
                parts += (name.encode(), self.value(value))
        return _pack(b"fields", parts)

    def value(self, value: Any) -> bytes:
        if value is None:
            return b"none"
        if isinstance(value, str):
            return b"text " + _utf8(value)
        if isinstance(value, int | float):
            return _number(value)
        if isinstance(value, bytes | bytearray):
            return b"bytes " + bytes(value)
        if id(value) in self.open or len(self.open) >= MAX_DEPTH:
            return _pack(b"again", [path_of(class_of(value)).encode()])
        self.open.add(id(value))
        try:
            return self.compound(value)
        finally:
            self.open.remove(id(value))

    def compound(self, value: Any) -> bytes:
        if isinstance(value, Ref):
            return self.ref(value)
        if is_value(value):
            return _pack(kind_name(class_of(value)).encode(), [self.fields(value)])
        if isinstance(value, tuple | list):
            tag = b"tuple" if isinstance(value, tuple) else b"list"
            return _pack(tag, self.each(value))
        if isinstance(value, AbstractSet):
            return _pack(b"set", sorted(self.each(value)))
        if isinstance(value, Mapping):
            rows = cast("Mapping[Any, Any]", value).items()
            return _pack(b"map", sorted(_pack(b"row", self.each(row)) for row in rows))
        return self.live(value)

    def each(self, values: Any) -> list[bytes]:
        return [self.value(v) for v in values]

    def ref(self, ref: Ref) -> bytes:
        if ref.digest is not None:
            return b"digest " + _utf8(ref.digest)
        known = self.refs.get(id(ref.value))
        if known is None:
            known = self.refs[id(ref.value)] = (ref.value, self.value(ref.value))
        return known[1]

    def live(self, value: Any) -> bytes:  # noqa: PLR0911  # a row for each sort of object
        """What is no data: functions, types, and objects that Python or a user made."""
        kind = class_of(value)
        if isinstance(value, FunctionType):
            return self.function(value)
        if isinstance(value, MethodType):
            return _pack(b"method", self.each((value.__func__, value.__self__)))
        if isinstance(value, partial):
            made = cast("partial[Any]", value)
            return _pack(b"partial", self.each((made.func, made.args, made.keywords)))
        if isinstance(value, itemgetter | attrgetter | methodcaller):
            return _pack(b"operator", self.each(cast("Any", value).__reduce__()))
        if get_origin(value) is not None:
            return self.type_form(value)
        if isinstance(value, type):
            return b"type " + path_of(value).encode()
        if isinstance(value, Enum):
            return _pack(b"enum", [path_of(kind).encode(), _utf8(value.name)])
        if path_of(kind) == "re:Pattern":  # its repr is cut off
            return _pack(b"pattern", self.each((value.pattern, value.flags)))
        if kind.__module__.partition(".")[0] in _PRINTED:
            return _pack(b"printed", [kind.__qualname__.encode(), _utf8(repr(value))])
        reference = reference_of(value)
        if reference is not None:
            return self.value(reference)
        return self.object(value, kind)

    def type_form(self, form: Any) -> bytes:
        """``list[int]``, ``int | None``, ``Literal["a"]``: equal ones are encoded alike."""
        origin = get_origin(form)
        if origin in (Union, UnionType):
            return _pack(b"union", sorted(self.each(get_args(form))))
        if origin is Literal:
            return _pack(b"literal", sorted(self.each(get_args(form))))
        return _pack(b"generic", self.each((origin, get_args(form))))

    def object(self, value: Any, kind: type) -> bytes:
        module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(qualname, str) and not isinstance(value, ModuleType):
            wrapped = getattr(value, "__wrapped__", None)  # functools.lru_cache
            path = f"{module}:{qualname}"
            return _pack(b"builtin", [path_of(kind).encode(), _utf8(path), self.value(wrapped)])
        parts = [path_of(kind).encode(), _utf8(name_of_object(value))]
        key = getattr(kind, "__content_key__", None)
        if callable(key):
            parts.append(self.value(key(value)))
        elif hasattr(kind, "generate_content_async"):  # one of ADK's models
            parts.append(self.value(_text(getattr(value, "model", None))))
        return _pack(b"object", parts)

    def function(self, function: FunctionType) -> bytes:
        text = text_of(function)
        code = function.__code__
        parts = [
            _utf8(f"{function.__module__}:{function.__qualname__}"),
            self.bare(code) if text is None else _utf8(text),
            self.value(function.__defaults__),
            self.value(function.__kwdefaults__),
        ]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                parts += (_utf8(name), self.value(cell.cell_contents))
            except ValueError:  # the cell is empty: the variable is not bound yet
                parts += (_utf8(name), b"unbound")
        return _pack(b"function", parts)

    def bare(self, code: CodeType) -> bytes:
        """A function without source, by what versions of Python agree on."""
        names, constants = set[str](), set[bytes]()
        codes = [code]
        for each in codes:  # code of inner functions is appended as it is met
            names |= {*each.co_names, *each.co_varnames, *each.co_freevars, *each.co_cellvars}
            for constant in each.co_consts:
                if isinstance(constant, CodeType):
                    codes.append(constant)
                elif constant is not None:
                    constants.add(self.value(constant))
        count = code.co_argcount + code.co_kwonlyargcount
        starred = code.co_flags & 12  # *args and **kwargs
        signature = (code.co_posonlyargcount, code.co_kwonlyargcount, starred)
        arguments = (*signature, *code.co_varnames[: count + starred.bit_count()])
        plain = sorted(name for name in names if not name.startswith("."))
        return _pack(b"bare", [*self.each((arguments, plain)), *sorted(constants)])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


#: Modules of Python whose objects are values, and whose repr is all there is to them.
_PRINTED: Final = {"datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid"}


def _number(value: float) -> bytes:
    """1, 1.0 and True are equal, so they are encoded alike."""
    if isinstance(value, float) and not value.is_integer():
        return b"number " + float.__repr__(value).encode()
    return b"number " + hex(int(value)).encode()


def _is_default(spec: FieldSpec, value: Any) -> bool:
    default = spec.default
    if spec.is_default(value):
        return True
    numbers = isinstance(value, int | float) and isinstance(default, int | float)
    return numbers and value == default
