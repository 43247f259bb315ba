"""``adk-fluent eval compare``."""

from __future__ import annotations

from typing import Any

import click

from adk_fluent.cli._failures import FINDINGS, INFRASTRUCTURE, OK
from adk_fluent.eval._cli._compared import comparison_lines
from adk_fluent.eval._cli._options import IN, check_files, level, output_options
from adk_fluent.eval._cli._outputs import Written
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import plural


@click.command()
@click.argument("current", type=IN)
@click.argument("baseline", type=IN)
@click.option(
    "--max-regressions",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Cases that may have got worse.",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    callback=level,
    metavar="P",
    help="The p-value up to which a change is no accident.",
)
@output_options("json", "markdown")
@click.pass_context
def compare(
    ctx: click.Context,
    current: str,
    baseline: str,
    max_regressions: int,
    alpha: float,
    **options: Any,
) -> None:
    """Hold report CURRENT against report BASELINE, case by case.

    Both are files that eval run --json wrote. Ends with 1 if more cases got worse than may, or none
    can be compared.
    """
    check_files(options, "json", "markdown", inputs=(current, baseline))
    report = FluentEvalReport.load(current)
    comparison = report.compare(FluentEvalReport.load(baseline), alpha=alpha)
    worse = len(comparison.regressed)
    ok = comparison.compared > 0 and worse <= max_regressions
    written = Written(options)
    head = click.style("ok" if ok else "not ok", fg="green" if ok else "red", bold=True)
    lines = [f"{one_line(comparison.suite, 80)} against its baseline: {head}"]
    if comparison.compared and not ok:
        lines[0] += f", {plural(worse, 'case')} got worse, {max_regressions:,} may"
    written.say([*lines, *(f"  {each}" if each else "" for each in comparison_lines(comparison))])
    for form, make in (("json", comparison.to_json), ("markdown", comparison.to_markdown)):
        if (path := options[form]) is not None:
            written.text(path, make)
    written.tell()
    ctx.exit(INFRASTRUCTURE if written.failed else OK if ok else FINDINGS)
