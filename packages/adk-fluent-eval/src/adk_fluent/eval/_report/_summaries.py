"""Figures over many outcomes: per tag and per metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adk_fluent.eval._outcome import MetricStatus, Status, Tokens
from adk_fluent.eval._report._statistics import clustered_wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._outcome import CaseOutcome, MetricScore


@dataclass(frozen=True, slots=True)
class TagSummary:
    """What the runs of one tag came to.

    Attributes:
        tag: The tag.
        passed: Runs that passed.
        failed: Runs that failed.
        errors: Runs of which it could not be told.
        skipped: Runs that were not made.
        xfailed: Runs that failed as their cases expect.
        total: All runs.
        pass_rate: Share of the runs that passed, of those that count; 0.0 if none counts.
        ci: The interval in which the true pass rate lies, at 95 %; runs of a case count for less
            the more alike they are.
        scores: Metric to its mean, over the runs that count and have a score.
        tokens: What all runs took.
        cost_usd: What the runs of known cost took, in US dollars; None if none is known.
    """

    tag: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    total: int = 0
    pass_rate: float = 0.0
    ci: tuple[float, float] = (0.0, 1.0)
    scores: dict[str, float] = field(default_factory=dict[str, float])
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = None

    @property
    def counting(self) -> int:
        """Runs that count: that passed, failed, or of which it could not be told."""
        return self.passed + self.failed + self.errors

    @classmethod
    def from_results(cls, outcomes: Iterable[CaseOutcome], tag: str = "") -> TagSummary:
        """The figures of some outcomes, whatever their tags."""
        taken = list(outcomes)
        counts = count_statuses(taken)
        counting = [each for each in taken if each.status.counts]
        passed = counts[Status.PASSED]
        return cls(
            tag,
            passed,
            counts[Status.FAILED],
            counts[Status.ERROR],
            counts[Status.SKIPPED],
            counts[Status.XFAILED],
            len(taken),
            passed / len(counting) if counting else 0.0,
            pass_rate_interval(counting),
            {name: mean(values) for name, values in scores_by_metric(counting).items() if values},
            total_tokens(taken),
            total_cost(taken),
        )


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """What one metric came to over the runs that count.

    Attributes:
        name: The metric.
        mean: Mean of the scores; None if there is none.
        min: The smallest score; None if there is none.
        max: The largest score; None if there is none.
        stdev: Standard deviation of the scores as a sample; None for fewer than two.
        evaluated: Runs that have a score.
        not_evaluated: Runs that were asked for one, and have none.
        passed: Runs that reach the threshold.
        failed: Runs that do not.
        threshold: What a run has to reach; None if nothing, or not the same in all runs.
        lower_is_better: A run has to stay at or below it.
        unit: As `MetricScore.unit`.
    """

    name: str
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    stdev: float | None = None
    evaluated: int = 0
    not_evaluated: int = 0
    passed: int = 0
    failed: int = 0
    threshold: float | None = None
    lower_is_better: bool = False
    unit: str = ""

    @classmethod
    def from_scores(cls, name: str, scores: Sequence[MetricScore]) -> MetricSummary:
        """The figures of a metric's scores."""
        values = [each.score for each in scores if each.score is not None and is_score(each)]
        thresholds = {each.threshold for each in scores}
        first = scores[0] if scores else None
        return cls(
            name,
            mean(values) if values else None,
            min(values, default=None),
            max(values, default=None),
            _stdev(values),
            len(values),
            len(scores) - len(values),
            sum(each.status is MetricStatus.PASSED for each in scores),
            sum(each.status is MetricStatus.FAILED for each in scores),
            thresholds.pop() if len(thresholds) == 1 else None,
            first is not None and first.lower_is_better,
            first.unit if first is not None else "",
        )


def count_statuses(outcomes: Iterable[CaseOutcome]) -> dict[Status, int]:
    """How many ended how; every status is there."""
    counts = dict.fromkeys(Status, 0)
    for each in outcomes:
        counts[each.status] += 1
    return counts


def passes_by_case(outcomes: Iterable[CaseOutcome]) -> dict[str, list[bool]]:
    """Whether each run that counts passed, in order, by case; cases without any are left out."""
    found: dict[str, list[bool]] = {}
    for each in outcomes:
        if each.status.counts:
            found.setdefault(each.id, []).append(each.passed)
    return found


def pass_rate_interval(outcomes: Iterable[CaseOutcome], level: float = 0.95) -> tuple[float, float]:
    """The interval in which the true pass rate lies, whatever number of runs each case has."""
    runs = passes_by_case(outcomes).values()
    return clustered_wilson([(sum(each), len(each)) for each in runs], level)


def is_score(score: MetricScore) -> bool:
    """Whether there is a number to count with."""
    return score.score is not None and math.isfinite(score.score)


def scores_by_metric(outcomes: Iterable[CaseOutcome]) -> dict[str, list[float]]:
    """Metric to its scores, in order."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        for each in outcome.scores:
            values = found.setdefault(each.name, [])
            if each.score is not None and is_score(each):
                values.append(each.score)
    return found


def mean(values: Sequence[float]) -> float:
    """The mean of one or more numbers."""
    return math.fsum(each / len(values) for each in values)  # a sum may be too large for a float


def total_tokens(outcomes: Iterable[CaseOutcome]) -> Tokens:
    """The tokens of all."""
    return sum((each.tokens for each in outcomes), Tokens())


def total_cost(outcomes: Sequence[CaseOutcome]) -> float | None:
    """What those of known cost took, in US dollars; None if runs were made and no cost is known."""
    known = [each.cost_usd for each in outcomes if each.cost_usd is not None]
    if not known and any(each.status is not Status.SKIPPED for each in outcomes):
        return None
    return math.fsum(known)


def has_known_cost(outcome: CaseOutcome) -> bool:
    """Whether all that it took tokens for has a price."""
    return not (
        (outcome.cost_usd is None and outcome.tokens.total)
        or (outcome.eval_cost_usd is None and outcome.eval_tokens.total)
    )


def eval_tokens(outcomes: Iterable[CaseOutcome]) -> Tokens:
    """The tokens that were taken beside the runs, by judges, played users and refused attempts."""
    return sum((each.eval_tokens for each in outcomes), Tokens())


def eval_cost(outcomes: Iterable[CaseOutcome]) -> float | None:
    """What they cost, in US dollars; None if they took tokens and no cost of these is known."""
    taken = [each for each in outcomes if each.eval_tokens.total]
    known = [each.eval_cost_usd for each in taken if each.eval_cost_usd is not None]
    return None if taken and not known else math.fsum(known)


def _stdev(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    middle = mean(values)
    return math.hypot(*(each - middle for each in values)) / math.sqrt(len(values) - 1)
