"""Text as a person reads it, through full-width digits, invisible characters and odd dashes.

Only what looks the same to everybody is folded. Letters of other scripts that resemble Latin ones
are other letters.
"""

from __future__ import annotations

import unicodedata
from typing import Final

#: Soft hyphen, zero-width space and joiners, directional marks, word joiner, byte order mark.
_INVISIBLE: Final = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_DASHES: Final = frozenset("\u2010\u2011\u2012\u2013\u2014\u2212")


class _Table(dict[int, str]):
    """What each character is read as; made when it first comes up."""

    def __missing__(self, code: int) -> str:
        read = _read(chr(code))
        if len(self) < 5000:  # all that one language has
            self[code] = read
        return read


def _read(character: str) -> str:
    if character in _INVISIBLE:
        return ""
    if character in _DASHES:
        return "-"
    plain = unicodedata.normalize("NFKC", character)
    if len(plain) == 1 and plain.isascii():
        return plain
    digit = unicodedata.decimal(character, None)
    return character if digit is None else str(digit)


_TABLE: Final = _Table()


class Folded:
    """A text as it is read.

    Args:
        text: The text.

    Attributes:
        text: As it is read.
    """

    __slots__ = ("_at", "text")

    def __init__(self, text: str) -> None:
        self.text = text if text.isascii() else text.translate(_TABLE)
        self._at: list[int] | None = None
        if len(self.text) != len(text):
            self._at = [at for at, each in enumerate(text) if each not in _INVISIBLE]

    def start(self, at: int) -> int:
        """Where a character stands in the text itself."""
        return at if self._at is None else self._at[at]

    def end(self, at: int) -> int:
        """Where the text itself goes on behind a character that is followed by the one at `at`."""
        return at if self._at is None else self._at[at - 1] + 1
