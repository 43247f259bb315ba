"""What single nodes declare: read off their fields, never guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    ExpectNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    RemoteAgentNode,
    RouteNode,
    StateFieldRef,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node, Predicate

_FOREIGN: Final = (AdkAgentNode, RemoteAgentNode, MiddlewareNode, TransferNode)


def declared_writes(node: Node) -> tuple[StateFieldRef, ...]:
    """The state keys a node says it writes; what its children write is not among them."""
    match node:
        case AgentNode():
            return node.writes_keys + node.tool_writes
        case RemoteAgentNode():
            return node.writes_keys
        case FunctionNode() | TransformNode():
            return node.effects.writes
        case MapOverNode():
            keys = (node.output_key, node.errors_key)
            return tuple(StateFieldRef(key) for key in keys if key is not None)
        case GateNode():
            return (StateFieldRef(node.key or node.name),)
        case _:
            return ()


def predicates(node: Node) -> tuple[Predicate, ...]:
    """The tests over state that a node makes itself."""
    match node:
        case RouteNode():
            return node.tests
        case ExpectNode():
            return (node.predicate,)
        case LoopNode():
            test = node.until
        case GateNode():
            test = node.predicate
        case TransferNode():
            test = node.condition
        case _:
            return ()
    return () if test is None else (test,)


def may_escalate(node: Node) -> bool:
    """Whether something of the node's own may end the loop around it; True when in doubt."""
    if isinstance(node, AgentNode):
        return bool(node.tools or node.callbacks)
    return isinstance(node, _FOREIGN)


def middleware_stacks(graph: Graph) -> Iterator[tuple[Node, Sequence[Any]]]:
    """Yield the stacks of middlewares of a pipeline, each with the node that has it.

    Args:
        graph: The pipeline, as a checker is given it.
    """
    yield from ((node, node.stack) for node in graph.of(MiddlewareNode))
    yield from ((graph.root, stack) for stack in app_middlewares(graph.root))


def app_middlewares(root: Node) -> tuple[Sequence[Any], ...]:
    """The stacks around a whole application: its own, and that of its run configuration."""
    if not isinstance(root, AppNode):
        return ()
    configured = root.execution.middlewares if root.execution else ()
    return tuple(stack for stack in (root.middlewares, configured) if stack)
