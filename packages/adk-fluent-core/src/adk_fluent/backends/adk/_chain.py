"""The middlewares of one run as the call sites use them, and how the sites find them."""

from __future__ import annotations

from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event_actions import EventActions

from adk_fluent._middlewares import made_middleware
from adk_fluent.backends._stack import Stack
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, MiddlewareNode
from adk_fluent.ir._node import distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node
    from adk_fluent.protocol import RunCall

_KEY: Final = "_adk_fluent_chain"
_KEPT: Final = "_adk_fluent_kept"
_GREETED: Final = "_adk_fluent_greeted"
_MODEL: Final = ("before_model", "wrap_model_call", "on_model_error", "after_model")

#: The chain of the run whose tool is running: a tool may run agents in a session of their own.
CALLER: ContextVar[Chain | None] = ContextVar("adk_fluent_caller", default=None)


@dataclass(frozen=True, slots=True)
class Scoped:
    """Middlewares around a part of a pipeline.

    Attributes:
        node: The node that has them.
        middlewares: Outermost first.
        names: The names of all steps and agents in that part.
        called: It is called by an agent, or handed over to, and is no step.
    """

    node: MiddlewareNode
    middlewares: tuple[Any, ...]
    names: frozenset[str]
    called: bool


def scopes_of(root: Node) -> dict[int, Scoped]:
    """The parts of a pipeline that have middlewares of their own, outer ones first.

    Raises:
        UsageError: One of them is no middleware, or refuses to stand around a part.
    """
    called = {
        id(each)
        for agent in distinct(root)
        if isinstance(agent, AgentNode)
        for below in (*agent.agent_tools, *agent.delegates)
        for each in distinct(below)
    }
    return {
        id(node): Scoped(
            node,
            tuple(_made_scoped(each, node) for each in node.stack),
            frozenset(each.name for each in distinct(node.body)),
            id(node) in called,
        )
        for node in distinct(root)
        if isinstance(node, MiddlewareNode)
    }


def _made_scoped(value: Any, node: MiddlewareNode) -> Any:
    """A middleware of a part; builders cannot ask those that are named only."""
    made = made_middleware(value, node)
    refuses = getattr(made, "refuses_scope", None)
    why: str | None = None if refuses is None else refuses()
    if why is not None:
        raise UsageError(why, node=node, help=".middleware(m), without scope")
    return made


class Chain:
    """What stands around the run, its steps, and every model call and tool call of it.

    Args:
        stack: The middlewares, outermost first.
        nodes: The nodes of agents that were built here, by name.
        run: Identity of the run.
        outer: The chain of the flow that this one is part of.
        scopes: Middlewares of parts of the pipeline, outer parts first.

    Attributes:
        own: The instances of this run.
        stack: The same, inside those of the flow around it.
        run: Identity of the run.
        models: Whether anything stands around model calls.
        written: What hooks have written before there was an event to put it in.
        failure: What a hook has raised where ADK would put an error of its own in its place.
    """

    __slots__ = (
        *("_called", "_calls", "_nodes", "_parts", "_scopes", "_within"),
        *("failure", "models", "own", "run", "stack", "written"),
    )

    def __init__(
        self,
        stack: Sequence[Any],
        nodes: Mapping[str, AgentNode],
        run: str = "",
        outer: Chain | None = None,
        scopes: Mapping[int, Scoped] | None = None,
    ) -> None:
        self.own: Stack = Stack.begun(stack)
        self.stack: Stack = self.own.inside(None if outer is None else outer.stack)
        self.run: str = run
        self.models: bool = self.stack.has(*_MODEL)
        self.written: EventActions = EventActions()
        self.failure: Exception | None = None
        self._nodes = nodes
        self._calls: dict[int, tuple[object, int]] = {}
        self._scopes = scopes or {}
        self._parts = {key: Stack.begun(each.middlewares) for key, each in self._scopes.items()}
        self._called = {key: each for key, each in self._scopes.items() if each.called}
        self._within: dict[tuple[int, ...], Chain] = {}

    def has(self, *hooks: str) -> bool:
        """Whether anybody has one of these hooks, around the run or a part of it."""
        return self.stack.has(*hooks) or any(each.has(*hooks) for each in self._parts.values())

    def begin_parts(self, call: Callable[[], RunCall]) -> None:
        """Tell those around parts that the run begins: they are asked no hooks of it."""
        for key, stack in self._parts.items():
            name = self._scopes[key].node.name
            for each in stack.members:
                begin = getattr(each, "begin_part", None)
                if begin is not None:
                    begin(name, call())

    def at(self, strand: Strand) -> Chain:
        """The same, inside what stands around the parts in which a step is."""
        if not self._scopes:
            return self
        inner_first: list[int] = []
        here: Strand | None = strand
        while here is not None:
            inner_first += (id(each) for each in reversed(here.nodes) if id(each) in self._scopes)
            here = here.parent
        return self._inside(tuple(dict.fromkeys(reversed(inner_first))))

    def of(self, agent: str) -> Chain:
        """The same, inside what stands around an agent that another one calls or hands over to."""
        called = self._called
        if not called:
            return self
        return self._inside(tuple(key for key, each in called.items() if agent in each.names))

    def watching(self, *names: str | None) -> Stack:
        """Those of this run and of the parts in which a step or agent of these names is."""
        stack = self.own
        for key, each in self._scopes.items():
            if not each.names.isdisjoint(names):
                stack = self._parts[key].inside(stack)
        return stack

    def _inside(self, parts: tuple[int, ...]) -> Chain:
        if not parts:
            return self
        made = self._within.get(parts)
        if made is None:
            made = self._within[parts] = copy(self)
            made._within = {}  # noqa: SLF001  # its own
            for each in parts:
                made.stack = self._parts[each].inside(made.stack)
            made.models = made.stack.has(*_MODEL)
        made.run = self.run
        return made

    def node(self, agent: str) -> AgentNode | None:
        """The node of an agent that was built here."""
        return self._nodes.get(agent)

    def count(self, context: object) -> int:
        """How often this was called with a context before; each run of an agent has its own."""
        _, times = self._calls.get(id(context), (context, 0))
        self._calls[id(context)] = (context, times + 1)  # kept, so that its id stays its own
        return times


# --- where it is kept: in the context of the run's root, and so in every copy of that ------------


def attach(context: Any, chain: Chain) -> None:
    """Let everything that runs in a context, or in a copy of it, find the chain."""
    attach_to(context.__dict__, chain)


def attach_to(changes: dict[str, Any], chain: Chain) -> None:
    """The same for a context that is made by changing another one."""
    changes[_KEY] = chain


def attached(context: Any) -> Chain | None:
    """The chain of an InvocationContext, or of the tool that runs it."""
    chain: Chain | None = context.__dict__.get(_KEY)
    return CALLER.get() if chain is None else chain


def keeps_writes(changes: dict[str, Any]) -> EventActions:
    """Let the context of a step keep what is written in it and gets into no event of ADK's.

    Args:
        changes: What its context has and that of the run has not.
    """
    actions = changes[_KEPT] = EventActions()
    return actions


def keep_writes(context: Any) -> None:
    """What hooks have written around a call that no event comes of."""
    kept: EventActions | None = invocation_of(context).__dict__.get(_KEPT)
    if kept is not None:
        actions: EventActions = context._event_actions  # noqa: SLF001  # of the same name in all versions
        kept.state_delta.update(actions.state_delta)
        kept.artifact_delta.update(actions.artifact_delta)


def greeted(context: Any) -> Chain | Exception | None:
    """The chain that was asked what the user says, or what kept it from being made."""
    return context.__dict__.pop(_GREETED, None)


def greet(context: Any, chain: Chain | Exception) -> None:
    """Keep a chain for the flow that is about to run, or what that is to raise."""
    context.__dict__[_GREETED] = chain


def invocation_of(context: Any) -> Any:
    """The InvocationContext behind a CallbackContext, ToolContext or Context, or itself."""
    # 2.x has a method for it, 1.x does not
    return getattr(context, "_invocation_context", context)
