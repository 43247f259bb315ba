"""Names: what ADK accepts, and each agent its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import DuplicateName, InvalidName, MisspeltKey
from adk_fluent.contracts._structure._declared import declared_writes
from adk_fluent.errors import nearest_name
from adk_fluent.ir import SCOPES, AgentNode, AppNode, GateNode, Ref, why_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node


def check_names(graph: Graph) -> Iterator[Diagnostic]:
    """No name is kept for others, and every name ADK will see is one it accepts."""
    root = graph.root.root if isinstance(graph.root, AppNode) else graph.root
    shown: set[int] = {id(node) for node in (root, *graph.of(GateNode))}
    shown.update(id(node) for nodes in graph.agents.values() for node in nodes)
    shown.update(id(node) for agent in graph.of(AgentNode) for node in agent.agent_tools)
    for node in graph.nodes:
        fault = _fault(node.name, strict=id(node) in shown)
        if fault is not None:
            yield InvalidName.at(
                graph, node, f"`{node.name}` cannot be a name: {fault}", help=_advice(node)
            )


def _fault(name: str, *, strict: bool) -> str | None:
    if not name:
        return "it is empty"
    if strict and not name.isidentifier():
        return "a name is made of letters, digits and `_`, and starts with no digit"
    return why_reserved(name)


def _advice(node: Node) -> str:
    name = re.sub(r"\W+", "_", node.name).strip("_")
    name = f"_{name}" if name[:1].isdigit() else name
    usable = bool(name) and _fault(name, strict=True) is None
    return f"call it `{name}`" if usable else "give it another name"


def check_keys(graph: Graph) -> Iterator[Diagnostic]:
    """State keys that are declared have a scope that there is, and agents' a usable name."""
    for node in graph.nodes:
        written = declared_writes(node)
        for ref in (*getattr(node, "reads_keys", ()), *written):
            if ref.key.isidentifier() or ref.name.isidentifier():
                continue
            prefix, colon, rest = ref.key.rpartition(":")
            does = "writes" if ref in written else "reads"
            near = nearest_name(prefix, SCOPES) if colon and ref.scope == "session" else None
            if near is not None:
                right = rest if near == "session" else f"{near}:{rest}"
                yield MisspeltKey.at(
                    graph,
                    node,
                    f"`{node.name}` {does} `{ref.key}`, and `{prefix}:` is no scope",
                    help=f"did you mean `{right}`?",
                )
            elif isinstance(node, AgentNode):
                yield MisspeltKey.at(
                    graph,
                    node,
                    f"`{node.name}` {does} `{ref.key}`, which no placeholder can name",
                    severity=Severity.INFO,
                    help="a key is made of letters, digits and `_`, behind `user:`, `app:`, "
                    "`temp:` or nothing",
                )


def check_agent_names(graph: Graph) -> Iterator[Diagnostic]:
    """No two different agents share a name; the same agent may stand in several places."""
    for name, (first, *others) in graph.agents.items():
        if not others:
            continue
        other = next((node for node in others if node != first), None)
        if other is not None:
            yield DuplicateName.at(
                graph,
                other,
                f"two different agents are called `{name}`",
                related=[Related.at(first, "the other one is here")],
                help=_difference(first, other),
            )
    for agent in graph.of(AgentNode):
        yield from _delegates(graph, agent)


def _difference(first: Node, other: Node) -> str:
    """What to do about two agents of one name."""
    if isinstance(first, AgentNode) and isinstance(other, AgentNode):
        one, two = first.model, other.model
        if one != two and first == other.replace(model=one):
            return (
                f"it is the same agent with two models, {_named(one)} here and {_named(two)} "
                "there: name its model on the agent itself, or rename one"
            )
    return "rename one, or use the very same agent in both places"


def _named(model: str | Ref | None) -> str:
    if model is None:
        return "none"
    return f"`{model.name if isinstance(model, Ref) else model}`"


def _delegates(graph: Graph, agent: AgentNode) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for delegate in agent.delegates:
        if delegate.name in seen:
            yield DuplicateName.at(
                graph,
                agent,
                f"`{agent.name}` lists the delegate `{delegate.name}` twice",
                related=[Related.at(delegate, "the delegate")],
                help="list it once: a transfer names one agent",
            )
        seen.add(delegate.name)
