"""How an event reaches whoever drives the engine, also from a branch's own task."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic

from adk_fluent.flow._port import E

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.flow._log import Scope
    from adk_fluent.flow._strand import Life, Strand


class Commit(Generic[E]):
    """An event on its way to whoever drives the engine, and what follows its commit.

    Attributes:
        event: A leaf's event; None when `make` makes it.
        scope: Where its write is logged, or None.
        delta: What it writes.
        make: Makes an event of the engine's own in the moment it is committed, or None after all.
        after: Called in the moment the event is committed.
        strand: Where the step stands.
    """

    __slots__ = ("after", "delta", "event", "make", "scope", "strand")

    def __init__(
        self,
        event: E | None,
        scope: Scope | None = None,
        delta: Mapping[str, Any] | None = None,
        *,
        make: Callable[[], E | None] | None = None,
        after: Callable[[], None] | None = None,
        strand: Strand | None = None,
    ) -> None:
        self.event: E | None = event
        self.scope: Scope | None = scope
        self.delta: Mapping[str, Any] | None = delta
        self.make: Callable[[], E | None] | None = make
        self.after: Callable[[], None] | None = after
        self.strand: Strand | None = strand


class Parcel(Generic[E]):
    """A commit that crosses from a branch's task to the main strand.

    Attributes:
        commit: What crosses.
        acknowledged: Done when the event was committed.
        taken: The main strand has it: it is being committed and cannot be taken back.
        dropped: Its branch was cancelled before it was taken.
        done: It was committed.
        late: Stands in for `acknowledged` when the branch was cancelled while it was committed.
    """

    __slots__ = ("acknowledged", "commit", "done", "dropped", "late", "taken")

    def __init__(self, commit: Commit[E]) -> None:
        self.commit: Commit[E] = commit
        self.acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.taken: bool = False
        self.dropped: bool = False
        self.done: bool = False
        self.late: asyncio.Future[None] | None = None

    def acknowledge(self) -> None:
        """Tell the branch that its event was committed (or never will be: the run ends)."""
        self.done = True
        for future in (self.acknowledged, self.late):
            if future is not None and not future.done():
                future.set_result(None)

    async def delivered(self, life: Life | None = None) -> None:
        """Wait until the event is committed; a cancelled branch still waits for a taken one.

        Args:
            life: That of a branch of a fork: it does not wait where somebody else has cancelled it,
                as ``asyncio.run`` does at its end, for nobody may ever ask for more then.
        """
        try:
            await self.acknowledged
        except asyncio.CancelledError:
            if not self.taken:
                self.dropped = True
                raise
            if not self.done and (life is None or _is_ours(life)):
                self.late = asyncio.get_running_loop().create_future()
                await settled([self.late])
            raise


def _is_ours(life: Life) -> bool:
    """Whether this task was cancelled by the fork that waits for it, and by nobody else."""
    task = asyncio.current_task()
    return life.over and task is not None and task.cancelling() == 1


async def settled(futures: list[Any]) -> None:
    """Wait until all are done, however often this task is cancelled; then pass that on."""
    again: asyncio.CancelledError | None = None
    while waiting := [f for f in futures if not f.done()]:
        try:
            await asyncio.wait(waiting)
        except asyncio.CancelledError as error:
            again = error
    if again is not None:
        raise again
