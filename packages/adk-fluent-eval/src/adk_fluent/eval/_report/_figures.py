"""The figures of a report, and whether they meet the gate."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._cases._suite import Gate
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, Status
from adk_fluent.eval._report import _statistics as statistics
from adk_fluent.eval._report._statistics import MetricSummary, RunFigures, TagSummary
from adk_fluent.eval._text import bounded, measured, percent
from adk_fluent.extend import one_line, plural
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from google.adk.evaluation.eval_result import EvalCaseResult

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._report._statistics import RegressionReport


_NAMES: Final = 10  # ids that a line lists
_ROUNDING: Final = 1e-9
_NO_REPORT: Final = "a baseline is a FluentEvalReport"
_SUCH_AS: Final = "such as FluentEvalReport.load(path)"


@dataclass(repr=False, eq=False)
class ReportFigures(RunFigures):
    """The outcomes of a run of a suite, and their figures."""

    outcomes: Sequence[CaseOutcome]
    suite: str = "suite"
    gate: Gate = field(default_factory=Gate)
    metrics: Sequence[str] = ()
    engine: str = ""
    adk_version: str = ""
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    duration_s: float = 0.0
    notes: Sequence[str] = ()
    interrupted: bool = False
    baseline: ReportFigures | None = None
    fluent_cases: Sequence[FluentCase] = ()
    adk_results: Mapping[tuple[str, int], EvalCaseResult] = field(
        default_factory=dict[tuple[str, int], "EvalCaseResult"]
    )
    saved_regressions: Sequence[str] = ()
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check.require_type(self.baseline, ReportFigures | None, _NO_REPORT, help=_SUCH_AS)
        ids = (*(each.name for each in self.fluent_cases), *(each.id for each in self.outcomes))
        places = {id: place for place, id in enumerate(dict.fromkeys(ids))}
        self.outcomes = sorted(self.outcomes, key=lambda each: (places[each.id], each.run))
        for each, following in pairwise(self.outcomes):
            if each.key == following.key:
                raise EvalError(f"two outcomes are of run {each.run} of case {each.id!r}")

    @property
    def case_results(self) -> list[EvalCaseResult]:
        """ADK's result of each run whose metrics were computed; empty if the report was loaded."""
        return list(self.adk_results.values())

    # --- figures -------------------------------------------------------------------------------

    def pass_at(self, k: int) -> float:
        """Return the probability that at least one of `k` runs of a case passes ("pass@k").

        The mean over the cases.

        Raises:
            EvalError: A case has fewer than `k` counting runs.
        """
        return self._over_cases(statistics.pass_at_k, k)

    def pass_hat(self, k: int) -> float:
        """Return the probability that all of `k` runs of a case pass ("pass^k").

        The mean over the cases.

        Raises:
            EvalError: A case has fewer than `k` counting runs.
        """
        return self._over_cases(statistics.pass_hat_k, k)

    def _over_cases(self, figure: Callable[[int, int, int], float], k: int) -> float:
        check.require(check.is_whole(k, 1), "k must be a whole number >= 1", k)
        found: list[float] = []
        for id, runs in statistics.runs_by_case(self.outcomes).items():
            if k > len(runs):
                what = f"k={k} needs {k} counting runs of each case; case {id!r} has {len(runs)}"
                help = f"run the suite with num_runs={k}, or ask for a smaller k"
                raise EvalError(what, help=help)
            found.append(figure(len(runs), sum(each.passed for each in runs), k))
        return statistics.mean(found) if found else 0.0

    @property
    def flaky(self) -> tuple[str, ...]:
        """Ids of cases that passed in one run and not in another."""
        runs = statistics.runs_by_case(self.outcomes).items()
        return tuple(id for id, each in runs if len({run.passed for run in each}) > 1)

    @property
    def per_tag(self) -> dict[str, TagSummary]:
        """Tag to the figures of its runs."""
        tagged: dict[str, list[CaseOutcome]] = {}
        for each in self.outcomes:
            for tag in dict.fromkeys(each.tags):
                tagged.setdefault(tag, []).append(each)
        return {tag: TagSummary(found, tag) for tag, found in tagged.items()}

    @property
    def per_metric(self) -> dict[str, MetricSummary]:
        """Metric to the figures of its scores over the counting runs; the suite's come first."""
        found: dict[str, list[MetricScore]] = {name: [] for name in self.metrics}
        for outcome in self.outcomes:
            for score in outcome.scores if outcome.status.counts else ():
                found.setdefault(score.name, []).append(score)
        return {name: MetricSummary.from_scores(name, scores) for name, scores in found.items()}

    @property
    def eval_tokens(self) -> Usage:
        """Tokens of judges."""
        return sum((each.eval_tokens for each in self.outcomes), Usage())

    # --- the gate ------------------------------------------------------------------------------

    @property
    def failures(self) -> list[str]:
        """Every reason why the gate is not met; empty if it is."""
        return [*_completeness(self), *_rates(self), *self.regressions]

    @property
    def ok(self) -> bool:
        """Whether the gate is met."""
        return not self.failures

    @property
    def exit_code(self) -> int:
        """0 if the gate is met, else 1."""
        return 0 if self.ok else 1

    def outcome(self, id: str, run: int = 1) -> CaseOutcome:
        """Return one run of a case.

        Raises:
            EvalError: There is none.
        """
        for each in self.outcomes:
            if each.key == (id, run):
                return each
        known = {each.id for each in self.outcomes}
        what = f"the report has no run {run} of case {id!r}"
        raise EvalError(what, help=None if id in known else check.did_you_mean(str(id), known))

    def compare(self, baseline: ReportFigures, *, alpha: float = 0.05) -> RegressionReport:
        """Compare the report with a baseline; cases are matched by id.

        Args:
            baseline: The baseline, such as ``FluentEvalReport.load(path)``.
            alpha: The p-value up to which a change is significant.

        Raises:
            EvalError: The baseline is not a report, or `alpha` is not between 0 and 1.
        """
        check.require_type(baseline, ReportFigures, _NO_REPORT, help=_SUCH_AS)
        return statistics.compare(self.suite, self.outcomes, baseline.outcomes, alpha)

    @property
    def regressions(self) -> list[str]:
        """What the gate says of regressions against the baseline."""
        allowed = self.gate.max_regressions
        if self.baseline is None or allowed is None:
            return list(self.saved_regressions) if self.baseline is None else []
        comparison = self.compare(self.baseline)
        if not comparison.compared:
            return ["no case could be compared with the baseline"] if self.outcomes else []
        worse = comparison.regressed
        if len(worse) <= allowed:
            return []
        overall = comparison.significant and len(worse) > len(comparison.improved)
        if self.gate.significant_only and not overall:
            return []
        count = f"{len(worse):,} of {plural(comparison.compared, 'case')}"
        what = f"{count} regressed, {allowed:,} allowed (p={comparison.p_value:.3g})"
        return [f"{what}: {_ids(each.id for each in worse)}"]


def _completeness(report: ReportFigures) -> Iterator[str]:
    counts = report.counts
    if not report.outcomes:
        yield "no case was run"
    elif not report.counting:
        skipped, failed = counts[Status.SKIPPED], counts[Status.XFAILED]
        yield f"no run counts: {skipped:,} skipped, {failed:,} failed as expected"
    if report.interrupted:
        yield f"the run was interrupted after {plural(len(report.outcomes), 'run')} of cases"


def _rates(report: ReportFigures) -> Iterator[str]:
    gate = report.gate
    if report.counting:
        yield from _below("", report, gate.min_pass_rate)
    if not gate.allow_flaky and (flaky := report.flaky):
        yield f"{plural(len(flaky), 'case')} flaky: {_ids(flaky)}"
    tags = report.per_tag if gate.min_tag_pass_rate else {}
    for tag, share in gate.min_tag_pass_rate.items():
        found = tags.get(tag)
        if found is None or not found.counting:
            yield f"no run of tag {tag!r} counts"
        else:
            yield from _below(f"of tag {tag!r} ", found, share)
    metrics = report.per_metric if gate.min_metric else {}
    for name, limit in gate.min_metric.items():
        metric = metrics.get(str(name))
        if metric is None or metric.mean is None:
            yield f"metric {str(name)!r} has no score"
            continue
        if missing := metric.not_evaluated:
            yield f"metric {str(name)!r} has no score in {plural(missing, 'run')}"
        over = metric.mean - limit
        if (over if metric.lower_is_better else -over) > _ROUNDING:
            side = "above" if metric.lower_is_better else "below"
            value, most = measured(metric.mean, metric.unit), measured(limit, metric.unit)
            yield f"mean of metric {str(name)!r}, {value}, is {side} {most}"


def _below(what: str, found: RunFigures, least: float) -> Iterator[str]:
    if found.pass_rate < least - _ROUNDING:
        passed = f"{found.passed:,} of {found.counting:,} runs"
        yield f"pass rate {what}{percent(found.pass_rate)} ({passed}) is below {percent(least)}"


def _ids(ids: Iterable[str]) -> str:
    return ", ".join(bounded([one_line(each, 80) for each in ids], _NAMES))
