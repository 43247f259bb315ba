"""``adk-fluent eval list``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.eval._cases._case import text_of
from adk_fluent.eval._cli._columns import columns
from adk_fluent.eval._cli._load import suites_of
from adk_fluent.eval._cli._options import registry_option
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._report._text import encodable, one_line
from adk_fluent.eval._report._words import NONE, plural
from adk_fluent.eval._scoring._wanted import Metrics

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._suite import FluentEvalSuite

_NAME, _SAID = 80, 50


@click.command("list")
@click.argument("target")
@registry_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_(target: str, as_json: bool, registry: str | None) -> None:
    """List the cases of a suite, running nothing.

    TARGET is as for eval run.
    """
    suites = suites_of(target, registry=registry)
    found = {suite.name: [_data(case, _metrics(suite)) for case in suite.cases] for suite in suites}
    if as_json:
        listed = [
            {"suite": suite.name, "num_runs": suite.num_runs, "cases": found[suite.name]}
            for suite in suites
        ]
        click.echo(encodable(json.dumps(listed, indent=2, ensure_ascii=False)))
        return
    for number, suite in enumerate(suites):
        if number:
            click.echo()
        cases = plural(len(suite.cases), "case")
        runs = f", {suite.num_runs:,} runs of each" if suite.num_runs > 1 else ""
        click.echo(f"{one_line(suite.name, _NAME)}: {cases}{runs}")
        rows = [_row(each) for each in found[suite.name]]
        heads = ("id", "turns:", "tags", "metrics", "input")
        for line in columns(heads, rows) if rows else ():
            click.echo(f"  {line}")


def _metrics(suite: FluentEvalSuite) -> Metrics:
    """What cases are scored by.

    Raises:
        EvalError: The suite asks for a metric that there is not.
    """
    return Metrics(
        suite.metrics, suite.thresholds, suite.custom_judges, suite.cases, suite.simulation
    )


def _data(case: FluentCase, metrics: Metrics) -> dict[str, Any]:
    try:
        wanted = [each.name for each in metrics.of(case)]
    except EvalError:  # it expects nothing, which a run refuses
        wanted = []
    turns = case.turns
    return {
        "id": case.name,
        "tags": list(case.tags),
        "turns": len(turns),
        "metrics": wanted,
        "input": text_of(turns[0].input),
        "target_node": case.target_node,
        "skip": case.skip,
        "xfail": case.xfail,
        "location": case.place,
    }


def _row(case: dict[str, Any]) -> list[str]:
    said = one_line(case["input"], 1_000)
    said = said if len(said) <= _SAID else f"{said[: _SAID - 3]}..."
    skipped = click.style("skipped: ", fg="yellow") if case["skip"] else ""
    return [
        one_line(case["id"], _NAME),
        str(case["turns"]),
        one_line(", ".join(case["tags"]), _NAME) or NONE,
        ", ".join(case["metrics"]) or click.style("none", fg="red"),
        skipped + said,
    ]
