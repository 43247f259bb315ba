"""Wires of a picture: which ports each joins, and through which blocks it has to go.

A wire leaves a block on its right side. In a stack it may run down a lane beside the stack. From a
column it goes through a lane in the gap behind the column, then along a track above all columns
(to readers) or below them (from writers). So no wire ever crosses a box.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.backends.viz._diagram import Block, Diagram
    from adk_fluent.backends.viz._sizes import Face


@dataclass(frozen=True, slots=True)
class Net:
    """Ports that one wire joins.

    Attributes:
        key: The state key.
        ends: Boxes with the index of a port of theirs.
        transfer: Whether it is a transfer, not a key.
    """

    key: str
    ends: tuple[tuple[int, int], ...]
    transfer: bool = False


class Routes:
    """The way of each wire through the blocks.

    Attributes:
        nets: The wires.
        parts: For each block, wire to the blocks in it from which the wire comes.
        leaving: Blocks with the wires that leave them.
        writing: Blocks with the wires that are written in them.
        tracks: For each block of columns, wires to their tracks above them, and below.
    """

    def __init__(self, nets: tuple[Net, ...]) -> None:
        self.nets = nets
        self.parts: dict[int, dict[int, list[int]]] = {}
        self.leaving: set[tuple[int, int]] = set()
        self.writing: set[tuple[int, int]] = set()
        self.tracks: dict[int, tuple[dict[int, int], dict[int, int]]] = {}


def nets_of(diagram: Diagram, faces: Sequence[Face]) -> tuple[Net, ...]:
    """The wires; writers share one if the same boxes read them, so that no wire says too much."""
    where = {
        (box, port.key, port.reads): at
        for box, face in enumerate(faces)
        for at, port in enumerate(face.ports)
        if not port.transfer
    }
    readers: dict[tuple[int, str], list[int]] = {}
    for link in diagram.data:
        if (link.source, link.key, False) in where and (link.target, link.key, True) in where:
            readers.setdefault((link.source, link.key), []).append(link.target)
    writers: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for (source, key), targets in readers.items():
        writers.setdefault((key, tuple(targets)), []).append(source)
    nets = [
        Net(
            key,
            (
                *((box, where[box, key, False]) for box in sources),
                *((box, where[box, key, True]) for box in targets),
            ),
        )
        for (key, targets), sources in writers.items()
    ]
    ends: dict[str, list[tuple[int, int]]] = {}
    for box, face in enumerate(faces):
        for at, port in enumerate(face.ports):
            if port.transfer:
                ends.setdefault(port.key, []).append((box, at))
    return (*nets, *(Net(key, tuple(both), transfer=True) for key, both in ends.items()))


def routes_of(diagram: Diagram, faces: Sequence[Face]) -> Routes:
    """Find the way of each wire through the blocks."""
    blocks = diagram.blocks
    parent = [-1] * len(blocks)
    block_of = {block.box: at for at, block in enumerate(blocks) if block.box is not None}
    for at, block in enumerate(blocks):
        for each in block.below:
            parent[each] = at
    routes = Routes(nets_of(diagram, faces))
    for number, net in enumerate(routes.nets):
        for box, at in net.ends:
            if not faces[box].ports[at].reads:
                routes.writing.add((block_of[box], number))
        starts = sorted({block_of[box] for box, _ in net.ends})
        _route(number, starts, parent, blocks, routes)
    return routes


def _route(
    net: int, waiting: list[int], parent: list[int], blocks: Sequence[Block], routes: Routes
) -> None:
    """Go up from all ends until the ways have met beside a stack; parts have lower numbers."""
    known = set(waiting)
    while len(waiting) > 1 or not has_lanes(blocks[waiting[0]]):
        here = heappop(waiting)
        if blocks[here].columns:
            _take_tracks(net, here, blocks[here], routes)
        routes.leaving.add((here, net))
        above = parent[here]
        routes.parts.setdefault(above, {}).setdefault(net, []).append(here)
        if (here, net) in routes.writing:
            routes.writing.add((above, net))
        if above not in known:
            known.add(above)
            heappush(waiting, above)


def has_lanes(block: Block) -> bool:
    """Whether wires may run down beside a block."""
    return bool(block.stack) and block.cluster is None


def _take_tracks(net: int, here: int, block: Block, routes: Routes) -> None:
    above, under = routes.tracks.setdefault(here, ({}, {}))
    for each in routes.parts[here][net]:
        if each != block.below[-1]:  # nothing is beside the last one
            track = under if (each, net) in routes.writing else above
            track.setdefault(net, len(track))
