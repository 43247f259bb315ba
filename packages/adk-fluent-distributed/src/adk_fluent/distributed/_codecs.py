"""What state may hold beside JSON: the values that the codecs of a pipeline's boundaries carry.

State is JSON. A value that JSON cannot hold stands in it as the name of its codec, its kind, and
its bytes in base64, or the name under which these are kept. Nothing is pickled.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from contextlib import suppress
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from adk_fluent.distributed._errors import BoundaryError, EngineError
from adk_fluent.extend import StorageFault, describe, storage_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

#: Bytes above which what a codec made, or a part of a content, is kept beside what has it.
LARGE: Final = 65_536
#: What the names of such bytes begin with.
PREFIX: Final = "sha256:"
#: The key that a value of a codec has in JSON; a dict with this key is such a value, too.
MARK: Final = "$codec"
_DEEPEST: Final = 128


class Codec(Protocol):
    """Makes bytes of values that JSON cannot hold, and values of the bytes."""

    @property
    def name(self) -> str:
        """What a boundary calls it, and what stands beside the bytes."""
        ...

    def kind(self, value: object) -> str | None:
        """Return which of its kinds a value is; None if it cannot carry the value."""
        ...

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value that it carries."""
        ...

    def decode(self, kind: str, data: bytes) -> object:
        """Return the value.

        Raises:
            Exception: The bytes are none of this kind.
        """
        ...


class _Msgpack:
    """Bytes, times with a zone, numbers that are none, and dicts of other keys than text."""

    name = "msgpack"

    def __init__(self) -> None:
        self._library: Any = _library(self.name, "msgpack")

    def kind(self, value: object) -> str | None:
        with suppress(TypeError, ValueError, OverflowError, RecursionError):
            self.decode("", self.encode(value))
            return type(value).__name__
        return None

    def encode(self, value: Any) -> bytes:
        return self._library.packb(value, datetime=True)

    def decode(self, kind: str, data: bytes) -> object:
        return self._library.unpackb(data, timestamp=3, strict_map_key=False)


class _Protobuf:
    """Messages whose classes are in protobuf's own pool, as generated modules put them there."""

    name = "protobuf"

    def __init__(self) -> None:
        self._message: Any = _library(self.name, "google.protobuf.message").Message
        self._pool: Any = _library(self.name, "google.protobuf.descriptor_pool").Default()
        self._class_of: Any = _library(self.name, "google.protobuf.message_factory").GetMessageClass

    def kind(self, value: object) -> str | None:
        if not isinstance(value, self._message):
            return None
        message: Any = value
        with suppress(KeyError):
            known = self._pool.FindMessageTypeByName(message.DESCRIPTOR.full_name)
            if known is message.DESCRIPTOR and message.IsInitialized():
                return known.full_name
        return None

    def encode(self, value: Any) -> bytes:
        return value.SerializeToString(deterministic=True)

    def decode(self, kind: str, data: bytes) -> object:
        try:
            known = self._pool.FindMessageTypeByName(kind)
        except KeyError as error:
            raise BoundaryError(
                f"this process knows no message {kind!r} of protobuf",
                help="let the pipeline's module import the one that protoc made of it",
            ) from error
        return self._class_of(known).FromString(data)


class _Arrow:
    """Tables and record batches."""

    name = "arrow"

    def __init__(self) -> None:
        self._arrow: Any = _library(self.name, "pyarrow")
        self._ipc: Any = _library(self.name, "pyarrow.ipc")

    def kind(self, value: object) -> str | None:
        if isinstance(value, self._arrow.Table):
            return "table"
        return "batch" if isinstance(value, self._arrow.RecordBatch) else None

    def encode(self, value: Any) -> bytes:
        sink = self._arrow.BufferOutputStream()
        with self._ipc.new_stream(sink, value.schema) as stream:
            stream.write(value)
        return sink.getvalue().to_pybytes()

    def decode(self, kind: str, data: bytes) -> object:
        with self._ipc.open_stream(data) as stream:
            return stream.read_all() if kind == "table" else stream.read_next_batch()


_KINDS: Final = {each.name: each for each in (_Msgpack, _Protobuf, _Arrow)}


def _library(codec: str, name: str) -> Any:
    """A module of a codec's library.

    Raises:
        BoundaryError: It is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise BoundaryError(
            f"serialization={codec!r} needs {name.partition('.google')[0]}",
            found="it is not installed here",
            help=f"pip install 'adk-fluent-distributed[{codec}]'; runs keep their place",
        ) from error


@cache
def codec_named(name: str) -> Codec:
    """The codec of this name.

    Raises:
        BoundaryError: What it needs is not installed, or there is none.
    """
    if name not in _KINDS:
        raise BoundaryError(
            f"this version has no codec {name!r}",
            found=f"it has json, {', '.join(_KINDS)}",
            help="install the version that wrote it; runs keep their place",
        )
    return _KINDS[name]()


def codecs_of(names: Iterable[str]) -> tuple[Codec, ...]:
    """The codecs of boundaries, beside JSON, which all have.

    Raises:
        BoundaryError: What one needs is not installed.
    """
    return tuple(codec_named(name) for name in dict.fromkeys(names) if name != "json")


def state_fault(
    value: Any, codecs: Sequence[Codec], above: tuple[int, ...] = ()
) -> StorageFault | None:
    """Find the first part of a value that neither JSON nor a codec carries.

    Args:
        value: The value.
        codecs: The codecs.
        above: The ids of the lists and dicts that it is a part of.
    """
    fault = storage_fault(value)
    if fault is None or any(each.kind(value) is not None for each in codecs):
        return None
    if id(value) in above:
        return StorageFault("", "contains itself", "write a copy that does not", value)
    if not fault.path or len(above) == _DEEPEST:  # it is no part: the value itself
        helper = helper_of(type(fault.part))
        if isinstance(fault.part, datetime) and fault.part.tzinfo is None:
            helper = None  # msgpack carries times with a zone alone
        if helper is None or helper in [each.name for each in codecs]:
            return fault
        help = f"{fault.help}; or let boundaries carry it: serialization={helper!r}"
        return fault._replace(help=help)
    for step, part in _parts(value):
        found = state_fault(part, codecs, (*above, id(value)))
        if found is not None:
            return found._replace(path=f"[{step!r:.40}]{found.path}")
    return None


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).items()
    return enumerate(cast("Sequence[Any]", value))


def _is_of(module: str) -> Callable[[type], bool]:
    return lambda kind: any(f"{each.__module__}.".startswith(f"{module}.") for each in kind.__mro__)


#: Which codec could carry what none does.
_HELPERS: Final[tuple[tuple[Callable[[type], bool], str], ...]] = (
    (_is_of("pyarrow"), "arrow"),
    (_is_of("google.protobuf"), "protobuf"),
    (lambda kind: issubclass(kind, bytes | bytearray | datetime), "msgpack"),
)


def helper_of(kind: type) -> str | None:
    """The codec that values of a type need, as far as the type says; None where it says nothing."""
    return next((name for fits, name in _HELPERS if fits(kind)), None)


def pack(
    state: dict[str, Any], codecs: Sequence[Codec], found: dict[str, bytes] | None = None
) -> dict[str, Any]:
    """State as JSON holds it.

    Args:
        state: The state, or a part of it.
        codecs: What carries what JSON cannot hold.
        found: Takes large bytes, by the names that stand for them; None leaves them where they are.
    """
    faulty = bool(codecs) and storage_fault(state) is not None
    if not faulty and MARK not in json.dumps(state, default=str):
        return state
    return {key: _packed(value, codecs, found) for key, value in state.items()}


def _packed(value: Any, codecs: Sequence[Codec], found: dict[str, bytes] | None) -> Any:
    if isinstance(value, str):
        return value
    fault = storage_fault(value) if codecs else None
    for codec in codecs if fault is not None else ():
        kind = codec.kind(value)
        if kind is not None:
            data, named = codec.encode(value), {MARK: codec.name, "kind": kind}
            if found is None or len(data) <= LARGE:
                return {**named, "data": b64encode(data).decode()}
            name = PREFIX + sha256(data).hexdigest()
            found[name] = data
            return {**named, "bytes": name}
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        packed = {key: _packed(each, codecs, found) for key, each in parts.items()}
        return {MARK: "json", "value": packed} if MARK in packed else packed
    if isinstance(value, list | tuple):
        return [_packed(each, codecs, found) for each in cast("Sequence[Any]", value)]
    return value


def _kept_nowhere(name: str) -> bytes:
    raise KeyError(name)


def unpack(value: Any, kept: Callable[[str], bytes] = _kept_nowhere) -> Any:
    """The value that was packed.

    Args:
        value: JSON data; it is not used any more.
        kept: Returns the bytes of a name.

    Raises:
        BoundaryError: What a codec needs is not installed, or a class is not known.
        EngineError: It was not packed by an engine.
    """
    if isinstance(value, list):
        return [unpack(each, kept) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    parts = cast("dict[str, Any]", value)
    name = parts.get(MARK)
    if name is None and MARK not in parts:
        return {key: unpack(each, kept) for key, each in parts.items()}
    try:
        if name == "json":
            return {key: unpack(each, kept) for key, each in parts["value"].items()}
        data = kept(parts["bytes"]) if "bytes" in parts else b64decode(parts["data"])
        return codec_named(name).decode(parts["kind"], data)
    except (BoundaryError, EngineError):
        raise
    except Exception as error:
        raise EngineError(
            "state holds what no engine has written",
            found=f"{describe(parts)} that {name!r} cannot read: {type(error).__name__}: {error}",
            help="only adk-fluent writes the key; restore the database from a backup",
        ) from error


def unpacked(text: str, kept: Callable[[str], bytes] = _kept_nowhere) -> dict[str, Any]:
    """State that stands as a text of JSON."""
    state: dict[str, Any] = json.loads(text)
    return {key: unpack(each, kept) for key, each in state.items()} if MARK in text else state


def names_in(text: str) -> set[str]:
    """The names of bytes that a text of JSON needs to be unpacked."""
    return set(_names(json.loads(text))) if MARK in text else set()


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        parts = cast("dict[str, Any]", value)
        if "bytes" in parts and parts.get(MARK) not in (None, "json"):
            yield parts["bytes"]
            return
        if parts.get(MARK) == "json":
            parts = parts["value"]
        value = [*parts.values()]
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _names(each)


def shown(state: dict[str, Any], codecs: Sequence[Codec]) -> dict[str, Any]:
    """State as JSON that people read: what a codec carries is its name and its kind."""

    def show(value: Any) -> Any:
        if storage_fault(value) is None:
            return value
        for codec in codecs:
            if (kind := codec.kind(value)) is not None:
                return {MARK: codec.name, "kind": kind}
        if isinstance(value, dict):
            return {key: show(each) for key, each in cast("dict[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [show(each) for each in cast("Sequence[Any]", value)]
        return value

    return show(state) if codecs else state
