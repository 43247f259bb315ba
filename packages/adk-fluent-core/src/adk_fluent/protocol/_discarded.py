"""What a run tried in vain: attempts of fallbacks, and items that maps went on without."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from adk_fluent.protocol._event import ErrorInfo


@dataclass(slots=True)
class DiscardedAttempt:
    """An attempt of a fallback that failed and that another one took the place of, or an item.

    An item of a `map_over` stands here that failed and did not end the map.

    Pickles and deep copies leave `exception` out.

    Attributes:
        fallback: Name of the fallback, or of the map.
        step: Name of the attempt, or of the map's body.
        error: What it failed with: its type as the code, and its text.
        place: Which step inside raised it and where that is written, as far as it is known.
        exception: The exception itself.
    """

    fallback: str
    step: str
    error: ErrorInfo
    place: str = ""
    exception: Exception | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("fallback", "step", "error", "place")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.exception = None


_told: Final[ContextVar[list[DiscardedAttempt] | None]] = ContextVar("_told", default=None)


@contextmanager
def collect_discarded() -> Generator[list[DiscardedAttempt]]:
    """A list that each attempt is added to that runs started inside discard.

    Backends open it around a run, for `RunResult.discarded`.
    """
    found: list[DiscardedAttempt] = []
    token = _told.set(found)
    try:
        yield found
    finally:
        _told.reset(token)


def add_discarded(attempt: DiscardedAttempt) -> None:
    """Tell whoever collects them of a discarded attempt."""
    found = _told.get()
    if found is not None:
        found.append(attempt)
