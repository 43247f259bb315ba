"""One report from those of several shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._report._report import FluentEvalReport


@dataclass(frozen=True, slots=True)
class Shards:
    """Which shards of a suite a report is of.

    Attributes:
        of: How many shards there are.
        have: Those that it has, counted from 1.
        merged: Whether it was merged, and so should have all of them.
    """

    of: int
    have: tuple[int, ...]
    merged: bool = False

    @classmethod
    def of_pair(cls, shard: tuple[int, int]) -> Shards:
        """One shard, as ``(which, of how many)``.

        Raises:
            EvalError: There is no such shard.
        """
        match shard:
            case (int(which), int(of)) if 1 <= which <= of:
                return cls(of, (which,))
            case _:
                shown = repr(shard) if _is_pair(shard) else describe(shard)
                raise EvalError(
                    "shard= is no shard, such as (1, 4)",
                    found=shown,
                    help="the first of four shards is (1, 4), the last (4, 4)",
                )

    @property
    def missing(self) -> tuple[int, ...]:
        """The shards that a merged report should have, and has not."""
        if not self.merged:
            return ()
        return tuple(each for each in range(1, self.of + 1) if each not in self.have)


def check_mergeable(reports: Sequence[FluentEvalReport]) -> None:
    """Does nothing if the reports are of one suite.

    Raises:
        EvalError: They are not, or one shard comes twice; names what is not the same.
    """
    if not reports:
        raise EvalError("there is no report to merge", help="give one for each shard")
    first = reports[0]
    for each in reports[1:]:
        for name, what in (("suite", "suites"), ("gate", "gates"), ("model", "models")):
            mine, other = getattr(first, name), getattr(each, name)
            if mine != other:
                raise EvalError(
                    f"reports of different {what} cannot be merged", found=f"{mine!r} and {other!r}"
                )
        if (each.shards is None) != (first.shards is None):
            raise EvalError("some of the reports to merge are of shards, others are not")


def merged_shards(reports: Sequence[FluentEvalReport]) -> Shards | None:
    """The shards of all reports; None if they are not of shards.

    Raises:
        EvalError: One comes twice, or the suite was not cut alike.
    """
    parts = [each.shards for each in reports if each.shards is not None]
    if not parts:
        return None
    if len(numbers := sorted({each.of for each in parts})) > 1:
        raise EvalError(
            "the suite was not cut into the same number of shards in all reports",
            found=", ".join(map(str, numbers)),
        )
    have = [which for each in parts for which in each.have]
    if twice := sorted({which for which in have if have.count(which) > 1}):
        raise EvalError(f"shard {twice[0]} of {numbers[0]} is given more than once")
    return Shards(numbers[0], tuple(sorted(have)), merged=True)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, int) for each in value)  # pyright: ignore[reportUnknownVariableType]
