"""Mermaid text, for READMEs and issues (https://mermaid.js.org/syntax/flowchart.html)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._nested import nested
from adk_fluent.backends.viz._text import fit

if TYPE_CHECKING:
    from adk_fluent.backends.viz._diagram import Box, BoxKind, Diagram, LinkKind

_MOST: Final = 60.0  # characters of a line, about
_SHAPES: Final[dict[BoxKind, tuple[str, str]]] = {
    "start": ("((", "))"),
    "end": ("(((", ")))"),
    "agent": ("(", ")"),
    "remote": ("([", "])"),
    "function": ("[", "]"),
    "look": ("[/", "/]"),
    "gate": ("[\\", "/]"),
    "transfer": (">", "]"),
    "fork": ("([", "])"),
    "choice": ("{{", "}}"),
    "join": ("([", "])"),
    "merge": ("((", "))"),
    "folded": ("[[", "]]"),
    "other": ("[", "]"),
}
_ARROWS: Final[dict[LinkKind, str]] = {
    "flow": "-->",
    "again": "-->",
    "calls": "-.->",
    "transfer": "==>",
}
_CLASSES: Final[dict[BoxKind, str]] = {
    "agent": "fill:#dbeafe,stroke:#2563eb,color:#111827",
    "remote": "fill:#ede9fe,stroke:#7c3aed,color:#111827",
    "function": "fill:#f3f4f6,stroke:#6b7280,color:#111827",
    "look": "fill:#f3f4f6,stroke:#6b7280,color:#111827,stroke-dasharray:4 3",
    "gate": "fill:#fee2e2,stroke:#dc2626,color:#111827",
    "choice": "fill:#fef3c7,stroke:#d97706,color:#111827",
    "fork": "fill:#dcfce7,stroke:#16a34a,color:#111827",
    "folded": "fill:#e5e7eb,stroke:#374151,color:#111827",
}
# All that could mean something to Mermaid, HTML or Markdown, also where a reader pastes it.
_PLAIN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,_-+=?!()/"
)


def to_mermaid(diagram: Diagram) -> str:
    """The picture as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    for what, at in nested(diagram):
        if what == "box":
            lines.append(f"  n{at}{_box(diagram.boxes[at])}")
        elif what == "open":
            lines.append(f"  subgraph c{at}[{_quoted(diagram.clusters[at].title)}]")
        else:
            lines.append("  end")
    for link in sorted(diagram.links, key=lambda each: each.source):
        label = f"|{_quoted(link.label)}|" if link.label else ""
        lines.append(f"  n{link.source} {_ARROWS[link.kind]}{label} n{link.target}")
    lines += [f"  n{e.source} -.->|{_quoted(e.key)}| n{e.target}" for e in diagram.data]
    for kind, style in _CLASSES.items():
        members = [f"n{at}" for at, box in enumerate(diagram.boxes) if box.kind == kind]
        if members:
            lines += (f"  classDef {kind} {style}", f"  class {','.join(members)} {kind}")
    bounds = [f"c{at}" for at, each in enumerate(diagram.clusters) if each.kind == "boundary"]
    if bounds:
        lines.append("  classDef boundary fill:none,stroke:#dc2626,stroke-dasharray:6 4")
        lines.append(f"  class {','.join(bounds)} boundary")
    return "\n".join(lines) + "\n"


def _box(box: Box) -> str:
    before, after = _SHAPES[box.kind]
    texts = [box.title, *box.lines]
    if box.reads:
        texts.append(f"reads {', '.join(box.reads)}")
    if box.writes:
        texts.append(f"writes {', '.join(box.writes)}")
    return f"{before}{_quoted(*texts)}{after}"


def _quoted(*lines: str) -> str:
    return f'"{"<br/>".join([_escaped(line) for line in lines if line]) or " "}"'


def _escaped(line: str) -> str:
    cut = fit(line.replace("$$", "$ $"), _MOST, 1.5)  # two of them would begin a formula
    return "".join([c if c in _PLAIN or not c.isascii() else f"#{ord(c)};" for c in cut])
