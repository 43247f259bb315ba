"""The command group: core's commands, then those that layers bring, each imported when used."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent._core import CORE
from adk_fluent._registry import (
    known_names,
    layer_errors,
    offer_of,
    offers,
    require_provider,
    thing_at,
)
from adk_fluent.cli._color import wanted
from adk_fluent.cli._failures import OK, Call
from adk_fluent.cli._versions import installed_version
from adk_fluent.errors import LayerError, MissingLayerError, nearest_name

if TYPE_CHECKING:
    from collections.abc import Sequence

_SLOT: Final = "commands"

#: What they log is for their own authors, tracebacks included; what is wrong is raised as well.
#: Someone who configures logging still gets it.
_LOGGERS: Final = ("asyncio", "google_adk", "google_genai", "opentelemetry")


def _set_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    call = ctx.find_object(Call)
    if value and call is not None:
        call.debug = True
        logging.basicConfig()


_DEBUG: Final = click.Option(
    ["--debug"], is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks."
)


class _Group(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_helps())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for entry in CORE.entries(_SLOT):  # a layer cannot take these away
            if entry.name == cmd_name:
                return _debuggable(thing_at(entry.target))
        offer = offer_of(_SLOT, cmd_name)
        return None if offer is None else _debuggable(offer.load())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in _helps():
            raise _unknown(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_helps().items()))
        if problems := _problems():
            formatter.write_paragraph()
            formatter.write_text(problems)


def _helps() -> dict[str, str]:
    """Each command with its line of help; nothing of them is imported."""
    of_layers = {each.name: each.entry.help for each in offers(_SLOT)}
    return of_layers | {each.name: each.help for each in CORE.entries(_SLOT)}


def _problems() -> str:
    """What to say of layers that are broken or share a name; "" if there are none."""
    names = sorted({each.layer for each in layer_errors()})
    text = f"Layers with problems: {', '.join(names)}; adk-fluent doctor tells why."
    return text if names else ""


def _debuggable(command: click.Command) -> click.Command:
    """The command with `--debug`, which is then taken on either side of its name."""
    if all(param.name != "debug" for param in command.params):
        command.params.append(_DEBUG)
    return command


def _unknown(name: str, known: Sequence[str], ctx: click.Context) -> Exception:
    try:
        require_provider(_SLOT, name, f"the command {name!r}")
    except (LayerError, MissingLayerError) as error:
        return error
    near = nearest_name(name, [*known, *known_names(_SLOT)])
    text = f"There is no command {name!r}."
    text += f" Did you mean {near!r}?" if near else f" There are {', '.join(known)}."
    return click.UsageError(f"{text} {_problems()}".rstrip(), ctx)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        core, adk = installed_version("adk-fluent-core"), installed_version("google-adk")
        click.echo(f"adk-fluent-core {core or 'from its sources'}, google-adk {adk or 'absent'}")
        ctx.exit()


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}, params=[_DEBUG])
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show what is installed.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Build, check and run agent pipelines on Google's ADK."""
    ctx.color = wanted()


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Args:
        args: The arguments; None takes those of the process.
    """
    stdout: Any = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):  # not every terminal can show every answer
        stdout.reconfigure(errors="backslashreplace")
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(logging.NullHandler())
    warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")  # of ADK, about what it chose itself
    call = Call()
    try:
        code: Any = cli.main(args, prog_name="adk-fluent", standalone_mode=False, obj=call)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # each has a message and a code
        code = call.report(error)
    sys.exit(code if isinstance(code, int) else OK)
