"""The flow engine's port on ADK: runs agents, makes events."""

from __future__ import annotations

import time
from collections import ChainMap
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import CAPS, merges_dicts
from adk_fluent.backends.adk._help import explain
from adk_fluent.backends.adk._hooks._agents import is_flow
from adk_fluent.backends.adk._hooks._answered import notes_of, settle
from adk_fluent.backends.adk._hooks._besides import watch
from adk_fluent.backends.adk._hooks._chain import Where, attach_to, place, where
from adk_fluent.backends.adk._hooks._in_flow import is_ours_alone
from adk_fluent.backends.adk._hooks._siblings import end_calls
from adk_fluent.backends.adk._hooks._turns import Turn, is_held_back, keep_turn, turn_in
from adk_fluent.backends.adk._lowering._injecting import table_of
from adk_fluent.backends.adk._running._places import Places, outer_of
from adk_fluent.backends.adk._running._prompt import Prompts
from adk_fluent.backends.adk._running._retrying import keep_waits, retried
from adk_fluent.backends.adk._running._step import asks_only, drop_committed, is_loop, may_call
from adk_fluent.backends.adk._running._transfer import handing_over
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.backends.adk._session._facts import (
    Leaving,
    answer,
    facts,
    put_out,
    report_end,
    take_output,
    text,
    unsaid,
    unwritten,
)
from adk_fluent.backends.adk._session._returned import returned
from adk_fluent.backends.adk._session._stamps import journal_key, stamp_of
from adk_fluent.backends.adk._session._storing import Keeping
from adk_fluent.backends.adk._waiting._answer_events import told
from adk_fluent.backends.adk._waiting._in_place import is_refusal
from adk_fluent.errors import BuildError
from adk_fluent.ir import AgentNode
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Container, Iterator, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.backends._answers import Answer
    from adk_fluent.backends._resources import Injection
    from adk_fluent.backends.adk._hooks._chain import Chain, LastCall
    from adk_fluent.backends.adk._session._stamps import Stamp
    from adk_fluent.errors import OutputInvalidError
    from adk_fluent.flow import Engine, Note, Strand
    from adk_fluent.ir import ExecutionConfig, Node, Ref


class AdkLeaf:
    """Runs the agents of one run, and makes the events that the engine itself writes.

    Args:
        author: Who authors the engine's own events.
        agents: The agents to run, by name.
        ctx: The context of the agent that drives the engine.
        run: Identity of the run; a flow below another one takes part in that one's run.
        metadata: Put on every event.
        nesting: Names of agents that flows may run below.
        injection: What functions may name.
        answers: How the answers of agents are read, by name of the agent.
        nodes: The nodes of the agents that were built here, by name; for messages.
        config: How the pipeline runs; for messages.
        chain: What stands around its calls.

    Attributes:
        state: The session's.
        author: Who authors the engine's own events.
        place: What events of the root itself are stamped with.
    """

    #: Whether anything can be waited for.
    waits: ClassVar[bool] = True
    facts = staticmethod(facts)
    text = staticmethod(text)
    answer = staticmethod(answer)

    def __init__(
        self,
        author: str,
        agents: Mapping[str, BaseAgent],
        ctx: InvocationContext,
        *,
        run: str,
        metadata: Mapping[str, Any],
        nesting: Container[str],
        injection: Injection,
        answers: Mapping[str, Answer],
        nodes: Mapping[str, AgentNode],
        config: ExecutionConfig,
        chain: Chain | None,
        durable: bool,
        kept: bool,
    ) -> None:
        self.state: dict[str, Any] = ctx.session.state
        self.author: str = author
        self._agents = agents
        self._ctx = ctx
        self._metadata = metadata
        self._nesting = nesting
        self._injection = injection
        self._answers = answers
        self._nodes = nodes
        self._config = config
        self._chain = chain
        self._alone = where(ctx) is None and is_ours_alone(ctx.plugin_manager)
        self._table: Mapping[str, Any] = table_of(ctx) if injection.names else {}
        self._places = Places(author, ctx, run, durable=durable, kept=kept)
        self._over: list[str] = []
        self._engine: Engine[Event] | None = None
        self.place: Stamp = self._places.root
        self._merging = merges_dicts(ctx.session_service)
        self._keeping = Keeping(ctx.session_service)
        places = self._places
        self._prompts = Prompts(ctx.session, places.run, ctx.user_content, places.is_open)

    def bind(self, engine: Engine[Event]) -> None:
        """Name the engine that runs: it knows which scopes are open, and what is promised."""
        self._engine = engine
        self._places.open = engine.log.open

    def unbind(self) -> None:
        """Forget the engine: it refers to this, and a run would be left to the collector."""
        self._engine = None
        self._places.open = ()

    # --- the port ------------------------------------------------------------------------------

    def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[Event, None]:
        """Run an agent."""
        chain = self._chain
        changes: dict[str, Any] = {}
        here = None if chain is None else chain.at(strand)
        if self.waits and (may_call(node) or (here is not None and here.may_add_tools)):
            keep_turn(changes, Turn(in_loop=strand.inside(is_loop)))
        stamp = self._places.stamp(node, strand)
        if here is None or (self._alone and not here.sees_calls and asks_only(node)):
            return self._run(node, strand, answers, changes, stamp)
        step = Where(node.name, strand, stamp.copy(), goes_on=bool(answers))
        place(changes, step)
        if here is not chain:
            attach_to(changes, here)
        return self._run(node, strand, answers, changes, stamp, step=step)

    async def _run(
        self,
        node: Node,
        strand: Strand,
        answers: Mapping[str, Any],
        changes: dict[str, Any],
        stamp: Stamp,
        *,
        step: Where | None = None,
    ) -> AsyncGenerator[Event, None]:
        """The events of an agent, and what hooks wrote around calls of which no event has come."""
        branch = self._places.branch(strand)
        agent = self._agents.get(node.name) or self._below(node)
        drafts = self._drafts(strand)
        over = watch(agent, self._ctx.plugin_manager, changes)
        asked: Mapping[str, str] = strand.frames[-1].get("waits", {})
        waits, turn = set(asked.keys() - answers.keys()), turn_in(changes)
        keep_waits(changes, waits, agent, below=turn is not None)
        ctx, seen = self._context(
            node, agent.name, strand, stamp, branch, drafts=drafts, changes=changes
        )
        if answers:
            agent, ctx, seen = told(agent, ctx, seen, answers)
            if turn is not None and not is_flow(agent):
                turn.go_on(agent.name, seen, waits)
                agent = handing_over(agent, turn)
        calls: Mapping[str, LastCall] = {} if step is None else step.last
        leaving = Leaving(self._nodes, partial(strand.inside, is_loop))
        try:
            async with aclosing(_said(self._events_of(agent, ctx), turn)) as events:
                async for event in events:
                    unsaid(event)
                    leaving.take(event)
                    mark: Stamp = {**stamp, "besides": True} if event.author in over else stamp
                    call = calls.get(event.author)
                    mark = self._marked(event, mark, turn, call)
                    if call is not None and not call.settled:
                        await settle(call, event)
                    invalid = self._read(event, node, agent, waits, mark)
                    wrote = event.actions.state_delta
                    if not event.partial:
                        report_end(event)
                        wrote = dict(wrote) if drafts else wrote  # as the step has it
                        self._keep(event, node, strand)
                        self._keeping.check_event(event, node)
                    before = len(self._ctx.session.events)
                    yield event
                    if invalid is not None:
                        raise invalid
                    if not event.partial:
                        drop_committed(drafts, wrote)
                        self._committed(event, before, branch, seen)
        except Exception as error:
            explain(error, self._nodes, self._config, self._ctx)
            await end_calls(set() if step is None else step.calls)
            for event in self._late(node, strand, step):
                yield event
            raise
        if node.name in self._nesting and (below := outer_of(ctx)) is not None:
            self._over += below.over
        for event in self._late(node, strand, step):
            yield event

    def _late(self, node: Node, strand: Strand, step: Where | None) -> Iterator[Event]:
        """What hooks wrote around calls of which no event has come."""
        if step is None:
            return
        step.over()
        kept = step.kept
        if kept is not None and (kept.state_delta or kept.artifact_delta):
            event, _ = self.said(node, strand, None)
            event.actions.state_delta.update(kept.state_delta)
            event.actions.artifact_delta.update(kept.artifact_delta)
            self._keep(event, node, strand)
            yield event

    def _keep(self, event: Event, node: Node, strand: Strand) -> None:
        """Let an event write what the state schemas around the step have stored.

        Raises:
            StateTypeError: One does not allow it.
        """
        if self._engine is not None and event.actions.state_delta:
            self._engine.keep(strand, node, event, event.author)

    def _read(
        self, event: Event, node: Node, agent: BaseAgent, waits: set[str], stamp: Stamp
    ) -> OutputInvalidError | None:
        """Write what an agent answers; gives the error of an answer that does not fit.

        What is said while something is waited for is no answer yet.
        """
        if self.waits and not event.partial and (waits or event.long_running_tool_ids):
            waits.update(event.long_running_tool_ids or ())
            waits.difference_update(stamp.get("settled", ()))
        if waits:
            if stamp_of(event) is stamp:  # a flow below knows what it waits for
                unwritten(event, agent)
            return None
        answer = None if "retried" in stamp else self._answers.get(node.name)
        return put_out(answer, event) if answer is not None and event.author == node.name else None

    def _events_of(self, agent: BaseAgent, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """Let an agent run."""
        return agent.run_async(ctx)

    def emptied(self) -> dict[str, None]:
        """The journals of flows below steps that have come to their end, as nobody needs them."""
        over, self._over = self._over, []
        return {journal_key(name): None for name in over}

    def call(self, node: Node, fn: Ref, strand: Strand, state: Mapping[str, Any]) -> Any:
        """Call a user's function over state."""
        value = self._injection.call(fn, state, self._table)
        return returned(node, fn, value)

    def check(self, node: Node, delta: Mapping[str, Any]) -> None:
        """Refuse a write of the engine's own that the session service cannot keep."""
        self._keeping.check_state(delta, node.name, node)

    def write(self, node: Node, strand: Strand, delta: Mapping[str, Any], note: Note) -> Event:
        """Make the event that carries a write of the engine's own."""
        stamp = self._places.stamp(node, strand)
        if note.why == "around":
            parts = None if note.text is None else [types.Part(text=note.text)]
            content = None if parts is None else types.Content(role="model", parts=parts)
            event, invalid = self.said(node, strand, content)
            event.actions.state_delta.update(delta)
            if invalid is not None:
                raise invalid
            return event
        stamp["why"] = note.why
        if note.discarded:
            stamp["discarded"] = [self._places.scope(each) for each in note.discarded]
            self._discard(stamp["discarded"])
        event = Event(
            author=self.author,
            invocation_id=self._ctx.invocation_id,
            branch=self._places.branch(strand),
            actions=EventActions(state_delta=dict(delta), transfer_to_agent=note.transfer_to),
        )
        if note.text is not None:  # of no role: for people, and for no prompt
            event.content = types.Content(role=None, parts=[types.Part(text=note.text)])
        self._mark(event, stamp)
        return event

    def said(
        self, node: Node, strand: Strand, content: types.Content | None, *, answers: bool = True
    ) -> tuple[Event, OutputInvalidError | None]:
        """An event in the name of a step that it did not put out itself.

        Args:
            node: The step.
            strand: Where it stands.
            content: What is said.
            answers: Whether it is read as the step's answer is, and not said besides.

        Returns:
            The event, and the error of an answer that does not fit.
        """
        agent = node.name in self._agents
        event = Event(
            author=node.name if agent else self.author,
            invocation_id=self._ctx.invocation_id,
            branch=self._places.branch(strand),
            content=content,
        )
        stamp = self._places.stamp(node, strand)
        if content is None:
            stamp["why"] = "around"
        elif not answers:
            stamp["besides"] = True
        self._mark(event, stamp)
        read = agent and answers and content is not None
        answer = self._answers.get(node.name) if read else None
        return event, None if answer is None else put_out(answer, event)

    def written(self, actions: EventActions) -> Event:
        """An event of the run itself, with what its hooks have written."""
        event = Event(
            author=self.author,
            invocation_id=self._ctx.invocation_id,
            branch=self._ctx.branch,
            actions=actions.model_copy(deep=True),
        )
        event.custom_metadata = {**self._metadata, METADATA_KEY: {**self.place, "why": "around"}}
        return event

    def seen_by_hooks(
        self, node: Node, strand: Strand, drafts: dict[str, Any]
    ) -> InvocationContext:
        """The context in which hooks stand around a step; what they write goes to `drafts`."""
        below = strand.state
        maps = below.maps if isinstance(below, ChainMap) else [self.state]
        session = copied(self._ctx.session, {"state": ChainMap(drafts, *maps)})
        agent = self._agents.get(node.name, self._ctx.agent)
        branch = self._places.branch(strand)
        return copied(self._ctx, {"session": session, "agent": agent, "branch": branch})

    def path(self, node: Node, strand: Strand) -> str:
        """The position of a step in the whole run."""
        return self._places.stamp(node, strand).get("path", "")

    def says(self, message: types.Content) -> None:
        """Another message stands in the place of the user's."""
        self._prompts.says(message)

    def notice(self, node: Node, strand: Strand, **fields: Any) -> AgentEvent:
        """An event of a step that is not part of the run, with its place in the pipeline."""
        stamp = self._places.stamp(node, strand)
        scopes = fields.pop("discarded", ())
        return AgentEvent(
            node.name,
            metadata={"run": stamp.get("run")},
            timestamp=time.time(),
            invocation_id=self._ctx.invocation_id,
            branch=self._places.branch(strand),
            path=stamp.get("path"),
            node=node.name,
            attempt=stamp.get("attempt"),
            discarded=tuple(self._places.scope(each) for each in scopes),
            **fields,
        )

    def attach(self, event: Event, delta: Mapping[str, Any]) -> None:
        """Let an event that is about to be committed write these keys, too."""
        event.actions.state_delta.update(delta)

    # --- marks ---------------------------------------------------------------------------------

    def _discard(self, scopes: list[str]) -> None:
        self._prompts.discard(scopes)
        self._places.discard_above(scopes)

    def _marked(
        self, event: Event, stamp: Stamp, turn: Turn | None, call: LastCall | None
    ) -> Stamp:
        """Mark an event of a step, and give what it is marked with."""
        if event.custom_metadata:
            if (wrong := retried(event)) is not None:
                stamp = {**stamp, "besides": True, "retried": wrong}
                self._prompts.retried = True
            if is_refusal(event):
                stamp = {**stamp, "why": "refused"}
            stamp = take_output(event, stamp)
        gone = [] if turn is None else turn.settled(event)
        made: Stamp = {**stamp, "settled": gone} if gone else stamp
        self._mark(event, made, call)
        return made

    def _mark(self, event: Event, stamp: Stamp, call: LastCall | None = None) -> None:
        metadata = event.custom_metadata or {}
        if METADATA_KEY not in metadata:  # an inner flow's events are marked already
            notes = {} if call is None else notes_of(call, event)
            event.custom_metadata = {**self._metadata, **metadata, **notes, METADATA_KEY: stamp}

    # --- what an agent is given ----------------------------------------------------------------

    def _below(self, node: Node) -> BaseAgent:
        """The agent of a delegate that the flow itself transfers to.

        Raises:
            BuildError: There is no such agent in the compiled pipeline.
        """
        for agent in self._agents.values():
            if (found := agent.find_agent(node.name)) is not None:
                return found
        raise BuildError(
            f"no agent of this pipeline is called {node.name!r}",
            node=node,
            help="compile the pipeline again: its agents were changed or removed",
        )

    def _drafts(self, strand: Strand) -> dict[str, Any] | None:
        """Where a step's writes go until they are committed, if they must not show before that.

        ADK writes what tools and callbacks set into the session's state at once. In a step that
        may be discarded nobody else may see that; and where dicts are merged, the value that the
        service has must be known. And what a state schema refuses, nobody may see at all.
        """
        promises = None if self._engine is None else self._engine.promises
        guarded = promises is not None and promises.guards
        return {} if strand.scope is not None or self._merging or guarded else None

    def _context(
        self,
        node: Node,
        name: str,
        strand: Strand,
        stamp: Stamp,
        branch: str | None,
        *,
        drafts: dict[str, Any] | None,
        changes: dict[str, Any],
    ) -> tuple[InvocationContext, list[Event] | None]:
        """The context for a step, and the events it sees if those are not simply the session's."""
        ctx = self._ctx
        if branch != ctx.branch:
            changes["branch"] = branch
        if name in self._nesting:
            promises = None if self._engine is None else self._engine.promises
            above = None if promises is None else (promises, strand)
            changes.update(self._places.for_below(stamp, self._discard, above))
        session: dict[str, Any] = {}
        seen = self._prompts.events_for(
            name,
            node.history if isinstance(node, AgentNode) else "transcript",
            stamp.get("path", ""),
            stamp.get("attempt"),
            branch,
        )
        if seen is not None:
            session["events"] = seen
        if drafts is not None:
            below = strand.state
            maps = below.maps if isinstance(below, ChainMap) else [self.state]
            session["state"] = ChainMap(drafts, *maps)
        if session:
            changes["session"] = copied(ctx.session, session)
            if CAPS.compaction_in_run and ctx.events_compaction_config is not None:
                # ADK would append the summary to the copy, and the session itself would be stale;
                # it summarises at the end of the run, too
                changes["events_compaction_config"] = None
        return (copied(ctx, changes) if changes else ctx), seen

    def _committed(
        self,
        event: Event,
        before: int,
        branch: str | None,
        seen: list[Event] | None,
    ) -> None:
        """Show a step what it said itself, as it stands in the session now."""
        if branch:
            self._prompts.branched = True
        if seen is not None:
            kept = self._ctx.session.events[before:]
            seen.append(next((each for each in kept if each.id == event.id), event))


def _said(said: AsyncGenerator[Event, None], turn: Turn | None) -> AsyncGenerator[Event, None]:
    return said if turn is None else _in_turn(said, turn)


async def _in_turn(said: AsyncGenerator[Event, None], turn: Turn) -> AsyncGenerator[Event, None]:
    """What an agent says, without what ADK makes of a model that is not asked."""
    async with aclosing(said) as events:
        async for event in events:
            if not is_held_back(event):
                turn.take(event)
                yield event
