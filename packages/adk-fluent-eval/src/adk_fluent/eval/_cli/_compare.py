"""``adk-fluent eval compare``."""

from __future__ import annotations

from typing import Any

import click

from adk_fluent.cli import FINDINGS, INFRASTRUCTURE, OK
from adk_fluent.eval._cli._output import Output, output_options
from adk_fluent.eval._report._compare import comparison_lines
from adk_fluent.eval._report._html import html_page
from adk_fluent.eval._report._lines import plain_line
from adk_fluent.eval._report._report import FluentEvalReport


@click.command("compare", short_help="Compare a report with a baseline, case by case.")
@click.argument("current", type=click.Path())
@click.argument("baseline", type=click.Path())
@click.option(
    "--max-regressions",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Cases that may regress, at most.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The p-value up to which a change is significant.",
)
@output_options("json", "markdown", "html")
@click.pass_context
def compare(
    ctx: click.Context,
    current: str,
    baseline: str,
    max_regressions: int,
    alpha: float,
    **options: Any,
) -> None:
    """Compare report CURRENT with report BASELINE, case by case.

    Both are files that eval run --json wrote. Exits with 1 if more cases regressed than allowed, or
    none could be compared.
    """
    report = FluentEvalReport.load(current)
    before = FluentEvalReport.load(baseline)
    comparison = report.compare(before, alpha=alpha)
    ok = comparison.compared > 0 and len(comparison.regressed) <= max_regressions
    output = Output(options)
    verdict = click.style("ok" if ok else "not ok", fg="green" if ok else "red", bold=True)
    output.say(f"{plain_line(comparison.suite)} compared with its baseline: {verdict}")
    for line in comparison_lines(comparison, plain_line):
        output.say(line)
    output.write("json", comparison.to_json)
    output.write("markdown", comparison.to_markdown)
    output.write("html", lambda: "".join(html_page(report, before)))
    output.summarize(comparison.to_markdown)
    ctx.exit(INFRASTRUCTURE if output.failed else OK if ok else FINDINGS)
