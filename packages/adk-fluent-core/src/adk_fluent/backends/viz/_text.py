"""Text in pictures: made harmless, measured without a font, cut to fit."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

#: Characters of a text that are looked at; what is longer is cut.
LONGEST: Final = 2_000
_ELLIPSIS: Final = "…"

# Widths in em, at least those of DejaVu Sans (as wide as Verdana) and of Liberation Sans (Arial).
_ASCII: Final = (
    (0.31, "'Iijl"),
    (0.35, " ,./:;\\|"),
    (0.4, "()-[]ft"),
    (0.45, "!r"),
    (0.5, '"*J`'),
    (0.55, "csz"),
    (0.6, "?Lkvxy"),
    (0.65, "$_0123456789FTabdeghnopqu{}"),
    (0.7, "ABEKPSVXYZ"),
    (0.75, "CNRU"),
    (0.8, "&DGHOQ"),
    (0.85, "#+<=>^w~"),
    (0.9, "M"),
    (1.0, "%Wm"),
    (1.05, "@"),
)
_WIDTHS: Final = {each: width for width, group in _ASCII for each in group}
_WIDTHS[_ELLIPSIS] = 1.0
_BOLD: Final = 1.2

# Single characters as long as a sentence in some fonts.
_HUGE: Final = ((0x2E3A, 0x2E3B), (0xFDF0, 0xFDFF), (0x12000, 0x1254F))
_REPLACED: Final = "\N{WHITE SQUARE}"


def clean(text: str) -> str:
    """The text on one line, without what could steer a reader's terminal, browser or eye.

    Control and format characters go (among them those that turn the direction of writing), blanks
    become one space, marks do not pile up.
    """
    if len(text) <= LONGEST and text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept: list[str] = []
    marks = 0
    for each in text[:LONGEST]:
        if each.isascii() and each.isprintable():
            kept.append(each)
            marks = 0
            continue
        category = unicodedata.category(each)
        if category[0] == "Z" or each in "\t\n\r\v\f":
            kept.append(" ")
        elif category[0] == "M":
            marks += 1
            if marks <= 2:
                kept.append(each)
            continue
        elif category[0] != "C":
            huge = any(low <= ord(each) <= high for low, high in _HUGE)
            kept.append(_REPLACED if huge else each)
        marks = 0
    line = " ".join("".join(kept).split())
    return line + _ELLIPSIS if len(text) > LONGEST else line


def width(text: str, size: float, *, bold: bool = False) -> float:
    """How wide a text is at most, in the unit of `size`, set in a common sans-serif."""
    total = sum(_WIDTHS.get(each) or _wide(each) for each in text)
    return total * size * (_BOLD if bold else 1)


@lru_cache(4096)
def _wide(character: str) -> float:
    code = ord(character)
    if unicodedata.category(character)[0] == "M":
        return 0.1
    if code < 0x800:  # Latin, Greek, Cyrillic, Hebrew, Arabic
        return 1.15 if character.isupper() else 0.95
    if code < 0x1F000 and unicodedata.east_asian_width(character) in "WF":
        return 1.1
    return 1.5


def fit(text: str, most: float, size: float, *, bold: bool = False) -> str:
    """The text, cut to a width."""
    if width(text, size, bold=bold) <= most:
        return text
    room = most - width(_ELLIPSIS, size, bold=bold)
    taken = 0.0
    for at, each in enumerate(text):
        taken += width(each, size, bold=bold)
        if taken > room:
            return text[:at].rstrip() + _ELLIPSIS
    return text


def wrap(text: str, most: float, size: float, *, lines: int) -> tuple[str, ...]:
    """The text in lines of a width, broken at spaces; the last is cut if there is more."""
    done: list[str] = []
    words = text.split(" ")
    while words and len(done) < lines - 1:
        line = words.pop(0)
        while words and width(f"{line} {words[0]}", size) <= most:
            line = f"{line} {words.pop(0)}"
        done.append(fit(line, most, size))
    return (*done, fit(" ".join(words), most, size)) if words else tuple(done)
