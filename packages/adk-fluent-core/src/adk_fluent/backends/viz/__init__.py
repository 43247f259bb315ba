"""Pictures of pipelines: Mermaid and DOT text, self-contained SVG and HTML.

Solid lines say what comes after what, dashed ones which step finds in state what which other step
wrote. A picture is data first (`Diagram`), then text in a format; the same pipeline gives the same
text, always.

Example:
    >>> render((Agent("draft") >> Agent("review")).to_ir(), "mermaid")
"""

from __future__ import annotations

from adk_fluent.backends.viz._backend import Format, Options, VizBackend, render, save
from adk_fluent.backends.viz._diagram import Block, Box, Cluster, Column, DataLink, Diagram, Link
from adk_fluent.backends.viz._dot import to_dot
from adk_fluent.backends.viz._draw import diagram
from adk_fluent.backends.viz._fit import Limit
from adk_fluent.backends.viz._html import to_html
from adk_fluent.backends.viz._mermaid import to_mermaid
from adk_fluent.backends.viz._svg import to_svg

__all__ = [
    "Block",
    "Box",
    "Cluster",
    "Column",
    "DataLink",
    "Diagram",
    "Format",
    "Limit",
    "Link",
    "Options",
    "VizBackend",
    "diagram",
    "render",
    "save",
    "to_dot",
    "to_html",
    "to_mermaid",
    "to_svg",
]
