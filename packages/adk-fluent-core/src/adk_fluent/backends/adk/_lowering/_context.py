"""What a rule is told, and what it may ask for, while a pipeline is compiled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adk_fluent._registry import INSTALLED
from adk_fluent.backends._edges import check_edges
from adk_fluent.backends._resources import NOTHING, Injection
from adk_fluent.backends._tables import RuleTable
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._hooks._chain import becomes_flow, runs_in_engine
from adk_fluent.backends.adk._lowering._fields import check_heeded
from adk_fluent.backends.adk._lowering._values import MODEL, values
from adk_fluent.backends.adk._running._plan import Plan
from adk_fluent.backends.adk._running._root import FlowAgent
from adk_fluent.errors import BuildError, UnsupportedNodeError, UsageError
from adk_fluent.flow import check_gates, check_tool, check_transfers
from adk_fluent.ir import (
    AgentNode,
    GateNode,
    MiddlewareNode,
    walk,
    why_reserved,
)
from adk_fluent.protocol import check_middleware

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.backends._answers import Answer
    from adk_fluent.backends._tables import Kind
    from adk_fluent.backends.adk._caps import Caps
    from adk_fluent.backends.adk._running._plan import Closer, Resource
    from adk_fluent.ir import ExecutionConfig, Node, Ref

R = TypeVar("R")

#: How each kind of node becomes an ADK agent; `_rules` holds core's, layers add theirs (slot
#: ``rules``).
rules: Final[RuleTable[BaseAgent, CompileContext]] = RuleTable("agents", "rules", INSTALLED)

#: What is said of edges that stream.
_EDGES: Final = (
    "streaming between steps does not work yet",
    "leave the edges at 'full'; streaming edges come with a later version of adk-fluent-core",
)


class CompileContext:
    """One compilation.

    Attributes:
        config: How the pipeline runs.
        injection: The resources that functions may name.
        caps: What the installed ADK can do.
        node: The node that is being compiled, for messages.
        inherits: The agent being compiled stands below another one and takes over its model.
        alone: The agent being compiled is run by ADK itself, not as a step of a flow.
        answers: How the answers of agents are read that are steps, by name.
        middlewares: Those of the pipeline, the outermost first.
        resources: What has to be made before the pipeline runs.
        closers: Called when the run is over, or the app closes.
        nodes: The agents compiled so far, by name.
    """

    def __init__(self, config: ExecutionConfig, injection: Injection = NOTHING) -> None:
        self.config = config
        self.injection: Injection = injection
        self.caps: Caps = CAPS
        self.node: Node | None = None
        self.inherits: bool = False
        self.alone: bool = False
        self.answers: dict[str, Answer] = {}
        self.middlewares: list[Any] = []
        self.resources: list[Resource] = []
        self.closers: list[Closer] = []
        self.nodes: dict[str, AgentNode] = {}
        self._names: dict[str, Node] = {}
        self._models: set[str] = set()

    # --- what rules and passes use -------------------------------------------------------------

    def name_of(self, node: Node) -> str:
        """The name of a node's agent.

        Raises:
            UsageError: ADK takes no such name.
            BuildError: Another agent has it.
        """
        name = node.name
        if not name.isidentifier() or why_reserved(name):
            raise UsageError(
                f"{name!r} cannot be the name of an agent",
                node=node,
                help="use letters, digits and '_', not starting with a digit; "
                "'user' and 'START' are ADK's own",
            )
        other = self._names.setdefault(name, node)
        if other is not node and other != node:
            raise BuildError(
                f"two different agents are called {name!r}",
                node=node,
                found=f"the other one is at {other.location}" if other.location else None,
                help="rename one, or use the very same agent in both places",
            )
        if isinstance(node, AgentNode):
            self.nodes[name] = node
        return name

    def lower(self, node: Node) -> BaseAgent:
        """The agent for a part of the pipeline, made anew; an arrangement becomes a flow.

        Raises:
            MissingLayerError: A node's layer is not installed.
            UnsupportedNodeError: There is no rule for a node.
        """
        if becomes_flow(node):
            return self.flow(node, self.name_of(node))
        if isinstance(node, MiddlewareNode):
            return self.lower(node.body)  # its calls know by the agent's name what is around them
        rule = rules.rule_for(node)
        children = self._below(node)
        outer, self.node = self.node, node
        try:
            return rule(node, children, self)
        finally:
            self.node = outer

    def value(self, kind: Kind[R], value: object) -> R:
        """What ADK takes for a value of the user's.

        Raises:
            UsageError: It is nothing of that kind.
        """
        return values(kind, value, self)

    def model(self, model: str | Ref | BaseLlm) -> str | BaseLlm:
        """A model that exists. A name stays one: ADK makes a new client for each event loop.

        Raises:
            UsageError: There is no such model.
        """
        if not isinstance(model, str):
            return self.value(MODEL, model)
        if model not in self._models:
            self.value(MODEL, model)
            self._models.add(model)
        return model

    def add_middleware(self, middleware: Any) -> None:
        """Put a middleware around the model and tool calls of this pipeline, inside earlier ones.

        Raises:
            UsageError: It is no middleware.
        """
        self.middlewares.append(check_middleware(middleware))

    def add_resource(self, resource: Resource) -> None:
        """Open something at the start of each run, and close it at its end.

        Args:
            resource: Called with ADK's InvocationContext; returns a context manager, async or not.
        """
        self.resources.append(resource)

    def on_close(self, closer: Closer) -> None:
        """Call a function, async or not, at the end of each run, however it ends."""
        self.closers.append(closer)

    # --- flows ---------------------------------------------------------------------------------

    def flow(self, node: Node, name: str) -> FlowAgent:
        """A flow of its own that runs `node`."""
        outer, self.answers = self.answers, {}
        with self._frame(names=self._names, inherits=self.inherits, alone=False):
            agents = self.agents(node)
        answers, self.answers = self.answers, outer
        plan = Plan(
            node,
            self.config,
            nodes=self.nodes,
            nesting=nesting(agents),
            injection=self.injection,
            answers=answers,
        )
        return FlowAgent(
            name=name, description=node.description or "", plan=plan, sub_agents=agents
        )

    def agents(self, root: Node) -> list[BaseAgent]:
        """The agents of the steps below `root`: one for each distinct agent, in order."""
        made: dict[str, Node] = {}
        agents: list[BaseAgent] = []
        todo: list[Node] = [root]
        seen: dict[int, Node] = {}
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen[id(node)] = node
            if runs_in_engine(node):
                check_edges(node, *_EDGES)
                todo.extend(reversed(node.children))
            elif (known := made.get(node.name)) is None:
                check_heeded(node, "a step")
                agents.append(self.lower(node))
                made[node.name] = node
            elif known != node:
                self.name_of(node)
        check_transfers(root, seen.values())
        check_gates(seen.values())
        return agents

    def _below(self, node: Node) -> tuple[BaseAgent, ...]:
        """The agents of a leaf's children: first the tools, in a world of names of their own."""
        if not node.children:
            return ()
        if not isinstance(node, AgentNode):
            return tuple(self.lower(child) for child in node.children)
        if node.selector is not None:  # a pass of its layer replaces it by the model it chooses
            rules.rule_for(node.selector)
        tools: list[BaseAgent] = []
        for child in node.agent_tools:
            _check_gates_in_tool(child)
            check_tool(child)
            _check_history(child, ("none",), "a tool", "sees what it is called with, and no more")
            with self._frame(names={}, inherits=False, alone=True):
                tools.append(self.lower(child))
        with self._frame(names=self._names, inherits=True, alone=True):
            for child in node.delegates:
                _check_history(
                    child, ("own", "input", "none"), "a delegate", "sees the whole conversation"
                )
                check_heeded(child, "a delegate")
            delegates = [self.lower(child) for child in node.delegates]
        return (*tools, *delegates)

    @contextmanager
    def _frame(self, *, names: dict[str, Node], inherits: bool, alone: bool) -> Generator[None]:
        outer = self._names, self.inherits, self.alone
        self._names, self.inherits, self.alone = names, inherits, alone
        try:
            yield
        finally:
            self._names, self.inherits, self.alone = outer


def tree(agents: Iterable[BaseAgent]) -> Iterator[BaseAgent]:
    """The agents and all below them."""
    todo = list(agents)
    while todo:
        agent = todo.pop()
        yield agent
        todo.extend(agent.sub_agents)


def nesting(agents: Iterable[BaseAgent]) -> frozenset[str]:
    """Names of those agents that are, or have below them, flows of their own."""
    return frozenset(
        agent.name for agent in agents if any(isinstance(a, FlowAgent) for a in tree([agent]))
    )


def _check_history(node: Node, refused: Collection[str], role: str, fact: str) -> None:
    """Refuse a history mode where ADK runs an agent by itself, so that nothing can be hidden.

    Raises:
        UnsupportedNodeError: The agent has such a mode.
    """
    while isinstance(node, MiddlewareNode):
        node = node.body
    if isinstance(node, AgentNode) and node.history in refused:
        raise UnsupportedNodeError(
            f"history {node.history!r} has no effect on {role}, which {fact}",
            node=node,
            help="leave it at 'transcript', or make the agent a step of the pipeline",
        )


def _check_gates_in_tool(node: Node) -> None:
    """Refuse a gate where nobody would be asked: ADK runs an agent that is a tool to its end.

    Raises:
        UnsupportedNodeError: There is one.
    """
    for each in walk(node):
        if isinstance(each, GateNode):
            raise UnsupportedNodeError(
                f"gate {each.name!r} stands in {node.name!r}, which is a tool and cannot wait",
                node=each,
                help="make it a step or a delegate, or ask before the agent that calls the tool",
            )
