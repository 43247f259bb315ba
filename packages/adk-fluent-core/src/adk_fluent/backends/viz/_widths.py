"""How wide everything in a picture is, and how far right it stands."""

from __future__ import annotations

from bisect import bisect
from functools import partial
from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._heights import MARGIN, merges
from adk_fluent.backends.viz._lanes import LANE, assign
from adk_fluent.backends.viz._sizes import HEADING, SMALL
from adk_fluent.backends.viz._text import fit, width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adk_fluent.backends.viz._diagram import Block, Diagram
    from adk_fluent.backends.viz._heights import Heights
    from adk_fluent.backends.viz._lanes import Down, Lanes, Place
    from adk_fluent.backends.viz._sizes import Face

_COLUMN_GAP: Final = 18.0
_FRAME_SIDE: Final = 12.0
_WIDEST_TITLE: Final = 420.0
_TITLE_SIDES: Final = 20.0
_TITLE_ASIDE: Final = 120.0  # a short title stands beside the line that leads into the frame
_WIDEST_HEADING: Final = 600.0
#: Room on the left for the way back of a loop.
BACK: Final = 14.0


class Widths:
    """How far blocks reach to the left and right of their spine, on which their boxes stand.

    Attributes:
        left: Of each block, from its spine.
        right: Of each block, from its spine.
        spine: Of each block, from the left side of the picture.
        columns: For each block of columns, where the spine of each is, from its own.
        frames: What each frame says, cut to fit.
        heading: What the picture says, cut to fit.
    """

    def __init__(
        self, diagram: Diagram, faces: Sequence[Face], heights: Heights, lanes: Lanes
    ) -> None:
        blocks = diagram.blocks
        self._blocks, self._faces, self._lanes = blocks, faces, lanes
        self._heights, self._labels = heights, heights.labels
        self.heading = fit(diagram.heading, _WIDEST_HEADING, HEADING, bold=True)
        self.frames = [fit(each.title, _WIDEST_TITLE, SMALL) for each in diagram.clusters]
        self.left, self.right = [0.0] * len(blocks), [0.0] * len(blocks)
        self.spine = [0.0] * len(blocks)
        self.columns: dict[int, list[float]] = {}
        self._lane: dict[Place, dict[int, float]] = {}
        for at, block in enumerate(blocks):
            self.left[at], self.right[at] = self._reach(at, block)
        title = round(width(self.heading, HEADING, bold=True) / 2)
        self.left[-1], self.right[-1] = max(self.left[-1], title), max(self.right[-1], title)
        self.spine[-1] = MARGIN + self.left[-1]
        for at in range(len(blocks) - 1, -1, -1):
            for each in blocks[at].stack:
                self.spine[each] = self.spine[at]
            for x, column in zip(self.columns.get(at, ()), blocks[at].columns, strict=False):
                if column.block is not None:
                    self.spine[column.block] = self.spine[at] + x

    @property
    def total(self) -> float:
        """The width of the picture."""
        return self.spine[-1] + self.right[-1] + MARGIN

    def edge(self, at: int) -> float:
        """The right side of a block."""
        return self.spine[at] + self.right[at]

    def lane(self, place: Place, net: int) -> float:
        """Where the lane of a wire is."""
        return self.spine[place[0]] + self._lane[place][net]

    def _reach(self, at: int, block: Block) -> tuple[float, float]:
        if block.box is not None:
            half = self._faces[block.box].width / 2
            return half, half + self._faces[block.box].beside
        if block.columns:
            return self._columns_reach(at, block)
        left = max(self.left[each] for each in block.stack)
        right = max(*(self.right[each] for each in block.stack), self._beside(at, block))
        if block.cluster is not None:
            title = width(self.frames[block.cluster], SMALL) + _TITLE_SIDES
            left, right = left + _FRAME_SIDE, right + _FRAME_SIDE
            if left < title <= _TITLE_ASIDE:
                left, right = title, max(right, title)
            right = max(right, title - left)
        elif block.back is not None:
            label = width("".join(self._labels[block.back]), SMALL)
            left = max(left, self.left[block.stack[-1]] + label + 12) + BACK
        return round(left), round(right)

    def _beside(self, at: int, block: Block) -> float:
        """How far the lanes beside a stack reach; each is as near as what it passes allows."""
        tops = [self._heights.top[each] for each in block.stack]

        def begin(piece: Down) -> float:
            first = bisect(tops, piece.low) - 1
            return max(self.right[each] for each in block.stack[first : bisect(tops, piece.high)])

        return self._assign((at, -1), begin)

    def _assign(self, place: Place, begin: Callable[[Down], float]) -> float:
        found = self._lane[place] = assign(self._lanes.down.get(place, ()), begin)
        return max(found.values(), default=-LANE) + LANE

    def _columns_reach(self, at: int, block: Block) -> tuple[float, float]:
        spines: list[float] = []
        x = 0.0
        for index, column in enumerate(block.columns):
            lines = self._labels[column.enter] if column.enter is not None else ()
            label = max((width(line, SMALL) for line in lines), default=0.0) / 2 + 4
            left = right = max(round(label), 8)
            if column.block is not None:
                left = max(left, self.left[column.block])
                right = max(right, self.right[column.block])
            spines.append(x + left)
            x += left + right
            x = max(x, self._assign((at, index), partial(_at, x))) + _COLUMN_GAP
        middle = round((spines[0] + spines[-1]) / 2) if merges(block) else spines[0]
        self.columns[at] = [each - middle for each in spines]
        for index in range(len(spines)):
            place = self._lane[at, index]
            place.update({net: each - middle for net, each in place.items()})
        return middle, x - _COLUMN_GAP - middle


def _at(x: float, _: Down) -> float:
    return x
