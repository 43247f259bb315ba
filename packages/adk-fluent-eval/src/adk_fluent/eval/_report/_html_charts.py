"""Figures of the page: where bars begin and end, worked out here so that they need no script."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._outcome import MetricStatus
from adk_fluent.eval._report._words import measured, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._outcome import CaseOutcome

_BINS: Final = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """One column of a histogram; percent of the width and of the height.

    Attributes:
        x: Where it begins.
        width: How wide it is.
        good: How high the part is that reaches the threshold, or where there is none.
        bad: How high the part above it is, that does not.
        label: What it says in words.
    """

    x: float
    width: float
    good: float
    bad: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a histogram.

    Attributes:
        x: Where, in percent of the width.
        label: What it marks.
    """

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """How figures are spread.

    Attributes:
        low: The left end, in words.
        high: The right end, in words.
        bars: The columns that are not empty.
        marks: Lines across it.
        label: All of it in one sentence.
    """

    low: str
    high: str
    bars: list[Bar] = field(default_factory=list[Bar])
    marks: list[Mark] = field(default_factory=list[Mark])
    label: str = ""


def scores(name: str, outcomes: Sequence[CaseOutcome], threshold: float | None) -> Histogram | None:
    """How the scores of a metric are spread; None if there are none.

    Args:
        name: The metric.
        outcomes: The runs.
        threshold: What it has to reach, if anything.
    """
    found = [each for outcome in outcomes if (each := outcome.score(name)) is not None]
    kept = [
        (each.score, each.status is MetricStatus.FAILED)
        for each in found
        if each.score is not None and math.isfinite(each.score)
    ]
    if not kept:
        return None
    unit = found[0].unit
    values = [score for score, _ in kept]
    bounds = [*values, *([threshold] if threshold is not None else [])]
    share = not unit and min(bounds) >= 0 and max(bounds) <= 1
    low, high = (0.0, 1.0) if share else (min(0.0, *bounds), max(bounds))
    marks = [] if threshold is None else [(threshold, f"threshold {measured(threshold, unit)}")]
    return _histogram(kept, (low, high), marks, unit)


def durations(outcomes: Sequence[CaseOutcome]) -> Histogram | None:
    """How long the runs took; None if there are fewer than two."""
    values = [each.duration_s for each in outcomes if 0 < each.duration_s < math.inf]
    if len(values) < 2:
        return None
    slow = quantiles(values, n=20, method="inclusive")[-1]
    marks = [
        (median(values), f"median {seconds(median(values))}"),
        (slow, f"95% within {seconds(slow)}"),
    ]
    return _histogram([(each, False) for each in values], (0.0, max(values)), marks, "s")


def _histogram(
    values: list[tuple[float, bool]],
    span: tuple[float, float],
    marks: list[tuple[float, str]],
    unit: str,
) -> Histogram:
    low, high = span
    width = high - low
    good, bad = [0] * _BINS, [0] * _BINS
    for value, failed in values:
        at = min(int(_place(value, span) * _BINS), _BINS - 1)
        (bad if failed else good)[at] += 1
    highest = max(map(sum, zip(good, bad, strict=True)))
    bars = [
        Bar(
            x=at * 100 / _BINS,
            width=100 / _BINS,
            good=good[at] * 100 / highest,
            bad=bad[at] * 100 / highest,
            label=_bar_label(low + at * width / _BINS, width / _BINS, unit, good[at], bad[at]),
        )
        for at in range(_BINS)
        if good[at] or bad[at]
    ]
    ends = f"{measured(low, unit)} to {measured(high, unit)}"
    told = [plural(len(values), "run"), ends, *(label for _, label in marks)]
    return Histogram(
        low=measured(low, unit),
        high=measured(high, unit),
        bars=bars,
        marks=[Mark(_place(value, span) * 100, label) for value, label in marks],
        label=", ".join(told),
    )


def _place(value: float, span: tuple[float, float]) -> float:
    """Where between the ends a value lies, 0 to 1; by halves, for their distance may overflow."""
    low, high = span
    return (value / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)


def _bar_label(start: float, width: float, unit: str, good: int, bad: int) -> str:
    ends = f"{measured(start, unit)} to {measured(start + width, unit)}"
    failed = f", {bad} of them below what is asked" if bad and good else ""
    failed = ", not enough" if bad and not good else failed
    return f"{ends}: {plural(good + bad, 'run')}{failed}"
