"""``adk-fluent explain``."""

from __future__ import annotations

import click

from adk_fluent.cli._target import load
from adk_fluent.cli._text import plain
from adk_fluent.ir import ExecutionConfig


@click.command()
@click.argument("target")
@click.option("--model", help="Model of agents that name none.")
def explain(target: str, model: str | None) -> None:
    """Show what a pipeline is: its steps, models, state keys and where each was written.

    TARGET is module:attribute or path.py:attribute.
    """
    click.echo(plain(load(target).explain(ExecutionConfig(default_model=model))))
