"""Live runs: the agents of a pipeline talk with the user, one after the other."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakSet

from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.genai.errors import APIError
from websockets.exceptions import ConnectionClosedOK

from adk_fluent._logs import LOG
from adk_fluent.backends.adk._hooks._agents import is_flow
from adk_fluent.backends.adk._hooks._line import LineClosed, let_go_on
from adk_fluent.backends.adk._running._leaf import AdkLeaf
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.backends.adk._session._facts import facts
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    GateNode,
    LoopNode,
    MapOverNode,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    SequenceNode,
)
from adk_fluent.protocol import Middleware, hooks_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.session import Session

    from adk_fluent.backends.adk._hooks._chain import Where
    from adk_fluent.backends.adk._hooks._line import Line
    from adk_fluent.backends.adk._session._stamps import Stamp
    from adk_fluent.flow import Facts, Strand
    from adk_fluent.ir import Node

_AGENTS: Final = (AdkAgentNode, AgentNode, RemoteAgentNode)
_AT_ONCE: Final = (ParallelNode, RaceNode, MapOverNode)
#: Hooks of model calls that a connection has none of.
_UNASKED: Final = frozenset({"wrap_model_call", "wrap_model_request", "on_model_error"})
#: The code with which a connection is closed in good order.
_OK: Final = 1000
_WARNED: Final[WeakSet[type]] = WeakSet()


def check_live(root: BaseAgent) -> None:
    """Refuse a pipeline that cannot be live, or one below it that its agents come to.

    Args:
        root: Its root agent.

    Raises:
        BuildError: Agents would talk at the same time, or somebody would have to be waited for.
        UsageError: A middleware could not keep its promise.
    """
    todo = [root]
    while todo:
        agent: Any = todo.pop()
        todo.extend(agent.sub_agents)
        if is_flow(agent):
            _check_steps(agent.plan.node)
            _check_middlewares(agent.plan.all_middlewares)


def _check_steps(root: Node) -> None:
    for node in _steps(root):
        if isinstance(node, GateNode):
            raise BuildError(
                "a live run cannot wait at a gate: it is over when the user hangs up",
                node=node,
                help="let a tool ask, or run what has the gate after the call, on its own",
            )
        if isinstance(node, _AT_ONCE):
            agent = next((each for each in _steps(node) if isinstance(each, _AGENTS)), None)
            if agent is not None:
                raise BuildError(
                    f"agent {agent.name!r} cannot be live here: agents side by side would all talk "
                    "with the user",
                    node=node,
                    help="put it before or after these steps",
                )


def _check_middlewares(stack: Iterable[Any]) -> None:
    for each in stack:
        refuses = getattr(each, "refuses_live", None)
        why: str | None = None if refuses is None else refuses()
        if why is not None:
            raise UsageError(
                why,
                found="a live run",
                help=f"compile the pipeline for live runs without {type(each).__name__}",
            )
        kind = cast("type[Any]", type(each))
        knows = getattr(kind, "refuses_live", None) not in (None, Middleware.refuses_live)
        unasked = sorted(hooks_of(each) & _UNASKED)
        if unasked and not knows and kind not in _WARNED:
            _WARNED.add(kind)
            LOG.warning(
                "a live run asks no %s of %s: what it does there is not done",
                " and no ".join(unasked),
                kind.__name__,
            )


def followed(root: Node, *, after: bool) -> frozenset[str]:
    """The names of the agents that something comes after.

    Args:
        root: The pipeline.
        after: Whether something comes after all of it.
    """
    found: set[str] = set()
    todo = [(root, after)]
    while todo:
        node, after = todo.pop()
        if isinstance(node, _AGENTS):
            if after:
                found.add(node.name)
            continue
        below, is_loop = node.children, isinstance(node, LoopNode)
        last = len(below) - 1 if isinstance(node, SequenceNode) else 0
        todo += ((each, after or is_loop or at < last) for at, each in enumerate(below))
    return frozenset(found)


def _steps(root: Node) -> Iterator[Node]:
    """All nodes but those below agents, which run as these say."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, _AGENTS):
            todo.extend(reversed(node.children))


class LiveLeaf(AdkLeaf):
    """Runs the agents of a live run: each talks with the user until it is done.

    Once the user has hung up, those that remain run as in any other run.
    """

    waits = False

    _line: Line
    _followed: frozenset[str]

    @staticmethod
    def facts(event: Event) -> Facts | None:
        """What the engine must know: in a live run nothing is waited for."""
        known = facts(event)
        return replace(known, waits={}) if known is not None and known.waits else known

    def on(self, line: Line, followed: frozenset[str]) -> None:
        """Say who it talks with.

        Args:
            line: The user.
            followed: The agents that something comes after.
        """
        self._line = line
        self._followed = followed

    async def _events_of(
        self, agent: BaseAgent, ctx: InvocationContext
    ) -> AsyncGenerator[Event, None]:
        if self._line.hung_up or not _can_talk(agent):
            ctx = copied(ctx, {"live_request_queue": None})
            async with aclosing(agent.run_async(ctx)) as events:
                async for event in events:
                    yield event
            return
        self._line.handed_on = False
        try:
            async with aclosing(agent.run_live(ctx)) as events:
                async for event in events:
                    yield event
        except (ConnectionClosedOK, APIError) as error:
            if not self._line.is_over or _code(error) != _OK:  # ADK 1.39 raises that, too
                raise
        except LineClosed as closed:
            if closed.response is not None:
                said = closed.response.model_dump(exclude_none=True)
                yield Event(
                    author=closed.author, invocation_id=ctx.invocation_id, branch=ctx.branch, **said
                )

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
        """What hooks wrote goes out with the next event that is stored: a call may be long."""
        async with aclosing(super()._run(node, strand, answers, changes, stamp, step=step)) as each:
            async for event in each:
                kept = None if step is None or step.kept is None else step.kept.state_delta
                if kept and not event.partial and not _is_sound(event):
                    event.actions.state_delta = {**kept, **event.actions.state_delta}
                    kept.clear()
                    self._keep(event, node, strand)
                yield event

    def _context(self, *args: Any, **options: Any) -> tuple[InvocationContext, list[Event] | None]:
        let_go_on(options["changes"], after=args[0].name in self._followed)
        ctx, seen = super()._context(*args, **options)
        if ctx.session is not self._ctx.session:
            service: Any = _OneSession(ctx.session_service, self._ctx.session)
            ctx = copied(ctx, {"session_service": service})
        return ctx, seen


class _OneSession:
    """Stores what the user says in a run's own session, also for steps that see a copy of it.

    ADK's live flow stores that itself, in the session that it was given.
    """

    def __init__(self, service: Any, session: Session) -> None:
        self._service = service
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    async def append_event(self, session: Session, event: Event) -> Event:
        stored: Event = await self._service.append_event(session=self._session, event=event)
        if session.events is not self._session.events:
            session.events.append(stored)
        return stored


def _can_talk(agent: BaseAgent) -> bool:
    """Whether an agent has a live mode, and no schema, of which a live model is not told."""
    name = "_run_live_impl"
    if getattr(type(agent), name) is getattr(BaseAgent, name):
        return False
    return getattr(agent, "output_schema", None) is None


def _code(error: Exception) -> int:
    """With what a connection was closed."""
    return error.code if isinstance(error, APIError) else _OK


def _is_sound(event: Event) -> bool:
    """Whether an event holds what ADK hands on and does not store."""
    parts = (event.content and event.content.parts) or ()
    return any(part.inline_data for part in parts)
