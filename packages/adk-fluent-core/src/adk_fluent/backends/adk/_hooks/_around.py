"""What stands around the steps of a run on ADK, and around the run itself."""

from __future__ import annotations

from collections import ChainMap
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.state import State

from adk_fluent.backends.adk._hooks._enclosing import OF_STEPS, StepCall, Writes, enclosed
from adk_fluent.backends.adk._session._facts import text
from adk_fluent.backends.adk._session._patching import OF_EVENTS, pass_event
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.flow import ARRANGEMENTS, StateView
from adk_fluent.ir import AdkAgentNode, AgentNode, RemoteAgentNode
from adk_fluent.protocol import AgentReply, RunCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.genai import types

    from adk_fluent.backends.adk._hooks._chain import Chain
    from adk_fluent.backends.adk._running._leaf import AdkLeaf
    from adk_fluent.flow import Enclosed, Order, Strand
    from adk_fluent.ir import ExecutionConfig, Node

#: What hooks of steps stand around: agents, and arrangements of steps.
_STEPS: Final = ARRANGEMENTS | {AdkAgentNode, AgentNode, RemoteAgentNode}
_OF_RUNS: Final = (*("on_user_message", "before_run", "wrap_run", "after_run", "on_run_error"),)


class AdkAround:
    """Asks the middlewares of a run.

    Args:
        chain: The middlewares.
        leaf: Runs the agents.
        ctx: The root's context.
        root: What runs.
        config: How it runs.
        resumed: A run goes on that was begun before.

    Attributes:
        has_steps: Whether there is anything around any step, or the run.
        watches: Whether anybody looks at events: `seen`.
    """

    def __init__(
        self,
        chain: Chain,
        leaf: AdkLeaf,
        ctx: InvocationContext,
        root: Node,
        *,
        config: ExecutionConfig,
        resumed: bool,
    ) -> None:
        self._chain = chain
        self._leaf = leaf
        self._ctx = ctx
        self._root = root
        self._config = config
        self._resumed = resumed
        self._steps = chain.has(*OF_STEPS)
        self._runs = chain.own.has(*_OF_RUNS)
        self.has_steps: bool = self._steps or self._runs
        self.watches: bool = chain.has(*OF_EVENTS)
        self._changes = chain.has("on_event")
        self._parts = chain.has_parts
        self.order: Order | None = None
        if any(hasattr(each, "turn") for each in chain.stack.members):
            self.order = _Order([e for e in chain.stack.members if hasattr(e, "turn")], leaf)
        self._told: Exception | None = None
        self._status = ""
        chain.begin(self._run_call)

    @property
    def is_needed(self) -> bool:
        """Whether anything is around the run, its steps or events, or is told of its end."""
        return self.has_steps or self.watches or self._chain.tells_end

    def encloses(self, node: Node) -> bool:
        """Whether there is anything around a step."""
        return (self._steps and type(node) in _STEPS) or (self._runs and node is self._root)

    async def call(self, step: Enclosed[Event]) -> AgentReply:
        """Do what is around a step, and the step."""
        if self._runs and step.node is self._root:
            return await self._run(step)
        return await self._step(step)

    def ended(self, *, paused: bool) -> None:
        """Take note that the run has come to its end, or waits for an answer."""
        self._status = "waiting" if paused else "completed"

    def close(self, kind: Any, error: BaseException | None, trace: object) -> None:
        """Tell the middlewares that the run is over; the `__exit__` of a block around it."""
        status = self._status or "cancelled"
        self._chain.end("failed" if isinstance(error, Exception) else status, error)

    async def seen(self, event: Event) -> None:
        """Let middlewares change an event, and look at it."""
        stack = self._chain.own
        if self._parts:
            stack = self._chain.watching((stamp_of(event) or {}).get("node"), event.author)
        if self._changes:
            await pass_event(stack, self._ctx, event)
        else:
            stack.show(self._ctx, event)

    async def failed(self, error: Exception) -> Event | None:
        """Tell those who want to know what stops the run, if they have not heard of it.

        Returns:
            An event with what they write.
        """
        actions = self._chain.written
        if error is not self._told and self._chain.own.has("on_run_error"):
            self._told = error
            with_state(self._ctx, actions, {})
            await self._chain.own.tell("on_run_error", self._ctx, error)
        if not actions.state_delta and not actions.artifact_delta:
            return None
        return self._leaf.written(actions)

    # --- a step --------------------------------------------------------------------------------

    async def _step(self, step: Enclosed[Event]) -> AgentReply:
        stack = self._chain.at(step.strand).stack
        if not stack.has(*OF_STEPS):
            return await step.go_on()
        return await enclosed(stack, _Step(step, self._leaf, self._chain.run))

    # --- the run -------------------------------------------------------------------------------

    async def _run(self, step: Enclosed[Event]) -> AgentReply:
        ctx, stack = self._ctx, self._chain.own
        writes = Writes(partial(_put_writes, self._leaf, step), self._chain.written)
        writes.drafts.update(writes.actions.state_delta)
        with_state(ctx, writes.actions, writes.drafts)

        async def go_on(call: RunCall) -> AgentReply:
            if call.message is not ctx.user_content:
                ctx.user_content = call.message
                self._leaf.says(call.message)
            await writes.put()
            whole = self._steps and type(step.node) in _STEPS
            return await (self._step(step) if whole else step.go_on())

        try:
            place: int | None = None
            if step.is_settled:
                reply = step.before()
            else:
                said, place = await stack.before("before_run", ctx)
                await writes.put()
                if said is not None:
                    reply = await _answer(self._leaf, step, said)
                else:
                    reply = await stack.around("wrap_run", go_on)(self._run_call())
                    await writes.put()
                await step.settle(reply)
            if not reply.paused:
                await stack.tell("after_run", ctx, outside=place)
                await writes.put()
        except Exception as error:
            self._told = error
            await stack.tell("on_run_error", ctx, error)
            await writes.put()
            raise
        return reply

    def _run_call(self) -> RunCall:
        ctx, session = self._ctx, self._ctx.session
        return RunCall(
            ctx.user_content,
            ctx,
            self._root,
            self._config,
            session.app_name,
            session.user_id,
            session.id,
            ctx.invocation_id,
            self._resumed,
            self._chain.run,
            self._chain.said,
        )


class _Order:
    """Tells middlewares of the order in which branches go on; they may keep them waiting.

    Args:
        members: Those who want to know.
        leaf: Knows the places of steps.
    """

    def __init__(self, members: Sequence[Any], leaf: AdkLeaf) -> None:
        self._members = members
        self._leaf = leaf
        self.keeps_time: bool = any(hasattr(each, "time_is_up") for each in members)

    async def turn(self, strand: Strand, event: Event | None) -> None:
        node = strand.nodes[-1]
        name, path, partial = node.name, self._leaf.path(node, strand), False
        if event is not None:
            stamp = stamp_of(event) or {}  # that of a step of a flow below this one
            name, path = stamp.get("node", name), stamp.get("path", path)
            partial = bool(event.partial)
        for each in self._members:
            await each.turn(name, path, partial=partial, made=event is None)

    async def ended(self, node: Node, branch: Strand, *, decides: bool) -> None:
        path = self._leaf.path(node, branch)
        for each in self._members:
            await each.branch_ended(node.name, path, decides=decides)

    async def time_is_up(self, node: Node, strand: Strand) -> None:
        path = self._leaf.path(node, strand)
        for each in self._members:
            if hasattr(each, "time_is_up"):
                await each.time_is_up(node.name, path)

    def expired(self, node: Node, strand: Strand) -> None:
        path = self._leaf.path(node, strand)
        for each in self._members:
            each.expired(node.name, path)


class _Step:
    """A step of the pipeline as its hooks have to do with it.

    Args:
        step: The step.
        leaf: Runs the agents.
        run: Identity of the run.
    """

    def __init__(self, step: Enclosed[Event], leaf: AdkLeaf, run: str) -> None:
        self.name: str = step.node.name
        self.writes: Writes = Writes(partial(_put_writes, leaf, step))
        self._step = step
        self._leaf = leaf
        self._run = run
        self.go_on = step.go_on
        self.settle = step.settle
        self.before = step.before

    @property
    def is_settled(self) -> bool:
        return self._step.is_settled

    def seen(self, drafts: dict[str, Any]) -> InvocationContext:
        return self._leaf.seen_by_hooks(self._step.node, self._step.strand, drafts)

    def call(self) -> StepCall:
        step = self._step
        return StepCall(
            self.name,
            step.node,
            None,
            StateView(step.strand.state),
            self._leaf.path(step.node, step.strand),
            step.iteration,
            step.resumed,
            self._run,
        )

    async def answer(self, content: types.Content) -> AgentReply:
        return await _answer(self._leaf, self._step, content)

    async def add(self, content: types.Content) -> None:
        event, _ = self._leaf.said(self._step.node, self._step.strand, content, answers=False)
        await self._step.put(event)


# --- what they say and write ---------------------------------------------------------------------


async def _answer(leaf: AdkLeaf, step: Enclosed[Event], content: types.Content) -> AgentReply:
    """Say what a hook has said in the place of a step."""
    event, invalid = leaf.said(step.node, step.strand, content)
    reply = AgentReply(text(event) or "", dict(event.actions.state_delta))
    await step.put(event, reply)
    if invalid is not None:
        raise invalid
    return step.answered(reply)


async def _put_writes(leaf: AdkLeaf, step: Enclosed[Event], actions: EventActions) -> None:
    """Put out what hooks of a step have written."""
    event, _ = leaf.said(step.node, step.strand, None)
    event.actions.state_delta.update(actions.state_delta)
    event.actions.artifact_delta.update(actions.artifact_delta)
    await step.put(event)


def with_state(ctx: InvocationContext, actions: EventActions, drafts: dict[str, Any]) -> None:
    """Give the context of a run a `state` whose writes are kept, as those of a step have."""
    state: Any = ChainMap(drafts, ctx.session.state)
    vars(ctx)["state"] = State(value=state, delta=actions.state_delta)


async def user_message(ctx: InvocationContext, chain: Chain, message: Any) -> Any:
    """What a run begins with that the user begins; None leaves it as it is.

    What a hook raises is raised by the run itself, as it is.
    """
    changed = chain.own.has("on_user_message")
    chain.said = message.model_copy(deep=True) if changed else message
    with_state(ctx, chain.written, {})
    try:
        return await chain.own.hand_in("on_user_message", ctx, message)
    except Exception as error:  # noqa: BLE001  # ADK would raise a RuntimeError
        chain.failure = error
        return None
