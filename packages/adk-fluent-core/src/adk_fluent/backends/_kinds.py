"""What a kind of node is called, and what runs below a node."""

from __future__ import annotations

from typing import Final

from adk_fluent.builders._explain import predicate_text
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    ModelSelectorNode,
    Node,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
)

_NAMES: Final[dict[type[Node], str]] = {
    AgentNode: "agent",
    AdkAgentNode: "ADK agent",
    AppNode: "app",
    ExpectNode: "expect",
    FallbackNode: "fallback",
    FunctionNode: "function",
    GateNode: "gate",
    LoopNode: "loop",
    MapOverNode: "map_over",
    MiddlewareNode: "middleware",
    ModelSelectorNode: "model selector",
    ParallelNode: "parallel",
    RaceNode: "race",
    RemoteAgentNode: "remote agent",
    ResourceNode: "resource",
    RouteNode: "route",
    SequenceNode: "pipeline",
    TapNode: "tap",
    TimeoutNode: "timeout",
    TransferNode: "transfer",
    TransformNode: "transform",
}


def kind_word(node: Node) -> str:
    """What a kind of node is called."""
    return _NAMES.get(type(node)) or type(node).__name__


def below(node: Node) -> list[tuple[str, Node]]:
    """The nodes below that run, each with the words that say when it runs."""
    if isinstance(node, RouteNode):
        parts = [(predicate_text(test), part) for test, part in zip(node.tests, node.branches)]  # noqa: B905  # unequal in illegal IR
        return [*parts, ("otherwise", node.default)] if node.default else parts
    if isinstance(node, AgentNode):
        calls = [("may call", agent) for agent in node.agent_tools]
        return [*calls, *(("may hand over to", agent) for agent in node.delegates)]
    if isinstance(node, FallbackNode):
        return [("if that fails" if at else "first", n) for at, n in enumerate(node.attempts)]
    if isinstance(node, RemoteAgentNode):
        return [("if that fails", node.fallback)] if node.fallback else []
    if isinstance(node, AppNode):
        return [("", node.root)]
    return [("", part) for part in node.children]
