"""Where everything in a picture stands.

Blocks are laid out from the inside: stacks below each other on a common spine, columns beside each
other, with room for the wires of `_nets`. So nothing overlaps, whatever the pipeline. Heights come
first, since lanes depend on them, then lanes, then widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from adk_fluent.backends.viz._heights import LABEL_STEP, MARGIN, TURN, Heights
from adk_fluent.backends.viz._lanes import Lanes
from adk_fluent.backends.viz._nets import routes_of
from adk_fluent.backends.viz._sizes import HEADING, PORT_LEAD, SMALL, faces, inset
from adk_fluent.backends.viz._text import width
from adk_fluent.backends.viz._widths import BACK, Widths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.backends.viz._diagram import Diagram

Point = tuple[float, float]
Role = Literal["heading", "title", "line", "label", "frame", "key"]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, in pixels from the top left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text.

    Attributes:
        text: What is written.
        x: Its left end, or its middle.
        y: Its baseline.
        size: Of the font, in pixels.
        role: What it is.
        middle: Whether `x` is its middle.
        box: The box it is written in or beside.
        key: The state key that it names.
    """

    text: str
    x: float
    y: float
    size: float
    role: Role
    middle: bool = True
    box: int | None = None
    key: str = ""

    @property
    def rect(self) -> Rect:
        """The room it takes at most."""
        wide = width(self.text, self.size, bold=self.role in ("heading", "title"))
        left = self.x - wide / 2 if self.middle else self.x
        return Rect(left, self.y - self.size * 0.95, wide, self.size * 1.2)


@dataclass(frozen=True, slots=True)
class Wire:
    """The way of a state key, or of a transfer.

    Attributes:
        key: The state key.
        lines: Straight pieces.
        transfer: Whether it is a transfer.
    """

    key: str
    lines: tuple[tuple[Point, Point], ...]
    transfer: bool = False


@dataclass(frozen=True, slots=True)
class Stub:
    """The piece of wire between a box and the end of its port.

    Attributes:
        key: The state key.
        box: Where it meets the box.
        end: The other end.
        reads: Whether it leads into the box.
        transfer: Whether it is a transfer.
    """

    key: str
    box: Point
    end: Point
    reads: bool
    transfer: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A diagram with places for everything, in pixels.

    Attributes:
        diagram: What is laid out.
        width: Of the picture.
        height: Of the picture.
        boxes: For each box.
        frames: For each cluster.
        paths: For each link, its corners; empty for transfers, which are wires.
        wires: State keys and transfers.
        stubs: What joins wires and boxes.
        texts: Everything that is written.
    """

    diagram: Diagram
    width: float
    height: float
    boxes: tuple[Rect, ...]
    frames: tuple[Rect, ...]
    paths: tuple[tuple[Point, ...], ...]
    wires: tuple[Wire, ...]
    stubs: tuple[Stub, ...]
    texts: tuple[Text, ...]


def layout(diagram: Diagram) -> Layout:
    """Give everything its place."""
    return _Placing(diagram).result()


class _Placing:
    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.faces = faces(diagram)
        self.routes = routes_of(diagram, self.faces)
        self.heights = Heights(diagram, self.faces, self.routes)
        self.lanes = Lanes(diagram, self.faces, self.routes, self.heights)
        self.widths = Widths(diagram, self.faces, self.heights, self.lanes)
        self.boxes = [Rect(0, 0, 0, 0)] * len(diagram.boxes)
        self.frames = [Rect(0, 0, 0, 0)] * len(diagram.clusters)
        for at, block in enumerate(diagram.blocks):
            x, y = self.widths.spine[at], self.heights.top[at]
            if block.box is not None:
                face = self.faces[block.box]
                self.boxes[block.box] = Rect(x - face.width / 2, y, face.width, face.height)
            elif block.cluster is not None:
                left, right = self.widths.left[at], self.widths.right[at]
                self.frames[block.cluster] = Rect(x - left, y, left + right, self.heights.high[at])

    def result(self) -> Layout:
        return Layout(
            self.diagram,
            self.widths.total,
            self.heights.total,
            tuple(self.boxes),
            tuple(self.frames),
            tuple(self._paths()),
            tuple(self._wires()),
            tuple(self._stubs()),
            tuple(self._texts()),
        )

    # --- lines ---------------------------------------------------------------------------------

    def _paths(self) -> list[tuple[Point, ...]]:
        paths: list[tuple[Point, ...]] = []
        for link in self.diagram.links:
            one, other = self.boxes[link.source], self.boxes[link.target]
            begin = (one.x + one.width / 2, one.y + one.height)
            end = (other.x + other.width / 2, other.y)
            paths.append(() if link.kind == "transfer" else (begin, end))
        for at, block in enumerate(self.diagram.blocks):
            self._bend(at, paths)
            if block.back is not None:
                link = self.diagram.links[block.back]
                one, other = self.boxes[link.source], self.boxes[link.target]
                x = self.widths.spine[at] - self.widths.left[at] + BACK / 2
                low, high = one.y + one.height / 2, other.y + other.height / 2
                paths[block.back] = ((one.x, low), (x, low), (x, high), (other.x, high))
        return paths

    def _bend(self, at: int, paths: list[tuple[Point, ...]]) -> None:
        """Lead links to columns and from them around corners."""
        columns = self.diagram.blocks[at].columns
        for across, column in zip(self.widths.columns.get(at, ()), columns, strict=False):
            x = self.widths.spine[at] + across
            turn, merge = self.heights.top[at] + TURN, self.heights.merge_y(at)
            if column.enter is not None:
                begin, end = paths[column.enter]
                way = [(begin[0], turn), (x, turn)]
                if column.block is None:
                    way += [(x, merge), (end[0], merge)]
                paths[column.enter] = (begin, *way, end)
            if column.leave is not None:
                begin, end = paths[column.leave]
                paths[column.leave] = (begin, (x, merge), (end[0], merge), end)

    def _wires(self) -> Iterator[Wire]:
        lines: list[list[tuple[Point, Point]]] = [[] for _ in self.routes.nets]
        for across in self.lanes.across:
            ends = [
                self.widths.edge(end) if isinstance(end, int) else self.widths.lane(end, across.net)
                for end in (across.begin, across.end)
            ]
            if ends[0] < ends[1]:
                lines[across.net].append(((ends[0], across.y), (ends[1], across.y)))
        for place, pieces in self.lanes.down.items():
            for down in pieces:
                x = self.widths.lane(place, down.net)
                lines[down.net].append(((x, down.low), (x, down.high)))
        for net, pieces in zip(self.routes.nets, lines, strict=True):
            yield Wire(net.key, tuple(pieces), net.transfer)

    def _stubs(self) -> Iterator[Stub]:
        for box, (face, rect) in enumerate(zip(self.faces, self.boxes, strict=True)):
            kind, right = self.diagram.boxes[box].kind, rect.x + rect.width
            for at, port in enumerate(face.ports):
                down = face.port_y(at)
                x = right - inset(kind, rect.width, rect.height, down)
                end = (right + face.beside, rect.y + down)
                yield Stub(port.key, (x, rect.y + down), end, port.reads, port.transfer)

    # --- text ----------------------------------------------------------------------------------

    def _texts(self) -> Iterator[Text]:
        middle = self.widths.spine[-1]
        yield Text(self.widths.heading, middle, MARGIN + HEADING - 2, HEADING, "heading")
        for box in range(len(self.boxes)):
            yield from self._texts_of_box(box)
        for title, rect in zip(self.widths.frames, self.frames, strict=True):
            yield Text(title, rect.x + 10, rect.y + 15, SMALL, "frame", middle=False)
        for at in range(len(self.diagram.blocks)):
            yield from self._labels(at)

    def _texts_of_box(self, box: int) -> Iterator[Text]:
        face, rect = self.faces[box], self.boxes[box]
        for text, size, bold, down in face.texts:
            role = "title" if bold else "line"
            yield Text(text, rect.x + rect.width / 2, rect.y + down, size, role, box=box)
        for at, port in enumerate(face.ports):
            if port.label:
                x, y = rect.x + rect.width + PORT_LEAD, rect.y + face.port_y(at) - 4.5
                yield Text(port.label, x, y, SMALL, "key", False, box, port.key)

    def _labels(self, at: int) -> Iterator[Text]:
        block = self.diagram.blocks[at]
        for across, column in zip(self.widths.columns.get(at, ()), block.columns, strict=False):
            lines = self.heights.labels[column.enter] if column.enter is not None else ()
            for index, line in enumerate(lines):
                y = self.heights.top[at] + TURN + 4 + LABEL_STEP * index + SMALL
                yield Text(line, self.widths.spine[at] + across, y, SMALL, "label")
        if block.back is not None:
            rect = self.boxes[self.diagram.links[block.back].source]
            label = "".join(self.heights.labels[block.back])
            x, y = rect.x - width(label, SMALL) - 6, rect.y + rect.height / 2 - 4
            yield Text(label, x, y, SMALL, "label", middle=False)
