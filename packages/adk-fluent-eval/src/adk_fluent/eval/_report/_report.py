"""The report of a run of a suite: its outcomes, their figures, and what it can be written as."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._arguments import did_you_mean, is_whole, require, require_type
from adk_fluent.eval._errors import EvalError, EvalFailedError
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, Status, Tokens
from adk_fluent.eval._report import _statistics as statistics
from adk_fluent.eval._report._statistics import MetricSummary, TagSummary
from adk_fluent.eval._report._verdict import failures, regressions
from adk_fluent.eval._text import interval, one_line, percent, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from google.adk.evaluation.eval_result import EvalCaseResult

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._report._compare import RegressionReport

_LISTED, _LINE = 10, 300  # outcomes that an error lists, and characters of each
_NO_REPORT: Final = "a baseline is a FluentEvalReport"
_SUCH_AS: Final = "such as FluentEvalReport.load(path)"


@dataclass(repr=False, eq=False)
class FluentEvalReport:
    """The outcomes of a run of a suite, with statistics and a verdict.

    Attributes:
        outcomes: Every run of every case, in the suite's order, the runs of a case together.
        suite: The suite's name.
        gate: The gate.
        metrics: Names of the suite's metrics.
        engine: The engine.
        adk_version: The version of google-adk.
        started_at: When the run started, in UTC.
        duration_s: Seconds of the whole run.
        notes: What else is worth knowing.
        interrupted: Whether it ended before all cases were run.
        baseline: The report that the gate compares with.
        fluent_cases: The cases, which give the order; empty if the report was loaded.
        adk_results: ADK's result of each run whose metrics were computed, by case and run; empty
            if the report was loaded.
        saved_regressions: What the gate said of a baseline that was not saved with the report.

    Raises:
        EvalError: Two outcomes are of the same run of a case.
    """

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
    baseline: FluentEvalReport | None = None
    fluent_cases: Sequence[FluentCase] = ()
    adk_results: Mapping[tuple[str, int], EvalCaseResult] = field(
        default_factory=dict[tuple[str, int], "EvalCaseResult"]
    )
    saved_regressions: Sequence[str] = ()

    def __post_init__(self) -> None:
        require_type(self.baseline, FluentEvalReport | None, _NO_REPORT, help=_SUCH_AS)
        found: set[tuple[str, int]] = set()
        places: dict[str, int] = {}
        for id in (*(each.name for each in self.fluent_cases), *(o.id for o in self.outcomes)):
            places.setdefault(id, len(places))
        for each in self.outcomes:
            if each.key in found:
                raise EvalError(f"two outcomes are of run {each.run} of case {each.id!r}")
            found.add(each.key)
        self.outcomes = sorted(self.outcomes, key=lambda each: (places[each.id], each.run))

    @property
    def case_results(self) -> list[EvalCaseResult]:
        """ADK's result of each run whose metrics were computed; empty if the report was loaded."""
        return list(self.adk_results.values())

    # --- figures -------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[Status, int]:
        """Every status with the number of runs that ended so."""
        return statistics.count_statuses(self.outcomes)

    @property
    def counting(self) -> int:
        """Runs that count: not those that were skipped or failed as expected."""
        return sum(each.status.counts for each in self.outcomes)

    @property
    def pass_rate(self) -> float:
        """Share of the counting runs that passed; 0.0 if none counts."""
        counting = self.counting
        return self.counts[Status.PASSED] / counting if counting else 0.0

    def pass_rate_ci(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the pass rate by Wilson's method.

        Several runs of a case count for less the more alike they end.

        Args:
            level: The confidence level, above 0 and below 1.
        """
        return statistics.pass_rate_ci(self.outcomes, level)

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
        require(is_whole(k, 1), "k must be a whole number >= 1", k)
        found: list[float] = []
        for id, runs in statistics.runs_by_case(self.outcomes).items():
            if k > len(runs):
                raise EvalError(
                    f"k={k} needs {k} counting runs of each case; case {id!r} has {len(runs)}",
                    help=f"run the suite with num_runs={k}, or ask for a smaller k",
                )
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
        return {tag: TagSummary.from_results(found, tag) for tag, found in tagged.items()}

    @property
    def per_metric(self) -> dict[str, MetricSummary]:
        """Metric to the figures of its scores over the counting runs; the suite's come first."""
        found: dict[str, list[MetricScore]] = {name: [] for name in self.metrics}
        for outcome in self.outcomes:
            for score in outcome.scores if outcome.status.counts else ():
                found.setdefault(score.name, []).append(score)
        return {name: MetricSummary.from_scores(name, scores) for name, scores in found.items()}

    @property
    def tokens(self) -> Tokens:
        """Tokens of all runs."""
        return statistics.total_tokens(self.outcomes)

    @property
    def eval_tokens(self) -> Tokens:
        """Tokens of judges."""
        return sum((each.eval_tokens for each in self.outcomes), Tokens())

    @property
    def cost_usd(self) -> float | None:
        """US dollars of the runs of known cost; None if none is known."""
        return statistics.total_cost(self.outcomes)

    # --- the gate ------------------------------------------------------------------------------

    @property
    def failures(self) -> list[str]:
        """Every reason why the gate is not met; empty if it is."""
        return failures(self)

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
        raise EvalError(
            f"the report has no run {run} of case {id!r}",
            help=None if id in known else did_you_mean(str(id), known),
        )

    def compare(self, baseline: FluentEvalReport, *, alpha: float = 0.05) -> RegressionReport:
        """Compare the report with a baseline; cases are matched by id.

        Args:
            baseline: The baseline, such as ``FluentEvalReport.load(path)``.
            alpha: The p-value up to which a change is significant.

        Raises:
            EvalError: The baseline is not a report, or `alpha` is not between 0 and 1.
        """
        require_type(baseline, FluentEvalReport, _NO_REPORT, help=_SUCH_AS)
        from adk_fluent.eval._report._compare import compare  # noqa: PLC0415  # import what is used

        return compare(self.suite, self.outcomes, baseline.outcomes, alpha)

    def assert_passed(self) -> None:
        """Do nothing if the gate is met.

        Raises:
            EvalFailedError: The gate is not met; names every reason and the first outcomes.
        """
        if not (reasons := self.failures):
            return
        missed = [each for each in self.outcomes if each.status.counts and not each.passed]
        missed.sort(key=lambda each: each.status is not Status.ERROR)
        lines = [outcome_line(each) for each in missed[:_LISTED]]
        if (more := len(missed) - _LISTED) > 0:
            lines.append(f"and {more:,} more")
        raise EvalFailedError(
            f"suite {self.suite!r} did not pass: {'; '.join(reasons)}",
            found="\n    ".join(lines),
            help="the report has every case and reason; save it with .save(path)",
        )

    # --- formats -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        from adk_fluent.eval._report._json import report_chunks  # noqa: PLC0415  # rarely needed

        return "".join(report_chunks(self))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole report as JSON; an old file stays if that fails.

        Raises:
            EvalFileError: The file cannot be written.
        """
        from adk_fluent.eval._files._source import write_whole  # noqa: PLC0415  # rarely needed
        from adk_fluent.eval._report._json import report_chunks  # noqa: PLC0415  # rarely needed

        write_whole(path, report_chunks(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FluentEvalReport:
        """Return the report that `save` wrote.

        Raises:
            EvalFileError: The file is missing, broken, or of a newer version.
        """
        from adk_fluent.eval._report._json import read_report  # noqa: PLC0415  # imports pydantic

        return read_report(cls, path)

    def save_adk_results(self, agents_dir: str | PathLike[str], app_name: str) -> list[Path]:
        """Write the results as ADK keeps them, so that ``adk web`` shows them.

        Further runs of a case have ids such as ``case__run2``. A report that was loaded has no
        conversations any more.

        Args:
            agents_dir: The folder that ``adk web`` is given.
            app_name: The agent's folder in it.

        Returns:
            The files, in ``agents_dir/app_name/.adk/eval_history``.

        Raises:
            EvalFileError: There is no such agent, or the files cannot be written.
        """
        from adk_fluent.eval._files._results_adk import save_results  # noqa: PLC0415  # imports ADK

        return save_results(self, agents_dir, app_name)

    @classmethod
    def merge(cls, reports: Sequence[FluentEvalReport]) -> FluentEvalReport:
        """Return one report of the shards of a suite, with the gate of the first.

        Raises:
            EvalError: There are none, they are of different suites, or two have the same run.
        """
        if not reports or len({each.suite for each in reports}) > 1:
            suites = ", ".join(dict.fromkeys(each.suite for each in reports)) or "no report"
            raise EvalError("merge() takes the reports of one suite", found=suites)
        first = reports[0]
        versions = dict.fromkeys(each.adk_version for each in reports)
        outcomes = [outcome for each in reports for outcome in each.outcomes]
        return cls(
            *(outcomes, first.suite, first.gate, first.metrics, first.engine, ", ".join(versions)),
            min(each.started_at for each in reports),
            max(each.duration_s for each in reports),
            list(dict.fromkeys(note for each in reports for note in each.notes)),
            any(each.interrupted for each in reports),
            saved_regressions=[line for each in reports for line in regressions(each)],
        )

    def to_markdown(self) -> str:
        """Return a summary as Markdown, with texts of models escaped."""
        from adk_fluent.eval._report._markdown import report_page  # noqa: PLC0415  # rarely needed

        return report_page(self)

    def to_html(
        self, path: str | PathLike[str], *, baseline: FluentEvalReport | None = None
    ) -> None:
        """Write one page for people: every run with its transcript, to filter and to print.

        The page loads nothing. Very long texts are cut, which it says. Without scripts, it has all
        but the filters.

        Args:
            path: The file.
            baseline: The report to compare with; None is that of the run.

        Raises:
            EvalFileError: The file cannot be written.
            EvalError: The baseline is not a report.
        """
        from adk_fluent.eval._files._source import write_whole  # noqa: PLC0415  # rarely needed
        from adk_fluent.eval._report._html import html_page  # noqa: PLC0415  # rarely needed

        write_whole(path, html_page(self, baseline))

    def to_junit(self) -> str:
        """Return JUnit XML with a test case for each run."""
        from adk_fluent.eval._report._junit import junit  # noqa: PLC0415  # imports xml

        return junit(self)

    def __repr__(self) -> str:
        return (
            f"<FluentEvalReport {one_line(self.suite, 60)!r}: {plural(len(self.outcomes), 'run')}, "
            f"{percent(self.pass_rate)} passed ({interval(self.pass_rate_ci())}), "
            f"{'ok' if self.ok else 'not ok'}>"
        )


def document(report: FluentEvalReport, form: str, baseline: FluentEvalReport | None = None) -> str:
    """Return a report as ``json``, ``junit``, ``markdown`` or ``html``."""
    if form == "html":
        from adk_fluent.eval._report._html import html_page  # noqa: PLC0415  # rarely needed

        return "".join(html_page(report, baseline))
    makers = {"json": report.to_json, "junit": report.to_junit, "markdown": report.to_markdown}
    return makers[form]()


def outcome_line(outcome: CaseOutcome) -> str:
    """Return an outcome with its first reason in one line."""
    reason = outcome.reasons[0] if outcome.reasons else outcome.note
    run = f" (run {outcome.run})" if outcome.run > 1 else ""
    why = f": {one_line(reason, _LINE)}" if reason else ""
    return f"{outcome.status} {one_line(outcome.id, 80)}{run}{why}"
