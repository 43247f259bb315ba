"""Pictures of pipelines, in any format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from adk_fluent.backends.viz._dot import to_dot
from adk_fluent.backends.viz._draw import MAX_NODES, diagram
from adk_fluent.backends.viz._html import to_html
from adk_fluent.backends.viz._mermaid import to_mermaid
from adk_fluent.backends.viz._svg import to_svg
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.backends.viz._diagram import Diagram
    from adk_fluent.ir import ExecutionConfig, Node

#: What a picture can be written as.
Format = Literal["mermaid", "dot", "svg", "html"]

FORMATS: Final[dict[str, Callable[[Diagram], str]]] = {
    "mermaid": to_mermaid,
    "dot": to_dot,
    "svg": to_svg,
    "html": to_html,
}


class VizBackend:
    """A compiler from pipelines to pictures. No layer has to be installed to see its nodes.

    Args:
        format: What the picture is written as.
        data_flow: Show which step reads what which other step wrote to state.
        depth: Levels of composites that are shown; what is deeper is folded. None is all.
        max_nodes: Boxes at most, beside start and end; what is deeper, and the end of long rows,
            is folded. None is no limit.

    Raises:
        UsageError: There is no such format, or a number has no meaning.
    """

    def __init__(
        self,
        format: Format = "mermaid",
        *,
        data_flow: bool = True,
        depth: int | None = None,
        max_nodes: int | None = MAX_NODES,
    ) -> None:
        if format not in FORMATS:
            raise UsageError(
                f"there is no picture format {format!r}", help=f"use one of: {', '.join(FORMATS)}"
            )
        for name, value, least in (("depth", depth, 0), ("max_nodes", max_nodes, 1)):
            if value is not None and (type(value) is not int or value < least):
                raise UsageError(
                    f"{name}= takes a whole number from {least}, or None", found=repr(value)
                )
        self.format: Format = format
        self.data_flow = data_flow
        self.depth = depth
        self.max_nodes = max_nodes

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> str:
        """Draw a pipeline; the same pipeline gives the same text.

        Args:
            node: The pipeline.
            config: How it would be run; its `default_model` counts.
        """
        drawn = diagram(
            node,
            config,
            data_flow=self.data_flow,
            depth=self.depth,
            max_nodes=self.max_nodes,
        )
        return FORMATS[self.format](drawn)


def render(
    node: Node,
    format: Format = "svg",
    config: ExecutionConfig | None = None,
    *,
    data_flow: bool = True,
    depth: int | None = None,
    max_nodes: int | None = MAX_NODES,
) -> str:
    """Draw a pipeline.

    Args:
        node: The pipeline.
        format: What the picture is written as.
        config: How it would be run; its `default_model` counts.
        data_flow: As for `VizBackend`.
        depth: As for `VizBackend`.
        max_nodes: As for `VizBackend`.

    Raises:
        UsageError: There is no such format, or a number has no meaning.
    """
    made = VizBackend(format, data_flow=data_flow, depth=depth, max_nodes=max_nodes)
    return made.compile(node, config)
