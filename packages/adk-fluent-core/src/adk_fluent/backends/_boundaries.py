"""Execution boundaries: what is asked of them and nobody sees to is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent._registry import require_layer
from adk_fluent.errors import UnsupportedNodeError
from adk_fluent.ir import ExecutionBoundary
from adk_fluent.ir._node import distinct

if TYPE_CHECKING:
    from adk_fluent.ir import Node


def check_boundaries(root: Node) -> None:
    """Refuse a pipeline of which a part must run elsewhere: what is compiled runs in one process.

    A layer that runs such a part takes its boundary away before, in a pass over the IR or where
    it cuts the pipeline.

    Raises:
        MissingLayerError: The layer that could is not installed.
        UnsupportedNodeError: It is, and does not run this.
    """
    for node in distinct(root):
        asked = node.boundary.beyond_process if node.boundary is not None else ()
        if not asked:
            continue
        layer, words = ExecutionBoundary.layer, " and ".join(asked)
        require_layer(layer, f"an execution boundary with {words}", node)
        raise UnsupportedNodeError(
            f"an execution boundary with {words} is not held here: all of it would run in this "
            "process",
            node=node,
            help=f"run it by the layer {layer!r}, or leave {words} out",
        )
