"""Who may find in state what whom wrote: reaching definitions over the blocks of a diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent.backends.viz._diagram import DataLink
from adk_fluent.backends.viz._text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adk_fluent.backends.viz._diagram import Block


@dataclass(frozen=True, slots=True)
class Access:
    """What a box does to state.

    Attributes:
        reads: Keys it reads.
        writes: Keys it may write.
        sure: It writes all of them, so that what was there before is gone.
        removes: Says of a key whether nobody finds it after this, unless it is written here.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    sure: bool = False
    removes: Callable[[str], bool] | None = None


def data_links(blocks: Sequence[Block], access: Sequence[Access]) -> list[DataLink]:
    """Each box that reads a key, with each that may have written what it finds.

    A branch of a parallel does not find what the branches beside it write: what it would see is a
    matter of chance.
    """
    flow = _Flow(blocks, access)
    return sorted(flow.links(), key=lambda link: (link.source, link.target))


class _Flow:
    """Sets of writes are the bits of a number: one for each box and key that it writes."""

    def __init__(self, blocks: Sequence[Block], access: Sequence[Access]) -> None:
        self.blocks, self.access = blocks, access
        read = {key for each in access for key in each.reads}  # others lead nowhere
        self.writes = [
            (box, key) for box, a in enumerate(access) for key in a.writes if key in read
        ]
        self.first = [0] * (len(access) + 1)
        self.of_key: dict[str, int] = {}
        for bit, (box, key) in enumerate(self.writes):
            self.first[box + 1] = bit + 1
            self.of_key[key] = self.of_key.get(key, 0) | 1 << bit
        for box in range(len(access)):
            self.first[box + 1] = max(self.first[box], self.first[box + 1])
        self.gives: list[int] = []
        self.takes: list[int] = []
        for block in blocks:
            gives, takes = self._effect(block)
            self.gives.append(gives)
            self.takes.append(takes)

    def links(self) -> Iterator[DataLink]:
        """Go down from the whole, with what is there before each block."""
        before = [0] * len(self.blocks)
        for at in range(len(self.blocks) - 1, -1, -1):
            block, there = self.blocks[at], before[at]
            if block.box is not None:
                yield from self._found(block.box, there)
            elif block.columns:
                for each in block.below:
                    before[each] = there
            else:
                if block.back is not None:
                    there |= self.gives[at]
                for each in block.stack:
                    before[each] = there
                    there = self.gives[each] | (there & ~self.takes[each])

    def _found(self, box: int, there: int) -> Iterator[DataLink]:
        for key in self.access[box].reads:
            found = there & self.of_key.get(key, 0)
            while found:
                bit = found & -found
                found ^= bit
                yield DataLink(self.writes[bit.bit_length() - 1][0], box, clean(key))

    def _effect(self, block: Block) -> tuple[int, int]:
        """What a block adds to what was there, and what it takes away from it."""
        if block.box is not None:
            return self._effect_of_box(block.box)
        gives = takes = 0
        if not block.columns:
            for each in block.stack:
                gives = self.gives[each] | (gives & ~self.takes[each])
                takes |= self.takes[each]
            return gives, takes
        for each in block.below:
            gives |= self.gives[each]
        if block.meets == "all":
            for each in block.below:
                takes |= self.takes[each]
        elif block.meets == "one" and len(block.below) == len(block.columns):
            takes = -1
            for each in block.below:
                takes &= self.takes[each]
        return gives, takes

    def _effect_of_box(self, box: int) -> tuple[int, int]:
        access = self.access[box]
        first, last = self.first[box], self.first[box + 1]
        gives = (1 << last) - (1 << first)
        gone = list(access.writes) if access.sure else []
        if access.removes is not None:
            gone += filter(access.removes, self.of_key)
        takes = 0
        for key in gone:
            takes |= self.of_key.get(key, 0)
        return gives, takes
