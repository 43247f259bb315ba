"""Numbers with their bounds."""

from __future__ import annotations

from typing import NamedTuple


class Range(NamedTuple):
    """A number as expected, at least, and at most."""

    mean: float = 0.0
    lo: float = 0.0
    hi: float = 0.0

    def plus(self, other: Range) -> Range:
        """Return the sum of both."""
        if self is NEVER:
            return other
        return Range(self.mean + other.mean, self.lo + other.lo, self.hi + other.hi)

    def times(self, other: Range) -> Range:
        """Return the product of both; nothing of something endless is nothing."""
        if other is ONCE:
            return self
        return Range(
            self.mean * other.mean,
            self.lo * other.lo,
            self.hi * other.hi if self.hi and other.hi else 0.0,
        )


ONCE = Range(1.0, 1.0, 1.0)
NEVER = Range()
