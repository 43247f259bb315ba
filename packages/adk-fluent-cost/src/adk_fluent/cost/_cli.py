"""``adk-fluent estimate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

import click

from adk_fluent.cli import load
from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._estimate import estimate_cost
from adk_fluent.cost._report import CostReport

_PERCENTILES: Final = (50, 90, 99)


def _shares(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
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


def _reports(
    ctx: click.Context, param: click.Parameter, files: tuple[Path, ...]
) -> list[CostReport] | None:
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


@click.command()
@click.argument("target")
@click.option("--per-day", type=float, default=1, show_default=True, help="Runs a day.")
@click.option(
    "--branch",
    "branches",
    multiple=True,
    callback=_shares,
    metavar="NAME=SHARE",
    help="Share of a route's runs that take this branch, 0 to 1. May be repeated.",
)
@click.option(
    "--loop",
    "loops",
    multiple=True,
    callback=_shares,
    metavar="NAME=NUMBER",
    help="Iterations of this loop. May be repeated.",
)
@click.option("--input-tokens", type=float, default=500, show_default=True, help="Of a prompt.")
@click.option("--output-tokens", type=float, default=200, show_default=True, help="Of an answer.")
@click.option("--model", default="", help="Model of agents that name none.")
@click.option(
    "--prices",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A YAML file of prices, USD per million tokens.",
)
@click.option("--percentiles", is_flag=True, help="Add the percentiles 50, 90 and 99 of a run.")
@click.option(
    "--report",
    "measured",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    callback=_reports,
    help="JSON of what a run cost, to stand beside the estimate: of CostReport, or what "
    "`adk-fluent run --cost --json` has printed. May be repeated, once for each run.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write a page to this file: the pipeline as a picture, with the money at each step.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(
    target: str,
    *,
    per_day: float,
    branches: dict[str, float],
    loops: dict[str, float],
    input_tokens: float,
    output_tokens: float,
    model: str,
    prices: Path | None,
    percentiles: bool,
    measured: list[CostReport] | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Estimate what a pipeline will cost, without running it.

    TARGET is module:attribute or path.py:attribute.
    """
    made = estimate_cost(
        load(target),
        TrafficAssumptions(
            invocations_per_day=per_day,
            avg_input_tokens=input_tokens,
            avg_output_tokens=output_tokens,
            branch_probabilities=branches,
            loop_iterations=loops or None,
        ),
        prices=prices,
        default_model=model,
        percentiles=_PERCENTILES if percentiles else (),
    )
    if html is not None:
        try:
            html.write_text(made.to_html(measured), "utf-8", newline="\n")
        except OSError as error:
            raise click.UsageError(f"{html} cannot be written: {error.strerror}.") from error
    if as_json:
        click.echo(json.dumps(made.to_dict(measured), indent=2))
    else:
        click.echo(made.to_markdown(measured))
