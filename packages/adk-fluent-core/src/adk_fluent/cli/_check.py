"""``adk-fluent check``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._target import load
from adk_fluent.cli._text import plain
from adk_fluent.contracts import ContractReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _as_text(reports: Sequence[tuple[str, ContractReport]]) -> str:
    """With colours, which are taken out again where no person looks."""
    alone = len(reports) == 1
    return "\n\n".join(
        report.render(color=True)
        if alone
        else f"{click.style(plain(target), bold=True)}\n{report.render(color=True)}"
        for target, report in reports
    )


def _as_json(reports: Sequence[tuple[str, ContractReport]]) -> str:
    if len(reports) == 1:
        return reports[0][1].to_json()
    return json.dumps({target: report.to_dict() for target, report in reports}, indent=2)


def _as_sarif(reports: Sequence[tuple[str, ContractReport]]) -> str:
    return _together(reports).to_sarif()


def _as_github(reports: Sequence[tuple[str, ContractReport]]) -> str:
    return _together(reports).to_github()


_FORMATS: Final[dict[str, Callable[[Sequence[tuple[str, ContractReport]]], str]]] = {
    "text": _as_text,
    "json": _as_json,
    "sarif": _as_sarif,
    "github": _as_github,
}


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--format",
    "form",
    type=click.Choice([*_FORMATS]),
    default="text",
    show_default=True,
    help="For people, for programs, for code hosts (SARIF 2.1.0), for GitHub Actions.",
)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.pass_context
def check(ctx: click.Context, targets: tuple[str, ...], form: str, **options: Any) -> None:
    """Look for mistakes in pipelines without running anything.

    TARGET is module:attribute or path.py:attribute. Ends with 1 when there are errors.
    """
    reports = [(target, load(target).check()) for target in targets]
    if text := _FORMATS[form](reports):
        click.echo(text)
    bad = any(report.errors or (options["strict"] and report.warnings) for _, report in reports)
    ctx.exit(FINDINGS if bad else OK)


def _together(reports: Sequence[tuple[str, ContractReport]]) -> ContractReport:
    return ContractReport.of(each for _, report in reports for each in report)
