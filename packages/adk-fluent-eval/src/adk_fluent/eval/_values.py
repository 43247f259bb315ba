"""Comparing values, and showing them in reasons."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from os import PathLike
from typing import Any, Final, cast

from adk_fluent.errors import unwrap

_SHOWN: Final = 300  # characters of a value in a reason
_DEPTH: Final = 60
_BITS: Final = 8192  # Python refuses to print integers much longer than this
_TEXT_NAMES: Final = {("decimal", "Decimal"), ("uuid", "UUID")}  # not imported for it


def defaults_of(record: type) -> dict[str, Any]:
    """Return the fields of a dataclass and their defaults, MISSING for those without one."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(record)
    }


def mismatch(expected: Any, actual: Any) -> str:
    """Return why a value does not meet an expectation; empty if it does."""
    if is_condition(expected):
        return _rejection(expected, actual)
    if equal(expected, actual):
        return ""
    want, have = shown(expected), shown(actual)
    if want == have:  # such as a Decimal and its text
        want += f" ({type(expected).__name__})"
        have += f" ({type(actual).__name__})"
    return f"expected {want}, found {have}"


def is_condition(expected: Any) -> bool:
    """Whether an expectation is a condition rather than a value."""
    return callable(expected) and not isinstance(expected, type)


def _rejection(condition: Any, actual: Any) -> str:
    name = _name_of(condition)
    try:
        verdict: Any = condition(actual)
        if isinstance(verdict, Awaitable):
            if isinstance(verdict, Coroutine):
                verdict.close()  # avoids the warning that it was never awaited
            return f"{name} is async; a condition must be a plain function"
        if verdict is None:
            return f"{name} returned None for {shown(actual)}, expected True or False"
        accepted = bool(verdict) and not (isinstance(verdict, float) and math.isnan(verdict))
    except Exception as error:  # noqa: BLE001  # user code
        return f"{name} raised {error_line(error)}"
    return "" if accepted else f"{name} rejected {shown(actual)}"


def equal(expected: Any, actual: Any) -> bool:
    """Whether two values are equal, where True is not 1 and a tuple equals a list.

    NaN and values that cannot be compared equal nothing.
    """
    try:
        return _equal(expected, actual)
    except Exception:  # noqa: BLE001  # arrays, or structures nested too deeply
        return False


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        left, right = cast("Mapping[Any, Any]", expected), cast("Mapping[Any, Any]", actual)
        return _typed(left) == _typed(right) and all(_equal(left[key], right[key]) for key in left)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        first, second = cast("list[Any]", expected), cast("list[Any]", actual)
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(expected, AbstractSet) and isinstance(actual, AbstractSet):
        wanted, found = cast("AbstractSet[Any]", expected), cast("AbstractSet[Any]", actual)
        return _typed(wanted) == _typed(found) and all(map(_equal, wanted, wanted))  # no NaN
    return bool(expected == actual)


def _typed(items: Iterable[Any]) -> set[tuple[bool, Any]]:
    """Items of a set or mapping, with bools told from numbers."""
    return {(isinstance(each, bool), each) for each in items}


# --- values as text ------------------------------------------------------------------------------


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", "") or type(function).__name__
    return "the condition" if name == "<lambda>" else f"{name}()"


def error_line(error: BaseException, limit: int | None = _SHOWN) -> str:
    """Return an error as ``Type: message`` in one line, unwrapped from ADK's plugin errors."""
    error = unwrap(error)
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  # user code
        text = ""
    kind = type(error).__name__
    return f"{kind}: {_cut(text, limit)}" if text else kind


def shown(value: Any) -> str:
    """Return a value as it appears in a reason, cut if long."""
    return _cut(_name_of(value) if is_condition(value) else _json(value), _SHOWN)


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _cut(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text)} characters)"


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON can hold it: models as mappings, other objects as text.

    Sets are sorted; non-finite numbers and structures nested too deeply become text.
    """
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | str):
        return value
    try:
        if isinstance(value, int):
            return value if value.bit_length() <= _BITS else hex(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        return _plain(value, depth)
    except Exception:  # noqa: BLE001  # user objects
        return _text(value)


def _plain(value: Any, depth: int) -> Any:  # noqa: PLR0911  # one line for each kind
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
    if isinstance(value, date | time | timedelta | PathLike) or any(
        (each.__module__, each.__name__) in _TEXT_NAMES for each in type(value).__mro__
    ):
        return str(cast("object", value))
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            return plain(value.model_dump(mode="json", exclude_none=True), depth + 1)
        if is_dataclass(value):
            rows = ((each.name, getattr(value, each.name)) for each in fields(value))
            return {name: plain(each, depth + 1) for name, each in rows}
    return _text(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key))


def _text(value: Any) -> str:
    if is_condition(value):
        return _name_of(value)
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # user objects
        return f"<{type(value).__name__}>"
