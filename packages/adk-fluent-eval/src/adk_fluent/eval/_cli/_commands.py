"""The commands beside ``adk-fluent eval run``: compare, merge and list."""

from __future__ import annotations

from typing import Any

import click

from adk_fluent.eval._cases._turn import text_of
from adk_fluent.eval._cli import _common as common
from adk_fluent.eval._cli._common import FORMS, Output
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._report._documents import document, plain_line
from adk_fluent.eval._report._report import FluentEvalReport, in_form
from adk_fluent.eval._running._plan import MetricPlan
from adk_fluent.eval._text import one_line, plural


@click.command("compare", short_help="Compare a report with a baseline, case by case.")
@click.argument("current", type=click.Path())
@click.argument("baseline", type=click.Path())
@click.option("--max-regressions", type=common.FROM_0, default=0, help="Cases that may regress.")
@common.output_options("json", "markdown", "html")
@click.pass_context
def compare(ctx: click.Context, current: str, baseline: str, **options: Any) -> None:
    """Compare report CURRENT with report BASELINE, case by case.

    Both are files that eval run --json wrote. Exits with 1 if more cases regressed than allowed, or
    none could be compared.
    """
    report, before = FluentEvalReport.load(current), FluentEvalReport.load(baseline)
    comparison = report.compare(before)
    worse = len(comparison.regressed)
    ok = comparison.compared > 0 and worse <= options["max_regressions"]
    output = Output(options)
    verdict = common.styled("ok" if ok else "not ok", ok=ok)
    output.say([f"{plain_line(comparison.suite)} compared with its baseline: {verdict}"])
    output.say([document("comparison.md.j2", made=comparison).rstrip()])
    output.write("json", comparison.to_json)
    output.write("markdown", comparison.to_markdown)
    output.write("html", lambda: in_form(report, "html", before))
    output.summarize(comparison.to_markdown)
    ctx.exit(output.code(ok=ok))


@click.command("merge", short_help="Join the reports of shards, and apply the gate to all.")
@click.argument("reports", nargs=-1, required=True, type=click.Path())
@common.output_options(*FORMS)
@click.pass_context
def merge(ctx: click.Context, reports: tuple[str, ...], **options: Any) -> None:
    """Join the reports of shards, and apply the gate to all of them.

    REPORTS are files that eval run --shard --json wrote.
    """
    report = FluentEvalReport.merge([FluentEvalReport.load(each) for each in reports])
    output = Output(options)
    output.write_report(report)
    output.say_report(report)
    ctx.exit(output.code(ok=report.ok))


@click.command("list", short_help="List the cases of a suite, running nothing.")
@click.argument("target")
def list_cases(target: str) -> None:
    """List the cases of a suite, running nothing.

    TARGET is as for eval run.
    """
    suite = common.load_suite(target)
    click.echo(f"{one_line(suite.name, 80)}: {plural(len(suite.cases), 'case')}")
    plan = MetricPlan(suite)
    for case in suite.cases:
        try:
            metrics = ", ".join(each.name for each in plan.of(case))
        except EvalError:  # it expects nothing, which a run refuses
            metrics = "no metric"
        tags = f" [{', '.join(case.tags)}]" if case.tags else ""
        skipped = " (skipped)" if case.skip else ""
        line = f"{case.name}{tags}{skipped}: {text_of(case.turns[0].input)}"
        click.echo(f"  {one_line(line, 120)}  -> {metrics}")
