"""What diagrams are made from: boxes, links, clusters and blocks, numbered as they come."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from adk_fluent.backends._keys import removed_by, surely_writes, tail_keys
from adk_fluent.backends.viz._data import Access
from adk_fluent.backends.viz._diagram import Block, Box, Cluster, Column, Link
from adk_fluent.backends.viz._nets import has_lanes
from adk_fluent.backends.viz._text import clean
from adk_fluent.backends.viz._words import tail_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.backends._keys import Keys
    from adk_fluent.backends.viz._diagram import BoxKind, ClusterKind, LinkKind
    from adk_fluent.backends.viz._words import Words
    from adk_fluent.ir import Node

#: Keys of one box that are shown.
MAX_KEYS: Final = 10


class Drawn:
    """A part that is drawn: its blocks from above, and the boxes where it begins and ends."""

    __slots__ = ("blocks", "first", "last")

    def __init__(self, blocks: tuple[int, ...], first: int, last: int) -> None:
        self.blocks, self.first, self.last = blocks, first, last


class Pieces:
    """Makes them; what is made is known by its number."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.links: list[Link] = []
        self.clusters: list[Cluster] = []
        self.blocks: list[Block] = []
        self.access: list[Access] = []

    def between(self, head: int, columns: Block, tail: int) -> Drawn:
        """Columns between two boxes."""
        above, under = self.alone(head).blocks, self.alone(tail).blocks
        return Drawn((*above, self.block(columns), *under), head, tail)

    def column(self, head: int, tail: int, drawn: Drawn, label: str) -> Column:
        """A column that leads from one box to another."""
        enter = self.link(head, drawn.first, "flow", label)
        return Column(self.one_stack(drawn), enter, self.link(drawn.last, tail))

    def one_stack(self, drawn: Drawn) -> int:
        """The part as one block, with room for lanes."""
        if len(drawn.blocks) == 1 and has_lanes(self.blocks[drawn.blocks[0]]):
            return drawn.blocks[0]
        return self.block(Block(stack=drawn.blocks))

    def stack(self, parts: list[Drawn]) -> Drawn:
        """Parts one after the other."""
        if not parts:  # only in illegal IR, which is shown all the same
            return self.alone(self.box(("other", "nothing", ()), None, ((), ())))
        for one, other in pairwise(parts):
            self.link(one.last, other.first)
        stack = tuple(block for each in parts for block in each.blocks)
        return Drawn((self.block(Block(stack=stack)),), parts[0].first, parts[-1].last)

    def alone(self, box: int) -> Drawn:
        """A box by itself."""
        return Drawn((self.block(Block(box=box)),), box, box)

    def tail(self, node: Node, cluster: int | None) -> int:
        """The last box of a composite."""
        sure, removes = surely_writes(node), removed_by(node)
        return self.box(tail_words(node), cluster, tail_keys(node), sure=sure, removes=removes)

    def box(
        self,
        words: Words,
        cluster: int | None,
        keys: Keys,
        hint: str = "",
        *,
        sure: bool = False,
        removes: Callable[[str], bool] | None = None,
    ) -> int:
        """A box, and what it does to state: see `Access`."""
        kind: BoxKind
        kind, title, lines = words
        self.access.append(Access(*keys, sure, removes))
        most = None if kind == "folded" else MAX_KEYS
        reads, writes = (tuple(map(clean, each[:most])) for each in keys)
        texts = tuple(text for text in map(clean, lines) if text)
        self.boxes.append(Box(kind, clean(title), texts, clean(hint), reads, writes, cluster))
        return len(self.boxes) - 1

    def link(self, source: int, target: int, kind: LinkKind = "flow", label: str = "") -> int:
        """A link between two boxes."""
        self.links.append(Link(source, target, kind, clean(label)))
        return len(self.links) - 1

    def block(self, block: Block) -> int:
        """A block whose parts there are already."""
        self.blocks.append(block)
        return len(self.blocks) - 1

    def cluster(self, kind: ClusterKind, title: str, parent: int | None) -> int:
        """A frame in another one."""
        self.clusters.append(Cluster(kind, clean(title), parent))
        return len(self.clusters) - 1
