"""What the box of each kind of node says, and which state keys it has to do with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._node_text import change_texts, kind_word, model_text, predicate_text
from adk_fluent._texts import plural
from adk_fluent._words import public_address
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
    MiddlewareRef,
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
    from collections.abc import Callable, Iterable

    from adk_fluent.backends.viz._diagram import BoxKind
    from adk_fluent.ir import ExecutionBoundary, ExecutionConfig

#: Kind of box, title, and the lines below it.
Words = tuple["BoxKind", str, tuple[str, ...]]


# --- structure -----------------------------------------------------------------------------------


def is_frame(node: Node) -> bool:
    """Whether a composite has no box of its own, at most a frame."""
    return isinstance(node, SequenceNode | TimeoutNode | MiddlewareNode | AppNode)


def own_boxes(node: Node) -> int:
    """How many boxes a composite has beside those of its parts."""
    if is_frame(node):
        return 0
    ends = (ParallelNode, RaceNode, RouteNode, FallbackNode, LoopNode, MapOverNode, RemoteAgentNode)
    return 2 if isinstance(node, ends) else 1


# --- words ---------------------------------------------------------------------------------------


def box_words(node: Node, config: ExecutionConfig | None) -> Words:
    """What the box of a node says: that of a leaf, or the first of a composite."""
    if isinstance(node, AgentNode):
        return "agent", node.name, tuple(_about_agent(node, config))
    words = _WORDS.get(type(node))
    return words(node) if words else ("other", node.name, (type(node).__name__,))


def folded_words(node: Node | None, hidden: int) -> Words:
    """What the box says that stands for steps which are not shown."""
    steps = plural(hidden, "step")
    if node is None:
        return "folded", f"… {steps} more", ()
    kind = kind_word(node)
    return "folded", node.name, (f"{kind}, {steps}" if kind != node.name else steps,)


def cluster_title(node: Node, *, outermost: bool) -> str | None:
    """What the frame around a node says; None when it has none."""
    if isinstance(node, SequenceNode):
        return None if outermost or node.name == "pipeline" else node.name
    if isinstance(node, TimeoutNode):
        return f"{_named('timeout', node)}: {node.seconds:g} s"
    if isinstance(node, MiddlewareNode):
        return f"middleware {_names(node.stack)}"
    if isinstance(node, AppNode):
        stack = f"middleware {_names(node.middlewares)}" if node.middlewares else ""
        resources = ", ".join(each.name for each in node.resources)
        parts = [stack, f"resources {resources}" if resources else ""]
        return "; ".join(part for part in parts if part) or None
    return None


def boundary_title(boundary: ExecutionBoundary) -> str:
    """What the frame around a part says that may run elsewhere."""
    words = ["execution boundary"]
    if boundary.isolation != "none":
        words.append(boundary.isolation)
    if (transport := boundary.transport) is not None:
        words.append(f"{transport.type} {public_address(transport.endpoint or '')}".strip())
    if (scaling := boundary.scaling) is not None:
        words.append(f"up to {scaling.max_instances} x {scaling.concurrency}")
    return ", ".join(words)


def hint(node: Node) -> str:
    """What else there is to say about a node."""
    said = [f"{kind_word(node)} {node.name}"]
    if node.description:
        said.append(f"for: {node.description}")
    if isinstance(node, AgentNode):
        for word, text in (
            ("static instruction", node.static_instruction),
            ("instruction", node.instruction),
        ):
            if text:
                said.append(f"{word}: {f'given by {text.name}' if isinstance(text, Ref) else text}")
    return "; ".join(said)


def tail_words(node: Node) -> Words:
    """What the last box of a composite says."""
    match node:
        case LoopNode(until=None):
            return "choice", "again?", ()
        case LoopNode(until=test) if test is not None:
            return "choice", f"until {predicate_text(test)}", ()
        case MapOverNode():
            lines = (f"errors in {node.errors_key}",) if node.errors_key else ()
            return "fork", f"results in {node.output_key}", lines
        case RaceNode():
            return "merge", "the first that succeeds", ()
        case ParallelNode():
            kind = "join" if node.merge != "first_complete" else "merge"
            return kind, "the first that succeeds" if kind == "merge" else "", ()
        case _:
            return "merge", "", ()


def _about_agent(node: AgentNode, config: ExecutionConfig | None) -> Iterable[str]:
    if node.model or node.mock or node.selector or (config and config.default_model):
        yield model_text(node, config)[0]
    if node.tools:
        yield f"tools: {', '.join(spec.name for spec in node.tools)}"
    if node.output_schema:
        yield f"answers with {node.output_schema.name}"
    if node.history != "transcript":
        yield f"sees: {node.history}"


def _named(word: str, node: Node) -> str:
    """`word` and the node's name, unless the name says nothing more."""
    return word if node.name == word else f"{word} {node.name}"


def _names(refs: Iterable[Ref | MiddlewareRef]) -> str:
    return ", ".join(ref.name for ref in refs)


def _plain(kind: BoxKind, word: str) -> Callable[[Any], Words]:
    return lambda node: (kind, node.name, (word,) if node.name != word else ())


def _map_over(node: MapOverNode) -> Words:
    lines = [f"each {node.item_key} of {node.list_key}"]
    if node.concurrency:
        lines.append(f"{node.concurrency} at the same time")
    if node.on_error != "raise":
        lines.append(f"on error: {node.on_error}")
    return "fork", _named("map_over", node), tuple(lines)


def _loop(node: LoopNode) -> Words:
    return "fork", _named("loop", node), (f"at most {node.max_iterations} times",)


def _gate(node: GateNode) -> Words:
    when = (f"if {predicate_text(node.predicate)}",) if node.predicate is not None else ()
    return "gate", _named("gate", node), (node.message, *when)


def _expect(node: ExpectNode) -> Words:
    lines = (predicate_text(node.predicate), f"else: {node.message}")
    return "look", _named("expect", node), lines


def _remote(node: RemoteAgentNode) -> Words:
    lines = (
        "remote agent",
        public_address(node.endpoint),
        f"at most {node.timeout_seconds:g} s",
    )
    return "remote", node.name, lines


def _transform(node: TransformNode) -> Words:
    lines = [text if word == "does" else f"{word} {text}" for word, text in change_texts(node)]
    return "function", node.name, ("transform", *lines)


def _transfer(node: TransferNode) -> Words:
    when = () if node.condition is None else (f"if {predicate_text(node.condition)}",)
    return "transfer", f"transfer to {node.target}", when


_WORDS: Final[dict[type[Node], Callable[[Any], Words]]] = {
    FunctionNode: _plain("function", "function"),
    TransformNode: _transform,
    TapNode: _plain("look", "tap"),
    AdkAgentNode: lambda n: ("agent", n.name, (f"ADK agent ({type(n.agent.value).__name__})",)),
    RemoteAgentNode: _remote,
    ParallelNode: lambda n: ("fork", _named("parallel", n), ()),
    RaceNode: lambda n: ("fork", _named("race", n), ()),
    RouteNode: lambda n: ("choice", _named("route", n), (f"on {n.key}",) if n.key else ()),
    FallbackNode: lambda n: (
        "choice",
        _named("fallback", n),
        (f"on {', '.join(ref.name for ref in n.on)}",) if n.on else (),
    ),
    LoopNode: _loop,
    MapOverNode: _map_over,
    GateNode: _gate,
    ExpectNode: _expect,
    TransferNode: _transfer,
    ResourceNode: _plain("other", "resource"),
    ModelSelectorNode: _plain("other", "model selector"),
}
