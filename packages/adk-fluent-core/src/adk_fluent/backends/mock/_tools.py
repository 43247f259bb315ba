"""What agents may call, and whom they may hand over to: told from the IR, nothing is called."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.flow import RULES
from adk_fluent.ir import AdkAgentNode, AgentNode, Node, Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: ADK's tool that hands over.
TRANSFER: Final = "transfer_to_agent"
#: ADK's tool that ends a loop, and, like it, everything else of this name.
EXIT: Final = "exit_loop"
_TO_PARENT: Final = "disallow_transfer_to_parent"
_TO_PEERS: Final = "disallow_transfer_to_peers"
_LEAF: Final = RULES[AgentNode]


def is_flow(node: Node) -> bool:
    """Whether the engine runs a node, as it does all but agents."""
    return RULES.get(type(node), _LEAF) is not _LEAF


def steps_of(root: Node) -> Iterator[Node]:
    """The nodes that the engine runs; what stands below an agent is the agent's business."""
    todo, seen = [root], set[int]()
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if is_flow(node):
                todo.extend(reversed(node.children))


class Agents:
    """The agents of one step: the one that stands there, and all below it.

    Args:
        top: The agent of the step.
    """

    def __init__(self, top: Node) -> None:
        self._named: dict[str, Node] = {}
        self._below: dict[str, tuple[Node, ...]] = {}
        self._above: dict[str, Node] = {}
        todo: list[tuple[Node, Node | None]] = [(top, None)]
        while todo:
            node, above = todo.pop()
            if node.name in self._named:
                continue
            self._named[node.name] = node
            if above is not None:
                self._above[node.name] = above
            below = self._below[node.name] = delegates_of(node)
            todo.extend((each, node) for each in reversed(below))

    def named(self, name: str) -> Node | None:
        """The agent of this name, or the pipeline that somebody may hand over to."""
        return self._named.get(name)

    def targets(self, agent: Node) -> dict[str, Node]:
        """Whom an agent may hand over to, in ADK's order: those below it, its parent, its peers."""
        found = {each.name: each for each in self._below.get(agent.name, ())}
        above = self._above.get(agent.name)
        if above is None or not _is_model(above):
            return found
        if not _setting(agent, _TO_PARENT):
            found.setdefault(above.name, above)
        if not _setting(agent, _TO_PEERS):
            peers = self._below[above.name]
            found.update({each.name: each for each in peers if each.name != agent.name})
        return found


def delegates_of(node: Node) -> tuple[Node, ...]:
    """Whom an agent has below it."""
    if isinstance(node, AgentNode):
        return node.delegates
    if isinstance(node, AdkAgentNode):
        below: Any = getattr(node.agent.value, "sub_agents", ())
        return tuple(AdkAgentNode(each.name, Ref(each, each.name)) for each in below)
    return ()


def agent_tools_of(node: Node) -> dict[str, Node]:
    """The agents that an agent may call as tools."""
    given = {each.name: each for each in _agent_tools(node)}
    for name, tool, _ in _tools(node):
        agent: Any = getattr(tool, "agent", None)
        if hasattr(agent, "sub_agents"):  # ADK's AgentTool
            given[name] = AdkAgentNode(agent.name, Ref(agent, agent.name))
    return given


def _agent_tools(node: Node) -> tuple[Node, ...]:
    return node.agent_tools if isinstance(node, AgentNode) else ()


def may_call(node: Node, name: str) -> bool:
    """Whether an agent has a tool of this name, as far as that is known.

    The names of what is in a toolset are not, nor are the tools of remote agents and the like.
    """
    if not _is_model(node):
        return True
    return any(each == name or hasattr(tool, "get_tools") for each, tool, _ in _tools(node))


def tool_names(node: Node) -> tuple[str, ...]:
    """The names of an agent's tools."""
    return (*(name for name, _, _ in _tools(node)), *agent_tools_of(node))


def is_long_running(node: Node, name: str) -> bool:
    """Whether a tool gives its result later."""
    return any(each == name and _is_true(tool, "is_long_running") for each, tool, _ in _tools(node))


async def must_confirm(node: Node, name: str, args: Mapping[str, Any]) -> bool:
    """Whether a person has to confirm a call; a predicate over its arguments is asked."""
    for each, tool, asks in _tools(node):
        if each == name or (hasattr(tool, "get_tools") and not _has(node, name)):
            if not callable(asks):
                return bool(asks)
            answer: Any = asks(**_taken(getattr(tool, "func", tool), args))
            return bool(await answer if inspect.isawaitable(answer) else answer)
    return False


def _has(node: Node, name: str) -> bool:
    return any(each == name for each, _, _ in _tools(node))


def _tools(node: Node) -> Iterator[tuple[str, Any, bool | Callable[..., Any]]]:
    """The tools of an agent: the name, the tool, and what says whether a call is confirmed."""
    if isinstance(node, AgentNode):
        for spec in node.tools:
            asks = spec.require_confirmation
            asked = asks.value if isinstance(asks, Ref) else asks
            yield spec.name, spec.tool.value, asked or _asks(spec.tool.value)
    elif isinstance(node, AdkAgentNode):
        tools: Any = getattr(node.agent.value, "tools", ())
        for tool in tools:
            name = getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__)
            yield name, tool, _asks(tool)


def _asks(tool: Any) -> Any:
    """What ADK's own tools and toolsets were told about confirmations."""
    return getattr(tool, "_require_confirmation", False)


def _taken(function: Any, args: Mapping[str, Any]) -> dict[str, Any]:
    """Those arguments that a function takes: the others ADK leaves out."""
    try:
        taken = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return dict(args)
    if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        return dict(args)
    return {name: value for name, value in args.items() if name in taken}


def _is_model(node: Node) -> bool:
    """Whether a node is an agent with a model, which only can be handed back to."""
    if isinstance(node, AdkAgentNode):
        return hasattr(node.agent.value, _TO_PARENT)
    return isinstance(node, AgentNode)


def _setting(node: Node, name: str) -> bool:
    if isinstance(node, AdkAgentNode):
        return _is_true(node.agent.value, name)
    return isinstance(node, AgentNode) and bool(dict(node.settings).get(name))


def _is_true(holder: Any, name: str) -> bool:
    return getattr(holder, name, False) is True
