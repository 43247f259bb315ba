"""The toy's command."""

from __future__ import annotations

import click


@click.command()
@click.argument("text")
def shout(text: str) -> None:
    """Say TEXT in capitals."""
    click.echo(text.upper())
