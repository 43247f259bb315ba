"""Correct pipelines, modelled on public samples of ADK: checks must have nothing against them."""

from __future__ import annotations

from typing import Final

from . import (
    coding,
    commerce,
    data,
    finance,
    media,
    operations,
    research,
    support,
    travel,
    writing,
)
from ._case import Case, count, mixes

#: All of them.
CASES: Final[tuple[Case, ...]] = (
    *research.CASES,
    *writing.CASES,
    *support.CASES,
    *commerce.CASES,
    *coding.CASES,
    *travel.CASES,
    *finance.CASES,
    *data.CASES,
    *operations.CASES,
    *media.CASES,
)

__all__ = ["CASES", "Case", "count", "mixes"]
