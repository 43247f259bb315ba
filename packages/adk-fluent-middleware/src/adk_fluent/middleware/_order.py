"""Orders of middlewares that do not do what they seem to: what `check` says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.ir import AgentNode, AppNode, MiddlewareNode, MiddlewareRef, Ref
from adk_fluent.middleware._builtin import BuiltIn
from adk_fluent.middleware._resilience._clients import own_attempts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Graph
    from adk_fluent.ir import Node

#: What stands outside, what inside it, and why that is wrong.
UNSOUND: Final[tuple[tuple[str, str, str], ...]] = (
    ("cache", "pii_filter", "personal data gets into the cache before it is filtered"),
    ("summarization", "pii_filter", "the summary is made of text that is not filtered yet"),
    ("retry", "circuit_breaker", "every attempt counts as a failure, and an open circuit is tried"),
    ("rate_limiter", "retry", "attempts after the first do not wait for their turn"),
    ("rate_limiter", "cache", "what the cache answers waits for its turn, too"),
    ("token_budget", "cache", "what the cache answers is charged to the budget"),
    ("retry", "model_fallback", "each attempt tries all models again"),
    ("circuit_breaker", "model_fallback", "the circuit does not see that the model has failed"),
    ("tool_emulator", "tool_approval", "nobody is asked about a tool that is made up"),
    ("retry", "retry", "the attempts multiply"),
    ("circuit_breaker", "circuit_breaker", "one circuit is enough"),
)


class UnsoundOrder(Diagnostic, code="MDW001", severity=Severity.WARNING):
    """A middleware stands outside of one that it should stand inside of."""


class DoubleRetry(Diagnostic, code="MDW002", severity=Severity.WARNING):
    """A client makes attempts of its own inside `retry`."""


def check_order(graph: Graph) -> Iterator[Diagnostic]:
    """Look at the stacks of a pipeline and of its parts."""
    yield from _unsound(graph, graph.root, [], _stack(graph.root))
    for node in graph.of(MiddlewareNode):
        outside = _stack(graph.root)
        for above in _above(graph, node):
            outside += _stack(above)
        yield from _unsound(graph, node, outside, _stack(node))


def check_retries(graph: Graph) -> Iterator[Diagnostic]:
    """Look for models that try again by themselves where `retry` does."""
    everywhere = "retry" in map(_name, _stack(graph.root))
    for agent in graph.of(AgentNode):
        model = agent.model.value if isinstance(agent.model, Ref) else None
        attempts = own_attempts(model)
        if attempts < 2:
            continue
        parts = (_stack(each) for each in _above(graph, agent))
        if everywhere or any("retry" in map(_name, part) for part in parts):
            yield DoubleRetry.at(
                graph,
                agent,
                f"the model of `{agent.name}` makes up to {attempts} attempts by itself, and "
                "`retry` several of those",
                help="leave out the model's retry options, or retry(models=False)",
            )


def _unsound(
    graph: Graph, node: Node, outside: list[Any], own: list[Any]
) -> Iterator[UnsoundOrder]:
    whole = [_name(each) for each in (*outside, *own)]
    for outer, inner, why in UNSOUND:
        if outer not in whole or inner not in whole:
            continue
        first = whole.index(outer)
        last = len(whole) - 1 - whole[::-1].index(inner)
        if first < last and last >= len(outside):  # else it is said of the stack outside
            yield UnsoundOrder.at(
                graph,
                node,
                f"`{outer}` stands outside of `{inner}`: {why}",
                help=f"use one `{inner}`" if outer == inner else f"add `{inner}` before `{outer}`",
            )


def _stack(node: Node) -> list[Any]:
    if isinstance(node, MiddlewareNode):
        return list(node.stack)
    if isinstance(node, AppNode):
        configured = node.execution.middlewares if node.execution else ()
        return [*node.middlewares, *configured]
    return []


def _above(graph: Graph, node: Node) -> list[Node]:
    """The nodes with middlewares around a node, on one way up, outermost first."""
    found: list[Node] = []
    here = node
    while parents := graph.parents(here):
        here = parents[0]
        if isinstance(here, MiddlewareNode):
            found.append(here)
    return found[::-1]


def _name(each: Any) -> str:
    value = each.value if isinstance(each, Ref) else each
    return value.name if isinstance(value, MiddlewareRef | BuiltIn) else ""
