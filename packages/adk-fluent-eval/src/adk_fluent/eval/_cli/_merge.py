"""``adk-fluent eval merge``: the reports of shards, as one."""

from __future__ import annotations

from typing import Any

import click

from adk_fluent.cli import FINDINGS, INFRASTRUCTURE, OK
from adk_fluent.eval._cli._output import Output, output_options
from adk_fluent.eval._cli._run import say_report
from adk_fluent.eval._report._html import html_page
from adk_fluent.eval._report._report import FluentEvalReport


@click.command("merge", short_help="Join the reports of shards, and apply the gate to all.")
@click.argument("reports", nargs=-1, required=True, type=click.Path())
@output_options("json", "junit", "markdown", "html")
@click.pass_context
def merge(ctx: click.Context, reports: tuple[str, ...], **options: Any) -> None:
    """Join the reports of shards, and apply the gate to all of them.

    REPORTS are files that eval run --shard --json wrote.
    """
    report = FluentEvalReport.merge([FluentEvalReport.load(each) for each in reports])
    output = Output(options)
    output.write("json", report.to_json)
    output.write("junit", report.to_junit)
    output.write("markdown", report.to_markdown)
    output.write("html", lambda: "".join(html_page(report)))
    output.summarize(report.to_markdown)
    say_report(report, output)
    ctx.exit(INFRASTRUCTURE if output.failed else OK if report.ok else FINDINGS)
