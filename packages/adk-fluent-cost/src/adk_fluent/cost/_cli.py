"""``adk-fluent estimate``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import click

from adk_fluent.cli import load
from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._estimate import estimate_cost
from adk_fluent.cost._report import CostReport
from adk_fluent.extend import DataFile

_PERCENTILES: Final = (50, 90, 99)


def _shares(ctx: Any, param: Any, values: tuple[str, ...]) -> dict[str, float]:
    """NAME=NUMBER."""
    made: dict[str, float] = {}
    for number, value in enumerate(values, 1):
        name, equals, text = value.partition("=")
        try:
            made[name.strip()] = float(text)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise click.BadParameter(f"{value!r} is not NAME=NUMBER.")
        if len(made) < number:
            raise click.BadParameter(f"{name.strip()!r} is given twice.")
    return made


def _reports(ctx: Any, param: Any, files: tuple[Path, ...]) -> list[CostReport] | None:
    """The reports in some files; None if there are none."""
    return [_report(each) for each in files] or None


def _report(file: Path) -> CostReport:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} cannot be read: {error}.") from error
    for each in (text, *reversed(text.splitlines())):  # a run prints its events before
        try:
            data: Any = json.loads(each)
        except ValueError:
            continue
        if isinstance(data, dict) and ("cost" in data or "records" in data):
            found = cast("dict[str, Any]", data)
            try:
                return CostReport.from_dict(found.get("cost", found))
            except ValueError as error:
                raise click.BadParameter(f"{file}: {error}.") from error
    raise click.BadParameter(f"{file} has no report of costs.")


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_PAGE: Final = click.Path(dir_okay=False, writable=True, path_type=Path)
_number = partial(click.option, type=float, show_default=True)
_named = partial(click.option, multiple=True, callback=_shares)
_REPORT: Final = (
    "JSON of what a run cost, to stand beside the estimate: of CostReport, or what "
    "`adk-fluent run --cost --json` has printed. May be repeated, once for each run."
)
_BRANCH: Final = "Share of a route's runs that take this branch, 0 to 1. May be repeated."
_LOOP: Final = "Iterations of this loop. May be repeated."
_HTML: Final = "Write a page to this file: the pipeline as a picture, with the money at each step."


@click.command()
@click.argument("target")
@_number("--per-day", "invocations_per_day", default=1, help="Runs a day.")
@_named("--branch", "branch_probabilities", metavar="NAME=SHARE", help=_BRANCH)
@_named("--loop", "loop_iterations", metavar="NAME=NUMBER", help=_LOOP)
@_number("--input-tokens", "avg_input_tokens", default=500, help="Of a prompt.")
@_number("--output-tokens", "avg_output_tokens", default=200, help="Of an answer.")
@click.option("--model", "default_model", default="", help="Model of agents that name none.")
@click.option("--prices", type=_FILE, help="A YAML file of prices, USD per million tokens.")
@click.option("--percentiles", is_flag=True, help="Add the percentiles 50, 90 and 99 of a run.")
@click.option("--report", type=_FILE, multiple=True, callback=_reports, help=_REPORT)
@click.option("--html", type=_PAGE, help=_HTML)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(
    target: str,
    *,
    default_model: str,
    prices: Path | None,
    percentiles: bool,
    report: list[CostReport] | None,
    html: Path | None,
    as_json: bool,
    **assumed: Any,
) -> None:
    """Estimate what a pipeline will cost, without running it.

    TARGET is module:attribute or path.py:attribute.
    """
    made = estimate_cost(
        load(target),
        TrafficAssumptions(**assumed),
        prices=prices,
        default_model=default_model,
        percentiles=_PERCENTILES if percentiles else (),
    )
    if html is not None:
        DataFile.write_page(html, [made.to_html(report)])
    click.echo(json.dumps(made.to_dict(report), indent=2) if as_json else made.to_markdown(report))
