"""How large boxes are, and what is written in and beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._text import fit, width, wrap

if TYPE_CHECKING:
    from adk_fluent.backends.viz._diagram import Box, BoxKind, Diagram

TITLE: Final = 13.0
LINE: Final = 11.5
SMALL: Final = 10.5
HEADING: Final = 16.0

_TITLE_STEP, _LINE_STEP = 18.0, 15.0
PORT_STEP: Final = 17.0
_WIDEST: Final = 230.0
_WIDEST_PORT: Final = 150.0
#: From the box to the text of a port: room for an arrow.
PORT_LEAD: Final = 12.0

_BARE: Final[dict[BoxKind, tuple[float, float]]] = {
    "start": (14.0, 14.0),
    "end": (16.0, 16.0),
    "join": (72.0, 6.0),
    "merge": (10.0, 10.0),
}
#: Depth of the points of a choice.
POINTED: Final = 14.0
#: Width of what a shape has on each side beyond its text.
_SIDES: Final[dict[BoxKind, float]] = {"choice": POINTED + 6, "remote": 26.0, "gate": 22.0}
_SIDE: Final = 10.0
_HEADROOM: Final[dict[BoxKind, float]] = {"remote": 14.0}


@dataclass(frozen=True, slots=True)
class Port:
    """Where a wire meets a box.

    Attributes:
        key: The state key, or the box that a transfer leads to.
        reads: Whether the wire leads into the box.
        label: What is written there.
        transfer: Whether a transfer leads here, not a key.
    """

    key: str
    reads: bool
    label: str
    transfer: bool = False


@dataclass(frozen=True, slots=True)
class Face:
    """A box as it will look.

    Attributes:
        width: In pixels, ports left out.
        height: In pixels.
        texts: Text, size, whether it is bold, and its baseline below the top.
        ports: On its right side, from above.
        beside: Width of the ports.
    """

    width: float
    height: float
    texts: tuple[tuple[str, float, bool, float], ...] = ()
    ports: tuple[Port, ...] = ()
    beside: float = 0.0

    def port_y(self, at: int) -> float:
        """Where a port is, below the top."""
        first = (self.height - PORT_STEP * len(self.ports)) / 2
        return first + PORT_STEP * at + PORT_STEP / 2


def faces(diagram: Diagram) -> tuple[Face, ...]:
    """Every box of a diagram."""
    ports: list[list[Port]] = [[] for _ in diagram.boxes]
    if diagram.data_flow:
        for box, there in zip(diagram.boxes, ports, strict=True):
            there += [Port(key, True, _port_label(key)) for key in box.reads]
            there += [Port(key, False, _port_label(key)) for key in box.writes]
    for link in diagram.links:
        if link.kind == "transfer":
            key = f"transfer {link.target}"
            ports[link.source].append(Port(key, False, link.label, transfer=True))
            arrives = Port(key, True, "", transfer=True)
            if arrives not in ports[link.target]:
                ports[link.target].append(arrives)
    keys_inside = not diagram.data_flow
    return tuple(
        _face(box, tuple(there), keys_inside=keys_inside)
        for box, there in zip(diagram.boxes, ports, strict=True)
    )


def _port_label(key: str) -> str:
    return fit(key, _WIDEST_PORT, SMALL)


def _face(box: Box, ports: tuple[Port, ...], *, keys_inside: bool) -> Face:
    beside = 0.0
    if ports:
        beside = PORT_LEAD + max(width(port.label, SMALL) for port in ports) + 6
    bare = _BARE.get(box.kind)
    if bare and (box.kind != "merge" or not box.title):
        wide, high = bare
        return Face(wide, max(high, PORT_STEP * len(ports)), (), ports, beside)
    texts: list[tuple[str, float, bool, float]] = []
    y = 8.0 + _HEADROOM.get(box.kind, 0.0)
    if box.title:
        title = fit(box.title, _WIDEST, TITLE, bold=True)
        texts.append((title, TITLE, True, y + 12))
        y += _TITLE_STEP
    lines = list(box.lines)
    if keys_inside and box.reads:
        lines.append(f"reads {', '.join(box.reads)}")
    if keys_inside and box.writes:
        lines.append(f"writes {', '.join(box.writes)}")
    for line in lines:
        for text in wrap(line, _WIDEST, LINE, lines=3):
            texts.append((text, LINE, False, y + 11))
            y += _LINE_STEP
    inner = max((width(t, size, bold=bold) for t, size, bold, _ in texts), default=0.0)
    wide = max(inner + 2 * _SIDES.get(box.kind, _SIDE), 48.0)
    high = y + 6 + _HEADROOM.get(box.kind, 0.0)
    room = PORT_STEP * len(ports) + 8
    if high < room:
        texts = [(t, size, bold, base + (room - high) / 2) for t, size, bold, base in texts]
        high = room
    return Face(round(wide), round(high), tuple(texts), ports, round(beside))


def inset(kind: BoxKind, wide: float, high: float, y: float) -> float:
    """How far the right edge of a shape lies within its box, at a height below its top."""
    from_middle = abs(y - high / 2)
    if kind == "choice":
        return POINTED * from_middle / (high / 2)
    if kind == "remote":
        return 9.0
    if kind in ("fork", "merge", "start", "end") and high > 0:
        radius = min(high / 2, wide / 2)
        return radius - max(radius**2 - min(from_middle, radius) ** 2, 0.0) ** 0.5
    return 0.0
