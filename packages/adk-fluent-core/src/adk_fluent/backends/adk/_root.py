"""The one root agent: drives the flow engine, and owns everything that lives as long as a run."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    aclosing,
)
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from pydantic import Field

from adk_fluent.backends._config import STAMP
from adk_fluent.backends._resources import NOTHING, Injection, Owner
from adk_fluent.backends.adk._caps import merges_dicts
from adk_fluent.backends.adk._chain import Chain, attach, attached
from adk_fluent.backends.adk._compaction import compact, own_compaction
from adk_fluent.backends.adk._config import merged, unsupported
from adk_fluent.backends.adk._injecting import keep
from adk_fluent.backends.adk._leaf import AdkLeaf
from adk_fluent.backends.adk._plugin import ensure_plugin
from adk_fluent.backends.adk._replacing import dicts_to_clear
from adk_fluent.backends.adk._rewind import Beginning
from adk_fluent.flow import Engine

if TYPE_CHECKING:
    from google.adk.apps.app import EventsCompactionConfig

    from adk_fluent.backends._answers import Answer
    from adk_fluent.ir import AgentNode, ExecutionConfig, Node

#: Something that is open while a run lasts: called with ADK's InvocationContext.
Resource = Callable[
    [InvocationContext], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]
]
#: Called when a run is over, however it ended.
Closer = Callable[[], Awaitable[None] | None]

_TEMP = "temp:"


class Plan:
    """What a root agent runs, and how. Never changed, so copies of the agent share it.

    Attributes:
        node: What runs.
        config: How it runs.
        nodes: The nodes of the agents that were built here, by name.
        resources: Opened in this order at the start of a run, closed in reverse at its end.
        closers: Called at the end of a run, the last one first.
        middlewares: Outermost first.
        compaction: For a root that is run under somebody else's App.
        nesting: Names of its agents that other flows stand below.
        injection: What functions may name.
        answers: How the answers of agents are read, by name of the agent.
        opens: Whether a run of it makes the resources; a flow below another one finds them made.
    """

    __slots__ = (
        "answers",
        "closers",
        "compaction",
        "config",
        "injection",
        "middlewares",
        "nesting",
        "node",
        "nodes",
        "opens",
        "resources",
    )

    def __init__(
        self,
        node: Node,
        config: ExecutionConfig,
        *,
        nodes: Mapping[str, AgentNode],
        resources: tuple[Resource, ...] = (),
        closers: tuple[Closer, ...] = (),
        middlewares: tuple[Any, ...] = (),
        compaction: EventsCompactionConfig | None = None,
        nesting: frozenset[str] = frozenset(),
        injection: Injection = NOTHING,
        answers: Mapping[str, Answer] | None = None,
        opens: bool = False,
    ) -> None:
        self.node: Node = node
        self.config: ExecutionConfig = config
        self.nodes: Mapping[str, AgentNode] = nodes
        self.resources: tuple[Resource, ...] = resources
        self.closers: tuple[Closer, ...] = closers
        self.middlewares: tuple[Any, ...] = middlewares
        self.compaction: EventsCompactionConfig | None = compaction
        self.nesting: frozenset[str] = nesting
        self.injection: Injection = injection
        self.answers: Mapping[str, Answer] = answers or {}
        self.opens: bool = opens

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self


class FlowAgent(BaseAgent):
    """Runs a pipeline. Its agents are its direct sub-agents, however they are arranged.

    It holds nothing of a run, so any number of runs may go on at the same time.

    Attributes:
        plan: What it runs.
    """

    plan: Plan = Field(exclude=True, repr=False)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        plan, run = self.plan, str(uuid.uuid4())
        async with AsyncExitStack() as stack:
            await _open(plan, ctx, stack)
            if plan.middlewares:
                attach(ctx, Chain(plan.middlewares, plan.nodes, run, attached(ctx)))
                ensure_plugin(ctx)
            ctx.run_config = merged(ctx.run_config, plan.config)
            compaction = own_compaction(plan.compaction, ctx)
            metadata = ctx.run_config.custom_metadata or {}
            agents = {agent.name: agent for agent in self.sub_agents}
            leaf = AdkLeaf(
                self.name,
                agents,
                ctx,
                run=run,
                metadata=metadata,
                nesting=plan.nesting,
                injection=plan.injection,
                answers=plan.answers,
            )
            engine = Engine(plan.node, leaf)
            leaf.bind(engine)
            writes = _Writes(ctx, leaf.state, self.name)
            events = await stack.enter_async_context(aclosing(engine.run()))
            async for event in events:
                temporary: dict[str, Any] = {}
                if event.actions.state_delta and not event.partial:
                    first, temporary = writes.before(event)
                    if first is not None:
                        yield first
                yield event
                writes.after(temporary)
            if compaction is not None:
                await compact(compaction, self, ctx)

    async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        raise unsupported("streaming_mode", "bidi")
        yield  # ADK wants an async generator


async def _open(plan: Plan, ctx: InvocationContext, stack: AsyncExitStack) -> None:
    for closer in plan.closers:
        stack.push_async_callback(_close, closer)
    for resource in plan.resources:
        opened = resource(ctx)
        if isinstance(opened, AbstractAsyncContextManager):
            await stack.enter_async_context(opened)
        else:
            stack.enter_context(opened)
    if plan.opens and plan.injection.names:
        session = ctx.session
        owner = Owner(session.app_name, session.user_id, session.id)
        keep(ctx, await stack.enter_async_context(plan.injection.open(owner)))


async def _close(closer: Closer) -> None:
    done = closer()
    if isawaitable(done):
        await done


class _Writes:
    """Makes writes mean the same on every version of ADK and in every session service.

    Args:
        ctx: The root's context.
        state: Session state, as the engine knows it.
        author: Who authors events of the root's own.
    """

    def __init__(self, ctx: InvocationContext, state: dict[str, Any], author: str) -> None:
        self._session = ctx.session
        self._state = state
        self._author = author
        self._beginning = Beginning(ctx.session)
        self._merging = merges_dicts(ctx.session_service)

    def before(self, event: Event) -> tuple[Event | None, dict[str, Any]]:
        """What must be committed before an event, and the keys of it that ADK 1.x would drop."""
        delta = event.actions.state_delta
        cleared = dicts_to_clear(delta, self._state) if self._merging else None
        self._beginning.stamp(event)
        temporary = {key: delta[key] for key in delta if key.startswith(_TEMP)}
        return (_clearing(event, self._author, cleared) if cleared else None), temporary

    def after(self, temporary: Mapping[str, Any]) -> None:
        """Bring state up to date once an event is committed."""
        state, session = self._state, self._session
        if temporary:
            state.update(temporary)
        if session.state is not state:  # ADK 1.x reads it anew when another run wrote meanwhile
            stored = session.state | {k: state[k] for k in state if k.startswith(_TEMP)}
            state.clear()
            state.update(stored)
            session.state = state


def _clearing(event: Event, author: str, delta: dict[str, None]) -> Event:
    metadata = dict(event.custom_metadata or {})
    metadata[STAMP] = {**metadata.get(STAMP, {}), "why": "cleared"}
    return Event(
        author=author,
        invocation_id=event.invocation_id,
        branch=event.branch,
        actions=EventActions(state_delta=dict(delta)),
        custom_metadata=metadata,
    )
