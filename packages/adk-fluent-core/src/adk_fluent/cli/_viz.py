"""``adk-fluent viz``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from adk_fluent.backends.viz import Format, Options
from adk_fluent.cli._target import load
from adk_fluent.errors import UsageError
from adk_fluent.ir import ExecutionConfig

if TYPE_CHECKING:
    from adk_fluent.builders import Builder

_FORMATS: Final = get_args(Format)


@click.command()
@click.argument("target")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write it to this file, whose name says the format; without one, Mermaid is printed.",
)
@click.option("--format", "form", type=click.Choice(_FORMATS), help="What it is written as.")
@click.option("--data-flow/--no-data-flow", default=True, help="Show who reads what whom wrote.")
@click.option(
    "--depth", type=click.IntRange(min=1), help="Levels that are shown; what is deeper is folded."
)
@click.option("--max-nodes", type=click.IntRange(min=1), help="Boxes at most; the rest is folded.")
@click.option("--model", help="Model of agents that name none.")
def viz(target: str, output: Path | None, **given: Any) -> None:
    """Draw a pipeline: Mermaid, DOT, SVG or HTML.

    TARGET is module:attribute or path.py:attribute.
    """
    options = Options(
        config=ExecutionConfig(default_model=given["model"]),
        data_flow=given["data_flow"],
        depth="fit" if given["depth"] is None else given["depth"],
        max_nodes="fit" if given["max_nodes"] is None else given["max_nodes"],
    )
    click.echo(_drawn(load(target), output, given["form"], options), nl=False)


def _drawn(pipeline: Builder, output: Path | None, form: Format | None, options: Options) -> str:
    """What is printed: the picture, unless it went into a file."""
    if output is None:
        return pipeline.visualize(form or "mermaid", **options)
    try:
        pipeline.visualize(form, output, **options)
    except UsageError as error:
        raise click.UsageError(f"{error.what}: {error.help or error.found}.") from error
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}.") from error
    return ""
