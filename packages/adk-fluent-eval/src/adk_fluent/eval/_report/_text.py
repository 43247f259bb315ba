"""Texts that came from outside, made fit to be shown: no control characters, not endless."""

from __future__ import annotations

import re
from typing import Final

#: What terminals, XML or readers trip over: control characters but tab and newline, what turns the
#: direction of writing, and what is no character at all.
_UNSHOWN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SPACE: Final = re.compile(r"\s+")


def clean(text: str) -> str:
    """The text without what cannot be shown; lines stay."""
    plain = _UNSHOWN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _SURROGATE.sub("\ufffd", plain)


def shorten(text: str, limit: int) -> str:
    """The text if it has up to `limit` characters, else its beginning and how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def one_line(text: str, limit: int) -> str:
    """The text in one line, without what cannot be shown, up to `limit` characters."""
    head = _SPACE.sub(" ", clean(text[:limit])).strip()
    left_out = len(text) - limit
    return head if left_out <= 0 else f"{head}… ({left_out:,} more characters)"


def encodable(text: str) -> str:
    """The text as UTF-8 can write it: halves of a character are joined, lone ones replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
