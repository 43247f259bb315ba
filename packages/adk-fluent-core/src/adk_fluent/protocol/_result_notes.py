"""What middlewares note of a run that no answer has come for."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    Notes = Callable[[], Mapping[str, Any]]

_asked: Final[ContextVar[list[tuple[str, Notes]] | None]] = ContextVar("_asked", default=None)


def note_on_result(session_id: str, notes: Notes) -> None:
    """Keep notes on the result of a run, if somebody makes one: those that no answer has come for.

    For ``begin_run`` and ``begin_part`` of a middleware that keeps notes on answers; see
    `Middleware.note_answer`.

    Args:
        session_id: The session of the run.
        notes: Gives them when the run is over, all that it has begun included: JSON data by key.
    """
    if (asked := _asked.get()) is not None:
        asked.append((session_id, notes))


@contextmanager
def collect_notes(session_id: str) -> Generator[list[Mapping[str, Any]]]:
    """A list that has the notes of the run in a block once that is over.

    Backends open it around a run, for `RunResult.notes`.

    Args:
        session_id: The session of the run; those of others, as of agents in tools, are left out.
    """
    found: list[Mapping[str, Any]] = []
    token = _asked.set(asked := [])
    try:
        yield found
    finally:
        _asked.reset(token)
        found += [each for whose, notes in asked if whose == session_id and (each := notes())]
