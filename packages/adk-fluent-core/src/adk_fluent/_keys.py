"""Secrets that the environment holds, and texts without them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The keys by which Gemini is reached.
KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
#: How the names of variables end that hold secrets.
_SECRET: Final = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST: Final = 8  # characters of a secret; less is none, and part of many a word


def secrets() -> dict[str, str]:
    """The secrets of the environment now, each with the name of its variable.

    The longest come first: one may be the beginning of another.
    """
    found: dict[str, str] = {}
    for name, value in os.environ.items():
        if name.upper().endswith(_SECRET) and len(secret := value.strip()) >= _SHORTEST:
            found.setdefault(secret, name)
    return dict(sorted(found.items(), key=lambda each: len(each[0]), reverse=True))


def without_keys(text: str, known: Mapping[str, str] | None = None) -> str:
    """The text without the secrets that stand in it; services may quote what they were sent.

    Args:
        text: The text.
        known: The secrets, for many texts; None looks for them.
    """
    for secret, name in (secrets() if known is None else known).items():
        text = text.replace(secret, f"[{name}]")
    return text
