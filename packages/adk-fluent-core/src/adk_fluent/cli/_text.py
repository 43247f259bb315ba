"""Text of models, tools and files on its way to a terminal."""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """The text without what a terminal would obey instead of showing it; lines and tabs stay."""
    return _CONTROL.sub("", text)


def short(text: str, width: int) -> str:
    """The text as one line of at most `width` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def why_no_message(text: str) -> str | None:
    """Why no agent can be sent the text; None if one can."""
    if not text.strip():
        return "is empty."
    try:
        text.encode()
    except UnicodeEncodeError as error:  # bytes that are no UTF-8 come as lone surrogates
        return f"is not UTF-8: {error.reason}."
    return None
