"""Statistics of outcomes, and of outcomes compared with a baseline; no packages are needed."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import asdict, dataclass, field
from math import ceil, comb, fsum, inf, log2, sqrt
from typing import TYPE_CHECKING, Final, TypeAlias

from adk_fluent.eval._arguments import is_number, require
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, MetricStatus, Status
from adk_fluent.eval._report._documents import document, escaped
from adk_fluent.eval._text import encodable
from adk_fluent.protocol import Money, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Runs: TypeAlias = "Sequence[CaseOutcome]"
_STEPS: Final = 10_000  # in which a drop is sought


def wilson(share: float, count: int, level: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a share by Wilson's score method.

    Wilson 1927, J. Am. Stat. Assoc. 22.

    Args:
        share: The share, 0 to 1.
        count: How many it is a share of.
        level: The confidence level, above 0 and below 1.

    Returns:
        The lower and upper bound; ``(0.0, 1.0)`` of none.

    Raises:
        EvalError: The level is invalid.
    """
    valid = is_number(level) and 0 < level < 1
    require(valid, "level= must be above 0 and below 1", level)
    if not count:
        return (0.0, 1.0)
    from statistics import NormalDist  # noqa: PLC0415  # slow to import

    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / count
    middle = (share + z * z / (2 * count)) / scale
    half = z / scale * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return (low, high)


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
    ways = sum(comb(flips, each) for each in range(fewer + 1))
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
    needed = ceil(log2(2 / (1 - level)) - 1e-9)  # 1 - .95 is a little more than .05
    if needed > passing:
        return inf

    def detected(step: int) -> float:
        share = step / _STEPS
        fewer = (comb(passing, i) * share**i * (1 - share) ** (passing - i) for i in range(needed))
        return 1 - sum(fewer)

    return bisect_left(range(_STEPS), power, key=detected) / _STEPS * base_rate


# --- outcomes ------------------------------------------------------------------------------------


class RunFigures:
    """Figures of some runs."""

    outcomes: Runs

    @property
    def counts(self) -> dict[Status, int]:
        """Every status with the number of runs that ended so."""
        counts = dict.fromkeys(Status, 0)
        for each in self.outcomes:
            counts[each.status] += 1
        return counts

    @property
    def counting(self) -> int:
        """Runs that count: not those that were skipped or failed as expected."""
        return sum(count for status, count in self.counts.items() if status.counts)

    @property
    def passed(self) -> int:
        """Runs that passed."""
        return self.counts[Status.PASSED]

    @property
    def pass_rate(self) -> float:
        """Share of the counting runs that passed; 0.0 if none counts."""
        return self.passed / (self.counting or 1)

    def pass_rate_ci(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the pass rate by Wilson's method.

        Cases count, not runs: further runs of a case tell little of others.

        Args:
            level: The confidence level, above 0 and below 1.
        """
        return wilson(self.pass_rate, len(runs_by_case(self.outcomes)), level)

    @property
    def tokens(self) -> Usage:
        """Tokens of all runs."""
        return sum((each.tokens for each in self.outcomes), Usage())

    @property
    def cost_usd(self) -> float | None:
        """US dollars of the runs of known cost; None if none is known."""
        known = [Money.of(e.cost_usd) for e in self.outcomes if e.cost_usd is not None]
        return float(sum(known, Money()).usd) if known else None


@dataclass
class TagSummary(RunFigures):
    """The runs of one tag.

    Attributes:
        outcomes: The runs.
        tag: The tag.
    """

    outcomes: Runs = field(repr=False)
    tag: str = ""


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
        scores: The scores.
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
    scores: tuple[float, ...] = field(default=(), repr=False)

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
            *(first.threshold, first.lower_is_better, first.unit, tuple(values)),
        )


def runs_by_case(outcomes: Iterable[CaseOutcome]) -> dict[str, list[CaseOutcome]]:
    """Return the counting runs of each case; cases without any are left out."""
    found: dict[str, list[CaseOutcome]] = {}
    for each in outcomes:
        if each.status.counts:
            found.setdefault(each.id, []).append(each)
    return found


def mean(values: Sequence[float]) -> float:
    """Return the mean of one or more numbers."""
    return fsum(each / len(values) for each in values)  # a sum may overflow


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of which more or fewer runs pass than in the baseline.

    Attributes:
        id: The case.
        before: The worst status of its runs in the baseline.
        now: The worst status of its runs in the report.
        passed_before: Runs that passed in the baseline.
        runs_before: Counting runs in the baseline.
        passed_now: Runs that passed in the report.
        runs_now: Counting runs in the report.
        reasons: Why the first run that did not pass now did not.
    """

    id: str
    before: Status
    now: Status
    passed_before: int
    runs_before: int
    passed_now: int
    runs_now: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RegressionReport:
    """A report compared with a baseline; cases are matched by id.

    A case regressed if fewer of its runs pass. If one report has more runs of a case, only the
    first are compared, as many as both have.

    Attributes:
        suite: The suite's name.
        regressed: Cases that regressed.
        improved: Cases that improved.
        still_passing: Ids of unchanged cases whose compared runs all pass.
        still_failing: Ids of other unchanged cases.
        added: Ids of cases that only the report has.
        removed: Ids of cases that only the baseline has.
        not_compared: Ids of cases that were skipped, or failed as expected, on either side.
        metric_deltas: Metric to its mean in the baseline and in the report, over the compared
            cases.
        before: Pass rate of the compared cases in the baseline.
        now: Pass rate of the compared cases in the report.
        alpha: The p-value up to which a change is significant.
    """

    suite: str = "suite"
    regressed: tuple[CaseChange, ...] = ()
    improved: tuple[CaseChange, ...] = ()
    still_passing: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    metric_deltas: dict[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    before: float = 0.0
    now: float = 0.0
    alpha: float = 0.05

    @property
    def compared(self) -> int:
        """How many cases were compared."""
        unchanged = len(self.still_passing) + len(self.still_failing)
        return len(self.regressed) + len(self.improved) + unchanged

    @property
    def p_value(self) -> float:
        """The p-value of McNemar's exact test."""
        return mcnemar(len(self.regressed), len(self.improved))

    @property
    def significant(self) -> bool:
        """Whether the change, for worse or better, is significant."""
        return self.p_value <= self.alpha

    @property
    def detectable(self) -> float:
        """The smallest drop of the pass rate that the test detects with 80% power.

        `math.inf` if there are too few passing cases.
        """
        return detectable_drop(self.compared, self.before, 1 - self.alpha)

    @property
    def ok(self) -> bool:
        """Whether cases were compared and none regressed."""
        return self.compared > 0 and not self.regressed

    def to_json(self) -> str:
        """Return the comparison as JSON."""
        figures = ("compared", "p_value", "significant", "detectable", "ok")
        made = {"adk_fluent": {"kind": "eval-comparison", "schema": 1}, **asdict(self)}
        made |= {name: getattr(self, name) for name in figures}
        if self.detectable == inf:
            made["detectable"] = None
        return encodable(json.dumps(made, ensure_ascii=False, indent=1))

    def to_markdown(self) -> str:
        """Return the comparison as Markdown, with texts of models escaped."""
        return document("comparison.md.j2", escaped, made=self)


def compare(suite: str, current: Runs, baseline: Runs, alpha: float) -> RegressionReport:
    """Compare the outcomes of a suite with a baseline."""
    valid = is_number(alpha) and 0 < alpha < 1
    require(valid, "alpha= must be above 0 and below 1", alpha)
    now, then = runs_by_case(current), runs_by_case(baseline)
    ids = dict.fromkeys(each.id for each in current)
    old_ids = dict.fromkeys(each.id for each in baseline)
    pairs = {id: (then[id], now[id]) for id in ids if id in now and id in then}
    gains = {id: _gain(*pair) for id, pair in pairs.items()}
    same = [id for id, gain in gains.items() if not gain]
    passing = {id for id in same if all(each.passed for each in _matched(*pairs[id])[1])}
    return RegressionReport(
        suite=suite,
        regressed=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain < 0),
        improved=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain > 0),
        still_passing=tuple(id for id in same if id in passing),
        still_failing=tuple(id for id in same if id not in passing),
        added=tuple(id for id in ids if id not in old_ids),
        removed=tuple(id for id in old_ids if id not in ids),
        not_compared=tuple(id for id in ids if id in old_ids and id not in pairs),
        metric_deltas=_metric_deltas(pairs.values()),
        before=_rate([before for before, _ in pairs.values()]),
        now=_rate([after for _, after in pairs.values()]),
        alpha=alpha,
    )


def _matched(before: Runs, now: Runs) -> tuple[Runs, Runs]:
    """The first runs, as many as both have: with more runs, one of them is likelier to fail."""
    count = min(len(before), len(now))
    return before[:count], now[:count]


def _gain(before: Runs, now: Runs) -> int:
    old, new = _matched(before, now)
    return sum(each.passed for each in new) - sum(each.passed for each in old)


def _change(id: str, before: Runs, now: Runs) -> CaseChange:
    missed = [each.reasons for each in now if not each.passed]
    old, new = (sum(each.passed for each in runs) for runs in (before, now))
    reasons = tuple(missed[0]) if missed else ()
    return CaseChange(id, _worst(before), _worst(now), old, len(before), new, len(now), reasons)


def _worst(outcomes: Runs) -> Status:
    found = {each.status for each in outcomes}
    return next(each for each in (Status.ERROR, Status.FAILED, Status.PASSED) if each in found)


def _rate(cases: Sequence[Runs]) -> float:
    return mean([sum(each.passed for each in runs) / len(runs) for runs in cases]) if cases else 0.0


def _metric_deltas(pairs: Iterable[tuple[Runs, Runs]]) -> dict[str, tuple[float, float]]:
    values: dict[str, list[tuple[float, float]]] = {}
    for before, now in pairs:
        old, new = _means(before), _means(now)
        for name in old.keys() & new.keys():
            values.setdefault(name, []).append((old[name], new[name]))
    return {
        name: (mean([old for old, _ in each]), mean([new for _, new in each]))
        for name, each in sorted(values.items())
    }


def _means(runs: Iterable[CaseOutcome]) -> dict[str, float]:
    """Metric to its mean over the runs of a case."""
    found: dict[str, list[float]] = {}
    for outcome in runs:
        for each in outcome.scores:
            if each.score is not None:
                found.setdefault(each.name, []).append(each.score)
    return {name: mean(each) for name, each in found.items()}
