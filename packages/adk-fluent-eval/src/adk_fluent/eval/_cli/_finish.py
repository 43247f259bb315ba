"""What is shown and written when a run is over, however it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.cli._failures import FINDINGS, INFRASTRUCTURE, INTERRUPTED, OK
from adk_fluent.cli._transcript import note
from adk_fluent.eval._cli._compared import comparison_lines
from adk_fluent.eval._cli._outputs import Written
from adk_fluent.eval._cli._plan import baseline_path
from adk_fluent.eval._cli._session import nothing_reached
from adk_fluent.eval._cli._summary import matrix_lines, met, summary_lines, verdict_line
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adk_fluent.eval._cli._session import Result
    from adk_fluent.eval._report._report import FluentEvalReport


def finish(result: Result, options: dict[str, Any], agents: tuple[Path, str] | None) -> int:
    """Show and write everything that is known, and tell the exit code.

    Args:
        result: What became of the run.
        options: The options of the command.
        agents: The folder of agents and the agent in it that get results; None for none.
    """
    written = Written(options, quiet=options["quiet"])
    _write(result, options, written)  # first: what is shown may have nobody to read it
    if agents is not None:
        _write_results(result, agents, written)
    written.github(report for _, report in result.reports)
    try:
        _show(result, options, written)
        written.tell()
    finally:  # Ctrl-C ends what reads standard output, too: a `tee` after a pipe
        if result.interrupted:
            _tell_how_to_go_on(result, options)
    return _code(result, written)


def _show(result: Result, options: dict[str, Any], written: Written) -> None:
    for number, (unit, report) in enumerate(result.reports):
        if options["quiet"]:
            written.say([verdict_line(report)])
            for each in report.notes:
                note(f"note: {one_line(each, 300)}")
            continue
        written.say([""] * (number > 0))
        written.say(summary_lines(report))
        if unit.known is not None:
            written.say(["", "against the baseline:"])
            comparison = report.compare(unit.known)
            written.say(f"  {line}" if line else "" for line in comparison_lines(comparison))
    if not options["quiet"]:
        for _, matrix in _matrices(result, options):
            written.say(["", *matrix_lines(matrix)])


def _write(result: Result, options: dict[str, Any], written: Written) -> None:
    several = len(options["models"]) > 1
    for unit, report in result.reports:
        label = ".".join(filter(None, (unit.label, unit.model if several else None)))
        written.report(
            report, label, baseline=unit.known, but=("json", "markdown") if several else ()
        )
        if options["update_baseline"]:
            _update(report, baseline_path(options, unit.label) or "", written)
    for label, matrix in _matrices(result, options):
        written.matrix(matrix, label)


def _matrices(result: Result, options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The reports of several models, suite by suite."""
    if len(options["models"]) < 2:
        return
    from adk_fluent.eval._report._matrix import ModelMatrix  # noqa: PLC0415  # of several alone

    by_suite: dict[str, dict[str, FluentEvalReport]] = {}
    labels: dict[str, str] = {}
    for unit, report in result.reports:
        by_suite.setdefault(unit.suite.name, {})[unit.model or ""] = report
        labels[unit.suite.name] = unit.label
    for name, reports in by_suite.items():
        yield labels[name], ModelMatrix(reports)


def _update(report: FluentEvalReport, path: str, written: Written) -> None:
    """Make a report the baseline, if it tells of every case."""
    errors = report.counts[Status.ERROR]
    if report.interrupted or errors:
        why = "it was interrupted" if report.interrupted else f"{errors:,} runs ended in an error"
        note(f"[{path} stays as it is: {why}]", fg="yellow")
        return
    written.save(path, report)


def _write_results(result: Result, agents: tuple[Path, str], written: Written) -> None:
    from adk_fluent.eval._files._results_adk import (  # noqa: PLC0415  # imports ADK
        write_eval_set_result,
    )

    for _, report in result.reports:
        written.attempt(lambda report=report: write_eval_set_result(report, *agents))


def _code(result: Result, written: Written) -> int:
    reports = [report for _, report in result.reports]
    if result.interrupted:
        return INTERRUPTED
    if written.failed:
        return INFRASTRUCTURE
    if all(map(met, reports)):
        return OK
    if nothing_reached(reports):
        note("[no model could be reached]", fg="red")
        return INFRASTRUCTURE
    return FINDINGS


def _tell_how_to_go_on(result: Result, options: dict[str, Any]) -> None:
    done = plural(sum(len(report.outcomes) for _, report in result.reports), "run")
    journal = options["journal"]
    goes_on = (
        "next time give --journal FILE, and the same command goes on where it was"
        if journal is None
        else f"{journal} keeps what is done: the same command goes on from there"
    )
    note(f"[interrupted with {done} done; {goes_on}]", fg="yellow")
