"""Field values: builders refuse the wrong ones, but IR also comes from files and passes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from reprlib import repr as shorten
from typing import TYPE_CHECKING, Any, Final

from adk_fluent import ir
from adk_fluent.contracts._reports._issues import InvalidValue
from adk_fluent.contracts._structure._declared import predicates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node


@dataclass(frozen=True, slots=True)
class Rule:
    """What a field needs, in words and as a test."""

    needs: str
    holds: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _whole(low: int) -> Rule:
    return Rule(
        f"a whole number, {low} or more",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= low,
    )


def _number(low: int, high: float = inf) -> Rule:
    text = f"a number from {low} to {high}" if isfinite(high) else f"a number, {low} or more"
    return Rule(text, lambda v: _is_number(v) and low <= v <= high)


def _optional(rule: Rule) -> Rule:
    return Rule(f"{rule.needs}, or None", lambda v: v is None or rule.holds(v))


def _one_of(*words: str) -> Rule:
    return Rule("one of " + ", ".join(map(repr, words)), lambda v: v in words)


_SECONDS: Final = Rule("a number of seconds above 0", lambda v: _is_number(v) and v > 0)
_KEY: Final = Rule("a state key", lambda v: isinstance(v, str) and bool(v))
_MERGE: Final = _one_of("wait_all", "first_complete", "interleave")

#: A type of node, or of a value that nodes hold: what its fields need.
RULES: Final[Mapping[type, Mapping[str, Rule]]] = {
    ir.AgentNode: {"history": _one_of("transcript", "own", "input", "none")},
    ir.TransformNode: {
        "semantics": _one_of("merge", "replace_session", "delete_keys"),
        "scope": _one_of("session", "all"),
    },
    ir.ModelSelectorNode: {
        "strategy": _one_of("cost_optimized", "quality_optimized", "budget_bounded", "adaptive")
    },
    ir.RemoteAgentNode: {
        "timeout_seconds": _SECONDS,
        "card_ttl_seconds": _SECONDS,
        "history": _one_of("input", "transcript", "none"),
    },
    ir.ParallelNode: {"merge": _MERGE},
    ir.LoopNode: {"max_iterations": _whole(1)},
    ir.MapOverNode: {
        "list_key": _KEY,
        "item_key": _KEY,
        "output_key": _KEY,
        "on_error": _one_of("raise", "collect", "skip"),
        "concurrency": _optional(_whole(1)),
    },
    ir.TimeoutNode: {"seconds": _SECONDS},
    ir.ResourceNode: {"scope": _one_of("app", "session", "invocation")},
    ir.Match: {
        "operator": _one_of("eq", "ne", "contains", "contains_case", "gt", "lt"),
        "key": _KEY,
    },
    ir.EdgeSemantics: {
        "buffering": _one_of("full", "chunked", "token"),
        "chunk_size": _optional(_whole(1)),
        "merge": _MERGE,
    },
    ir.ModelCandidate: {
        "cost_per_1k_input": _optional(_number(0)),
        "cost_per_1k_output": _optional(_number(0)),
        "max_tokens": _optional(_whole(1)),
    },
    ir.AuthConfig: {"scheme": _one_of("none", "bearer", "api_key", "oauth2")},
    ir.RetryConfig: {
        "max_attempts": _whole(1),
        "initial_delay": _number(0),
        "max_delay": _number(0),
        "backoff_factor": _number(1),
        "jitter": _number(0, 1),
    },
    ir.ContentSpec: {
        "max_input_tokens": _optional(_whole(1)),
        "max_output_tokens": _optional(_whole(1)),
    },
    ir.TransportConfig: {
        "type": _one_of("queue", "http", "local"),
        "timeout_seconds": _optional(_SECONDS),
    },
    ir.ScalingConfig: {
        "min_instances": _whole(0),
        "max_instances": _whole(1),
        "concurrency": _whole(1),
    },
    ir.ExecutionBoundary: {
        "serialization": _one_of(*ir.SERIALIZATIONS),
        "isolation": _one_of("none", "process", "container"),
    },
    ir.CompactionConfig: {
        "interval": _whole(1),
        "overlap": _whole(0),
        "token_threshold": _optional(_whole(1)),
        "event_retention_size": _optional(_whole(0)),
    },
    ir.ExecutionConfig: {
        "timeout_seconds": _optional(_SECONDS),
        "streaming_mode": _one_of("none", "sse", "bidi"),
        "target": _one_of("agents", "workflow"),
        "contracts": _one_of("error", "warn", "off"),
    },
    ir.Contract: {
        "enforce": _one_of("error", "warn", "off"),
        "extra": _one_of("forbid", "allow"),
    },
}


def check_values(graph: Graph) -> Iterator[Diagnostic]:
    """Every field holds a value that has a meaning, and fields fit together."""
    for node in graph.nodes:
        for value in (node, *_held(node)):
            for field, rule in RULES.get(type(value), {}).items():
                found = getattr(value, field)
                if not rule.holds(found):
                    where = "" if value is node else f"{type(value).__name__}."
                    yield InvalidValue.at(
                        graph,
                        node,
                        f"`{node.name}` has {where}{field}={shorten(found)}",
                        help=f"it must be {rule.needs}",
                    )
        if not isinstance(node, ir.AgentNode):  # of which most pipelines have most
            yield from _combinations(graph, node)
        if node.boundary is not None:
            yield from _scaling(graph, node, node.boundary)


def _held(node: Node) -> Iterator[object]:
    """The values inside a node's fields."""
    if node.boundary is not None:
        yield node.boundary
        yield from (node.boundary.transport, node.boundary.scaling)
    match node:
        case ir.AgentNode():
            yield node.content
        case ir.RemoteAgentNode():
            yield from (node.auth, node.retry, node.content)
        case ir.ModelSelectorNode():
            yield from node.candidates
        case ir.SequenceNode():
            yield from node.edge_semantics
        case ir.AppNode() if node.execution is not None:
            yield from (node.execution, node.execution.compaction)
        case _:
            yield from predicates(node)


def _combinations(graph: Graph, node: Node) -> Iterator[Diagnostic]:
    match node:
        case ir.SequenceNode() if node.edge_semantics:
            steps, edges = len(node.steps), len(node.edge_semantics)
            if steps != edges:
                yield InvalidValue.at(
                    graph,
                    node,
                    f"`{node.name}` has {edges} edges for {steps} steps",
                    help="entry i of edge_semantics leaves step i: give one for each step, or none",
                )
            chunks = [
                e for e in node.edge_semantics if (e.buffering == "chunked") != bool(e.chunk_size)
            ]
            if chunks:
                yield InvalidValue.at(
                    graph,
                    node,
                    f"`{node.name}` has an edge with buffering={chunks[0].buffering!r} "
                    f"and chunk_size={chunks[0].chunk_size!r}",
                    help="give chunk_size (in tokens) with 'chunked', and with nothing else",
                )
        case ir.RouteNode() if len(node.tests) != len(node.branches):
            yield InvalidValue.at(
                graph,
                node,
                f"`{node.name}` has {len(node.tests)} tests for {len(node.branches)} branches",
                help="give each branch its test; what runs otherwise is `default`",
            )
        case ir.TransformNode(semantics="delete_keys") if not node.affected_keys:
            yield InvalidValue.at(
                graph,
                node,
                f"`{node.name}` deletes keys and names none",
                help="list them in affected_keys",
            )
        case ir.TransformNode(fn=None) if node.semantics == "merge" or not node.affected_keys:
            yield InvalidValue.at(
                graph,
                node,
                f"`{node.name}` has no function",
                help="only what deletes or keeps the keys in affected_keys goes without fn",
            )
        case _:
            pass


def _scaling(graph: Graph, node: Node, boundary: ir.ExecutionBoundary) -> Iterator[Diagnostic]:
    scaling = boundary.scaling
    if scaling is None:
        return
    low, high = scaling.min_instances, scaling.max_instances
    if _is_number(low) and _is_number(high) and low > high:
        yield InvalidValue.at(
            graph,
            node,
            f"`{node.name}` keeps {low} workers, and has {high} at most",
            help="max_instances must be min_instances or more",
        )
