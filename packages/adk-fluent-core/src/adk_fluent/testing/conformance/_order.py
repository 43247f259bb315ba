"""What comes after what: expected lines, some of them beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Beside(NamedTuple):
    """Lines of branches that run at the same time; of each branch they come in order.

    Branches must not begin with the same line, unless they are equal.

    Attributes:
        branches: The lines of each branch.
    """

    branches: tuple[Order, ...]


#: Lines in the order in which they come.
Order: TypeAlias = "tuple[str | Beside, ...]"


def beside(*branches: Order) -> Order:
    """Lines of branches that run at the same time."""
    return (Beside(branches),)


def flat(order: Order) -> Iterator[str]:
    """All lines, those of branches one after the other."""
    for each in order:
        if isinstance(each, str):
            yield each
        else:
            for branch in each.branches:
                yield from flat(branch)


def each_line(order: Order, change: Callable[[str], str]) -> Order:
    """The same order of other lines."""
    return tuple(
        change(each)
        if isinstance(each, str)
        else Beside(tuple(each_line(branch, change) for branch in each.branches))
        for each in order
    )


def disorder(order: Order, lines: Iterable[str]) -> str | None:
    """What is wrong with the order of lines, or None."""
    rest = _Rest(order)
    at = 0
    for at, line in enumerate(lines, start=1):
        if not rest.take(line):
            return f"number {at} is {line!r}, should be {' or '.join(rest.heads()) or 'nothing'}"
    heads = list(rest.heads())
    return f"after {at} lacks {' or '.join(heads)}" if heads else None


class _Rest:
    """What is still to come."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._at = 0
        self._open: list[_Rest] = []
        self._settle()

    @property
    def over(self) -> bool:
        return self._at == len(self._order) and not self._open

    def heads(self) -> Iterator[str]:
        """What may come next."""
        for branch in self._open:
            yield from branch.heads()
        if not self._open and self._at < len(self._order):
            yield repr(self._order[self._at])

    def take(self, line: str) -> bool:
        """Take a line off, if it may come next."""
        for branch in self._open:
            if branch.take(line):
                if branch.over:
                    self._open.remove(branch)
                    self._settle()
                return True
        if self._open or self.over or self._order[self._at] != line:
            return False
        self._at += 1
        self._settle()
        return True

    def _settle(self) -> None:
        """Open the branches that stand next, those without lines left out."""
        while not self._open and self._at < len(self._order):
            next_one = self._order[self._at]
            if isinstance(next_one, str):
                return
            self._at += 1
            self._open = [rest for b in next_one.branches if not (rest := _Rest(b)).over]
