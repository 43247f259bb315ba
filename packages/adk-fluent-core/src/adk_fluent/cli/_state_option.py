"""The option ``--state`` of every command that begins a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def state_option(command: F) -> F:
    """Add ``--state KEY=VALUE`` to a command, which gets a dict as ``state``.

    Args:
        command: The function of the command, or the command.
    """
    return click.option(
        "--state",
        multiple=True,
        callback=_pairs,
        metavar="KEY=VALUE",
        help="What a new session's state starts with; VALUE is JSON or text. May be repeated.",
    )(command)


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE, where VALUE is JSON or else plain text."""
    state: dict[str, Any] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{value!r} is not KEY=VALUE.")
        try:
            state[key.strip()] = json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError:
            state[key.strip()] = text
    return state


def _refuse_constant(word: str) -> NoReturn:
    raise click.BadParameter(f"{word} is no JSON; for the text write '\"{word}\"'.")
