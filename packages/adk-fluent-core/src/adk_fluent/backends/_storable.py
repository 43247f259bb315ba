"""Whether a value comes out of a session as it went in: JSON, and no deeper than can be read.

ADK's SQLite service writes an event of up to 250 levels with pydantic, and reads back one of fewer
than 200: with a value in between, the session could never be loaded again. Of text in state it
keeps what stands before the first NUL, and PostgreSQL takes no such text at all; in events, which
SQLite keeps as one text of JSON, a NUL does no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from datetime import date, time
from math import isfinite
from typing import Any, Final, NamedTuple, cast

#: Lists and dicts inside each other; the event around them adds some of its own.
MAX_DEPTH: Final = 128

#: Finds what is wrong with a text.
_TextFault = Callable[[str], "StorageFault | None"]

_DIGITS: Final = 4000  # of an int; Python turns no more than 4300 into text
_BITS: Final = int(_DIGITS * 3.32)
_LARGE: Final = 1 << 62


class StorageFault(NamedTuple):
    """The reason a value cannot be stored in session state.

    Attributes:
        path: The keys and positions that lead to the part that cannot be, as in ``['a'][0]``.
        says: What that part is: the end of a sentence.
        help: What to write instead.
        part: The part itself.
    """

    path: str
    says: str
    help: str
    part: object


def storage_fault(value: object) -> StorageFault | None:
    """Find the first part of a value that session state cannot hold.

    State is stored as JSON. Tuples and subclasses of str, int, float, list and dict are accepted:
    they come back as what JSON makes of them.

    Args:
        value: What is to be written to state.

    Returns:
        The fault, or None where the value can be stored.
    """
    return _fault(value, (), state_text_fault)


def json_fault(value: object) -> StorageFault | None:
    """The same for what is no state: what goes into an event, or to a model."""
    return _fault(value, (), text_fault)


def state_text_fault(text: str) -> StorageFault | None:
    """What of a text session state cannot hold; None if there is nothing."""
    if (at := text.find("\0")) < 0:
        return text_fault(text)
    return StorageFault(
        "",
        f"has a NUL character at position {at}, where databases cut text off, or refuse it",
        'take it out: text.replace("\\0", "")',
        text,
    )


def text_fault(text: str) -> StorageFault | None:
    """Half of a character, which no encoding holds; None if there is none in the text."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return StorageFault(
            "",
            f"has half a character ({text[error.start]!a}) at position {error.start}",
            'repair it: text.encode("utf-8", "replace").decode()',
            text,
        )
    return None


def _fault(value: Any, above: tuple[int, ...], of_text: _TextFault) -> StorageFault | None:
    """The fault of a value that stands in the containers with the ids `above`."""
    if isinstance(value, str):
        return of_text(value)
    find = _SCALARS.get(cast("type[Any]", type(value)))
    if find is not None:
        return find(value)
    if isinstance(value, dict | list | tuple):
        return _container_fault(cast("object", value), above, of_text)
    kind = next((kind for kind in _SCALARS if isinstance(value, kind)), None)
    return _object_fault(value) if kind is None else _SCALARS[kind](value)


def _is_fine(value: object) -> bool:
    """Whether a value is one of those that nearly all are: the short way."""
    if type(value) is str:
        return value.isascii() and "\0" not in value
    return type(value) is int and -_LARGE < value < _LARGE


def _container_fault(
    value: object, above: tuple[int, ...], of_text: _TextFault
) -> StorageFault | None:
    if id(value) in above:
        return StorageFault("", "contains itself", "write a copy that does not", value)
    if len(above) == MAX_DEPTH:
        says = f"lies below {MAX_DEPTH} lists and dicts"
        return StorageFault(
            "", says, "keep it flat, or write it as one text: json.dumps(...)", value
        )
    above = (*above, id(value))
    if isinstance(value, dict):
        return _dict_fault(cast("dict[Any, Any]", value), above, of_text)
    return _list_fault(cast("list[Any]", value), above, of_text)


def _list_fault(
    value: list[Any] | tuple[Any, ...], above: tuple[int, ...], of_text: _TextFault
) -> StorageFault | None:
    for at, each in enumerate(value):
        if not _is_fine(each) and (fault := _fault(each, above, of_text)) is not None:
            return fault._replace(path=f"[{at}]{fault.path}")
    return None


def _dict_fault(
    value: dict[Any, Any], above: tuple[int, ...], of_text: _TextFault
) -> StorageFault | None:
    for key, each in value.items():
        if not isinstance(key, str):
            says = f"has the key {key!r:.40}, {kind_of(key)}"
            return StorageFault("", says, "make the keys str: {str(key): ...}", key)
        if _is_fine(key) and _is_fine(each):
            continue
        if (fault := of_text(key) or _fault(each, above, of_text)) is not None:
            return fault._replace(path=f"[{key!r:.40}]{fault.path}")
    return None


def _int_fault(value: int) -> StorageFault | None:
    if value.bit_length() <= _BITS:
        return None
    return StorageFault(
        "", f"is an int of more than {_DIGITS} digits", "write it as text: hex(...)", value
    )


def _float_fault(value: float) -> StorageFault | None:
    if isfinite(value):
        return None
    return StorageFault("", f"is {float(value)}, for which JSON has no word", "write None", value)


def _object_fault(value: object) -> StorageFault:
    instead = next((told for fits, told in _INSTEAD if fits(value)), _NOTHING)
    return StorageFault("", f"is {kind_of(value)}", instead, value)


def kind_of(value: object) -> str:
    """The type of a value, with an article."""
    name = type(value).__qualname__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def _none_fault(value: object) -> None:
    return None


_SCALARS: Final[dict[type, Callable[[Any], StorageFault | None]]] = {
    type(None): _none_fault,
    bool: _none_fault,
    int: _int_fault,
    float: _float_fault,
}

_NOTHING: Final = (
    "write text, numbers, lists or dicts; live objects are handed over by .inject(...)"
)
#: What JSON there is for an object; the first that fits.
_INSTEAD: Final[tuple[tuple[Callable[[object], bool], str], ...]] = (
    (lambda value: isinstance(value, set | frozenset), "write a list: sorted(...)"),
    (lambda value: isinstance(value, date | time), "write text: value.isoformat()"),
    (
        lambda value: isinstance(value, bytes | bytearray | memoryview),
        "write text: base64.b64encode(...).decode(), or save it as an artifact",
    ),
    (callable, "write data; what steps need to call is handed over by .inject(...)"),
    (
        lambda value: hasattr(value, "model_dump"),
        'write a dict: value.model_dump(mode="json")',
    ),
    (is_dataclass, "write a dict: dataclasses.asdict(value)"),
)
