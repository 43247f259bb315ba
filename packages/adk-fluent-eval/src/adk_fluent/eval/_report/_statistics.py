"""Statistics of outcomes: pass rates, and figures per tag and metric; no packages are needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb, fsum, inf, sqrt
from typing import TYPE_CHECKING

from adk_fluent.eval._arguments import is_number, require
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, MetricStatus, Status, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def wilson(cases: Sequence[tuple[int, int]], level: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of the pass rate by Wilson's score method.

    Wilson 1927, J. Am. Stat. Assoc. 22. Runs of one case resemble each other, so several runs of a
    case count as `effective_runs`.

    Args:
        cases: The passed and all counting runs of each case.
        level: The confidence level, above 0 and below 1.

    Returns:
        The lower and upper bound; ``(0.0, 1.0)`` without runs.

    Raises:
        EvalError: The level is invalid.
    """
    valid = is_number(level) and 0 < level < 1
    require(valid, "level= must be above 0 and below 1", level)
    runs = effective_runs(cases)
    if not runs:
        return (0.0, 1.0)
    from statistics import NormalDist  # noqa: PLC0415  # slow to import

    share = sum(passed for passed, _ in cases) / sum(total for _, total in cases)
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / runs
    middle = (share + z * z / (2 * runs)) / scale
    half = z / scale * sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return (low, high)


def effective_runs(cases: Sequence[tuple[int, int]]) -> float:
    """Return how many independent runs the runs of some cases are worth.

    The runs over the design effect (Kish 1965, Survey Sampling): ``n / (1 + (m - 1) * icc)``, where
    m is the mean number of runs of a case and icc the correlation within cases, estimated by
    analysis of variance and clipped to 0 and 1. It is 1 where all runs of every case end alike.

    Args:
        cases: The passed and all counting runs of each case.
    """
    taken = [(passed, total) for passed, total in cases if total]
    runs = sum(total for _, total in taken)
    if runs == len(taken):
        return float(runs)
    size = sum(total * total for _, total in taken) / runs
    within = sum(passed * (total - passed) / total for passed, total in taken)
    icc = 1.0
    if len(taken) > 1 and within:
        share = sum(passed for passed, _ in taken) / runs
        between = sum(total * (passed / total - share) ** 2 for passed, total in taken)
        within, between = within / (runs - len(taken)), between / (len(taken) - 1)
        usual = (runs - size) / (len(taken) - 1)
        icc = min(1.0, max(0.0, (between - within) / (between + (usual - 1) * within)))
    return runs / (1 + (size - 1) * icc)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the probability that at least one of `k` runs passes, from `c` of `n` that passed.

    The unbiased estimator of Chen et al. 2021 (arXiv:2107.03374): ``1 - C(n-c, k) / C(n, k)``.
    """
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Return the probability that all of `k` runs pass, from `c` of `n` that passed.

    The unbiased estimator of Yao et al. 2024 (arXiv:2406.12045): ``C(c, k) / C(n, k)``.
    """
    return comb(c, k) / comb(n, k)


def mcnemar(regressed: int, improved: int) -> float:
    """Return the two-sided p-value of McNemar's exact test of paired results.

    If nothing changed, a case that flipped is as likely to regress as to improve, so the smaller
    count is binomial with one half (McNemar 1947, Psychometrika 12).

    Args:
        regressed: Cases that regressed.
        improved: Cases that improved.
    """
    flips, fewer = regressed + improved, min(regressed, improved)
    ways = term = 1
    for taken in range(fewer):
        term = term * (flips - taken) // (taken + 1)
        ways += term
    return min(1.0, 2 * ways / 2**flips)


def detectable_drop(n: int, base_rate: float, level: float = 0.95, power: float = 0.8) -> float:
    """Return the smallest drop of the pass rate that `mcnemar` detects.

    The test needs r regressions with ``2 * 0.5**r <= 1 - level``. If no other case improves, their
    number after a drop d is binomial over the ``round(n * base_rate)`` passing cases with
    probability ``d / base_rate``; the drop sought gives r of them with the power asked for.

    Args:
        n: Cases in both reports.
        base_rate: Pass rate of the baseline, 0 to 1.
        level: One less the p-value that counts as significant.
        power: The probability of detecting such a drop.

    Returns:
        The drop as a share of all cases; `math.inf` if no drop would be significant.
    """
    passing = round(n * base_rate)
    needed = 1
    while 2 * 0.5**needed > (1 - level) * (1 + 1e-9):  # 1 - .95 is a little more than .05
        needed += 1
    if needed > passing:
        return inf
    low, high = 0.0, 1.0
    for _ in range(60):  # down to the last bit of a float
        middle = (low + high) / 2
        missed = sum(
            comb(passing, i) * middle**i * (1 - middle) ** (passing - i) for i in range(needed)
        )
        if 1 - missed < power:
            low = middle
        else:
            high = middle
    return high * base_rate


# --- outcomes ------------------------------------------------------------------------------------


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
        # in the order of Status
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
    return fsum(each / len(values) for each in values)  # a sum may overflow


def total_tokens(outcomes: Iterable[CaseOutcome]) -> Tokens:
    """Return the tokens of all runs."""
    return sum((each.tokens for each in outcomes), Tokens())


def total_cost(outcomes: Iterable[CaseOutcome]) -> float | None:
    """Return the cost of all runs of known cost; None if none is known."""
    known = [each.cost_usd for each in outcomes if each.cost_usd is not None]
    return fsum(known) if known else None
