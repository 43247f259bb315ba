"""What nodes promise about state: reducers of keys, and the contract of a whole pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.ir._agents import (
    AgentNode,
    FunctionNode,
    RemoteAgentNode,
    TapNode,
    TransformNode,
)
from adk_fluent.ir._flow import AppNode, MapOverNode, MiddlewareNode, SequenceNode
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._values import Match

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir._node import Node
    from adk_fluent.ir._state import Contract, StateFieldRef


def ref_reducers(node: Node) -> list[tuple[str, Ref]]:
    """The reducers of the state keys that a node itself names, by key."""
    return [(ref.key, ref.reducer) for ref in _refs(node) if ref.reducer is not None]


def schema_reducers(contract: Contract | None) -> Iterator[tuple[str, Ref]]:
    """The reducers that the state schema of a contract declares, by key."""
    schema: Any = None if contract is None or contract.schema is None else contract.schema.value
    for key, field in getattr(schema, "__state_fields__", {}).items():
        reducer = getattr(field, "reducer", None)
        if reducer is not None:
            yield key, reducer if isinstance(reducer, Ref) else Ref.to(reducer)


def same_reducer(one: Ref, other: Ref) -> bool:
    """Whether two reducers do the same."""
    return one == other or bool(one.value == other.value)


def boundary(root: Node) -> Node:
    """The node whose contract is that of the whole: what stands around it has none of its own."""
    node = root
    while node.contract is None:
        if isinstance(node, AppNode):
            node = node.root
        elif isinstance(node, MiddlewareNode):
            node = node.body
        elif isinstance(node, SequenceNode) and len(node.steps) == 1:
            node = node.steps[0]
        else:
            break
    return node


def read_keys(node: Node) -> Iterator[str]:
    """The state keys that a node itself says it reads, or tests."""
    if isinstance(node, AgentNode | RemoteAgentNode):
        yield from (ref.key for ref in node.reads_keys)
    elif isinstance(node, FunctionNode | TransformNode | TapNode):
        yield from (ref.key for ref in node.effects.reads)
    elif isinstance(node, MapOverNode):
        yield node.list_key
    else:
        tests: tuple[Any, ...] = getattr(node, "tests", ())
        own = (getattr(node, name, None) for name in ("predicate", "until", "condition"))
        yield from (test.key for test in (*tests, *own) if isinstance(test, Match))


def _refs(node: Node) -> tuple[StateFieldRef, ...]:
    refs: tuple[StateFieldRef, ...] = ()
    if isinstance(node, AgentNode):
        refs = node.reads_keys + node.writes_keys + node.tool_writes
    elif isinstance(node, RemoteAgentNode):
        refs = node.reads_keys + node.writes_keys
    elif isinstance(node, FunctionNode | TransformNode | TapNode):
        effects = node.effects
        refs = effects.reads + effects.writes + effects.may_write
    contract = node.contract
    return refs if contract is None else refs + (contract.inputs or ()) + (contract.outputs or ())
