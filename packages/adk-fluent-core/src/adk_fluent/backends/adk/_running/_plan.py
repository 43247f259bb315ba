"""What a root agent runs, and how."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from google.adk.agents.invocation_context import InvocationContext

from adk_fluent.backends._resources import NOTHING, Injection, Owner
from adk_fluent.backends._resuming import Pipeline
from adk_fluent.backends.adk._hooks._chain import Scoped, scopes_of
from adk_fluent.backends.adk._hooks._plugin import can_pause
from adk_fluent.backends.adk._lowering._injecting import keep
from adk_fluent.flow import Promises, promises_of

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from google.adk.apps.app import EventsCompactionConfig

    from adk_fluent.backends._answers import Answer
    from adk_fluent.ir import AgentNode, ExecutionConfig, Node

#: Something that is open while a run lasts: called with ADK's InvocationContext.
Resource = Callable[
    [InvocationContext], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]
]
#: Called when a run is over, however it ended.
Closer = Callable[[], Awaitable[None] | None]


class Plan:
    """What a root agent runs, and how. Never changed, so copies of the agent share it.

    Attributes:
        node: What runs.
        pipeline: The same, as runs know it that go on.
        config: How it runs.
        limit: Seconds a run of it may take.
        nodes: The nodes of the agents that were built here, by name.
        resources: Opened in this order at the start of a run, closed in reverse at its end.
        closers: Called at the end of a run, the last one first.
        middlewares: Outermost first.
        scopes: Middlewares of parts of it, by the identity of their nodes, outer ones first.
        compaction: For a root that is run under somebody else's App.
        nesting: Names of its agents that other flows stand below.
        injection: What functions may name.
        answers: How the answers of agents are read, by name of the agent.
        opens: Whether a run of it makes the resources; a flow below another one finds them made.
        promises: What it promises about state.
        segment: The segment whose steps a run of it does; None does all.
        beside: Segments whose steps it does, too, in branches that run at the same time.
        needs_plugin: Whether there is something for our plugin to do.
    """

    __slots__ = (
        "answers",
        "beside",
        "closers",
        "compaction",
        "config",
        "injection",
        "limit",
        "middlewares",
        "needs_plugin",
        "nesting",
        "node",
        "nodes",
        "opens",
        "pipeline",
        "promises",
        "resources",
        "scopes",
        "segment",
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
        limit: float | None = None,
        segment: str | None = None,
        beside: Collection[str] = (),
    ) -> None:
        self.node: Node = node
        self.pipeline: Pipeline = Pipeline(node)
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
        self.limit: float | None = limit
        self.segment: str | None = segment
        self.beside: Collection[str] = beside
        self.scopes: Mapping[int, Scoped] = scopes_of(node)
        self.promises: Promises | None = promises_of(node)
        acts = bool(middlewares or self.scopes)
        self.needs_plugin: bool = acts or config.resumable or can_pause(node)

    @property
    def all_middlewares(self) -> list[Any]:
        """Those around all of it, and those around parts."""
        scoped = (each for part in self.scopes.values() for each in part.middlewares)
        return [*self.middlewares, *scoped]

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self

    async def opened(self, ctx: InvocationContext, stack: AsyncExitStack) -> None:
        """Open everything that lasts as long as a run."""
        for closer in self.closers:
            stack.push_async_callback(_close, closer)
        for resource in self.resources:
            opened = resource(ctx)
            if isinstance(opened, AbstractAsyncContextManager):
                await stack.enter_async_context(opened)
            else:
                stack.enter_context(opened)
        if self.opens and self.injection.names:
            session = ctx.session
            owner = Owner(session.app_name, session.user_id, session.id)
            keep(ctx, await stack.enter_async_context(self.injection.open(owner)))


async def _close(closer: Closer) -> None:
    done = closer()
    if isawaitable(done):
        await done
