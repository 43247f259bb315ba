"""``adk-fluent check``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._target import load
from adk_fluent.cli._text import plain
from adk_fluent.contracts import ContractReport, SeverityName, check_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


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
_LEVELS: Final[tuple[SeverityName, ...]] = get_args(SeverityName)


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
@click.option(
    "--input",
    "inputs",
    metavar="KEY",
    multiple=True,
    help="A state key that has a value when the pipeline starts; may be repeated.",
)
@click.option(
    "--output",
    "outputs",
    metavar="KEY",
    multiple=True,
    help="A state key that somebody reads when it is done; may be repeated.",
)
@click.option(
    "--severity",
    "severities",
    metavar="CODE=LEVEL",
    multiple=True,
    help="How bad findings of a code are: error, warning, info or off; may be repeated.",
)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.pass_context
def check(ctx: click.Context, targets: tuple[str, ...], form: str, **options: Any) -> None:
    """Look for mistakes in pipelines without running anything.

    TARGET is module:attribute or path.py:attribute. Ends with 1 when there are errors. State is
    taken to be empty at the start, but for --input and what pipelines declare themselves.
    """
    severity = _levels(options["severities"])
    reports = [
        (
            target,
            check_all(
                load(target),
                inputs=options["inputs"],
                outputs=options["outputs"] or None,
                severity=severity,
                strict=options["strict"],
            ),
        )
        for target in targets
    ]
    if text := _FORMATS[form](reports):
        click.echo(text)
    ctx.exit(OK if all(report.ok for _, report in reports) else FINDINGS)


def _levels(settings: Iterable[str]) -> dict[str, SeverityName]:
    """Codes with what is said of each; the last word on one counts."""
    levels: dict[str, SeverityName] = {}
    for each in settings:
        code, _, level = (part.strip() for part in each.partition("="))
        if not code or level not in _LEVELS:
            raise click.BadParameter(
                f"{each!r} is not CODE=LEVEL, such as FLW112=off; "
                f"LEVEL is one of {', '.join(_LEVELS)}.",
                param_hint="--severity",
            )
        levels[code.upper()] = level
    return levels


def _together(reports: Sequence[tuple[str, ContractReport]]) -> ContractReport:
    return ContractReport.of(each for _, report in reports for each in report)
