"""Constants that state can hold wherever sessions are kept: what JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, NoReturn, cast

from adk_fluent._words import article, describe
from adk_fluent.errors import UsageError

#: Deeper than this no value is taken; also what ends a value that contains itself.
MAX_DEPTH: Final = 64

#: Bits of the longest int that every Python writes, which has 4 300 digits.
_BITS: Final = 14_200

_HELP: Final = (
    "sessions are stored as JSON: give None, bool, int, float, str, list, or dict with str keys"
)


def as_json_text(values: Mapping[str, object], role: str) -> str:
    """Values by name as the text of a JSON object: what is changed later does not change it.

    Raises:
        UsageError: One of them is more than JSON can hold.
    """
    from json import dumps  # noqa: PLC0415  # whoever has no constants does not need it

    plain = {
        _key(name, repr(name), role): _plain(value, name, role, 0) for name, value in values.items()
    }
    return dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: object, place: str, role: str, depth: int) -> Any:
    """The value, made anew of plain types."""
    if isinstance(value, list) and depth < MAX_DEPTH:
        items = cast("list[object]", value)
        return [_plain(each, f"{place}[{at}]", role, depth + 1) for at, each in enumerate(items)]
    if isinstance(value, Mapping) and depth < MAX_DEPTH:
        rows = cast("Mapping[object, object]", value)
        return {
            _key(key, place, role): _plain(each, f"{place}[{key!r}]", role, depth + 1)
            for key, each in rows.items()
        }
    leaf = cast("object", value)
    found = _unfit(leaf)
    if found is not None:
        _refuse(role, f"{found} at {place}")
    return leaf


def _unfit(value: object) -> str | None:
    """What a value is that JSON cannot hold."""
    match value:
        case None | bool():
            return None
        case str():
            return _broken(value)
        case int():
            return "an int of thousands of digits" if value.bit_length() > _BITS else None
        case float():
            return None if isfinite(value) else str(value)
        case list() | Mapping():
            return f"more than {MAX_DEPTH} levels"
        case _:
            return describe(value)


def _broken(text: str) -> str | None:
    """What is wrong with a text: databases cut it off at NUL, or refuse it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "text that is no valid Unicode"
    return "text with a NUL character" if "\0" in text else None


def _key(key: object, place: str, role: str) -> str:
    if not isinstance(key, str):
        kind = type(key).__name__
        _refuse(role, f"{article(kind)} {kind} as a key at {place}")
    found = _broken(key)
    if found is not None:
        _refuse(role, f"{found} as a key at {place}")
    return key


def _refuse(role: str, found: str) -> NoReturn:
    raise UsageError(
        f"{role} takes values that JSON can hold",
        found=found,
        help=_HELP,
    )
