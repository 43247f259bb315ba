"""The middlewares of one run as the call sites use them, and how the sites find them."""

from __future__ import annotations

from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event_actions import EventActions

from adk_fluent._middlewares import added_tools, made_middleware
from adk_fluent.backends._stack import Stack
from adk_fluent.errors import UsageError
from adk_fluent.flow import RULES, iteration_at
from adk_fluent.ir import AgentNode, MiddlewareNode
from adk_fluent.ir._node import distinct
from adk_fluent.protocol._middleware import has_method

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from adk_fluent.backends.adk._session._stamps import Stamp
    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node
    from adk_fluent.protocol import ModelCall, RunCall

_KEY: Final = "_adk_fluent_chain"
_GREETED: Final = "_adk_fluent_greeted"
_MODEL: Final = (
    *("before_model", "wrap_model_call", "wrap_model_request", "on_model_error", "after_model"),
)
_TOOLS: Final = ("before_tool", "wrap_tool_call", "on_tool_error", "after_tool")

_WHERE: Final = "_adk_fluent_where"
_LEAF: Final = RULES[AgentNode]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has called the tool that is running.

    Attributes:
        chain: The chain of the run.
        where: The step, if a pipeline runs it.
        plugins: The plugins of its Runner, which may run agents of the tool, too.
    """

    chain: Chain
    where: Where | None
    plugins: Sequence[Any]


#: Set while a tool is running: it may run agents in a session of their own.
CALLER: ContextVar[Caller | None] = ContextVar("adk_fluent_caller", default=None)


@dataclass(frozen=True, slots=True)
class Scoped:
    """Middlewares around a part of a pipeline.

    Attributes:
        node: The node that has them.
        middlewares: Outermost first.
        names: The names of all steps and agents in that part.
        called: It is called by an agent, or handed over to, and is no step.
        below: It is part of a pipeline below an agent, which asks them itself.
    """

    node: MiddlewareNode
    middlewares: tuple[Any, ...]
    names: frozenset[str]
    called: bool
    below: bool


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
    own = {id(each) for each in _own(root)}
    return {
        id(node): Scoped(
            node,
            tuple(_made_scoped(each, node) for each in node.stack),
            frozenset(each.name for each in distinct(node.body)),
            id(node) in called,
            id(node) not in own,
        )
        for node in distinct(root)
        if isinstance(node, MiddlewareNode)
    }


def _own(root: Node) -> Iterator[Node]:
    """The nodes of a pipeline without those of other pipelines below its agents."""
    todo, seen = [root], set[int]()
    while todo:
        here = todo.pop()
        if id(here) not in seen:
            seen.add(id(here))
            yield here
            leaf = isinstance(here, AgentNode)
            todo.extend(each for each in here.children if not leaf or not becomes_flow(each))


def runs_in_engine(node: Node) -> bool:
    """Whether the flow engine runs a node: it is no agent."""
    return RULES.get(type(node), _LEAF) is not _LEAF


def becomes_flow(node: Node) -> bool:
    """Whether what stands below an agent becomes a pipeline of its own there."""
    if isinstance(node, MiddlewareNode) and not runs_in_engine(node.body):
        return False  # calls of its agent know by the agent's name what is around them
    return runs_in_engine(node)


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
        notes: Whoever keeps notes on the events of answers, innermost first.
        models: Whether anything has to do with model calls.
        sees_calls: Whether anything has to do with model calls or tool calls, or adds tools.
        model_hooks: What that is, once it was asked; kept for `generate`.
        may_add_tools: Whether anything may give an agent tools that it was not built with.
        written: What hooks have written before there was an event to put it in.
        failure: What a hook has raised where ADK would put an error of its own in its place.
        said: What the user said, before a hook changed it.
    """

    __slots__ = (
        *("_called", "_inner", "_nodes", "_parts", "_scopes", "_within"),
        *("failure", "may_add_tools", "model_hooks", "models", "notes", "own", "run", "said"),
        *("sees_calls", "stack", "written"),
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
        self._ask()
        self.written: EventActions = EventActions()
        self.failure: Exception | None = None
        self.said: Any = None
        self._nodes = nodes
        self._scopes = {key: each for key, each in (scopes or {}).items() if not each.below}
        self._inner: tuple[int, ...] = ()
        self._parts = {key: Stack.begun(each.middlewares) for key, each in self._scopes.items()}
        self._called = {key: each for key, each in self._scopes.items() if each.called}
        self._within: dict[tuple[int, ...], Chain] = {}

    def _ask(self) -> None:
        """Ask those in the stack what they act on."""
        stack = self.stack
        inside = reversed(stack.members)
        inside = (each for each in inside if not getattr(each, "observer", False))
        self.notes: list[Any] = [each for each in inside if has_method(each, "note_answer")]
        self.models: bool = bool(self.notes) or stack.has(*_MODEL)
        self.model_hooks: Any = None
        self.may_add_tools: bool = any(added_tools(each) != () for each in stack.members)
        self.sees_calls: bool = self.models or self.may_add_tools or stack.has(*_TOOLS)

    def has(self, *hooks: str) -> bool:
        """Whether anybody has one of these hooks, around the run or a part of it."""
        return self.stack.has(*hooks) or any(each.has(*hooks) for each in self._parts.values())

    def begin(self, call: Callable[[], RunCall]) -> None:
        """Tell all that the run begins; those around parts are asked no hooks of it."""
        for each in self.own.members:
            begin = getattr(each, "begin_run", None)
            if begin is not None:
                begin(call())
        for key, stack in self._parts.items():
            name = self._scopes[key].node.name
            for each in stack.members:
                begin = getattr(each, "begin_part", None)
                if begin is not None:
                    begin(name, call())

    @property
    def has_parts(self) -> bool:
        """Whether a part of the pipeline has middlewares of its own."""
        return bool(self._scopes)

    @property
    def tells_end(self) -> bool:
        """Whether anybody wants to know how the run ends."""
        return any(has_method(each, "end_run") for each in self.own.members)

    def end(self, status: str, error: BaseException | None) -> None:
        """Tell all that the run ends."""
        for each in self.own.members:
            end = getattr(each, "end_run", None)
            if end is not None:
                end(status, error)

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
        parts = tuple(each for each in parts if each not in self._inner)
        if not parts:
            return self
        made = self._within.get(parts)
        if made is None:
            made = self._within[parts] = copy(self)
            made._within = {}  # noqa: SLF001  # its own
            made._inner = (*self._inner, *parts)  # noqa: SLF001  # its own
            for each in parts:
                made.stack = self._parts[each].inside(made.stack)
            made._ask()  # noqa: SLF001  # its own
        made.run = self.run
        return made

    def node(self, agent: str) -> AgentNode | None:
        """The node of an agent that was built here."""
        return self._nodes.get(agent)


class LastCall:
    """The last model call of an agent.

    Args:
        call: The call.
        chain: What stands around it.

    Attributes:
        taken: Its site has been reached.
        settled: What came of it has passed its hooks.
    """

    __slots__ = ("call", "chain", "settled", "taken")

    def __init__(self, call: ModelCall, chain: Chain) -> None:
        self.call = call
        self.chain = chain
        self.taken: bool = False
        self.settled: bool = False


class Where:
    """The step of the pipeline in which agents run that ADK runs by itself.

    Args:
        agent: The name of the step's agent.
        strand: Where the step stands.
        stamp: What the step's events are stamped with.
        goes_on: It goes on with answers, in the agent that has asked.

    Attributes:
        stamp: What the step's events are stamped with.
        in_tool: The agents are run by a tool of the step.
        last: The last model call of each agent.
        calls: The tool calls that are under way.
        kept: What hooks wrote around calls of which no event has come; None for nothing.
    """

    __slots__ = (
        *("_agent", "_counts", "_first", "_goes_on", "_strand"),
        *("calls", "in_tool", "kept", "last", "stamp"),
    )

    def __init__(self, agent: str, strand: Strand, stamp: Stamp, *, goes_on: bool = False) -> None:
        self._agent = agent
        self._strand = strand
        self.stamp: Stamp = stamp
        self._goes_on = goes_on
        self._first = True
        self._counts: dict[int, list[Any]] = {}
        self.in_tool: bool = False
        self.last: dict[str, LastCall] = {}
        self.calls: set[Task[Any]] = set()
        self.kept: Kept | None = None

    @property
    def iteration(self) -> int:
        """The iteration of the nearest loop around the step, from 0."""
        return iteration_at(self._strand)

    def is_begun_by(self, agent: str) -> bool:
        """Whether a run of an agent that begins is the step itself."""
        if self._first and agent == self._agent:
            self._first = False
            return True
        return False

    def enter(self) -> bool:
        """Begin a run of an agent that is not the step itself.

        Returns:
            Whether it goes on with answers.
        """
        first, self._first = self._first, False
        return first and self._goes_on

    def for_tool(self) -> Where:
        """The same for agents that a tool of the step runs."""
        made = copy(self)
        made._first = False  # noqa: SLF001  # its own
        made.in_tool = True
        made._counts = {}  # noqa: SLF001  # its own
        made.last, made.calls, made.kept = {}, set(), None
        return made

    def count(self, context: object) -> int:
        """How often this was called with a context before; each run of an agent has its own."""
        known = self._counts.get(id(context))
        if known is None:
            self._counts[id(context)] = [context, 0]  # kept, so that its id stays its own
            return 0
        known[1] += 1
        return known[1]

    def over(self) -> None:
        """Forget the calls, whose contexts refer to this; or only the collector would free them."""
        self.last.clear()
        self._counts.clear()


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
    if chain is not None:
        return chain
    caller = CALLER.get()
    return None if caller is None else caller.chain


def attached_for(context: Any, flow: str) -> Chain | None:
    """The chain that a pipeline stands in which an agent calls or hands over to."""
    chain = attached(context)
    return None if chain is None else chain.of(flow)


def is_called_by_tool(context: Any) -> bool:
    """Whether an InvocationContext is one of a tool's, and nothing is attached to it yet."""
    return _KEY not in context.__dict__


def place(changes: dict[str, Any], where: Where) -> None:
    """Let everything that runs in a context that is made so know of which step it is part."""
    changes[_WHERE] = where


def where(context: Any) -> Where | None:
    """The step in which a context's agent runs, or which has called the tool that runs it."""
    here: Where | None = context.__dict__.get(_WHERE)
    if here is not None:
        return here
    caller = CALLER.get()
    return None if caller is None else caller.where


def own_step(context: Any) -> Where | None:
    """The step in which a context's agent runs, no matter what has called a tool that runs it."""
    return context.__dict__.get(_WHERE)


class Kept:
    """What is written in a step and gets into no event of ADK's.

    Attributes:
        state_delta: State, by key.
        artifact_delta: Versions of artifacts, by name.
    """

    __slots__ = ("artifact_delta", "state_delta")

    def __init__(self) -> None:
        self.state_delta: dict[str, Any] = {}
        self.artifact_delta: dict[str, int] = {}


def keep_writes(context: Any) -> None:
    """What hooks have written around a call that no event comes of."""
    here = own_step(invocation_of(context))
    if here is not None and not here.in_tool:
        actions: EventActions = context._event_actions  # noqa: SLF001  # of the same name in all versions
        kept = here.kept = here.kept or Kept()  # no EventActions: pydantic takes a while for each
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
