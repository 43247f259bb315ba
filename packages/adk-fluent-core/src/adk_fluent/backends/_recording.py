"""One run of the engine, and where it stands when it begins, pauses, fails and ends.

The course is the same for every backend; how something is kept, and with what event, is its own.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from adk_fluent.flow import Engine, Leaf, Signal, new_position

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Mapping

    from adk_fluent.backends._resuming import GoOn
    from adk_fluent.flow import Around, Order, Position, Promises, Watch
    from adk_fluent.ir import Node
    from adk_fluent.protocol import JournalStatus

E = TypeVar("E")


class BoundLeaf(Leaf[E], Protocol[E]):
    """A leaf that knows its engine."""

    def bind(self, engine: Engine[E]) -> None:
        """Name the engine that runs."""
        ...


class Keeper(Protocol[E]):
    """Keeps where a run stands. What it returns is committed; None where nothing need be."""

    def keep(self, position: Position, status: JournalStatus) -> E | None:
        """Keep that the run stands there."""
        ...

    def written(self, position: Position) -> Mapping[str, Any]:
        """Keep it with the event that brings the run there; what that event writes besides."""
        ...

    def paused(self, engine: Engine[E], before: Collection[str]) -> E:
        """Keep that the run waits, and ask.

        They come all at once, and last: no answer can come before there is something to go on with.

        Args:
            engine: What has paused.
            before: The questions that it waited on when it went on.
        """
        ...

    def over(self) -> E | None:
        """Keep nothing more."""
        ...


async def recorded(
    node: Node,
    leaf: BoundLeaf[E],
    keeper: Keeper[E],
    goes_on: GoOn | None,
    *,
    limit: float | None,
    durable: bool,
    kept: bool,
    watch: Watch | None,
    around: Around | None = None,
    promises: Promises | None = None,
    segment: str | None = None,
    beside: Collection[str] = (),
    order: Order | None = None,
) -> AsyncGenerator[E, None]:
    """The events of a run.

    Args:
        node: The pipeline.
        leaf: Runs the agents.
        keeper: Keeps where the run stands.
        goes_on: The run that is gone on with; None begins one.
        limit: Seconds the run may take.
        durable: Whether each step is kept.
        kept: Whether it is kept where the run pauses, fails and ends.
        watch: Is told of what need not leave an event.
        around: What stands around the steps.
        promises: What the pipeline promises about state.
        segment: The segment whose steps are done; None does all.
        beside: Segments whose steps are done, too, in branches that run at the same time.
        order: Is told in which order steps that run at the same time go on.
    """
    if goes_on is None and promises is not None:
        promises.check_start(leaf.state)
    position = new_position() if goes_on is None else goes_on.entry.position
    if goes_on is not None or durable:
        event = keeper.keep(position, "running")
        if event is not None:
            yield event
    engine = Engine(
        node,
        leaf,
        position=position,
        answers=None if goes_on is None else goes_on.answers,
        journal=keeper.written if durable else None,
        keeps_failures=kept,
        watch=watch,
        around=around,
        limit=limit,
        promises=promises,
        segment=segment,
        beside=beside,
        order=order,
    )
    leaf.bind(engine)
    try:
        async with aclosing(engine.run()) as events:
            async for each in events:
                yield each
    except Exception:
        if kept:
            event = keeper.keep(engine.failed_at or engine.position, "failed")
            if event is not None:
                yield event
        raise
    if engine.outcome is Signal.PAUSE:
        yield keeper.paused(engine, () if goes_on is None else goes_on.entry.waits)
    elif kept:
        event = keeper.over()
        if event is not None:
            yield event
