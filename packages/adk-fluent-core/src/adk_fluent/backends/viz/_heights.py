"""How high everything in a picture is, and how far down it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._sizes import HEADING, SMALL
from adk_fluent.backends.viz._text import wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.backends.viz._diagram import Block, Diagram
    from adk_fluent.backends.viz._nets import Routes
    from adk_fluent.backends.viz._sizes import Face

MARGIN: Final = 16.0
#: From a box to where its line turns to the columns, or from the columns to the next box.
TURN: Final = 12.0
LABEL_STEP: Final = 13.0

_GAP: Final = 26.0  # between boxes below each other
_TRACK: Final = 7.0
_FRAME_TOP: Final = 28.0
_FRAME_END: Final = 12.0
_ARROW_ROOM: Final = 20.0
_WIDEST_LABEL: Final = 150.0
_END_OF_HELPERS: Final = 10.0


class Heights:
    """Where each block begins and ends.

    Attributes:
        high: The height of each block.
        top: Its distance from the top of the picture.
        labels: The lines of each link's label.
    """

    def __init__(self, diagram: Diagram, faces: Sequence[Face], routes: Routes) -> None:
        self._blocks, self._faces, self._routes = diagram.blocks, faces, routes
        self.labels = [wrap(each.label, _WIDEST_LABEL, SMALL, lines=3) for each in diagram.links]
        self.high = [0.0] * len(self._blocks)
        self.top = [0.0] * len(self._blocks)
        for at, block in enumerate(self._blocks):
            self.high[at] = self._height(at, block)
        self.top[-1] = MARGIN + (HEADING + 14 if diagram.heading else 0)
        for at in range(len(self._blocks) - 1, -1, -1):
            self._place_parts(self._blocks[at], at)

    @property
    def total(self) -> float:
        """The height of the picture."""
        return self.top[-1] + self.high[-1] + MARGIN

    def merge_y(self, at: int) -> float:
        """Where the ways from columns turn to the box that follows."""
        return self.top[at] + self.high[at] - _ARROW_ROOM

    def track_y(self, at: int, net: int, *, under: bool) -> float:
        """Where a wire runs along columns, above or under them."""
        track = _TRACK * (self._tracks(at)[under][net] + 0.5)
        if under:
            return self.top[at] + self.high[at] - self._room_under(at) + 6 + track
        return self.top[at] + self._tracks_begin(at) + track

    def _place_parts(self, block: Block, at: int) -> None:
        y = self.top[at]
        if block.columns:
            y += self._columns_begin(at)
            for each in block.below:
                self.top[each] = y
        elif block.cluster is not None:
            self.top[block.stack[0]] = y + _FRAME_TOP
        else:
            for index, each in enumerate(block.stack):
                y += self._gap(block, index)
                self.top[each] = y
                y += self.high[each]

    def _height(self, at: int, block: Block) -> float:
        if block.box is not None:
            return self._faces[block.box].height
        below = [self.high[each] for each in block.below]
        if block.columns:
            return self._columns_begin(at) + max(below, default=0.0) + self._room_under(at)
        if block.cluster is not None:
            return _FRAME_TOP + below[0] + _FRAME_END
        return sum(below) + sum(self._gap(block, index) for index in range(len(below)))

    def _gap(self, block: Block, index: int) -> float:
        """The room above one block of a stack."""
        if index == 0:
            return 0.0
        one, other = self._blocks[block.stack[index - 1]], self._blocks[block.stack[index]]
        return 0.0 if one.columns or other.columns else _GAP

    def _columns_begin(self, at: int) -> float:
        return self._tracks_begin(at) + _TRACK * len(self._tracks(at)[0]) + _ARROW_ROOM

    def _tracks_begin(self, at: int) -> float:
        enters = [each.enter for each in self._blocks[at].columns if each.enter is not None]
        most = max((len(self.labels[enter]) for enter in enters), default=0)
        return TURN + LABEL_STEP * most + 6

    def _room_under(self, at: int) -> float:
        end = TURN + _ARROW_ROOM if merges(self._blocks[at]) else _END_OF_HELPERS
        return 6 + _TRACK * len(self._tracks(at)[1]) + end

    def _tracks(self, at: int) -> tuple[dict[int, int], dict[int, int]]:
        return self._routes.tracks.get(at, ({}, {}))


def merges(block: Block) -> bool:
    """Whether columns lead on to one box; those an agent may call do not."""
    return block.columns[0].enter is not None
