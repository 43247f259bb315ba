"""Texts of models, users and services, made fit to be shown to people."""

from __future__ import annotations

import os
import re
from typing import Final

from adk_fluent.errors import UNSHOWN, unwrap

#: What names of environment variables with secrets end with.
_SECRET: Final = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST: Final = 8  # characters of a secret; shorter values occur in ordinary words
_LINE: Final = 500  # characters of a text
_SHOWN: Final = 300  # characters of an error


def clean(text: str) -> str:
    """Return a text without what a terminal, a browser or UTF-8 would stumble over; lines stay.

    Control characters go, and those that turn the direction of writing; those of them that separate
    words or lines become a space, and a lone surrogate U+FFFD.
    """
    if text.isprintable():  # most are
        return text
    return re.sub(UNSHOWN, _replaced, text.replace("\r\n", "\n").replace("\r", "\n"))


def _replaced(found: re.Match[str]) -> str:
    one = found.group()
    return "\ufffd" if "\ud800" <= one <= "\udfff" else " " if one.isspace() else ""


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, and how many are left out."""
    return text[:limit] + _left_out(text, limit)


def one_line(text: str, limit: int = _LINE) -> str:
    """Return at most `limit` characters of a text in one clean line, and how many are left out."""
    return " ".join(clean(text[:limit]).split()) + _left_out(text, limit)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s unless it is one."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def error_line(error: BaseException, limit: int | None = _SHOWN) -> str:
    """Return an error as ``Type: message`` in one clean line, without the wrapping of plugins.

    Args:
        error: The error; one whose text cannot be made is its type.
        limit: Characters of the message; None keeps all. In one that is cut, the secrets of
            `environment_secrets` are replaced, for half a secret is not found later.
    """
    error = unwrap(error)
    try:
        text = clean(" ".join(str(error).split()))
    except Exception:  # noqa: BLE001  # user code
        text = ""
    if limit is not None and len(text) > limit:
        for secret, name in environment_secrets().items():
            text = text.replace(secret, name)
        text = shorten(text, limit)
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def environment_secrets() -> dict[str, str]:
    """Return the secrets in environment variables, each with its name in brackets in its place.

    Those that hold others come first, so that who replaces them in order leaves no rest of one.
    """
    found = {
        secret: f"[{name}]"
        for name in os.environ  # each value that is read is decoded
        if name.upper().endswith(_SECRET)
        if len(secret := os.environ.get(name, "").strip()) >= _SHORTEST
    }
    return dict(sorted(found.items(), key=lambda each: -len(each[0])))


def _left_out(text: str, limit: int) -> str:
    left_out = len(text) - limit
    return f"… ({left_out:,} more characters)" if left_out > 0 else ""
