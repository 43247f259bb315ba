"""``adk-fluent middleware``: what there is to choose from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli import note
from adk_fluent.extend import find_middleware, layer_errors, registered_middlewares

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.protocol import MiddlewareDesc


@click.group()
def middleware() -> None:
    """Look at the middlewares that can be chosen by name."""


@middleware.command("list")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_(as_json: bool) -> None:
    """List all, with what each does."""
    found = registered_middlewares()
    for error in layer_errors("middleware"):
        note(f"left out: {error}", fg="yellow")
    if as_json:
        click.echo(json.dumps([_data(each) for each in found.values()], indent=2))
        return
    width = max((len(name) for name in found), default=0)
    for name, each in found.items():
        click.echo(f"{name:{width}}  {each.description}")


@middleware.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def show(name: str, as_json: bool) -> None:
    """Show what one does, and its settings."""
    desc = find_middleware(name)
    if as_json:
        click.echo(json.dumps(_data(desc), indent=2))
        return
    click.echo(f"{desc.name}: {desc.description}")
    for line in _settings(desc.config_schema or {}):
        click.echo(line)
    if live := _live(desc):
        click.echo(f"in Python also: {', '.join(live)}")


def _data(desc: MiddlewareDesc) -> dict[str, Any]:
    return {
        "name": desc.name,
        "description": desc.description,
        "config_schema": desc.config_schema,
        "live": _live(desc),
    }


def _live(desc: MiddlewareDesc) -> list[str]:
    """The options that no file can hold: functions, stores, clocks."""
    return list(getattr(desc.factory, "live", ()))


def _settings(schema: Mapping[str, Any]) -> Iterator[str]:
    needed = schema.get("required", ())
    shapes: Mapping[str, Any] = schema.get("properties", {})
    width = max((len(name) for name in shapes), default=0)
    for name, shape in shapes.items():
        default = "needed" if name in needed else json.dumps(shape.get("default"))
        yield f"  {name:{width}}  {default:10}  {shape.get('description', '')}".rstrip()
