"""What a run of a suite came to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError, EvalFailedError
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._outcome import CaseOutcome, Status, Tokens
from adk_fluent.eval._report import _verdict
from adk_fluent.eval._report._compare import compare
from adk_fluent.eval._report._kept import merged_baselines
from adk_fluent.eval._report._merge import Shards, check_mergeable, merged_shards
from adk_fluent.eval._report._statistics import pass_at_k, pass_hat_k
from adk_fluent.eval._report._summaries import (
    MetricSummary,
    TagSummary,
    count_statuses,
    eval_cost,
    eval_tokens,
    mean,
    pass_rate_interval,
    total_cost,
    total_tokens,
)
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import percent, plural

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from google.adk.evaluation.eval_result import EvalCaseResult, EvalSetResult

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import MetricScore
    from adk_fluent.eval._report._compare import RegressionReport

_ALL: Final = Gate()

#: Outcomes that an error names, and characters of each line.
_TOLD, _LINE = 10, 300


class FluentEvalReport:
    """What a run of a suite came to.

    Outcomes are in the suite's order, the runs of a case one after the other; each is found by its
    case and run.

    Attributes:
        outcomes: Every run of every case.
        suite: The suite's name.
        gate: What the suite has to reach.
        metrics: Names of the metrics that were asked for.
        engine: What ran it: ``light`` or ``local``.
        adk_version: The version of google-adk.
        started_at: When it was begun, in UTC.
        duration_s: Seconds that it took; of a merged report, those of the longest part.
        notes: What else is worth knowing, a line each.
        interrupted: It was ended before all cases were run.
        baseline: The report that it is held against; None for none. Of it only what
            the gate needs is saved, see `kept_baseline`.
        model: The model that stood in for the pipeline's own; empty for none.
        fluent_cases: The cases as they were written; empty if the report was read from a file.
        shards: Which shards of the suite it is of; None for all of it.
        kept_baseline: Of a baseline that is no longer at hand, whether the runs that count
            passed, in order, by the id of the case; None for none.
        kept_regressions: What the gate said of a baseline of which even that is not known.
        native_results: ADK's own results by case and run, as its service gave them.

    Args:
        outcomes: Every run of every case, in any order.
        suite: The suite's name.
        gate: What the suite has to reach.
        metrics: Names of the metrics that were asked for, in order.
        engine: What ran it.
        adk_version: The version of google-adk.
        started_at: When it was begun, with its time zone; None is now.
        duration_s: Seconds that it took.
        notes: What else is worth knowing.
        interrupted: It was ended before all cases were run.
        baseline: The report that it is held against.
        model: The model that stood in for the pipeline's own.
        cases: The cases as they were written; they give the order.
        shard: Which part of the suite it is, as ``(1, 4)`` for the first of four.

    Raises:
        EvalError: Two outcomes are of the same run of a case, or something is not what it should
            be.
    """

    def __init__(
        self,
        outcomes: Iterable[CaseOutcome],
        *,
        suite: str = "suite",
        gate: Gate = _ALL,
        metrics: Iterable[str] = (),
        engine: str = "",
        adk_version: str = "",
        started_at: datetime | None = None,
        duration_s: float = 0.0,
        notes: Iterable[str] = (),
        interrupted: bool = False,
        baseline: FluentEvalReport | None = None,
        model: str = "",
        cases: Iterable[FluentCase] = (),
        shard: tuple[int, int] | None = None,
    ) -> None:
        self.suite = suite
        self.gate = gate
        self.metrics: tuple[str, ...] = tuple(str(each) for each in metrics)
        self.engine = engine
        self.adk_version = adk_version
        self.started_at: datetime = _utc(started_at)
        self.duration_s = duration_s
        self.notes: tuple[str, ...] = tuple(notes)
        self.interrupted = interrupted
        self.baseline: FluentEvalReport | None = _checked(baseline)
        self.model = model
        self.fluent_cases: tuple[FluentCase, ...] = tuple(cases)
        self.shards: Shards | None = None if shard is None else Shards.of_pair(shard)
        self.kept_baseline: dict[str, list[bool]] | None = None
        self.kept_regressions: tuple[str, ...] = ()
        self.native_results: dict[tuple[str, int], EvalCaseResult] = {}
        self._by_key = _by_key(outcomes)
        self.outcomes: tuple[CaseOutcome, ...] = _ordered(self._by_key, self.fluent_cases)

    # --- figures -------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[Status, int]:
        """How many runs ended how; every status is there."""
        return count_statuses(self.outcomes)

    @property
    def counting(self) -> int:
        """Runs that count: not those that were skipped, or failed as expected."""
        return sum(each.status.counts for each in self.outcomes)

    @property
    def pass_rate(self) -> float:
        """Share of the runs that passed, of those that count; 0.0 if none counts."""
        counting = self.counting
        return self.counts[Status.PASSED] / counting if counting else 0.0

    def pass_rate_ci(self, level: float = 0.95) -> tuple[float, float]:
        """The interval in which the true pass rate lies, by Wilson's method.

        It is about cases like these: runs of a case count for less the more alike they are, and
        for one run if they all end alike, however many there are; see the statistics.

        Args:
            level: How sure it is, above 0 and below 1.
        """
        return pass_rate_interval(self.outcomes, level)

    def pass_at(self, k: int) -> float:
        """How likely at least one of `k` runs of a case passes: the mean over the cases.

        Raises:
            EvalError: A case has fewer than `k` runs that count.
        """
        return self._over_cases(pass_at_k, k)

    def pass_hat(self, k: int) -> float:
        """How likely all of `k` runs of a case pass ("pass^k"): the mean over the cases.

        Raises:
            EvalError: A case has fewer than `k` runs that count.
        """
        return self._over_cases(pass_hat_k, k)

    def _over_cases(self, figure: Callable[[int, int, int], float], k: int) -> float:
        found: list[float] = []
        for id, runs in self._counting_runs().items():
            if isinstance(k, int) and k > len(runs):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
                raise EvalError(
                    f"k={k} needs {k} runs of each case that count, and case {id!r} has "
                    f"{len(runs)}",
                    help=f"run the suite with num_runs={k}, or ask for a smaller k",
                )
            found.append(figure(len(runs), sum(each.passed for each in runs), k))
        return mean(found) if found else 0.0

    def _counting_runs(self) -> dict[str, list[CaseOutcome]]:
        """Id to the runs of the case that count; cases without any are left out."""
        found: dict[str, list[CaseOutcome]] = {}
        for each in self.outcomes:
            if each.status.counts:
                found.setdefault(each.id, []).append(each)
        return found

    @property
    def flaky(self) -> tuple[str, ...]:
        """Ids of the cases that passed in one run and not in another."""
        return tuple(
            id
            for id, runs in self._counting_runs().items()
            if len({each.passed for each in runs}) > 1
        )

    @property
    def per_tag(self) -> dict[str, TagSummary]:
        """Tag to the figures of its runs, in the order in which the cases name them."""
        tagged: dict[str, list[CaseOutcome]] = {}
        for each in self.outcomes:
            for tag in dict.fromkeys(each.tags):
                tagged.setdefault(tag, []).append(each)
        return {tag: TagSummary.from_results(found, tag) for tag, found in tagged.items()}

    @property
    def per_metric(self) -> dict[str, MetricSummary]:
        """Metric to the figures of its scores, over the runs that count.

        Metrics that were asked for come first, also those that no run has.
        """
        found: dict[str, list[MetricScore]] = {name: [] for name in self.metrics}
        for outcome in self.outcomes:
            for score in outcome.scores if outcome.status.counts else ():
                found.setdefault(score.name, []).append(score)
        return {name: MetricSummary.from_scores(name, scores) for name, scores in found.items()}

    @property
    def tokens(self) -> Tokens:
        """What all runs took."""
        return total_tokens(self.outcomes)

    @property
    def cost_usd(self) -> float | None:
        """What the runs of known cost took, in US dollars; None if none is known."""
        return total_cost(self.outcomes)

    @property
    def eval_tokens(self) -> Tokens:
        """What was taken beside the runs: by judges, played users, and attempts given up."""
        return eval_tokens(self.outcomes)

    @property
    def eval_cost_usd(self) -> float | None:
        """What that cost, in US dollars; None if it took tokens and none has a price."""
        return eval_cost(self.outcomes)

    # --- the gate ------------------------------------------------------------------------------

    @property
    def failures(self) -> list[str]:
        """Every reason why the gate is not met, a line each; empty if it is."""
        return _verdict.failures(self)

    @property
    def ok(self) -> bool:
        """Whether the gate is met."""
        return not self.failures

    @property
    def exit_code(self) -> int:
        """What a program ends with: 0 if the gate is met, else 1."""
        return 0 if self.ok else 1

    def assert_passed(self) -> None:
        """Does nothing if the gate is met.

        Raises:
            EvalFailedError: It is not; names every reason, and the worst outcomes.
        """
        if not (failures := self.failures):
            return
        worst = sorted(self._missed(), key=lambda each: each.status is not Status.ERROR)
        lines = [_told(each) for each in worst[:_TOLD]]
        if (more := len(worst) - _TOLD) > 0:
            lines.append(f"and {more:,} more")
        raise EvalFailedError(
            f"suite {self.suite!r} did not pass: {'; '.join(failures)}",
            found="\n    ".join(lines),
            help="the report names every case and why; save it with .save(path)",
        )

    def _missed(self) -> list[CaseOutcome]:
        return [each for each in self.outcomes if each.status.counts and not each.passed]

    # --- parts ---------------------------------------------------------------------------------

    def outcome(self, id: str, run: int = 1) -> CaseOutcome:
        """One run of a case.

        Raises:
            EvalError: There is none; names the nearest.
        """
        if found := self._by_key.get((id, run)):
            return found
        runs = sorted(each.run for each in self.outcomes if each.id == id)
        if runs:
            raise EvalError(
                f"case {id!r} has no run {run!r}", found=f"runs {', '.join(map(str, runs))}"
            )
        near = nearest_name(str(id), {each.id for each in self.outcomes})
        raise EvalError(
            f"there is no case {id!r} in the report",
            help=f"did you mean {near!r}?" if near else None,
        )

    @property
    def case_results(self) -> list[EvalCaseResult]:
        """Each run as ADK's own result, in the order of the outcomes.

        As ADK's service gave it; of a report from a file made anew of the outcome.
        """
        from adk_fluent.eval._files._results_adk import case_results  # noqa: PLC0415  # imports ADK

        made = zip(self.outcomes, case_results(self), strict=True)
        return [self.native_results.get(outcome.key, again) for outcome, again in made]

    def to_eval_set_result(self, app_name: str) -> EvalSetResult:
        """The report as ADK's own result, which `adk web` shows.

        Args:
            app_name: The app as whose result it is kept.
        """
        from adk_fluent.eval._files import _results_adk  # noqa: PLC0415  # imports ADK

        return _results_adk.to_eval_set_result(self, app_name)

    # --- several reports -----------------------------------------------------------------------

    def compare(self, baseline: FluentEvalReport, *, alpha: float = 0.05) -> RegressionReport:
        """The report against a baseline, case by case; cases are matched by id.

        Where a case has more runs in one of them, the first are compared, as many as both have.

        Args:
            baseline: What it is held against, such as ``FluentEvalReport.load(path)``.
            alpha: The p-value up to which a change is no accident.

        Raises:
            EvalError: The baseline is no report, or `alpha` is not between 0 and 1.
        """
        if _checked(baseline) is None:
            raise EvalError("there is no baseline to compare with", found="None")
        return compare(self, baseline.outcomes, alpha)

    @classmethod
    def merge(cls, *reports: FluentEvalReport) -> FluentEvalReport:
        """One report from those of parts of a suite, such as shards.

        The gate is judged anew, on the whole, the baseline too: files keep what that takes.

        Raises:
            EvalError: They are not of one suite, gate and model, or have a run of a case in common.
        """
        for each in reports:
            _checked(each)
        check_mergeable(reports)
        shards = merged_shards(reports)
        parts = sorted(reports, key=lambda each: each.shards.have if each.shards else ())
        first = parts[0]
        merged = cls(
            (outcome for part in parts for outcome in part.outcomes),
            suite=first.suite,
            gate=first.gate,
            metrics=dict.fromkeys(name for part in parts for name in part.metrics),
            engine=_all_of(part.engine for part in parts),
            adk_version=_all_of(part.adk_version for part in parts),
            started_at=min(part.started_at for part in parts),
            duration_s=max(part.duration_s for part in parts),
            notes=dict.fromkeys(note for part in parts for note in part.notes),
            interrupted=any(part.interrupted for part in parts),
            baseline=next((part.baseline for part in parts if part.baseline is not None), None),
            model=first.model,
            cases={each.name: each for part in parts for each in part.fluent_cases}.values(),
        )
        merged.shards = shards
        for part in parts:
            merged.native_results.update(part.native_results)
        merged.kept_baseline = merged_baselines(parts)
        kept = (line for part in parts for line in part.kept_regressions)
        merged.kept_regressions = tuple(dict.fromkeys(kept))
        return merged

    @property
    def shard(self) -> tuple[int, int] | None:
        """Which part of the suite it is, as ``(1, 4)`` for the first of four; None for none."""
        shards = self.shards
        return (shards.have[0], shards.of) if shards and not shards.merged else None

    @property
    def shard_count(self) -> int:
        """Into how many parts the suite was cut."""
        return self.shards.of if self.shards is not None else 1

    @property
    def missing_shards(self) -> tuple[int, ...]:
        """The parts that a merged report has not."""
        return self.shards.missing if self.shards is not None else ()

    # --- files and forms -----------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole report as JSON, as `save` writes it."""
        from adk_fluent.eval._report._json import report_chunks  # noqa: PLC0415  # not needed yet

        return "".join(report_chunks(self))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole report to a file, which stays as it was if that fails.

        Raises:
            EvalFileError: It cannot be written.
        """
        from adk_fluent.eval._report._json import report_chunks  # noqa: PLC0415  # not needed yet
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415

        write_whole(path, report_chunks(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FluentEvalReport:
        """The report of a file that `save` wrote.

        Raises:
            EvalFileError: There is none, or it is broken, something else, or of a newer version.
        """
        from adk_fluent.eval._report._read import read_report  # noqa: PLC0415  # imports pydantic

        return read_report(path)

    def to_markdown(self, baseline: FluentEvalReport | None = None) -> str:
        """A page for people, safe to show whatever the models said; long texts are cut.

        Args:
            baseline: What it is held against; None is the report's own baseline.
        """
        from adk_fluent.eval._report._markdown import report_page  # noqa: PLC0415  # not needed yet

        return report_page(self, _checked(baseline) or self.baseline)

    def to_junit(self) -> str:
        """JUnit's XML, a test for each run of a case; long texts are cut."""
        from adk_fluent.eval._report._junit import junit  # noqa: PLC0415  # imports xml

        return junit(self)

    def to_html(self, baseline: FluentEvalReport | None = None) -> str:
        """A page for browsers, which needs nothing else.

        Args:
            baseline: What it is held against; None is the report's own baseline.
        """
        from adk_fluent.eval._report._html import page  # noqa: PLC0415  # not needed yet

        return page(self, _checked(baseline) or self.baseline)

    def save_html(
        self, path: str | os.PathLike[str], baseline: FluentEvalReport | None = None
    ) -> None:
        """Writes the page for browsers to a file.

        Args:
            path: The file.
            baseline: What it is held against; None is the report's own baseline.

        Raises:
            EvalFileError: It cannot be written.
        """
        from adk_fluent.eval._report._text import encodable  # noqa: PLC0415  # not needed yet
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415

        write_whole(path, [encodable(self.to_html(baseline))])

    def github_summary(self, path: str | os.PathLike[str] | None = None) -> bool:
        """Adds the page for people to the summary of a job of GitHub's.

        Args:
            path: The file of the summary; None is the one that GitHub names in
                ``GITHUB_STEP_SUMMARY``.

        Returns:
            Whether there was a file to add it to, and room in it: GitHub shows up to 1 MiB.

        Raises:
            EvalFileError: It cannot be written.
        """
        from adk_fluent.eval._report._github import add_summary  # noqa: PLC0415  # not needed yet

        return add_summary(self, path)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        low, high = self.pass_rate_ci()
        verdict = "ok" if self.ok else "not ok"
        return (
            f"<FluentEvalReport {one_line(self.suite, 60)!r}: {plural(len(self.outcomes), 'run')}, "
            f"{percent(self.pass_rate)} passed ({percent(low)} to {percent(high)}), {verdict}>"
        )


def _by_key(outcomes: Iterable[CaseOutcome]) -> dict[tuple[str, int], CaseOutcome]:
    found: dict[tuple[str, int], CaseOutcome] = {}
    for each in outcomes:
        if not isinstance(each, CaseOutcome):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("a report is made of CaseOutcomes", found=describe(each))
        if not isinstance(each.status, Status):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError(
                f"the status of case {each.id!r} is no Status", found=describe(each.status)
            )
        if each.key in found:
            raise EvalError(
                f"there are two outcomes of run {each.run} of case {each.id!r}",
                help="ids of cases, and runs of a case, are there once",
            )
        found[each.key] = each
    return found


def _ordered(
    by_key: dict[tuple[str, int], CaseOutcome], cases: Sequence[FluentCase]
) -> tuple[CaseOutcome, ...]:
    """The suite's order, else that in which cases come first; the runs of a case in order."""
    places: dict[str, int] = {}
    for id in (*(each.name for each in cases), *(id for id, _ in by_key)):
        places.setdefault(id, len(places))
    return tuple(sorted(by_key.values(), key=lambda each: (places[each.id], each.run)))


def _utc(moment: datetime | None) -> datetime:
    if moment is None:
        return datetime.now(UTC)
    if moment.tzinfo is None:
        raise EvalError(
            "started_at= has no time zone",
            found=moment.isoformat(),
            help="write datetime.now(UTC)",
        )
    return moment.astimezone(UTC)


def _checked(report: Any) -> FluentEvalReport | None:
    if report is None or isinstance(report, FluentEvalReport):
        return report
    raise EvalError(
        "this is no report",
        found=describe(report),
        help="give a FluentEvalReport, such as FluentEvalReport.load(path); to write a file,"
        " save(path) and save_html(path)",
    )


def _all_of(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, words)))


def _told(outcome: CaseOutcome) -> str:
    reason = outcome.reasons[0] if outcome.reasons else outcome.error or "no reason is known"
    run = f" run {outcome.run}" if outcome.run > 1 else ""
    return f"{outcome.status} {one_line(outcome.id, 80)}{run}: {one_line(reason, _LINE)}"
