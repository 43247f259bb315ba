"""Which state keys a node has to do with, as far as it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.ir import (
    AgentNode,
    ExpectNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    RemoteAgentNode,
    RouteNode,
    StateFieldRef,
    TapNode,
    TransferNode,
    TransformNode,
    walk,
)
from adk_fluent.ir._promised import ref_reducers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.ir import Node, Predicate

#: State keys that are read and written.
Keys = tuple[tuple[str, ...], tuple[str, ...]]


def keys_of(node: Node) -> Keys:  # noqa: PLR0911  # a row for each kind
    """The state keys that a node itself reads and writes, as far as it says so."""
    match node:
        case AgentNode() | RemoteAgentNode():
            writes = [ref.key for ref in node.writes_keys]
            if isinstance(node, AgentNode):
                writes += [ref.key for ref in node.tool_writes]
            return _distinct((ref.key for ref in node.reads_keys), writes)
        case TransformNode(semantics="delete_keys"):
            return (), ()  # it reads nothing, and writes nothing to be found
        case FunctionNode() | TapNode() | TransformNode():
            return _of_effects(node)
        case RouteNode():
            keys = [node.key] if node.key else []
            return _distinct((*keys, *_tested(node.tests)), ())
        case GateNode():
            return _distinct(_tested([node.predicate]), (node.key or node.name,))
        case ExpectNode():
            return _distinct(_tested([node.predicate]), ())
        case TransferNode():
            return _distinct(_tested([node.condition]), ())
        case MapOverNode():
            return (node.list_key,), (node.item_key,)
        case _:
            return (), ()


def tail_keys(node: Node) -> Keys:
    """The state keys that the last box of a composite reads and writes."""
    if isinstance(node, LoopNode):
        return _distinct(_tested([node.until]), ())
    if isinstance(node, MapOverNode):
        writes = (node.output_key, node.errors_key) if node.errors_key else (node.output_key,)
        return ((node.result_key,) if node.result_key else ()), writes
    return (), ()


def removed_by(node: Node) -> Callable[[str], bool] | None:
    """Which keys nobody finds any more after the last box of a node; None if that holds of none."""
    match node:
        case MapOverNode():
            return {node.item_key, *_passing(node.body)}.__contains__
        case TransformNode(semantics="delete_keys"):
            return (node.affected_keys or ()).__contains__
        case TransformNode(semantics="replace_session"):
            kept = node.affected_keys or ()
            every = node.scope == "all"
            return lambda key: key not in kept and (every or StateFieldRef(key).scope == "session")
        case _:
            return None


def surely_writes(node: Node) -> bool:
    """Whether what the node writes is there afterwards, whatever happened."""
    return isinstance(node, AgentNode | RemoteAgentNode | MapOverNode)


def _passing(body: Node) -> Iterable[str]:
    """The keys that a map's body writes and that nobody finds after the map."""
    nodes = list(walk(body))
    joined = {key for node in nodes for key, _ in ref_reducers(node)}
    for node in nodes:
        for key in (*keys_of(node)[1], *tail_keys(node)[1]):
            if StateFieldRef(key).scope not in ("user", "app") and key not in joined:
                yield key


def _of_effects(node: FunctionNode | TransformNode | TapNode) -> Keys:
    reads, writes = node.effects.reads, node.effects.writes
    return _distinct((ref.key for ref in reads), (ref.key for ref in writes))


def _tested(tests: Iterable[Predicate | None]) -> list[str]:
    return [test.key for test in tests if isinstance(test, Match)]


def _distinct(reads: Iterable[str], writes: Iterable[str]) -> Keys:
    return tuple(dict.fromkeys(reads)), tuple(dict.fromkeys(writes))
