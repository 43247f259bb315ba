"""DOT text, for Graphviz (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._nested import nested
from adk_fluent.backends.viz._text import fit

if TYPE_CHECKING:
    from adk_fluent.backends.viz._diagram import Box, BoxKind, Diagram, LinkKind

_MOST: Final = 60.0  # characters of a line, about
_BOXES: Final[dict[BoxKind, str]] = {
    "start": "shape=circle, style=filled, fillcolor=black, width=0.15, fixedsize=true",
    "end": "shape=doublecircle, style=filled, fillcolor=black, width=0.12, fixedsize=true",
    "agent": 'shape=box, style="rounded,filled", fillcolor="#dbeafe", color="#2563eb"',
    "remote": 'shape=egg, style=filled, fillcolor="#ede9fe", color="#7c3aed"',
    "function": 'shape=box, style=filled, fillcolor="#f3f4f6", color="#6b7280"',
    "look": 'shape=box, style="dashed,filled", fillcolor="#f3f4f6", color="#6b7280"',
    "gate": 'shape=invtrapezium, style=filled, fillcolor="#fee2e2", color="#dc2626"',
    "transfer": 'shape=cds, style=filled, fillcolor="#f3f4f6", color="#6b7280"',
    "fork": 'shape=box, style="rounded,filled", fillcolor="#dcfce7", color="#16a34a"',
    "choice": 'shape=hexagon, style=filled, fillcolor="#fef3c7", color="#d97706"',
    "join": "shape=box, style=filled, fillcolor=black, height=0.06, width=0.8, fixedsize=true",
    "merge": "shape=ellipse, style=solid, width=0.15, height=0.15, margin=0",
    "folded": 'shape=box3d, style=filled, fillcolor="#e5e7eb", color="#374151"',
    "other": "shape=box, style=solid",
}
_BARE: Final = ("start", "end", "join")
_LINKS: Final[dict[LinkKind, str]] = {
    "flow": "weight=8",
    "again": "constraint=false",
    "calls": "style=dotted",
    "transfer": "style=bold, constraint=false",
}


def to_dot(diagram: Diagram) -> str:
    """The picture as a Graphviz graph."""
    lines = [
        "digraph pipeline {",
        f"  graph [label={_quoted(diagram.title)}, labelloc=t, compound=true]",
        '  node [fontname="sans-serif", fontsize=11]',
        '  edge [fontname="sans-serif", fontsize=9]',
    ]
    for what, at in nested(diagram):
        if what == "box":
            lines.append(f"  n{at} [{_box(diagram.boxes[at])}]")
        elif what == "open":
            cluster = diagram.clusters[at]
            style = "dashed" if cluster.kind == "boundary" else "rounded"
            lines.append(f"  subgraph cluster_{at} {{")
            lines.append(f"  graph [label={_quoted(cluster.title)}, style={style}]")
        else:
            lines.append("  }")
    for link in sorted(diagram.links, key=lambda each: each.source):
        label = f", label={_quoted(link.label)}" if link.label else ""
        lines.append(f"  n{link.source} -> n{link.target} [{_LINKS[link.kind]}{label}]")
    for data in diagram.data:
        style = 'style=dashed, color="#0d9488", fontcolor="#0d9488", constraint=false'
        lines.append(f"  n{data.source} -> n{data.target} [{style}, label={_quoted(data.key)}]")
    return "\n".join([*lines, "}", ""])


def _box(box: Box) -> str:
    texts = [] if box.kind in _BARE else [box.title, *box.lines]
    if box.reads:
        texts.append(f"reads {', '.join(box.reads)}")
    if box.writes:
        texts.append(f"writes {', '.join(box.writes)}")
    return f"label={_quoted(*texts)}, tooltip={_quoted(box.hint or box.title)}, {_BOXES[box.kind]}"


def _quoted(*lines: str) -> str:
    return '"' + "\\n".join([_escaped(line) for line in lines if line]) + '"'


def _escaped(line: str) -> str:
    cut = fit(line, _MOST, 1.5)
    # Graphviz reads entities in every text, and a backslash as the beginning of a code
    return cut.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
