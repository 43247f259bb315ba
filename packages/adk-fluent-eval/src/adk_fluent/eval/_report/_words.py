"""Figures and texts as people read them."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from adk_fluent.eval._outcome import MetricStatus, Status

#: What a status is called, and a sign for it, so that nothing is told by colour alone.
STATUS: Final[dict[Status, tuple[str, str]]] = {
    Status.FAILED: ("failed", "✗"),
    Status.ERROR: ("error", "!"),
    Status.PASSED: ("passed", "✓"),
    Status.XFAILED: ("expected failure", "≈"),
    Status.SKIPPED: ("skipped", "»"),
}

#: One letter for each, so that thousands of cases by dozens of metrics stay small.
METRIC_LETTER: Final[dict[MetricStatus, str]] = {
    MetricStatus.PASSED: "p",
    MetricStatus.FAILED: "f",
    MetricStatus.NOT_EVALUATED: "n",
    MetricStatus.INFORMATIONAL: "i",
}

NONE: Final = "-"

_SPECIAL: Final = "<>&\u2028\u2029"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def percent(share: float | None) -> str:
    """A share from 0 to 1; 100% only where it is all, 0% only where it is nothing."""
    if share is None or not math.isfinite(share):
        return NONE
    value = round(share * 100, 1)
    if 0 < share < 1:
        value = min(max(value, 0.1), 99.9)
    return f"{value:.1f}".removesuffix(".0") + "%"


def seconds(value: float | None) -> str:
    """A duration, from seconds."""
    if value is None or not math.isfinite(value):
        return NONE
    if value < 0.9995:
        return f"{value * 1000:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def dollars(value: float | None) -> str:
    """A sum, from US dollars."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "$0"
    if abs(value) < 0.01:
        return f"${value:.2g}" if abs(value) < 0.0001 else f"${value:.5f}".rstrip("0")
    return f"${value:,.2f}"


def count(value: int) -> str:
    """A number of things."""
    return f"{value:,}"


def plural(number: int, one: str, several: str = "") -> str:
    """A number of things, with what they are."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def measured(value: float | None, unit: str = "") -> str:
    """A score in its unit."""
    if value is None:
        return NONE
    if not math.isfinite(value):
        return str(value)
    if unit == "s":
        return seconds(value)
    if unit == "USD":
        return dollars(value)
    if abs(value) < 10_000:
        return f"{value:,.4g}"
    return f"{value:,.0f}"


def change(now: float | None, before: float | None, unit: str = "") -> str:
    """The difference of two figures, with its sign; empty if there is none to tell."""
    if now is None or before is None or not math.isfinite(now - before) or now == before:
        return ""
    return ("+" if now > before else "-") + measured(abs(now - before), unit)


def shown(value: Any) -> str:
    """Data as indented JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys of a tuple, holds itself, too deep
        return f"({type(value).__name__} that cannot be written as JSON)"


def in_script(data: Any) -> str:
    """JSON that can stand inside a script element of a page in UTF-8, whatever it holds."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in _SPECIAL:
        text = text.replace(character, _escaped(character))
    return text if text.isascii() else _SURROGATE.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
