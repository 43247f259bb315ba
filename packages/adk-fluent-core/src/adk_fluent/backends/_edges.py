"""Edges between steps: what is said of them and no backend does is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.errors import UnsupportedNodeError
from adk_fluent.ir import EdgeSemantics, SequenceNode

if TYPE_CHECKING:
    from adk_fluent.ir import Node

_PLAIN: Final = EdgeSemantics()


def check_edges(node: Node, what: str, help: str) -> None:
    """Refuse a sequence unless each step waits for all of the one before it.

    Args:
        node: The sequence; anything else has no edges.
        what: That steps do not stream into each other.
        help: What to do about it.

    Raises:
        UnsupportedNodeError: An edge says something else.
    """
    edges = node.edge_semantics if isinstance(node, SequenceNode) else ()
    for edge in edges:
        if edge.merge != "wait_all":
            raise UnsupportedNodeError(
                "edges do not merge what branches say: the arrangement of the branches does",
                node=node,
                found=f"an edge with merge={edge.merge!r}",
                help=f"leave it out, and say FanOut(..., merge={edge.merge!r})",
            )
        if edge != _PLAIN:
            raise UnsupportedNodeError(what, node=node, help=help)
