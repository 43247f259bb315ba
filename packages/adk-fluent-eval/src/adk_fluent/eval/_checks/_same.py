"""Whether a value is what was expected, and values in words."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from os import PathLike
from typing import Any, Final, cast

_SHOWN: Final = 300  # characters of a value in a reason
_DEPTH: Final = 60
_BITS: Final = 8192  # beyond some 14000, neither Python nor its JSON reads or writes an int
_TEXTS: Final = (date, time, timedelta, PathLike)
_TEXTS_BY_NAME: Final = {("decimal", "Decimal"), ("uuid", "UUID")}  # not imported for it


def fits(expected: Any, actual: Any) -> str:
    """Why a value is not what was expected; empty if it is.

    Args:
        expected: A value, or a function that returns whether a value will do.
        actual: The value.
    """
    if is_condition(expected):
        return _refusal(expected, actual)
    if same(expected, actual):
        return ""
    want, have = shown(expected), shown(actual)
    if want == have:  # such as a Decimal and its text
        want += f" ({type(expected).__name__})"
        have += f" ({type(actual).__name__})"
    return f"expected {want}, found {have}"


def is_condition(expected: Any) -> bool:
    """Whether it is a function that says whether a value will do, not a value."""
    return callable(expected) and not isinstance(expected, type)


def _refusal(condition: Any, actual: Any) -> str:
    name = name_of(condition)
    try:
        verdict: Any = condition(actual)
        if isinstance(verdict, Awaitable):
            if isinstance(verdict, Coroutine):
                verdict.close()  # or Python warns that nobody awaits it
            return f"{name} is async, and says nothing by itself"
        if verdict is None:
            return f"{name} returned neither true nor false for {shown(actual)}"
        yes = bool(verdict) and not (isinstance(verdict, float) and math.isnan(verdict))
    except Exception as error:  # noqa: BLE001  # it is the user's function: anything may happen
        return f"{name} raised {told(error)}"
    return "" if yes else f"{name} says no to {shown(actual)}"


def same(expected: Any, actual: Any) -> bool:
    """Whether two values are equal; unlike in Python ``True`` is not 1, and a tuple is a list.

    NaN equals nothing, and neither do values that cannot be compared.
    """
    try:
        return _same(expected, actual)
    except Exception:  # noqa: BLE001  # arrays have no one answer; some are nested too deeply
        return False


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        left, right = cast("Mapping[Any, Any]", expected), cast("Mapping[Any, Any]", actual)
        return _marked(left) == _marked(right) and all(_same(left[key], right[key]) for key in left)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        pair = cast("list[Any]", expected), cast("list[Any]", actual)
        return len(pair[0]) == len(pair[1]) and all(map(_same, *pair))
    if isinstance(expected, AbstractSet) and isinstance(actual, AbstractSet):
        wanted, there = cast("AbstractSet[Any]", expected), cast("AbstractSet[Any]", actual)
        # Python finds a NaN in a set by its identity
        return _marked(wanted) == _marked(there) and all(map(_same, wanted, wanted))
    return bool(expected == actual)


def _marked(items: Iterable[Any]) -> set[tuple[bool, Any]]:
    """Items of a set or mapping, those apart that Python takes for a number."""
    return {(isinstance(each, bool), each) for each in items}


# --- values in words -----------------------------------------------------------------------------


def name_of(function: Any) -> str:
    """A function in a reason."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return "the condition" if name == "<lambda>" else f"{name}()"


def told(error: BaseException) -> str:
    """An error in a reason, as ``Type: message`` in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  # it is the user's error: anything may happen
        text = ""
    kind = type(error).__name__
    return f"{kind}: {_cut(text)}" if text else kind


def shown(value: Any) -> str:
    """A value in a reason, cut where it is long."""
    return _cut(name_of(value) if is_condition(value) else _json(value))


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON can hold it: models as mappings, all else that is none of its types as text.

    Numbers that JSON has no word for become texts, and so does what is nested too deeply. Sets are
    sorted, so that a value always becomes the same.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | str):
        return value
    try:
        return _plain_number(value) if isinstance(value, int | float) else _plain(value, depth)
    except Exception:  # noqa: BLE001  # it is the user's object: anything may happen
        return _text(value)


def _plain_number(value: float) -> int | float | str:
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS else hex(value)
    return value if math.isfinite(value) else str(value)


def _plain(value: Any, depth: int) -> Any:  # noqa: PLR0911  # one line for each kind of thing
    if depth >= _DEPTH:
        return "..."
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value).items()
        return {_key(key): plain(each, depth + 1) for key, each in rows}
    if isinstance(value, list | tuple):
        return [plain(each, depth + 1) for each in cast("list[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted((plain(each, depth + 1) for each in cast("set[Any]", value)), key=_json)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if _is_text(value):
        return str(value)
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            return plain(value.model_dump(mode="json", exclude_none=True), depth + 1)
        if is_dataclass(value):
            rows = ((each.name, getattr(value, each.name)) for each in fields(value))
            return {name: plain(each, depth + 1) for name, each in rows}
    return _text(value)


def _is_text(value: Any) -> bool:
    kinds = type(value).__mro__
    return isinstance(value, _TEXTS) or any(
        (each.__module__, each.__name__) in _TEXTS_BY_NAME for each in kinds
    )


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _text(value: Any) -> str:
    if is_condition(value):
        return name_of(value)
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # it is the user's object: anything may happen
        return f"<{type(value).__name__}>"
