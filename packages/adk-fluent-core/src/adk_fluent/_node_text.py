"""What nodes are called and do, as text, and what runs below them; for builders and backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir import ExecutionConfig, Predicate

#: Characters of a text that are shown.
WIDTH: Final = 88
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


def predicate_text(test: Predicate) -> str:
    """A test in words: the comparison, or the name of the function."""
    return test.name if isinstance(test, Ref) else str(test)


def model_text(node: AgentNode, config: ExecutionConfig | None) -> tuple[str, str]:
    """The model an agent gets, and where that comes from, if it is not plain."""
    if node.mock is not None:
        return "mocked", ""
    if node.selector is not None:
        names = ", ".join(candidate.name for candidate in node.selector.candidates)
        return f"one of {names}", node.selector.strategy
    if node.model is not None:
        return _name(node.model), node.model_source or "its own"
    if config is not None and config.default_model is not None:
        return _name(config.default_model), "config.default_model"
    return "ADK's default", ""


def _name(model: str | Ref) -> str:
    return model if isinstance(model, str) else model.name


def change_texts(node: TransformNode) -> Iterable[tuple[str, str]]:
    """What a transform does, as far as its name does not say it."""
    if node.fn is not None and node.fn.name != node.name:
        yield "does", node.fn.name[:WIDTH]
    if node.affected_keys and node.semantics != "merge":
        yield "removes" if removes_keys(node) else "keeps only", ", ".join(node.affected_keys)


def removes_keys(node: Node) -> bool:
    """Whether it is a transform that removes keys."""
    return isinstance(node, TransformNode) and node.semantics == "delete_keys"
