"""Pictures of pipelines, in any format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict

from adk_fluent.backends.viz._dot import to_dot
from adk_fluent.backends.viz._draw import diagram
from adk_fluent.backends.viz._html import to_html
from adk_fluent.backends.viz._mermaid import to_mermaid
from adk_fluent.backends.viz._svg import to_svg
from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Unpack

    from adk_fluent.backends.viz._diagram import Diagram
    from adk_fluent.backends.viz._fit import Limit
    from adk_fluent.ir import ExecutionConfig, Node

#: What a picture can be written as.
Format = Literal["mermaid", "dot", "svg", "html"]

FORMATS: Final[dict[str, Callable[[Diagram], str]]] = {
    "mermaid": to_mermaid,
    "dot": to_dot,
    "svg": to_svg,
    "html": to_html,
}

_SUFFIXES: Final[dict[str, Format]] = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
}


class VizBackend:
    """A compiler from pipelines to pictures. No layer has to be installed to see its nodes.

    Args:
        format: What the picture is written as.
        data_flow: Show which step reads what which other step wrote to state.
        depth: Levels of composites that are shown; see `Options`.
        max_nodes: Boxes at most, beside start and end; see `Options`.

    Raises:
        UsageError: There is no such format, or a number has no meaning.
    """

    def __init__(
        self,
        format: Format = "mermaid",
        *,
        data_flow: bool = True,
        depth: Limit = "fit",
        max_nodes: Limit = "fit",
    ) -> None:
        if format not in FORMATS:
            raise UsageError(
                f"there is no picture format {format!r}", help=f"use one of: {', '.join(FORMATS)}"
            )
        for name, value, least in (("depth", depth, 0), ("max_nodes", max_nodes, 1)):
            if value is None or value == "fit":
                continue
            if type(value) is not int or value < least:
                raise UsageError(
                    f"{name}= takes a whole number from {least}, None for no limit, or 'fit'",
                    found=repr(value),
                )
        self.format: Format = format
        self.data_flow = data_flow
        self.depth: Limit = depth
        self.max_nodes: Limit = max_nodes

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


class Options(TypedDict, total=False):
    """What a picture shows; keyword arguments of everything that draws.

    What there is no room for is folded into a box: what is too deep, and the end of long rows.
    Without `max_nodes`, and unless `depth` is None, an SVG is at most 3000 px wide and 12000 high:
    it has 20 levels (or `depth`), 20 branches beside each other, and 150 boxes, or fewer if these
    are too large.

    Attributes:
        config: How the pipeline would be run; its `default_model` counts.
        data_flow: Show which step reads what which other step wrote to state.
        depth: Levels of composites that are shown. None is all. ``fit``, if not given, is 20 with
            ``max_nodes="fit"`` and all without.
        max_nodes: Boxes at most, beside start and end, however large the picture. None is no
            limit. ``fit``, if not given, is what there is room for.
    """

    config: ExecutionConfig | None
    data_flow: bool
    depth: Limit
    max_nodes: Limit


def render(node: Node, format: Format = "svg", **options: Unpack[Options]) -> str:
    """Draw a pipeline.

    Args:
        node: The pipeline.
        format: What the picture is written as.
        **options: See `Options`.

    Raises:
        UsageError: There is no such format, or a number has no meaning.
        UnknownNameError: There is no such option.
    """
    known = Options.__annotations__
    for name in options:
        if name not in known:
            raise UnknownNameError(f"a picture takes no {name!r}", unknown=name, known=known)
    backend = VizBackend(
        format,
        data_flow=options.get("data_flow", True),
        depth=options.get("depth", "fit"),
        max_nodes=options.get("max_nodes", "fit"),
    )
    return backend.compile(node, options.get("config"))


def save(
    node: Node, path: str | PathLike[str], format: Format | None = None, **options: Unpack[Options]
) -> str:
    """Draw a pipeline into a file.

    Args:
        node: The pipeline.
        path: The file; what is there is replaced.
        format: What the picture is written as; None goes by the end of the file's name.
        **options: See `Options`.

    Returns:
        What was written.

    Raises:
        UsageError: There is no such format, or a number has no meaning.
        UnknownNameError: There is no such option.
        OSError: The file cannot be written.
    """
    file = Path(path)
    if format is None:
        format = _SUFFIXES.get(file.suffix.lower())
    if format is None:
        raise UsageError(
            f"the name {file.name!r} does not say what the picture shall be",
            help=f"end it with one of {', '.join(_SUFFIXES)}, or give format=",
        )
    text = render(node, format, **options)
    file.write_text(text, "utf-8", newline="\n")
    return text
