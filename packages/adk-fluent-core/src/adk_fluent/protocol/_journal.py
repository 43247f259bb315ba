"""Where the position of a run is kept, so that another process can go on with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

#: How a run stands that has not ended well: it goes on, it waits for an answer, it failed, or it
#: stands before a step of another segment.
JournalStatus = Literal["running", "waiting", "failed", "boundary"]


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run of which pipeline.

    Attributes:
        app_name: The app.
        user_id: The user.
        session_id: The session.
        root: Name of the pipeline's root.
    """

    app_name: str
    user_id: str
    session_id: str
    root: str


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """Where a run stands; all of it is JSON data.

    Attributes:
        plan: `structure_hash` of the pipeline; another one cannot go on with the run.
        position: The flow engine's frames.
        status: ``waiting`` for answers, ``failed`` at a step, ``running`` when its process died, or
            at a ``boundary``: before a step of another segment.
        run: The run's id; it stays the same however often the run is resumed.
        invocation_id: The call that began the run.
        user_message: What the user said that started the run, or the id of the event that holds it.
        waits: Open questions: id to the kind of each (`PendingKind`).
        answered: Answers taken since the run paused last, by id of the question; those of a step
            that waits for more are needed once more.
        owner: Who runs it, for ``running`` only.
        saved: When it was saved, in seconds since 1970.
        revision: Grows by one with each save; tells two writers apart.
        segments: At a ``boundary``: the segments whose steps come next, in order.
        format: Version of this layout.
    """

    plan: str
    position: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    status: JournalStatus = "running"
    run: str = ""
    invocation_id: str = ""
    user_message: Any = field(default=None, hash=False)
    waits: dict[str, str] = field(default_factory=dict[str, str], hash=False)
    answered: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    owner: str = ""
    saved: float = 0.0
    revision: int = 0
    segments: tuple[str, ...] = ()
    format: int = 1


@runtime_checkable
class Journal(Protocol):
    """Keeps at most one entry a run; pause, crash recovery and distributed hand-over use it."""

    async def load(self, key: RunKey) -> JournalEntry | None:
        """What was saved last; None when there is nothing to go on with."""
        ...

    async def save(self, key: RunKey, entry: JournalEntry | None) -> None:
        """Replace the entry; None removes it, for the run is over.

        Raises:
            SessionError: Somebody else saved or claimed the run since (`entry.revision` is not the
                one after the stored revision).
        """
        ...

    async def claim(self, key: RunKey, revision: int, owner: str, seconds: float) -> bool:
        """Take the run for `owner`, so that of two processes with the same answer one goes on.

        Args:
            key: The run.
            revision: The revision that was loaded.
            owner: Who takes it.
            seconds: How long the claim holds without a save.

        Returns:
            False when the entry is gone, has another revision or is another owner's.
        """
        ...
