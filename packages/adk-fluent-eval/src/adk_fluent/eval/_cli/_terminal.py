"""Reports and progress at a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli import is_interactive
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._report import outcome_line
from adk_fluent.eval._text import (
    NONE,
    dollars,
    interval,
    measured,
    one_line,
    percent,
    plural,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.progress import Progress as Bar

    from adk_fluent.eval._report._compare import RegressionReport
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._running._options import Progress

_RUNS, _REASONS, _TAGS = 20, 3, 30  # that a summary lists
_NAME, _LINE = 80, 200
_UPDATES: Final = 10  # progress lines of a run without a terminal
_NOT_PASSED: Final = frozenset({Status.FAILED, Status.ERROR})


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned lines; a head that ends in ``:`` aligns to the right."""
    table = [[head.removesuffix(":") for head in heads], *rows]
    widths = [max(len(click.unstyle(row[at])) for row in table) for at in range(len(heads))]
    for row in table:
        cells: list[str] = []
        for head, cell, width in zip(heads, row, widths, strict=True):
            space = " " * (width - len(click.unstyle(cell)))
            cells.append(space + cell if head.endswith(":") else cell + space)
        yield "  ".join(cells).rstrip()


def verdict_line(report: FluentEvalReport) -> str:
    """Return the verdict and the pass rate."""
    ok = report.ok
    verdict = click.style("passed" if ok else "not passed", fg="green" if ok else "red", bold=True)
    rate = (
        f"{percent(report.pass_rate)} of {plural(report.counting, 'run')} passed "
        f"({interval(report.pass_rate_ci())}, 95% confidence)"
        if report.counting
        else "no run counts"
    )
    incomplete = " (incomplete)" if report.interrupted else ""
    return f"{one_line(report.suite, _NAME)}: {verdict}{incomplete}, {rate}"


def summary_lines(report: FluentEvalReport) -> Iterator[str]:
    """Yield a report as a person reads it."""
    yield verdict_line(report)
    counts = report.counts
    figures = [f"{count:,} {status}" for status, count in counts.items() if count]
    figures += [seconds(report.duration_s), f"{report.tokens.total:,} tokens"]
    if report.cost_usd is not None:
        figures.append(dollars(report.cost_usd))
    yield f"  {', '.join(figures)}"
    if tags := report.per_tag:
        heads = ("tag", "pass rate:", "95%", "passed:", "failed:", "errors:")
        rows = [
            [
                one_line(each.tag, _NAME),
                percent(each.pass_rate) if each.counting else NONE,
                interval(each.ci),
                f"{each.passed:,}",
                f"{each.failed:,}",
                f"{each.errors:,}",
            ]
            for each in list(tags.values())[:_TAGS]
        ]
        yield ""
        yield from (f"  {line}" for line in columns(heads, rows))
    missed = [each for each in report.outcomes if each.status in _NOT_PASSED]
    if missed:
        yield ""
    for each in missed[:_RUNS]:
        yield f"  {click.style(outcome_line(each), fg='red')}"
        yield from (f"    {one_line(reason, _LINE)}" for reason in each.reasons[1:_REASONS])
    if (more := len(missed) - _RUNS) > 0:
        yield f"  and {plural(more, 'more run')}; --json has all"
    if failures := report.failures:
        yield ""
        yield from (f"  gate: {one_line(each, 2 * _LINE)}" for each in failures)
    yield from (f"  note: {one_line(each, _LINE)}" for each in report.notes)


def comparison_lines(comparison: RegressionReport) -> Iterator[str]:
    """Yield a comparison as a person reads it."""
    if not comparison.compared:
        yield "no case could be compared; cases are matched by id"
    else:
        significant = "significant" if comparison.significant else "not significant"
        yield (
            f"{plural(comparison.compared, 'case')} compared: {len(comparison.regressed):,} "
            f"regressed, {len(comparison.improved):,} improved; p={comparison.p_value:.3g} "
            f"({significant})"
        )
        yield f"pass rate {percent(comparison.before)} -> {percent(comparison.now)}"
        drop = comparison.detectable
        least = percent(drop) if drop <= 1 else "none, with so few passing cases"
        yield f"minimum detectable drop: {least}"
    for name, changes in (("regressed", comparison.regressed), ("improved", comparison.improved)):
        yield from (f"{name} {each}" for each in changes[:_RUNS])
        if (more := len(changes) - _RUNS) > 0:
            yield f"and {more:,} more"
    for each in comparison.metric_deltas.values():
        if each.better is not None:
            values = f"{measured(each.before, each.unit)} -> {measured(each.now, each.unit)}"
            yield f"metric {each.name}: {values}, {'better' if each.better else 'worse'}"
    for name, ids in (("added", comparison.added), ("removed", comparison.removed)):
        if ids:
            yield f"{name}: {', '.join(one_line(each, _NAME) for each in ids[:_RUNS])}"


class ProgressDisplay:
    """Live progress on standard error: a bar at a terminal, lines elsewhere.

    Args:
        title: The suite.
        on: Whether to show anything.
    """

    def __init__(self, title: str, *, on: bool) -> None:
        self._title = one_line(title, 40)
        self._on = on
        self._counts: Counter[Status] = Counter()
        self._bar: Bar | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._on and is_interactive(sys.stderr):
            self._bar = _bar()
            self._bar.add_task(self._title, total=None, counts="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show a finished run."""
        outcome, done, total = progress.outcome, progress.done, progress.total
        self._counts[outcome.status] += 1
        if not self._on:
            return
        counts = ", ".join(f"{count:,} {status}" for status, count in self._counts.items())
        missed = outcome_line(outcome) if outcome.status in _NOT_PASSED else None
        if self._bar is not None:
            task: Any = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=total, counts=counts)
            if missed is not None:
                self._bar.console.print(missed, markup=False, highlight=False, soft_wrap=True)
            return
        if missed is not None:
            click.echo(missed, err=True)
        if done * _UPDATES // total > (done - 1) * _UPDATES // total:
            click.echo(f"{self._title}: {done:,} of {total:,} runs, {counts}", err=True)


def _bar() -> Bar:
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
