"""A report as a person reads it at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from adk_fluent.eval._cli._columns import columns
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import NONE, dollars, percent, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._matrix import ModelMatrix
    from adk_fluent.eval._report._report import FluentEvalReport

#: Runs that are told, reasons of each, and tags; the rest is counted.
_RUNS, _REASONS, _TAGS = 20, 3, 30
#: Characters of a line.
_NAME, _LINE = 80, 200

COLORS: Final = {
    Status.PASSED: "green",
    Status.FAILED: "red",
    Status.ERROR: "red",
    Status.SKIPPED: "yellow",
    Status.XFAILED: "yellow",
}


def met(report: FluentEvalReport) -> bool:
    """Whether a report meets its gate, or is of a shard without anything to hold against it."""
    return report.ok or _is_empty_shard(report)


def _is_empty_shard(report: FluentEvalReport) -> bool:
    """Whether all cases of a shard are skipped, or it has none: the merged report decides."""
    return report.shard is not None and not report.counting and not report.interrupted


def verdict_line(report: FluentEvalReport) -> str:
    """Whether a report meets its gate, and its pass rate."""
    if _is_empty_shard(report):
        which = "{}/{}".format(*(report.shard or ()))
        return f"{one_line(report.suite, _NAME)}: nothing to evaluate in shard {which}"
    low, high = report.pass_rate_ci()
    word, color = ("passed", "green") if report.ok else ("not passed", "red")
    if report.interrupted:
        word += ", incomplete"
    with_model = f" with {one_line(report.model, _NAME)}" if report.model else ""
    rate = (
        f"{percent(report.pass_rate)} of {plural(report.counting, 'run')} passed "
        f"({percent(low)} to {percent(high)} with 95% confidence)"
        if report.counting
        else "no run counts"
    )
    head = click.style(word, fg=color, bold=True)
    return f"{one_line(report.suite, _NAME)}{with_model}: {head}, {rate}"


def summary_lines(report: FluentEvalReport) -> Iterator[str]:
    """A report: figures, tags, what did not pass, and what the gate says of it."""
    yield verdict_line(report)
    yield f"  {_figures(report)}"
    if tags := report.per_tag:
        yield ""
        yield from (f"  {line}" for line in _tags(report))
        if (more := len(tags) - _TAGS) > 0:
            yield f"  and {plural(more, 'more tag')}"
    yield from _missed(report)
    if flaky := report.flaky:
        yield ""
        named = ", ".join(one_line(each, _NAME) for each in flaky[:_RUNS])
        more = f", and {len(flaky) - _RUNS:,} more" if len(flaky) > _RUNS else ""
        yield f"passed in one run and not in another: {named}{more}"
    if (failures := report.failures) and not _is_empty_shard(report):
        yield ""
        yield click.style("the gate is not met:", fg="red", bold=True)
        yield from (f"  {one_line(each, _LINE * 2)}" for each in failures)
    yield from (f"note: {one_line(each, _LINE)}" for each in report.notes)


def matrix_lines(matrix: ModelMatrix) -> Iterator[str]:
    """Models side by side."""
    heads = ("model", "pass rate:", "95%", "runs:", "tokens:", "cost:", "time:", "gate")
    yield from columns(
        heads,
        [
            [
                one_line(row.model, _NAME),
                percent(row.pass_rate) if row.counting else NONE,
                _interval(row.ci) if row.counting else NONE,
                f"{row.counting:,}",
                f"{row.tokens:,}",
                dollars(row.cost_usd),
                seconds(row.mean_duration_s),
                click.style("met", fg="green") if row.ok else click.style("not met", fg="red"),
            ]
            for row in matrix.table()
        ],
    )
    if len(matrix) > 1:
        yield f"best: {one_line(matrix.best, _NAME)}"


def missed_line(outcome: CaseOutcome) -> str:
    """A run that did not pass, in one line."""
    reason = outcome.reasons[0] if outcome.reasons else outcome.error or "no reason is known"
    return f"{_head(outcome, several=outcome.run > 1)}: {one_line(reason, _LINE)}"


def _figures(report: FluentEvalReport) -> str:
    counts = report.counts
    cases = plural(len({each.id for each in report.outcomes}), "case")
    told = [
        cases,
        f"{counts[Status.PASSED]:,} passed",
        f"{counts[Status.FAILED]:,} failed",
        plural(counts[Status.ERROR], "error"),
        *([f"{counts[Status.SKIPPED]:,} skipped"] if counts[Status.SKIPPED] else []),
        *([f"{counts[Status.XFAILED]:,} failed as expected"] if counts[Status.XFAILED] else []),
        seconds(report.duration_s),
        f"{report.tokens.total:,} tokens",
        *([dollars(cost)] if (cost := report.cost_usd) is not None else []),
    ]
    if beside := report.eval_tokens.total:
        paid = report.eval_cost_usd
        cost = f" ({dollars(paid)})" if paid is not None else ""
        told.append(f"{beside:,} tokens{cost} for judges and the like")
    if replayed := sum(each.replayed for each in report.outcomes):
        told.append(f"{plural(replayed, 'answer')} replayed")
    return ", ".join(told)


def _tags(report: FluentEvalReport) -> Iterator[str]:
    heads = ("tag", "pass rate:", "95%", "passed:", "failed:", "errors:")
    rows = [
        [
            one_line(each.tag, _NAME),
            percent(each.pass_rate) if each.counting else NONE,
            _interval(each.ci) if each.counting else NONE,
            f"{each.passed:,}",
            f"{each.failed:,}",
            f"{each.errors:,}",
        ]
        for each in list(report.per_tag.values())[:_TAGS]
    ]
    yield from columns(heads, rows)


def _missed(report: FluentEvalReport) -> Iterator[str]:
    missed = [each for each in report.outcomes if each.status.counts and not each.passed]
    if not missed:
        return
    several = {each.id for each in report.outcomes if each.run > 1}
    yield ""
    for each in missed[:_RUNS]:
        yield _head(each, several=each.id in several)
        reasons = each.reasons or [each.error or "no reason is known"]
        yield from (f"  {one_line(reason, _LINE)}" for reason in reasons[:_REASONS])
        if (more := len(reasons) - _REASONS) > 0:
            yield f"  and {plural(more, 'more reason')}"
    if (more := len(missed) - _RUNS) > 0:
        yield f"and {plural(more, 'more run')} that did not pass; --html and --json have all"


def _head(outcome: CaseOutcome, *, several: bool) -> str:
    status = click.style(str(outcome.status), fg=COLORS[outcome.status], bold=True)
    run = f" (run {outcome.run})" if several else ""
    return f"{status} {one_line(outcome.id, _NAME)}{run}"


def _interval(ci: tuple[float, float]) -> str:
    return f"{percent(ci[0])} to {percent(ci[1])}"
