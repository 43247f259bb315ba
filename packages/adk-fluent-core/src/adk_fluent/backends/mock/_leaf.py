"""The flow engine's port on scripts: runs agents, what they call, and flows below them."""

from __future__ import annotations

import uuid
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from adk_fluent._copies import copied_containers
from adk_fluent.backends._listeners import Notices
from adk_fluent.backends.mock._calls import request_of, result_of
from adk_fluent.backends.mock._prompt import said
from adk_fluent.backends.mock._scripted import ScriptedLeaf
from adk_fluent.backends.mock._session import Session
from adk_fluent.backends.mock._step import Step
from adk_fluent.backends.mock._tools import is_flow
from adk_fluent.flow import Engine, Signal, Strand, promises_inside, promises_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, MutableMapping

    from adk_fluent.errors import BuildError
    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

__all__ = ["MockLeaf", "Session"]


class MockLeaf(ScriptedLeaf):
    """Runs the agents of one run from scripts."""

    async def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer from scripts, until nobody calls a tool or hands over any more."""
        async with aclosing(Step(self, node, strand).run(answers)) as events:
            async for event in events:
                if self.engine is not None:
                    self.engine.keep(strand, node, event, event.author)
                yield event

    def run_below(
        self, node: Node, strand: Strand, flow: Node, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run a pipeline that the agent of a step has handed over to."""
        return FlowLeaf(self, node, strand, flow.name).run_flow(flow, answers)

    async def call_agent(
        self, node: Node, strand: Strand, args: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Run an agent that is a tool, in a session of its own.

        Returns:
            What it answered last, and what it wrote.
        """
        message = request_of(node, args)
        inner = MockLeaf(
            Session(copied_containers(_handed_on(strand.state))),
            node.name,
            str(uuid.uuid4()),
            config=self.config,
            script_for=self.script_for,
            message=message,
        )
        inner.injection, inner.table = self.injection, self.table
        inner.session.events.append(said(message, inner.run_id))
        try:
            return await inner._to_the_end(node)
        finally:
            if inner.missing is not None:
                self.lacks(inner.missing)

    async def _to_the_end(self, node: Node) -> tuple[Any, dict[str, Any]]:
        last, error, writes = "", "", dict[str, Any]()
        waits: list[str] = []
        if is_flow(node):
            promises = promises_of(node)
            if promises is not None:
                promises.check_start(self.state)
            engine = Engine(node, self, promises=promises)
            self.bind(engine)
            run = engine.run()
        else:
            run = self.run(node, Strand("0", [{"c": 0}], [node], self.state), {})
        async with aclosing(run) as events:
            async for event in events:
                self.commit(event)
                if event.is_partial:
                    continue
                writes.update(_handed_on(event.state_delta))
                waits.extend(each.id for each in event.pending)
                error = event.error.message if event.error is not None else error
                if event.content is not None or event.tool_calls or event.tool_responses:
                    last = event.content or ""
        if not waits:
            return result_of(node, last, error), writes
        told = f"Error: agent {node.name!r} stopped waiting on unresolved long-running tool call(s)"
        told += f" (pending call ids: {waits}), which AgentTool cannot resume."
        return told, writes  # what the newest ADK says


def _handed_on(state: Mapping[str, Any]) -> dict[str, Any]:
    """What goes from one session to another, as ADK has it."""
    return {key: value for key, value in state.items() if not key.startswith("temp:")}


class FlowLeaf(MockLeaf):
    """Runs the agents of a pipeline that an agent of another one has handed over to.

    Args:
        outer: The leaf of that one.
        node: The agent of the step it runs in.
        strand: Where that step is.
        author: Name of the pipeline.
    """

    def __init__(self, outer: MockLeaf, node: Node, strand: Strand, author: str) -> None:
        super().__init__(
            outer.session,
            author,
            outer.run_id,
            config=outer.config,
            script_for=outer.script_for,
            message=outer.message,
            known=outer.known,
        )
        # only read: events are committed by who runs the outer one
        self.state = cast("MutableMapping[str, Any]", strand.state)
        self.injection, self.table, self.told = outer.injection, outer.table, outer.told
        self._outer, self._strand = outer, strand
        self._above = outer.path_of(strand)
        self._attempt = outer.attempt_of(strand)
        self._prefix = self._above.replace(".", "-") + "/"

    async def run_flow(
        self, flow: Node, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """The events of the pipeline, which goes on where it stands.

        Args:
            flow: The pipeline.
            answers: What came in for questions that are asked in it.
        """
        place, positions = (self._above, flow.name), self.session.below
        told, outer = self.told, self._outer.engine
        promises = promises_of(flow)
        if outer is not None:
            promises = promises_inside(flow, promises, outer.promises, self._strand)
        if promises is not None and place not in positions:
            promises.check_start(self.state)
        engine = Engine(
            flow,
            self,
            position=positions.pop(place, None),
            answers=answers,
            keeps_failures=self.config.resumable,
            watch=Notices(told, self.event) if told is not None and told.want_notices else None,
            promises=promises,
        )
        self.bind(engine)
        try:
            async with aclosing(engine.run()) as events:
                async for event in events:
                    yield event
        except BaseException:
            if self.config.resumable:
                positions[place] = copied_containers(engine.failed_at or engine.position)
            raise
        if engine.outcome is Signal.PAUSE:
            positions[place] = copied_containers(engine.position)
            asked = tuple(replace(each, author=self.author) for each in engine.questions)
            yield self.note("paused", pending=asked)

    def path_of(self, strand: Strand) -> str:
        """The position of a strand in the whole run."""
        return ".".join(each for each in (self._above, strand.path) if each)

    def attempt_of(self, strand: Strand) -> str | None:
        """The open scopes that a strand works in, in the whole run."""
        own = [self._prefix + each for each in (strand.attempt or "").split(".") if each]
        return ".".join(([self._attempt] if self._attempt else []) + own) or None

    def is_open(self, scope: str) -> bool:
        """Whether it is not decided yet if what is done in a scope counts."""
        if scope.startswith(self._prefix):
            return super().is_open(scope.removeprefix(self._prefix))
        return self._outer.is_open(scope)

    def event(self, node: Node, strand: Strand, **fields: Any) -> AgentEvent:
        """An event of an agent, with its place in the whole run."""
        made = super().event(node, strand, **fields)
        made.path, made.attempt = self.path_of(strand), self.attempt_of(strand)
        made.discarded = tuple(self._prefix + each for each in made.discarded)
        return made

    def note(self, why: str, **fields: Any) -> AgentEvent:
        """An event of the pipeline itself, of no step of it."""
        made = super().note(why, **fields)
        made.path, made.attempt = self._above, self._attempt
        return made

    def count(self, agent: Node) -> None:
        """Count one more call of a model, in the whole run."""
        self._outer.count(agent)

    def lacks(self, error: BuildError) -> None:
        """Remember that nobody said what an agent answers."""
        self._outer.lacks(error)
