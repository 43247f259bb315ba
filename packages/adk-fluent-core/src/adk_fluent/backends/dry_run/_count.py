"""How often something happens: a lower and an upper bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

#: More than this is as good as no limit.
_MOST: Final = 10**15


@dataclass(frozen=True, slots=True)
class Count:
    """A number of times.

    Attributes:
        at_least: In every run that comes to its end.
        at_most: In any run; None is no limit.
    """

    at_least: int = 0
    at_most: int | None = 0

    def __add__(self, other: Count) -> Count:
        none = self.at_most is None or other.at_most is None
        most = None if none else (self.at_most or 0) + (other.at_most or 0)
        return _bounded(self.at_least + other.at_least, most)

    def __mul__(self, other: Count) -> Count:
        """So often for each time."""
        if self.at_most == 0 or other.at_most == 0:
            return NEVER
        none = self.at_most is None or other.at_most is None
        most = None if none else (self.at_most or 0) * (other.at_most or 0)
        return _bounded(self.at_least * other.at_least, most)

    def __str__(self) -> str:
        least, most = self.at_least, self.at_most
        if most is None:
            return f"{least} or more" if least else "any number"
        if least == most:
            return str(least)
        return f"{least} to {most}"


def _bounded(least: int, most: int | None) -> Count:
    beyond = most is None or most > _MOST
    return Count(min(least, _MOST), None if beyond else most)


NEVER: Final = Count(0, 0)
ONCE: Final = Count(1, 1)
PERHAPS: Final = Count(0, 1)
ANY: Final = Count(0, None)


def least_of(counts: Iterable[Count]) -> int:
    """What happens at least, whichever of several alternatives is taken."""
    return min((each.at_least for each in counts), default=0)
