"""Medians of pairs, and how sure they are.

Samples are nested: a few processes of each side, and in each of them rounds. What one process has
in common (memory layout, hash seed) a hundred rounds in it do not average out, so the bootstrap
draws processes first, and then rounds within those.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Per process, per round; seconds a call, or what was made of them.
Grouped = list[list[float]]

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and its one-sided 95 % upper bound."""

    median: float
    upper: float


def flat(groups: Sequence[Sequence[float]]) -> list[float]:
    """All samples."""
    return [value for group in groups for value in group]


def estimate(groups: Sequence[Sequence[float]], *, resamples: int = RESAMPLES) -> Estimate:
    """The median of all samples, with its upper bound by bootstrap.

    Raises:
        ValueError: There is no sample.
    """
    rng = random.Random(0)  # noqa: S311  # the same samples give the same bound
    medians: list[float] = []
    for _ in range(resamples):
        drawn = rng.choices(groups, k=len(groups))
        medians.append(median(flat([rng.choices(group, k=len(group)) for group in drawn])))
    medians.sort()
    return Estimate(median(flat(groups)), medians[min(int(0.95 * resamples), resamples - 1)])


def ratios(ours: Grouped, theirs: Grouped) -> Grouped:
    """Ours by theirs, pair by pair."""
    return _pairwise(lambda a, b: a / b, ours, theirs)


def differences(ours: Grouped, theirs: Grouped) -> Grouped:
    """Ours less theirs, pair by pair."""
    return _pairwise(lambda a, b: a - b, ours, theirs)


def _pairwise(
    operation: Callable[[float, float], float], ours: Grouped, theirs: Grouped
) -> Grouped:
    return [
        [operation(a, b) for a, b in zip(one, other, strict=True)]
        for one, other in zip(ours, theirs, strict=True)
    ]
