"""``adk-fluent eval matrix``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Any

import click

from adk_fluent.cli import FINDINGS, INFRASTRUCTURE, INTERRUPTED, OK, note
from adk_fluent.eval._cli._interrupt import run_interruptible
from adk_fluent.eval._cli._load import load_suites, pipeline_option, registry_option
from adk_fluent.eval._cli._output import Output, output_options
from adk_fluent.eval._errors import EvalError


@click.command("matrix", short_help="Run a suite with several models, and compare them.")
@click.argument("target")
@pipeline_option
@registry_option
@click.option("--model", "models", multiple=True, required=True, help="A model; repeatable.")
@click.option("--runs", type=click.IntRange(min=1), help="Runs of each case.")
@click.option("--cache", type=click.Path(file_okay=False), help="Keep and replay answers there.")
@output_options("markdown")
@click.pass_context
def matrix(  # noqa: PLR0917  # of click
    ctx: click.Context,
    target: str,
    pipeline: str | None,
    registry: str | None,
    models: tuple[str, ...],
    runs: int | None,
    cache: str | None,
    **options: Any,
) -> None:
    """Run a suite with several models, and compare them.

    TARGET is as for eval run. Each model answers in place of every model of the pipeline. Exits
    with 1 if a gate is not met.
    """
    suites = load_suites(target, pipeline, registry)
    if len(suites) > 1:
        raise EvalError(
            f"{target} has several suites", found=", ".join(each.name for each in suites)
        )
    try:
        with redirect_stdout(sys.stderr):  # tools may print
            found = run_interruptible(suites[0].matrix(models, num_runs=runs, cache=cache))
    except KeyboardInterrupt:
        note("[interrupted]", fg="yellow")
        ctx.exit(INTERRUPTED)
    output = Output(options)
    output.write("markdown", found.to_markdown)
    output.summarize(found.to_markdown)
    output.say(str(found))
    ok = all(each.ok for each in found.values())
    ctx.exit(INFRASTRUCTURE if output.failed else OK if ok else FINDINGS)
