"""Figures over outcomes: per tag and per metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adk_fluent.eval._outcome import CaseOutcome, MetricScore, MetricStatus, Status, Tokens
from adk_fluent.eval._report._statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class TagSummary:
    """The runs of one tag.

    Attributes:
        tag: The tag.
        passed: Runs that passed.
        failed: Runs that failed.
        errors: Runs that ended in an error.
        skipped: Runs that were skipped.
        xfailed: Runs that failed as expected.
        ci: 95% confidence interval of the pass rate.
        tokens: Tokens of all runs.
        cost_usd: US dollars of all runs of known cost; None if none is known.
    """

    tag: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    ci: tuple[float, float] = (0.0, 1.0)
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = None

    @property
    def total(self) -> int:
        """All runs."""
        return self.counting + self.skipped + self.xfailed

    @property
    def counting(self) -> int:
        """Runs that passed, failed, or ended in an error."""
        return self.passed + self.failed + self.errors

    @property
    def pass_rate(self) -> float:
        """Share of counting runs that passed; 0.0 if none counts."""
        return self.passed / self.counting if self.counting else 0.0

    @classmethod
    def from_results(cls, outcomes: Sequence[CaseOutcome], tag: str = "") -> TagSummary:
        """Return the figures of some outcomes."""
        passed, failed, errors, skipped, xfailed = count_statuses(outcomes).values()
        ci, tokens, cost = pass_rate_ci(outcomes), total_tokens(outcomes), total_cost(outcomes)
        return cls(tag, passed, failed, errors, skipped, xfailed, ci, tokens, cost)


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric over the runs that count.

    Attributes:
        name: The metric.
        mean: Mean of the scores; None if there are none.
        evaluated: Runs with a score.
        not_evaluated: Runs without a score.
        passed: Runs that reach the threshold.
        failed: Runs that miss it.
        threshold: The threshold; None if there is none.
        lower_is_better: Whether scores must stay at or below it.
        unit: As `MetricScore.unit`.
    """

    name: str
    mean: float | None = None
    evaluated: int = 0
    not_evaluated: int = 0
    passed: int = 0
    failed: int = 0
    threshold: float | None = None
    lower_is_better: bool = False
    unit: str = ""

    @classmethod
    def from_scores(cls, name: str, scores: Sequence[MetricScore]) -> MetricSummary:
        """Return the figures of a metric's scores."""
        if not scores:
            return cls(name)
        first, statuses = scores[0], [each.status for each in scores]
        values = [each.score for each in scores if each.score is not None]
        return cls(
            *(name, mean(values) if values else None, len(values), len(scores) - len(values)),
            *(statuses.count(MetricStatus.PASSED), statuses.count(MetricStatus.FAILED)),
            *(first.threshold, first.lower_is_better, first.unit),
        )


def count_statuses(outcomes: Iterable[CaseOutcome]) -> dict[Status, int]:
    """Return every status with the number of runs that ended so."""
    counts = dict.fromkeys(Status, 0)
    for each in outcomes:
        counts[each.status] += 1
    return counts


def runs_by_case(outcomes: Iterable[CaseOutcome]) -> dict[str, list[CaseOutcome]]:
    """Return the counting runs of each case; cases without any are left out."""
    found: dict[str, list[CaseOutcome]] = {}
    for each in outcomes:
        if each.status.counts:
            found.setdefault(each.id, []).append(each)
    return found


def pass_rate_ci(outcomes: Iterable[CaseOutcome], level: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of the pass rate."""
    runs = runs_by_case(outcomes).values()
    return wilson([(sum(each.passed for each in case), len(case)) for case in runs], level)


def mean(values: Sequence[float]) -> float:
    """Return the mean of one or more numbers."""
    return math.fsum(each / len(values) for each in values)  # a sum may overflow


def total_tokens(outcomes: Iterable[CaseOutcome]) -> Tokens:
    """Return the tokens of all runs."""
    return sum((each.tokens for each in outcomes), Tokens())


def total_cost(outcomes: Iterable[CaseOutcome]) -> float | None:
    """Return the cost of all runs of known cost; None if none is known."""
    known = [each.cost_usd for each in outcomes if each.cost_usd is not None]
    return math.fsum(known) if known else None
