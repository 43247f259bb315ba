"""A pipeline in words: a tree of its steps with what each one does, reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._node_text import (
    WIDTH,
    change_texts,
    model_text,
    predicate_text,
    removes_keys,
)
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
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.ir import ExecutionConfig

#: Levels that are shown; below them only the number of steps.
DEPTH: Final = 50


def explain(root: Node, config: ExecutionConfig | None = None) -> str:
    """What a pipeline is: its steps with models, state keys, instructions and source lines.

    Args:
        root: The pipeline.
        config: How it would be run; its `default_model` counts.
    """
    lines: list[str] = []
    todo = [_Row(root, "", "", "", 0)]
    while todo:
        row = todo.pop()
        node, below = row.node, _parts(row.node)
        here = f"  [{node.location}]" if node.location else ""
        lines.append(f"{row.first}{row.label}{_headline(node)}{here}")
        bar = f"{row.rest}{'│' if below else ' '}   "
        lines += [f"{bar}{name}: {text}" for name, text in _details(node, config)]
        if row.depth == DEPTH and below:
            hidden = sum(1 for _ in walk(node)) - 1
            lines.append(f"{row.rest}└─ ... {hidden} more steps below")
            continue
        for at in range(len(below) - 1, -1, -1):
            label, part = below[at]
            last = at == len(below) - 1
            first, rest = ("└─ ", "   ") if last else ("├─ ", "│  ")
            todo.append(_Row(part, label, row.rest + first, row.rest + rest, row.depth + 1))
    return "\n".join(lines)


class _Row:
    """A node that is yet to be written, and what stands before it in its lines."""

    __slots__ = ("depth", "first", "label", "node", "rest")

    def __init__(self, node: Node, label: str, first: str, rest: str, depth: int) -> None:
        self.node, self.label, self.first, self.rest = node, label, first, rest
        self.depth = depth


def _headline(node: Node) -> str:
    kind = _KINDS.get(type(node))
    if kind is None:
        return f"{type(node).__name__} {node.name}"
    return kind(node)


def _named(word: str) -> Callable[[Any], str]:
    """`word` and the node's name, unless the name says nothing more."""
    return lambda node: word if node.name == word else f"{word} {node.name}"


def _map_over(node: MapOverNode) -> str:
    at_once = f", {node.concurrency} at the same time" if node.concurrency else ""
    return (
        f"{_named('map_over')(node)}: each {node.item_key} of {node.list_key}{at_once}, "
        f"results in {node.output_key}"
        + (f", on error: {node.on_error}" if node.on_error != "raise" else "")
    )


def _loop(node: LoopNode) -> str:
    ends = "" if node.until is None else f", until {predicate_text(node.until)}"
    return f"{_named('loop')(node)}: at most {node.max_iterations} times{ends}"


def _route(node: RouteNode) -> str:
    return _named("route")(node) + (f" on {node.key}" if node.key else "")


def _parallel(node: ParallelNode) -> str:
    return _named("parallel")(node) + ("" if node.merge == "wait_all" else f", {node.merge}")


def _transfer(node: TransferNode) -> str:
    when = "" if node.condition is None else f", if {predicate_text(node.condition)}"
    return f"transfer to {node.target}{when}"


def _fallback(node: FallbackNode) -> str:
    on = f", on {', '.join(ref.name for ref in node.on)}" if node.on else ""
    return f"{_named('fallback')(node)}{on}"


def _gate(node: GateNode) -> str:
    when = "" if node.predicate is None else f", if {predicate_text(node.predicate)}"
    return f"{_named('gate')(node)}: {_first_line(node.message)}{when}"


def _app(node: AppNode) -> str:
    stack = ", ".join(ref.name for ref in node.middlewares)
    return _named("app")(node) + (f", middleware {stack}" if stack else "")


_KINDS: Final[dict[type[Node], Callable[[Any], str]]] = {
    AgentNode: _named("agent"),
    FunctionNode: _named("function"),
    TransformNode: _named("transform"),
    TapNode: _named("tap"),
    AdkAgentNode: lambda n: f"ADK agent {n.name} ({type(n.agent.value).__name__})",
    RemoteAgentNode: lambda n: f"remote agent {n.name}",
    SequenceNode: _named("pipeline"),
    ParallelNode: _parallel,
    LoopNode: _loop,
    RouteNode: _route,
    FallbackNode: _fallback,
    RaceNode: _named("race"),
    MapOverNode: _map_over,
    TimeoutNode: lambda n: f"{_named('timeout')(n)}: {n.seconds:g} s",
    GateNode: _gate,
    ExpectNode: lambda n: (
        f"{_named('expect')(n)}: {predicate_text(n.predicate)}, else {n.message!r}"
    ),
    TransferNode: _transfer,
    MiddlewareNode: lambda n: f"middleware {', '.join(ref.name for ref in n.stack)}",
    AppNode: _app,
    ResourceNode: lambda n: (
        f"resource {n.name} per {n.scope}" if n.is_factory else f"resource {n.name}"
    ),
}


def _parts(node: Node) -> list[tuple[str, Node]]:
    """The nodes below, each with the words that say when it runs."""
    if isinstance(node, RouteNode):
        parts = [(f"{predicate_text(test)}: ", part) for test, part in node.rules]
        return [*parts, ("otherwise: ", node.default)] if node.default else parts
    if isinstance(node, AgentNode):
        calls = [("may call: ", agent) for agent in node.agent_tools]
        return [*calls, *(("may hand over to: ", agent) for agent in node.delegates)]
    if isinstance(node, FallbackNode):
        return [("if that fails: " if at else "", part) for at, part in enumerate(node.children)]
    return [("", part) for part in node.children]


def _details(node: Node, config: ExecutionConfig | None) -> Iterable[tuple[str, str]]:
    if node.description and node.description.strip():
        yield "for", _first_line(node.description)
    if isinstance(node, AgentNode):
        model, source = model_text(node, config)
        yield "model", f"{model} ({source})" if source else model
        yield from _texts(node)
        if node.tools:
            yield "tools", ", ".join(spec.name for spec in node.tools)
        yield from _keys("reads", node.reads_keys)
        yield from _keys("writes", node.writes_keys)
        yield from _keys("tools write", node.tool_writes)
        if node.output_schema:
            yield "answers with", node.output_schema.name
        if node.history != "transcript":
            yield "sees", node.history
    elif isinstance(node, FunctionNode | TransformNode | TapNode):
        if isinstance(node, TransformNode):
            yield from change_texts(node)
        if not removes_keys(node):
            yield from _keys("reads", node.effects.reads)
            yield from _keys("writes", node.effects.writes)
    elif isinstance(node, GateNode):
        yield from _question(node)
    elif isinstance(node, RemoteAgentNode):
        yield "endpoint", public_address(node.endpoint)
        yield from _keys("reads", node.reads_keys)
        yield from _keys("writes", node.writes_keys)


def _question(node: GateNode) -> Iterable[tuple[str, str]]:
    if node.payload is not None:
        yield "shows", node.payload.name
    if node.response_schema is not None:
        yield "answers with", _schema_text(node.response_schema)
    yield "writes", node.key or node.name


def _texts(node: AgentNode) -> Iterable[tuple[str, str]]:
    for name, text in (
        ("static instruction", node.static_instruction),
        ("instruction", node.instruction),
    ):
        if isinstance(text, Ref):
            yield name, f"given by {text.name}"
        elif text and text.strip():
            yield name, _first_line(text)


def _schema_text(text: str) -> str:
    """A JSON Schema in few words: its title, properties, values or type."""
    from json import loads  # noqa: PLC0415  # only for gates that have a schema

    try:
        schema = loads(text)
    except ValueError:
        return "text that is no JSON"
    if not isinstance(schema, dict):
        return text
    given = cast("dict[str, Any]", schema)
    words = given.get("title") or given.get("properties") or given.get("enum") or given.get("type")
    listed = words if isinstance(words, str) else ", ".join(str(word) for word in words or ())
    return _first_line(listed or "JSON")


def _first_line(text: str) -> str:
    line, *more = text.strip().splitlines()
    return line[:WIDTH] + (" ..." if more or len(line) > WIDTH else "")


def _keys(name: str, keys: tuple[StateFieldRef, ...]) -> Iterable[tuple[str, str]]:
    if keys:
        yield name, ", ".join(ref.key for ref in keys)
