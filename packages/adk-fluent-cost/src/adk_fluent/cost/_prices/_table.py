"""Prices of Google's models for paid use of the Gemini API, in USD per million tokens.

A table that works offline, checked on the day below against https://ai.google.dev/gemini-api/docs/pricing
as genai-prices 0.2.3 has it; a test compares the two. The extra ``prices`` knows more models.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Final

#: The day on which the table was checked.
CHECKED: Final = date(2026, 11, 27)


def _row(
    input: str, output: str, cached: str = "", audio: str = "", cached_audio: str = "", **more: Any
) -> dict[str, Any]:
    """A row as `PriceTable` takes it."""
    some = {"cached": cached, "audio": audio, "cached_audio": cached_audio}
    given = {kind: price for kind, price in some.items() if price}
    return {"input": input, "output": output, **given, **more}


#: Prompts above so many tokens cost more.
_LONG_3: Final = {200_000: _row("4", "18", "0.4")}
_FREE: Final = [_row("0", "0")]
_FLASH_36: Final = [
    _row("0.75", "3.75", "0.075"),
    _row("1.5", "7.5", "0.15", since=date(2027, 1, 1)),
]

#: Name of a model to its prices, oldest first.
ROWS: Final[dict[str, list[dict[str, Any]]]] = {
    "gemini-2.0-flash": [_row("0.1", "0.4", "0.025", "0.7", "0.175")],
    "gemini-2.0-flash-lite": [_row("0.075", "0.3")],
    "gemini-2.5-flash": [_row("0.3", "2.5", "0.03", "1", "0.1")],
    "gemini-2.5-flash-image": [_row("0.3", "2.5", image_output="30")],
    "gemini-2.5-flash-lite": [_row("0.1", "0.4", "0.01", "0.3", "0.03")],
    "gemini-2.5-pro": [_row("1.25", "10", "0.125", above={200_000: _row("2.5", "15", "0.25")})],
    "gemini-3-flash-preview": [_row("0.5", "3", "0.05", "1", "0.1")],
    "gemini-3-pro-image-preview": [_row("2", "12", image_output="120")],
    "gemini-3-pro-preview": [_row("2", "12", "0.2", above=_LONG_3)],
    "gemini-3.1-flash-image-preview": [_row("0.5", "3", image_output="60")],
    "gemini-3.1-flash-lite": [_row("0.25", "1.5", "0.025", "0.5", "0.05")],
    "gemini-3.1-pro-preview": [_row("2", "12", "0.2", above=_LONG_3)],
    "gemini-3.5-flash": [_row("1.5", "9", "0.15")],
    "gemini-3.5-flash-lite": [_row("0.3", "2.5", "0.03")],
    "gemini-3.6-flash": _FLASH_36,
    "gemini-3.7-flash": _FLASH_36,
    "gemini-3.8-flash": _FLASH_36,
    "gemini-3.8-live": [_row("0.75", "4.5", audio="3", audio_output="12")],
    "gemini-4-argon": [_row("2", "10", "0.1"), _row("4", "20", "0.2", since=date(2026, 12, 1))],
    "gemini-live-2.5-flash": [_row("0.5", "2", audio="3", audio_output="12")],
    "gemma-3-1b-it": _FREE,
    "gemma-3-4b-it": _FREE,
    "gemma-3-12b-it": _FREE,
    "gemma-3-27b-it": _FREE,
    "gemma-3n-e2b-it": _FREE,
    "gemma-3n-e4b-it": _FREE,
    "gemma-4-26b-a4b-it": _FREE,
    "gemma-4-26b-a4b-it-maas": [_row("0.15", "0.6", "0.015")],
    "gemma-4-31b-it": _FREE,
}
