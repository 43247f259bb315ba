"""Realistic mistakes: correct pipelines of the corpus, each with one thing wrong."""

from __future__ import annotations

from typing import Final

from . import absent, parallel, parts, scopes, sometimes, streams, typed, unread
from ._mistake import Mistake

#: All of them.
MISTAKES: Final[tuple[Mistake, ...]] = (
    *absent.MISTAKES,
    *sometimes.MISTAKES,
    *typed.MISTAKES,
    *parallel.MISTAKES,
    *scopes.MISTAKES,
    *parts.MISTAKES,
    *unread.MISTAKES,
    *streams.MISTAKES,
)

__all__ = ["MISTAKES", "Mistake"]
