"""Where a run stands, kept in the events of its session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._running._places import Places, outer_of
from adk_fluent.backends.adk._waiting._inbox import questions, request, told_again

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.backends.adk._running._leaf import AdkLeaf
    from adk_fluent.backends.adk._running._places import Outer
    from adk_fluent.backends.adk._waiting._journal import Progress
    from adk_fluent.flow import Engine, Position
    from adk_fluent.protocol import JournalStatus, Pending


def still_done(ctx: InvocationContext, root: str, outer: Outer) -> Event:
    """What a flow puts out that came to its end before the process died that ran its step.

    An agent that handed over to something that puts out nothing would hand over again and again.
    """
    place = Places(root, ctx, outer.run, durable=outer.durable, kept=outer.kept).root
    event = Event(author=root, invocation_id=ctx.invocation_id, branch=ctx.branch)
    event.custom_metadata = {METADATA_KEY: {**place, "why": "journal"}}
    return event


class AdkKeeper:
    """Writes down where a run stands.

    Args:
        ctx: The root's context.
        leaf: Runs the agents.
        progress: Where the run stands.
    """

    def __init__(self, ctx: InvocationContext, leaf: AdkLeaf, progress: Progress) -> None:
        self._ctx = ctx
        self._leaf = leaf
        self._progress = progress

    def keep(self, position: Position, status: JournalStatus) -> Event:
        """The event that says so."""
        return self._event(self._progress.at(position, status) | self._leaf.emptied(), "journal")

    def written(self, position: Position) -> Mapping[str, Any]:
        """The state that says so.

        Raises:
            SessionError: Somebody else has taken over the run.
        """
        self._progress.check_owner(self._leaf.state)
        return self._progress.at(position) | self._leaf.emptied()

    def paused(self, engine: Engine[Event], before: Collection[str]) -> Event:
        """The event that ends a run which waits, with the questions of gates."""
        asked = engine.questions
        told = [{"id": each.id, "kind": each.kind, "name": each.name} for each in asked]
        still = () if engine.segments else [id for id in engine.pending if id in before]
        told += [told_again(each) for each in questions(self._ctx.session.events, still)]
        status: JournalStatus = "boundary" if engine.segments else "waiting"
        delta = self._progress.at(engine.position, status, engine.segments) | self._leaf.emptied()
        if not told:
            return self._event(delta, "journal")
        return self._event(delta, "paused", asked, pending=told)

    def over(self) -> Event:
        """The event that empties what was kept, or says that the run is over.

        A flow in a step of another one must not begin anew where its own end is written down and
        that of the step is not.
        """
        outer = outer_of(self._ctx)
        done = outer is not None and outer.kept
        if outer is not None and done:
            outer.over.append(self._progress.name)
        return self._event(self._progress.over(told=done) | self._leaf.emptied(), "journal")

    def _event(
        self, delta: Mapping[str, Any], why: str, asked: list[Pending] | None = None, **more: Any
    ) -> Event:
        # content of no role is shown to people, and left out of prompts by every version of ADK
        content = types.Content(role=None, parts=request(asked, self._ctx)) if asked else None
        event = Event(
            author=self._leaf.author,
            invocation_id=self._ctx.invocation_id,
            branch=self._ctx.branch,
            content=content,
            long_running_tool_ids={each.id for each in asked} if asked else None,
            actions=EventActions(state_delta=dict(delta)),
        )
        event.custom_metadata = {METADATA_KEY: {**self._leaf.place, "why": why, **more}}
        return event
