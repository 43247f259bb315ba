"""Agents that ADK runs by itself, on their way through the middlewares of a run.

These are the agents that a model hands over to, those that are tools, and all that stand below
them or below somebody's own agent. Each run of one is a step.
"""

from __future__ import annotations

import asyncio
from collections import ChainMap
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.backends._answers import answer_of
from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._hooks._besides import note_said
from adk_fluent.backends.adk._hooks._chain import (
    attach_to,
    attached,
    is_called_by_tool,
    place,
    where,
)
from adk_fluent.backends.adk._hooks._enclosing import OF_STEPS, StepCall, Writes, enclosed
from adk_fluent.backends.adk._hooks._siblings import end_calls
from adk_fluent.backends.adk._hooks._turns import is_held_back, turn_in
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.backends.adk._session._facts import facts, put_out, text, unsaid
from adk_fluent.backends.adk._session._patching import OF_EVENTS, pass_event
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.errors import RunError, UsageError
from adk_fluent.flow import Commit, Heard, Parcel, StateView, settled
from adk_fluent.protocol import AgentReply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event_actions import EventActions

    from adk_fluent.backends._stack import Stack
    from adk_fluent.backends.adk._hooks._chain import Chain, Where

    Original = Callable[[Any, InvocationContext], AsyncGenerator[Event, None]]

_AROUND: Final = "around"


def is_flow(agent: BaseAgent) -> bool:
    """Whether an agent is a pipeline of ours, which asks the hooks of its steps itself."""
    return _is_flow(type(agent))


@cache
def _is_flow(kind: type[BaseAgent]) -> bool:
    return "plan" in kind.model_fields  # the flow root; its module imports this one


def run_agent(
    original: Original, agent: BaseAgent, ctx: InvocationContext
) -> AsyncGenerator[Event, None]:
    """What an agent says, through the middlewares if there are any.

    Args:
        original: Runs the agent itself.
        agent: The agent.
        ctx: The context that it is given.
    """
    here = where(ctx)
    if here is None or here.is_begun_by(agent.name):
        return original(agent, ctx)
    chain = attached(ctx)
    if chain is None:
        return original(agent, ctx)
    run = _in_tool if is_called_by_tool(ctx) else _run
    return run(original, agent, ctx, chain, here)


def _run(
    original: Original, agent: BaseAgent, ctx: InvocationContext, chain: Chain, here: Where
) -> AsyncGenerator[Event, None]:
    stack = chain.of(agent.name).stack
    resumed = here.enter()
    if is_flow(agent) or not stack.has(*OF_STEPS):
        return original(agent, ctx)
    return _Run(original, agent, ctx, chain, here, resumed=resumed).events(stack)


async def _in_tool(
    original: Original, agent: BaseAgent, ctx: InvocationContext, chain: Chain, here: Where
) -> AsyncGenerator[Event, None]:
    changes: dict[str, Any] = {}  # all below is part of the same call
    here = here.for_tool()
    attach_to(changes, chain)
    place(changes, here)
    ctx = copied(ctx, changes)
    events = _of_tool(_run(original, agent, ctx, chain, here), agent, ctx, chain, here)
    try:
        async with aclosing(events) as each:
            async for event in each:
                yield event
    except Exception:
        await end_calls(here.calls)
        raise
    finally:
        here.over()


class _Run:
    """One run of an agent as a step that hooks stand around.

    The hooks are one coroutine in a task of its own, in which the agent runs, too: whatever they
    do to a coroutine they do to the agent.
    """

    def __init__(
        self,
        original: Original,
        agent: BaseAgent,
        ctx: InvocationContext,
        chain: Chain,
        here: Where,
        *,
        resumed: bool,
    ) -> None:
        self.name: str = agent.name
        self.writes: Writes = Writes(self._write)
        self._original = original
        self._agent = agent
        self._ctx = ctx
        self._chain = chain
        self._here = here
        self._resumed = resumed
        self._queue: asyncio.Queue[Parcel[Event] | None] = asyncio.Queue()
        self._reply: AgentReply | None = None
        self._driver: asyncio.Task[Any] | None = None
        self._silent = True
        self._ran = False
        self._ended = False
        self._closed = False

    async def events(self, stack: Stack) -> AsyncGenerator[Event, None]:
        """What it says, and what its hooks do.

        Raises:
            BaseException: What it or a hook raised.
        """
        queue = self._queue
        task = asyncio.get_running_loop().create_task(self._call(stack))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (parcel := await queue.get()) is not None:
                if parcel.dropped:
                    continue
                parcel.taken = True
                try:
                    yield _event_of(parcel)
                finally:
                    parcel.acknowledge()
        finally:
            self._closed = True
            task.cancel()
            await settled([task])
        if (stopped := task.result()) is not None:
            raise stopped

    async def _call(self, stack: Stack) -> BaseException | None:
        """Do it; what is raised is given back, as some of it would end the event loop."""
        try:
            await enclosed(stack, self)
            if self._silent:  # or ADK asks the model that has handed over once more
                await self._put(self._said(None))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._closed or task is None or task.cancelling():
                raise
            stopped = RunError(f"{self.name} was cancelled from inside its hooks")
            stopped.__cause__ = error
            return stopped
        except BaseException as error:  # noqa: BLE001  # raised by whoever waits
            return error
        finally:
            self._ended = True
            await self._end_driver()
        return None

    # --- what hooks have to do with ------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        return False

    def before(self) -> AgentReply:
        return self._reply or AgentReply()

    def seen(self, drafts: dict[str, Any]) -> InvocationContext:
        session = self._ctx.session
        maps: list[Any] = getattr(session.state, "maps", [session.state])
        session = copied(session, {"state": ChainMap(drafts, *maps)})
        return copied(self._ctx, {"session": session, "agent": self._agent})

    def call(self) -> StepCall:
        return StepCall(
            self.name,
            self._chain.node(self.name),
            None,
            StateView(self._ctx.session.state),
            self._here.stamp.get("path", ""),
            self._here.iteration,
            self._resumed,
            self._chain.run,
        )

    async def answer(self, content: types.Content) -> AgentReply:
        event = self._said(content)
        reply = AgentReply(text(event) or "", dict(event.actions.state_delta))
        await self._put(event)
        self._reply = reply
        return reply

    async def go_on(self) -> AgentReply:
        if self._ended or self._driver is not None:
            what = "its hooks have come to their end" if self._ended else "it is still running"
            raise UsageError(
                f"{self.name} cannot be run: {what}",
                node=self._chain.node(self.name),
                help="await next(call), one after the other, before the hook returns",
            )
        self._driver = asyncio.current_task()
        try:
            return await self._go_on()
        finally:
            self._driver = None

    async def _go_on(self) -> AgentReply:
        self._reply = None
        heard, waits, turn = Heard(), self._waits(), turn_in(self._ctx.__dict__)
        if turn is not None and self._ran:
            turn.begin_anew(self.name)
        self._ran = True
        async with aclosing(self._original(self._agent, self._ctx)) as events:
            async for event in events:
                if is_held_back(event):
                    continue
                unsaid(event)
                await self._put(event)
                known = facts(event)
                if known is None or not known.partial:
                    delta = {} if known is None or not known.delta else dict(known.delta)
                    heard.take(delta, "", text(event) or "", "")
                    waits.update((known and known.waits) or {})
                    waits.difference_update(() if turn is None else turn.settled(event))
        self._reply = AgentReply(heard.text, heard.delta, paused=bool(waits))
        return self._reply

    def _waits(self) -> set[str]:
        """The questions that it has asked before and that still wait for an answer."""
        if not self._resumed:
            return set()
        run, asked, answered = self._here.stamp.get("run"), set[str](), set[str | None]()
        for event in self._ctx.session.events:
            if event.author == "user":
                answered.update(each.id for each in event.get_function_responses())
            elif event.author == self.name and (stamp_of(event) or {}).get("run") == run:
                asked.update(event.long_running_tool_ids or ())
        return asked - answered

    async def settle(self, reply: AgentReply) -> None:
        await self._end_driver()
        done, self._reply = self._reply or AgentReply(), reply
        if done.paused is not reply.paused:
            raise UsageError(
                f"{self.name} {'waits for an answer' if done.paused else 'does not wait'}, "
                "and what a hook returned says something else",
                node=self._chain.node(self.name),
                found=f"paused={reply.paused}",
                help="return what next(call) gave, or dataclasses.replace(reply, text=...)",
            )
        if done.paused:
            return
        delta = {
            key: value
            for key, value in reply.state_delta.items()
            if key not in done.state_delta or done.state_delta[key] is not value
        }
        said = reply.text if reply.text != done.text else ""
        if delta or said:
            event = self._said(_spoken(said) if said else None)
            event.actions.state_delta.update(delta)
            await self._put(event)

    async def add(self, content: types.Content) -> None:
        await self._put(self._said(content, answers=False))

    async def _end_driver(self) -> None:
        """End what a hook has begun and does not wait for."""
        driver = self._driver
        if driver is not None and driver is not asyncio.current_task():
            driver.cancel()
            await settled([driver])

    # --- what is put out -----------------------------------------------------------------------

    async def _write(self, actions: EventActions) -> None:
        event = self._said(None)
        event.actions.state_delta.update(actions.state_delta)
        event.actions.artifact_delta.update(actions.artifact_delta)
        await self._put(event)

    def _said(self, content: types.Content | None, *, answers: bool = True) -> Event:
        """An event in its name that it did not put out itself.

        Raises:
            OutputInvalidError: It is read as its answer is, and does not fit.
        """
        event = Event(
            author=self.name,
            invocation_id=self._ctx.invocation_id,
            branch=self._ctx.branch,
            content=content,
        )
        if content is not None:
            note_said(self._ctx, self.name, besides=not answers)
        elif not self._here.in_tool:
            event.custom_metadata = {METADATA_KEY: {**self._here.stamp, "why": _AROUND}}
        node = self._chain.node(self.name)
        answer = None if node is None or content is None or not answers else answer_of(node)
        if answer is not None and (invalid := put_out(answer, event)) is not None:
            raise invalid
        return event

    async def _put(self, event: Event) -> None:
        if self._closed:  # nobody is there any more to take it
            raise asyncio.CancelledError
        self._silent = False
        parcel = Parcel(Commit(event))
        self._queue.put_nowait(parcel)
        await parcel.delivered()


def _spoken(said: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=said)])


def _event_of(parcel: Parcel[Event]) -> Event:
    assert parcel.commit.event is not None  # noqa: S101  # none is made late here
    return parcel.commit.event


# --- agents that are tools -----------------------------------------------------------------------


async def _of_tool(
    events: AsyncGenerator[Event, None],
    agent: BaseAgent,
    ctx: InvocationContext,
    chain: Chain,
    here: Where,
) -> AsyncGenerator[Event, None]:
    """The events of an agent that is a tool as the middlewares let them be."""
    flow, watched = is_flow(agent), chain.has(*OF_EVENTS)
    async with aclosing(events) as each:
        async for event in each:
            if watched:
                # a pipeline of ours has asked those around parts of its own
                names = (agent.name,) if flow else (agent.name, event.author)
                await _seen(event, chain.watching(*names), ctx, here)
            target = event.actions.transfer_to_agent
            if target and not flow and CAPS.workflow:
                # its graph runtime would end the agent here, and run the other one after it
                event.actions.transfer_to_agent = None
                yield event
                event.actions.transfer_to_agent = target
            else:
                yield event


async def _seen(event: Event, stack: Stack, ctx: InvocationContext, here: Where) -> None:
    """Let middlewares see an event, with the place of the step in which the tool was called."""
    metadata = event.custom_metadata
    marked = metadata is not None and METADATA_KEY in metadata
    if not marked:
        event.custom_metadata = {**(metadata or {}), METADATA_KEY: here.stamp}
    try:
        await pass_event(stack, ctx, event)
    finally:
        if not marked:
            left = {k: v for k, v in (event.custom_metadata or {}).items() if k != METADATA_KEY}
            event.custom_metadata = left or None
