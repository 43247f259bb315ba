"""The report of a run of a suite."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._errors import EvalError, EvalFailedError
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._documents import document, escaped
from adk_fluent.eval._report._figures import ReportFigures
from adk_fluent.eval._report._json import read_report, report_chunks
from adk_fluent.eval._text import bounded, interval, percent
from adk_fluent.extend import one_line, plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path


_LISTED: Final = 10  # outcomes that an error lists
_LINE: Final = 300  # characters of each


class FluentEvalReport(ReportFigures):
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
        shard: ``(2, 5)`` if it is of the second of five parts of the cases; None if of all.

    Raises:
        EvalError: Two outcomes are of the same run of a case.
    """

    def assert_passed(self) -> None:
        """Do nothing if the gate is met.

        Raises:
            EvalFailedError: The gate is not met; names every reason and the first outcomes.
        """
        if not (reasons := self.failures):
            return
        missed = [each for each in self.outcomes if each.status.counts and not each.passed]
        missed.sort(key=lambda each: each.status is not Status.ERROR)
        lines = bounded([outcome_line(each) for each in missed], _LISTED)
        what = f"suite {self.suite!r} did not pass: {'; '.join(reasons)}"
        help = "the report has every case and reason; save it with .save(path)"
        raise EvalFailedError(what, found="\n    ".join(lines), help=help)

    # --- formats -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the whole report as JSON."""
        return "".join(report_chunks(self))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole report as JSON; an old file stays if that fails.

        Raises:
            EvalFileError: The file cannot be written.
        """
        Source.write(path, report_chunks(self))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> FluentEvalReport:
        """Return the report that `save` wrote.

        Raises:
            EvalFileError: The file is missing, broken, or of a newer version.
        """
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
            EvalError: There are none, they are of different suites, a shard is missing or there
                twice, or two have the same run.
        """
        if not reports or len({each.suite for each in reports}) > 1:
            suites = ", ".join(dict.fromkeys(each.suite for each in reports)) or "no report"
            raise EvalError("merge() takes the reports of one suite", found=suites)
        shards = sorted(tuple(each.shard or (1, 1)) for each in reports)
        count = shards[0][1]
        if any(each.shard for each in reports) and shards != [(n + 1, count) for n in range(count)]:
            found = ", ".join(f"{part}/{parts}" for part, parts in shards)
            help = "merge the reports of 1/n to n/n, each once; run those that are missing"
            raise EvalError("merge() takes the reports of all shards", found=found, help=help)
        return dataclasses.replace(
            reports[0],
            outcomes=[outcome for each in reports for outcome in each.outcomes],
            adk_version=", ".join(dict.fromkeys(each.adk_version for each in reports)),
            started_at=min(each.started_at for each in reports),
            duration_s=max(each.duration_s for each in reports),
            notes=list(dict.fromkeys(note for each in reports for note in each.notes)),
            interrupted=any(each.interrupted for each in reports),
            saved_regressions=[line for each in reports for line in each.regressions],
            baseline=None,
            shard=None,
            fluent_cases=[case for each in reports for case in each.fluent_cases],
            adk_results={},
        )

    def to_markdown(self) -> str:
        """Return a summary as Markdown, with texts of models escaped."""
        return document("report.md.j2", escaped, report=self)

    def to_html(
        self, path: str | PathLike[str], *, baseline: FluentEvalReport | None = None
    ) -> None:
        """Write one page for people: every run with its transcript, to filter and to print.

        The page loads nothing. Very long texts are cut, which it says. Without scripts, it has all
        but the filters.

        Args:
            path: The file; an older page in it is written over, and nothing else is.
            baseline: The report to compare with; None is that of the run.

        Raises:
            EvalFileError: The file cannot be written, or holds something else.
            EvalError: The baseline is not a report.
        """
        from adk_fluent.eval._report._html import html_page  # noqa: PLC0415  # rarely needed

        Source.write_page(path, html_page(self, baseline))

    def to_junit(self) -> str:
        """Return JUnit XML with a test case for each run."""
        several = {each.id for each in self.outcomes if each.run > 1}
        return document("junit.xml.j2", report=self, several=several)

    def __repr__(self) -> str:
        return (
            f"<FluentEvalReport {one_line(self.suite, 60)!r}: {plural(len(self.outcomes), 'run')}, "
            f"{percent(self.pass_rate)} passed ({interval(self.pass_rate_ci())}), "
            f"{'ok' if self.ok else 'not ok'}>"
        )


def in_form(report: FluentEvalReport, form: str, baseline: FluentEvalReport | None = None) -> str:
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


class ModelMatrix(dict[str, FluentEvalReport]):
    """The report of each model, by the model's name; see `FluentEvalSuite.matrix`."""

    def to_markdown(self) -> str:
        """Return the comparison table as Markdown."""
        metrics = list(dict.fromkeys(name for each in self.values() for name in each.per_metric))
        return document("matrix.md.j2", escaped, matrix=self, metrics=metrics)
