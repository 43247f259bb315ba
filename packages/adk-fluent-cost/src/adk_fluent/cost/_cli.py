"""``adk-fluent estimate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from adk_fluent.cli import load
from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._estimate import estimate_cost


def _shares(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    """NAME=NUMBER."""
    made: dict[str, float] = {}
    for value in values:
        name, equals, text = value.partition("=")
        try:
            made[name.strip()] = float(text)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise click.BadParameter(f"{value!r} is not NAME=NUMBER.")
    return made


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
    as_json: bool,
) -> None:
    """Estimate what a pipeline will cost, without running it.

    TARGET is module:attribute or path.py:attribute.
    """
    traffic: dict[str, Any] = {"loop_iterations": loops} if loops else {}
    made = estimate_cost(
        load(target),
        TrafficAssumptions(
            invocations_per_day=per_day,
            avg_input_tokens=input_tokens,
            avg_output_tokens=output_tokens,
            branch_probabilities=branches,
            **traffic,
        ),
        prices=prices,
        default_model=model,
    )
    click.echo(json.dumps(made.to_dict(), indent=2) if as_json else made.to_markdown())
