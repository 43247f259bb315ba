"""Where wires run down: in lanes beside stacks and in the gaps behind columns."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adk_fluent.backends.viz._diagram import Diagram
    from adk_fluent.backends.viz._heights import Heights
    from adk_fluent.backends.viz._nets import Routes
    from adk_fluent.backends.viz._sizes import Face

LANE: Final = 8.0
_APART: Final = 5.0  # between two wires in one lane

#: A block and the column of it behind which a lane is; -1 is beside the block.
Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Across:
    """A piece of wire that goes to the right.

    Attributes:
        net: The wire.
        y: How far down.
        begin: The block at whose right side it begins, or the lane.
        end: The block at whose right side it ends, or the lane.
    """

    net: int
    y: float
    begin: int | Place
    end: int | Place


@dataclass(frozen=True, slots=True)
class Down:
    """A piece of wire in a lane, from above to below."""

    net: int
    low: float
    high: float


class Lanes:
    """The pieces of all wires, and the lanes they need.

    Attributes:
        across: The pieces that go to the right.
        down: The pieces that go down, by the place of their lane.
    """

    def __init__(
        self, diagram: Diagram, faces: Sequence[Face], routes: Routes, heights: Heights
    ) -> None:
        self._blocks, self._faces, self._routes = diagram.blocks, faces, routes
        self._heights = heights
        self._leaves: dict[tuple[int, int], list[float]] = {}
        self.across: list[Across] = []
        self.down: dict[Place, list[Down]] = {}
        for at in sorted(routes.parts):
            for net, parts in routes.parts[at].items():
                if self._blocks[at].columns:
                    self._leaves[at, net] = self._through_columns(at, net, parts)
                elif self._blocks[at].cluster is not None:
                    self._leaves[at, net] = self._through_frame(at, net, parts[0])
                else:
                    self._leaves[at, net] = self._through_stack(at, net, parts)

    def _run_down(self, place: Place, piece: Down) -> None:
        self.down.setdefault(place, []).append(piece)

    def _ends(self, block: int, net: int) -> list[float]:
        """The heights at which a wire leaves a block."""
        box = self._blocks[block].box
        if box is None:
            return self._leaves[block, net]
        face, top = self._faces[box], self._heights.top[block]
        ends = self._routes.nets[net].ends
        return [top + face.port_y(port) for each, port in ends if each == box]

    def _through_frame(self, at: int, net: int, part: int) -> list[float]:
        ends = self._ends(part, net)
        self.across += [Across(net, y, part, at) for y in ends]
        return ends

    def _through_columns(self, at: int, net: int, parts: list[int]) -> list[float]:
        block = self._blocks[at]
        leaves: dict[float, int | Place] = {}
        for each in parts:
            (y,) = self._ends(each, net)  # a column is a stack, which a wire leaves once
            if each == block.below[-1]:
                leaves[y] = each
                continue
            under = (each, net) in self._routes.writing
            track = self._heights.track_y(at, net, under=under)
            column = next(i for i, column in enumerate(block.columns) if column.block == each)
            self.across.append(Across(net, y, each, (at, column)))
            self._run_down((at, column), Down(net, min(y, track), max(y, track)))
            leaves.setdefault(track, (at, column))  # the first column is the leftmost
        self.across += [Across(net, y, begin, at) for y, begin in leaves.items()]
        return sorted(leaves)

    def _through_stack(self, at: int, net: int, parts: list[int]) -> list[float]:
        ends = {each: self._ends(each, net) for each in parts}
        every = [y for each in ends.values() for y in each]
        leaves = (at, net) in self._routes.leaving
        if len(every) == 1:
            self.across.append(Across(net, every[0], parts[0], at))
            return every
        lane = (at, -1)
        self._run_down(lane, Down(net, min(every), max(every)))
        self.across += [Across(net, y, each, lane) for each, there in ends.items() for y in there]
        if not leaves:
            return []
        writing = [
            y for e, there in ends.items() if (e, net) in self._routes.writing for y in there
        ]
        y = max(writing) if writing else min(every)
        self.across.append(Across(net, y, lane, at))
        return [y]


def assign(pieces: Sequence[Down], begin: Callable[[Down], float]) -> dict[int, float]:
    """For each wire, how far right its lane is: the first that is free where it runs.

    Args:
        pieces: What runs down, each of another wire.
        begin: How far right there is something else beside a piece.
    """
    taken: dict[int, list[tuple[float, float]]] = {}
    found: dict[int, float] = {}
    for piece in sorted(pieces, key=lambda each: (each.high - each.low, each.net)):
        span = (piece.low, piece.high)
        lane = ceil(begin(piece) / LANE) + 1
        while not _is_free(used := taken.setdefault(lane, []), span):
            lane += 1
        used.insert(bisect(used, span), span)
        found[piece.net] = lane * LANE
    return found


def _is_free(used: list[tuple[float, float]], span: tuple[float, float]) -> bool:
    at = bisect(used, span)
    before = at == 0 or used[at - 1][1] + _APART < span[0]
    after = at == len(used) or span[1] + _APART < used[at][0]
    return before and after
