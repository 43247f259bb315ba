"""Names of tools and agents in options: what `check` says of those that match nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts import Diagnostic, Severity, middleware_stacks
from adk_fluent.errors import nearest_name
from adk_fluent.extend import added_tools
from adk_fluent.ir import NODES, AdkAgentNode, AgentNode, MiddlewareNode, RemoteAgentNode
from adk_fluent.middleware._order import name_of, names_in, option, stack
from adk_fluent.middleware._tools._machinery import FRAMEWORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.contracts import Graph
    from adk_fluent.ir import Node

#: Of each middleware the options that name tools, in a list or as keys.
TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "circuit_breaker": ("tools",),
    "context_editing": ("exclude_tools",),
    "pii_filter": ("tools",),
    "rate_limiter": ("tools",),
    "retry": ("tools",),
    "timeout": ("tool",),
    "tool_approval": ("tools", "exclude"),
    "tool_call_limit": ("tools",),
    "tool_emulator": ("tools", "exclude", "results"),
    "tool_selector": ("always",),
}
#: And those that name agents.
AGENTS: Final[dict[str, tuple[str, ...]]] = {
    "model_call_limit": ("per_agent",),
    "todo_list": ("agents",),
}
#: Options that hold something back: without the name it would not be. Of the others either more is
#: guarded than was meant, or a run is less good.
GUARDS: Final = frozenset(
    {
        ("circuit_breaker", "tools"),
        ("model_call_limit", "per_agent"),
        ("pii_filter", "tools"),
        ("rate_limiter", "tools"),
        ("timeout", "tool"),
        ("tool_approval", "tools"),
        ("tool_call_limit", "tools"),
        ("tool_emulator", "results"),
        ("tool_emulator", "tools"),
    }
)


class UnknownTarget(Diagnostic, code="MDW003", severity=Severity.ERROR):
    """A middleware names a tool or an agent that is not there."""


def check_targets(graph: Graph) -> Iterator[Diagnostic]:
    """Look for names that match nothing: an error where they are to hold something back."""
    yield from _unknown(graph, graph.root, graph.nodes)
    for node in graph.of(MiddlewareNode):
        yield from _unknown(graph, node, graph.reach([node.body]))


def _unknown(graph: Graph, node: Node, inside: Iterable[Node]) -> Iterator[UnknownTarget]:
    named = [
        (name_of(middleware), name, what, each)
        for middleware in stack(node)
        for table, what in ((TOOLS, "tool"), (AGENTS, "agent"))
        for name in table.get(name_of(middleware), ())
        for each in names_in(option(middleware, name))
    ]
    if not named:
        return
    known, all_known = _known(inside)
    for _, middlewares in middleware_stacks(graph):  # those around this node, too
        for each in middlewares:
            added = added_tools(each)
            known["tool"] |= {*(added or ())}
            all_known = all_known and added is not None
    for middleware, name, what, each in named:
        if _is_in(each, known[what]) or each in FRAMEWORK:
            continue
        near = nearest_name(each, known[what])
        if near is None and not all_known:  # it may well be one that is known only in a run
            continue
        guards = all_known and (middleware, name) in GUARDS
        there = ", ".join(f"`{other}`" for other in sorted(known[what])[:10])
        yield UnknownTarget.at(
            graph,
            node,
            f"`{middleware}({name}=...)` names `{each}`, and there is no {what} of that name"
            + ("" if all_known else ", unless a toolset or an agent of ADK's has one"),
            help=f"did you mean `{near}`?"
            if near
            else (f"use one of {there}" if there else f"there is no {what} at all"),
            severity=Severity.ERROR if guards else Severity.WARNING,
        )


def _known(inside: Iterable[Node]) -> tuple[dict[str, set[str]], bool]:
    """The names of tools and agents, and whether no others can turn up when it runs."""
    tools, agents = set[str](), set[str]()
    complete = True
    for node in inside:
        if isinstance(node, RemoteAgentNode):  # its tools run elsewhere, where nothing guards them
            agents.add(node.name)
        elif type(node) not in NODES or isinstance(node, AdkAgentNode):
            complete = False
        if not isinstance(node, AgentNode):
            continue
        agents.add(node.name)
        for each in node.agent_tools:
            tools.add(each.name)
            while isinstance(each, MiddlewareNode):
                each = each.body  # noqa: PLW2901  # the same one, without what stands around it
                tools.add(each.name)
        for spec in node.tools:
            name = _tool_name(spec.tool.value)
            if name is None:
                complete = False
            else:
                tools |= {name, spec.name}
    return {"tool": tools, "agent": agents}, complete


def _tool_name(tool: Any) -> str | None:
    """What a model calls a tool; None of a toolset, which says so only when it runs."""
    if hasattr(tool, "get_tools") or isinstance(tool, type):
        return None
    name = getattr(tool, "__name__", None) or getattr(tool, "name", None)
    return name if isinstance(name, str) else None


def _is_in(name: str, known: set[str]) -> bool:
    """Several agents of one name get numbers when the pipeline is compiled."""
    return name in known or re.sub(r"_\d+$", "", name) in known
