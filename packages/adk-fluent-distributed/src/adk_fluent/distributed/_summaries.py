"""What is told of runs and workers to whoever watches over them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adk_fluent.distributed._call import Status

#: The statuses of runs; those that need somebody come first.
STATUSES: Final[tuple[Status, ...]] = (
    "failed",
    "waiting",
    "running",
    "cancelled",
    "rejected",
    "completed",
)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list of runs; `DbosEngine.status` says more.

    Attributes:
        run_id: The run.
        status: ``running``, ``waiting``, ``completed``, ``rejected``, ``failed`` or ``cancelled``.
        segment: The segment that runs, is queued, or was the last to run; ``""`` while the run is
            one of `DbosEngine.run`, which has all segments in one process.
        calls: How many calls of segments it has taken so far.
        worker: The worker that has its last call, or had it; ``""`` while it is queued.
        changed: When it was begun, taken by a worker, or came to rest last; seconds since 1970.
        asks: The names of its open questions.
        error: What ended it: type and text.
    """

    run_id: str
    status: Status
    segment: str
    calls: int
    worker: str
    changed: float
    asks: tuple[str, ...] = ()
    error: str = ""

    @property
    def note(self) -> str:
        """What it waits on, or what ended it."""
        return f"asks: {', '.join(self.asks)}" if self.asks else self.error

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """A worker in a list of workers.

    Attributes:
        id: The worker: its machine, process and a number.
        segments: The segments that it serves; ``*`` is all of them, of runs of `DbosEngine.run`.
        silent: Seconds since it gave a sign of life.
        is_alive: Whether it counts as alive.
    """

    id: str
    segments: tuple[str, ...]
    silent: float
    is_alive: bool
