"""Features of ADK that it calls experimental."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def chosen_experiment() -> Generator[None]:
    """Silence ADK's warnings that something is experimental: whoever asks for it has chosen it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")
        yield
