"""Orders of middlewares that do not do what they seem to: what `check` says about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.errors import LayerError
from adk_fluent.extend import find_middleware
from adk_fluent.ir import AgentNode, AppNode, MiddlewareNode, MiddlewareRef, Ref
from adk_fluent.middleware._builtin import BuiltIn
from adk_fluent.middleware._places import ALIASES
from adk_fluent.middleware._resilience._clients import own_attempts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Graph
    from adk_fluent.ir import Node

#: What stands outside, what inside it, and why that is wrong where both act on the same calls.
UNSOUND: Final[tuple[tuple[str, str, str], ...]] = (
    ("cache", "pii_filter", "personal data gets into the cache before it is filtered"),
    ("summarization", "pii_filter", "the summary is made of text that is not filtered yet"),
    ("context_editing", "summarization", "the summary is of results that are cleared already"),
    ("retry", "circuit_breaker", "every attempt counts as a failure, and an open circuit is tried"),
    ("rate_limiter", "retry", "attempts after the first do not wait for their turn"),
    ("rate_limiter", "cache", "what the cache answers waits for its turn, too"),
    ("token_budget", "cache", "what the cache answers is charged to the budget"),
    ("retry", "model_fallback", "each attempt tries all models again"),
    ("circuit_breaker", "model_fallback", "the circuit does not see that the model has failed"),
    ("timeout", "retry", "the time is that of all attempts, and what takes too long is given up"),
    ("timeout", "rate_limiter", "a call that waits for its turn is taken for one that is slow"),
    ("model_call_limit", "cache", "what the cache answers counts as a call"),
    ("retry", "retry", "the attempts multiply"),
    ("circuit_breaker", "circuit_breaker", "one circuit is enough"),
)


class UnsoundOrder(Diagnostic, code="MDW001", severity=Severity.WARNING):
    """A middleware stands outside of one that it should stand inside of."""


class DoubleRetry(Diagnostic, code="MDW002", severity=Severity.WARNING):
    """A client makes attempts of its own inside `retry`."""


def check_order(graph: Graph) -> Iterator[Diagnostic]:
    """Look at the stacks of a pipeline and of its parts."""
    yield from _unsound(graph, graph.root, [], stack(graph.root))
    yield from _twice(graph, graph.root, [], stack(graph.root))
    for node in graph.of(MiddlewareNode):
        outside = stack(graph.root)
        for above in _above(graph, node):
            outside += stack(above)
        yield from _unsound(graph, node, outside, stack(node))
        yield from _twice(graph, node, outside, stack(node))


def check_retries(graph: Graph) -> Iterator[Diagnostic]:
    """Look for models that try again by themselves where `retry` does."""
    everywhere = _retries_models(stack(graph.root))
    for agent in graph.of(AgentNode):
        model = agent.model.value if isinstance(agent.model, Ref) else None
        attempts = own_attempts(model)
        if attempts < 2:
            continue
        parts = (stack(each) for each in _above(graph, agent))
        if everywhere or any(_retries_models(part) for part in parts):
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
    whole = [(name_of(each), acts_on(each)) for each in (*outside, *own)]
    for outer, inner, why in UNSOUND:
        # of pairs that both stand outside it is said there
        for at in range(len(outside), len(whole)):
            name, calls = whole[at]
            if name == inner and any(
                other == outer and _meet(each, calls) for other, each in whole[:at]
            ):
                yield UnsoundOrder.at(
                    graph,
                    node,
                    f"`{outer}` stands outside of `{inner}`: {why}",
                    help=f"use one `{inner}`"
                    if outer == inner
                    else f"add `{inner}` before `{outer}`",
                )
                break


def _twice(graph: Graph, node: Node, outside: list[Any], own: list[Any]) -> Iterator[UnsoundOrder]:
    """Look for a limiter within itself: two of them are two limits, and one is one."""
    around = [_itself(each) for each in outside]
    for each in own:
        if name_of(each) == "rate_limiter" and any(_itself(each) is other for other in around):
            yield UnsoundOrder.at(
                graph,
                node,
                "one `rate_limiter` stands around the same calls twice: they wait once",
                help="add it once, or make another one for another limit",
            )
            return
        around.append(_itself(each))


def _retries_models(middlewares: list[Any]) -> bool:
    return any(name_of(each) == "retry" and acts_on(each).models for each in middlewares)


def _itself(each: Any) -> Any:
    return each.value if isinstance(each, Ref) else each


def stack(node: Node) -> list[Any]:
    """The middlewares that a node has, outermost first."""
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


@dataclass(frozen=True)
class Calls:
    """The calls that a middleware acts on.

    Attributes:
        models: Calls of models are among them.
        tools: Calls of all tools, of none, or of those of these names.
    """

    models: bool = True
    tools: bool | frozenset[str] = False


def acts_on(each: Any) -> Calls:
    """The calls that a built-in acts on; of others it is not asked."""
    name = name_of(each)
    if name in ("retry", "circuit_breaker"):
        return Calls(option(each, "models") is not False, _tools(option(each, "tools")))
    if name == "pii_filter":
        return Calls(
            bool(option(each, "inbound") or option(each, "outbound")), _tools(option(each, "tools"))
        )
    if name == "rate_limiter":
        limits = ("requests_per_minute", "tokens_per_minute", "concurrency")
        return Calls(
            any(option(each, limit) is not None for limit in limits), _tools(option(each, "tools"))
        )
    if name == "timeout":
        seconds = option(each, "tool")
        tools = _tools(seconds) if isinstance(seconds, Mapping) else seconds is not None
        return Calls(any(option(each, limit) is not None for limit in ("model", "first")), tools)
    return Calls()


def _tools(value: Any) -> bool | frozenset[str]:
    if isinstance(value, bool):
        return value
    return frozenset(names_in(value))


def _meet(one: Calls, other: Calls) -> bool:
    if one.models and other.models:
        return True
    if isinstance(one.tools, bool):
        return one.tools and bool(other.tools)
    if isinstance(other.tools, bool):
        return other.tools and bool(one.tools)
    return bool(one.tools & other.tools)


def names_in(value: Any) -> list[str]:
    """The names that an option has: those of a list, or the keys of a mapping."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    each = cast("Iterable[Any]", value) if several else ()
    return [name for name in each if isinstance(name, str)]


def name_of(each: Any) -> str:
    """The name of a built-in, or of what a reference names; of others there is none."""
    value = _itself(each)
    name = value.name if isinstance(value, MiddlewareRef | BuiltIn) else ""
    return ALIASES.get(name, name)


def option(each: Any, name: str) -> Any:
    """What an option of a built-in is, or of a reference to one; None if it has none."""
    value = _itself(each)
    if not isinstance(value, MiddlewareRef):
        return getattr(value, name, None)
    config = value.config or {}
    if name in config:
        return config[name]
    try:
        schema = find_middleware(value.name).config_schema or {}
    except LayerError:  # another layer has the name, too, which core's checks report
        return None
    return schema.get("properties", {}).get(name, {}).get("default")
