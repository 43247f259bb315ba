"""A self-contained SVG: no font, script, style sheet or picture from elsewhere."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._layout import layout
from adk_fluent.backends.viz._shapes import number, rectangle, shape, way

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.backends.viz._diagram import Diagram
    from adk_fluent.backends.viz._layout import Layout, Point

_COLOURS: Final = 6
_HEAD: Final = 6.0  # length of an arrow's head

# Every rule names the picture's class: in a notebook the sheet holds for the whole page.
_STYLE: Final = """\
.adkf{--ink:#1f2937;--soft:#4b5563;--line:#6b7280;--paper:#ffffff;--grey:#f3f4f6;--frame:#9ca3af;\
--agent:#dbeafe;--agent-line:#2563eb;--far:#ede9fe;--far-line:#7c3aed;--fork:#dcfce7;\
--fork-line:#16a34a;--choice:#fef3c7;--choice-line:#b45309;--gate:#fee2e2;--gate-line:#dc2626;\
--k0:#0f766e;--k1:#be185d;--k2:#1d4ed8;--k3:#a16207;--k4:#7e22ce;--k5:#4d7c0f;\
font-family:system-ui,sans-serif}
@media (prefers-color-scheme:dark){.adkf{--ink:#f3f4f6;--soft:#d1d5db;--line:#9ca3af;\
--paper:#111827;--grey:#1f2937;--frame:#6b7280;--agent:#1e3a5f;--agent-line:#60a5fa;--far:#3b2a5e;\
--far-line:#a78bfa;--fork:#14402a;--fork-line:#4ade80;--choice:#4a3410;--choice-line:#fbbf24;\
--gate:#551c1c;--gate-line:#f87171;--k0:#2dd4bf;--k1:#f472b6;--k2:#93c5fd;--k3:#facc15;\
--k4:#d8b4fe;--k5:#bef264}}
.adkf .paper{fill:var(--paper)}
.adkf text{fill:var(--ink)}
.adkf text.line{fill:var(--soft)}
.adkf .heading,.adkf .title{font-weight:700}
.adkf text.label,.adkf text.frame{fill:var(--soft);stroke:var(--paper);stroke-width:4px;\
stroke-linejoin:round;paint-order:stroke}
.adkf .flow{fill:none;stroke:var(--line);stroke-width:1.5}
.adkf .calls{fill:none;stroke:var(--line);stroke-width:1.5;stroke-dasharray:1.5 3}
.adkf .tip{fill:var(--line)}
.adkf .part,.adkf .boundary{fill:var(--grey);fill-opacity:.45;stroke:var(--frame)}
.adkf .boundary{stroke:var(--gate-line);stroke-width:1.5;stroke-dasharray:7 4}
.adkf .shape{stroke-width:1.3}
.adkf .agent{fill:var(--agent);stroke:var(--agent-line)}
.adkf .remote{fill:var(--far);stroke:var(--far-line)}
.adkf .function,.adkf .look,.adkf .other,.adkf .folded,.adkf .transfer{fill:var(--grey);\
stroke:var(--line)}
.adkf .look{stroke-dasharray:4 3}
.adkf .gate{fill:var(--gate);stroke:var(--gate-line)}
.adkf .person{fill:none;stroke:var(--gate-line)}
.adkf .fork,.adkf .merge{fill:var(--fork);stroke:var(--fork-line)}
.adkf .choice{fill:var(--choice);stroke:var(--choice-line)}
.adkf .join,.adkf .start{fill:var(--line);stroke:none}
.adkf .end{fill:var(--paper);stroke:var(--line)}
.adkf .wire{fill:none;stroke-width:1.2;stroke-dasharray:4 2.5}
.adkf .jump{fill:none;stroke:var(--far-line);stroke-width:1.5}
.adkf .jumptip{fill:var(--far-line)}
""" + "".join(
    f".adkf .w{i}{{stroke:var(--k{i})}}.adkf .t{i}{{fill:var(--k{i})}}\n" for i in range(_COLOURS)
)


def to_svg(diagram: Diagram) -> str:
    """The picture as SVG text."""
    placed = layout(diagram)
    body = "\n".join(_body(placed))
    mark = sha256(f"{diagram.title}{body}".encode()).hexdigest()[:8]  # unique in a notebook
    wide, high = number(placed.width), number(placed.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="adkf" width="{wide}" height="{high}" '
        f'viewBox="0 0 {wide} {high}" role="img" aria-labelledby="t{mark} d{mark}">\n'
        f'<title id="t{mark}">{escaped(diagram.title)}</title>\n'
        f'<desc id="d{mark}">{escaped(diagram.summary)}</desc>\n'
        f"<style>\n{_STYLE}</style>\n{body}\n</svg>\n"
    )


def escaped(text: str) -> str:
    """Text that XML and HTML take for nothing but text, between tags and in attributes."""
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


_ENTITIES: Final = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("'", "&#39;"),
)


def _body(placed: Layout) -> Iterator[str]:
    diagram = placed.diagram
    colours: dict[str, int] = {}
    for box in diagram.boxes:
        for key in (*box.reads, *box.writes):
            colours.setdefault(key, len(colours) % _COLOURS)
    yield f'<rect class="paper" width="{number(placed.width)}" height="{number(placed.height)}"/>'
    for cluster, rect in zip(diagram.clusters, placed.frames, strict=True):
        yield f'<rect class="{cluster.kind}" {rectangle(rect)} rx="8"/>'
    yield from _wires(placed, colours)
    for link, path in zip(diagram.links, placed.paths, strict=True):
        if path:
            look = "calls" if link.kind == "calls" else "flow"
            yield f'<path class="{look}" d="{way(path)}"/>{_tip("tip", path)}'
    for box, rect in zip(diagram.boxes, placed.boxes, strict=True):
        hint = f"<title>{escaped(box.hint)}</title>" if box.hint else ""
        yield f"<g>{hint}{shape(box.kind, rect)}</g>"
    yield from _texts(placed, colours)


def _wires(placed: Layout, colours: Mapping[str, int]) -> Iterator[str]:
    for wire in placed.wires:
        if wire.lines:
            look = "jump" if wire.transfer else f"wire w{colours[wire.key]}"
            yield f'<path class="{look}" d="{"".join(map(way, wire.lines))}"/>'
    for stub in placed.stubs:
        look = "jump" if stub.transfer else f"wire w{colours[stub.key]}"
        yield f'<path class="{look}" d="{way((stub.end, stub.box))}"/>'
        if stub.reads:
            tip = "jumptip" if stub.transfer else f"t{colours[stub.key]}"
            yield _tip(tip, (stub.end, stub.box))


def _texts(placed: Layout, colours: Mapping[str, int]) -> Iterator[str]:
    for text in placed.texts:
        look = f"t{colours[text.key]}" if text.key in colours else text.role
        anchor = ' text-anchor="middle"' if text.middle else ""
        if text.text:
            yield (
                f'<text class="{look}" x="{number(text.x)}" y="{number(text.y)}" '
                f'font-size="{number(text.size)}"{anchor}>{escaped(text.text)}</text>'
            )


def _tip(look: str, path: tuple[Point, ...]) -> str:
    """The head of an arrow, at the end of its last piece."""
    (x0, y0), (x, y) = path[-2:]
    along = (x > x0) - (x < x0), (y > y0) - (y < y0)
    back = (x - along[0] * _HEAD, y - along[1] * _HEAD)
    aside = along[1] * _HEAD / 2, along[0] * _HEAD / 2
    corners = ((x, y), (back[0] + aside[0], back[1] + aside[1]))
    return (
        f'<path class="{look}" d="{way((*corners, (back[0] - aside[0], back[1] - aside[1])))}Z"/>'
    )
