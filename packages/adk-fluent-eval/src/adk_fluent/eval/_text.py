"""Values, texts and figures for people: bounded, free of control characters and of secrets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

from adk_fluent.extend import environment_secrets, json_safe, shorten

NONE: Final = "-"
_SHOWN: Final = 300  # characters of a value in a reason, and of the repr of an object
_DEPTH: Final = 60


def bounded(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], *([f"and {more:,} more"] if more > 0 else [])]


def encodable(text: str) -> str:
    """Return the text as UTF-8 can write it, with lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, depth: int = _DEPTH) -> Any:
    """Return a value as JSON can hold it, and people read it.

    Models become mappings, functions their names, bytes their number, and other objects what `repr`
    says of them, cut if long.
    """
    try:
        return _plain(value, depth)
    except Exception:  # noqa: BLE001  # user objects
        return f"<{type(value).__name__}>"


def _plain(given: object, depth: int) -> Any:  # noqa: PLR0911  # one line for each kind
    value: Any = given
    if value is None or isinstance(value, str | int | float):
        return json_safe(value)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if depth == 0:
        return "..."
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value).items()
        return {
            key if isinstance(key, str) else str(plain(key, 1)): plain(each, depth - 1)
            for key, each in rows
        }
    if isinstance(value, Sequence):
        return [plain(each, depth - 1) for each in cast("Sequence[Any]", value)]
    if isinstance(value, AbstractSet):
        items = [plain(each, depth - 1) for each in cast("AbstractSet[Any]", value)]
        return sorted(items, key=json.dumps)
    if isinstance(value, type):
        return repr(value)
    if names := getattr(value, "__dataclass_fields__", None):
        return {name: plain(getattr(value, name), depth - 1) for name in names}
    if callable(getattr(value, "model_dump", None)):
        return plain(value.model_dump(exclude_none=True), depth - 1)
    if callable(value):
        return name_of(value)
    made = json_safe(value)  # such as of dates
    unknown = made == f"<{type(value).__qualname__}>"
    return shorten(replace_secrets(repr(value)), _SHOWN) if unknown else made


def is_condition(expected: Any) -> bool:
    """Whether an expectation is a condition rather than a value."""
    return callable(expected) and not isinstance(expected, type)


def name_of(function: Any) -> str:
    """Return what reasons call a function."""
    name = getattr(function, "__name__", "") or type(function).__name__
    return "the condition" if name == "<lambda>" else f"{name}()"


def shown(value: Any) -> str:
    """Return a value as it appears in a reason, without secrets, cut if long."""
    made = replace_secrets(plain(value))  # before it is cut: half a secret is not found later
    text = made if is_condition(value) else json.dumps(made, ensure_ascii=False)
    return shorten(text, _SHOWN)


def replace_secrets(value: Any) -> Any:
    """Return plain data with the names of environment variables in place of their secrets.

    Records are changed in place.
    """
    secrets = environment_secrets()
    return _replace_all(value, secrets) if secrets else value


def _replace_all(value: Any, secrets: dict[str, str]) -> Any:
    """A plain value or record with texts replaced; records are changed in place."""
    if type(value) is str:  # not a status
        for secret, name in secrets.items():
            value = value.replace(secret, name)
        return value
    if isinstance(value, list):
        return [_replace_all(each, secrets) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {_replace_all(key, secrets): _replace_all(each, secrets) for key, each in pairs}
    for name in getattr(value, "__dataclass_fields__", ()):
        made = _replace_all(before := getattr(value, name), secrets)
        if made is not before:  # some records are frozen, and have no text
            setattr(value, name, made)
    return value


def percent(share: float | None) -> str:
    """Return a share as a percentage; 100% and 0% only where they are exact."""
    if share is None or not math.isfinite(share):
        return NONE
    value = round(share * 100, 1)
    if 0 < share < 1:
        value = min(max(value, 0.1), 99.9)
    return f"{value:.1f}".removesuffix(".0") + "%"


def interval(ci: tuple[float, float]) -> str:
    """Return a confidence interval of shares."""
    return f"{percent(ci[0])} to {percent(ci[1])}"


def seconds(value: float | None) -> str:
    """Return a duration in the unit that fits."""
    if value is None or not math.isfinite(value):
        return NONE
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02} s"


def dollars(value: float | None) -> str:
    """Return an amount of US dollars."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"${value:,.2f}" if value == 0 or abs(value) >= 0.01 else f"${value:.2g}"


def measured(value: float | None, unit: str = "") -> str:
    """Return a score in its unit."""
    if value is None:
        return NONE
    if not math.isfinite(value):
        return str(value)
    if unit in {"s", "USD"}:
        return seconds(value) if unit == "s" else dollars(value)
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
