"""``adk-fluent eval list``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.eval._cases._turn import text_of
from adk_fluent.eval._cli._load import load_suites, registry_option
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._running._plan import MetricPlan
from adk_fluent.eval._text import encodable, one_line, plural

if TYPE_CHECKING:
    from adk_fluent.eval._suite import FluentEvalSuite


@click.command("list", short_help="List the cases of suites, running nothing.")
@click.argument("target")
@registry_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_cases(target: str, as_json: bool, registry: str | None) -> None:
    """List the cases of suites, running nothing.

    TARGET is as for eval run.
    """
    suites = load_suites(target, registry=registry)
    found: list[dict[str, Any]] = [
        {"suite": suite.name, "cases": _cases(suite)} for suite in suites
    ]
    if as_json:
        click.echo(encodable(json.dumps(found, indent=2, ensure_ascii=False)))
        return
    for suite, each in zip(suites, found, strict=True):
        click.echo(f"{one_line(suite.name, 80)}: {plural(len(suite.cases), 'case')}")
        for case in each["cases"]:
            tags = f" [{', '.join(case['tags'])}]" if case["tags"] else ""
            skipped = " (skipped)" if case["skip"] else ""
            metrics = ", ".join(case["metrics"]) or "no metric"
            line = f"{case['id']}{tags}{skipped}: {case['input']}"
            click.echo(f"  {one_line(line, 120)}  -> {metrics}")


def _cases(suite: FluentEvalSuite) -> list[dict[str, Any]]:
    plan = MetricPlan(suite)
    found: list[dict[str, Any]] = []
    for case in suite.cases:
        try:
            metrics = [each.name for each in plan.of(case)]
        except EvalError:  # it expects nothing, which a run refuses
            metrics = []
        found.append(
            {
                "id": case.name,
                "tags": list(case.tags),
                "turns": len(case.turns),
                "metrics": metrics,
                "input": text_of(case.turns[0].input),
                "target_node": case.target_node,
                "skip": case.skip,
                "xfail": case.xfail,
                "location": case.place,
            }
        )
    return found
