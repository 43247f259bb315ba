"""Where a run on scripts stands, kept beside its session."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adk_fluent._copies import copied_containers
from adk_fluent.flow import questions_at

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from adk_fluent.backends._resuming import Pipeline
    from adk_fluent.backends.mock._leaf import MockLeaf, Session
    from adk_fluent.flow import Engine, Position
    from adk_fluent.protocol import AgentEvent, JournalEntry, JournalStatus


class MockKeeper:
    """Keeps where a run stands.

    Args:
        session: The session.
        pipeline: What is run.
        leaf: Runs the agents.
        entry: Where the run stands now.
    """

    def __init__(
        self, session: Session, pipeline: Pipeline, leaf: MockLeaf, entry: JournalEntry
    ) -> None:
        self._session = session
        self._pipeline = pipeline
        self._leaf = leaf
        self._entry = entry

    def keep(self, position: Position, status: JournalStatus) -> None:
        """Keep that the run stands there."""
        waits, entry = questions_at(position), self._entry
        answered = entry.answered
        if status == "waiting":  # those of steps that wait for more
            answered = {id: value for id, value in answered.items() if id in waits}
        self._session.entry = replace(
            entry,
            plan=self._pipeline.hash,
            position=copied_containers(position),
            status=status,
            answered=answered,
            waits={id: kind for id, kind in waits.items() if id not in answered},
            saved=time.time(),
        )

    def written(self, position: Position) -> Mapping[str, Any]:
        """Keep it; the event writes nothing besides."""
        self.keep(position, "running")
        return {}

    def paused(self, engine: Engine[AgentEvent], before: Collection[str]) -> AgentEvent:
        """The event that ends a run which waits, with what it waits on."""
        self.keep(engine.position, "waiting")
        asked = [replace(each, author=self._leaf.author) for each in engine.questions]
        known = {each.id: each for event in self._session.events for each in event.pending}
        asked += [known[id] for id in engine.pending if id in before and id in known]
        return self._leaf.note("paused", pending=tuple(asked))

    def over(self) -> None:
        """Keep nothing more."""
        self._session.entry = None
