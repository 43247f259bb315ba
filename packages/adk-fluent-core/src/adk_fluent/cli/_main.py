"""The command group: core's commands, then those that layers bring, each imported when used."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent import _registry
from adk_fluent.cli._color import wanted
from adk_fluent.cli._failures import OK, Call
from adk_fluent.cli._versions import installed_version
from adk_fluent.errors import LayerError, nearest_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent._registry import Offer

#: Name to (module:attribute, one line of help); the help is here so that `--help` imports nothing.
COMMANDS: Final = {
    "check": ("adk_fluent.cli._check:check", "Look for mistakes in pipelines, running nothing."),
    "demo": (
        "adk_fluent.cli._demo:demo",
        "Run a support desk over fifty tickets, offline or real.",
    ),
    "doctor": ("adk_fluent.cli._doctor:doctor", "Look at what is installed and whether it fits."),
    "explain": ("adk_fluent.cli._explain:explain", "Show what a pipeline is, step by step."),
    "run": ("adk_fluent.cli._run:run", "Run a pipeline on a message, or in a conversation."),
    "viz": ("adk_fluent.cli._viz:viz", "Draw a pipeline: Mermaid, DOT, SVG or HTML."),
}

#: Commands of our own layers, so that their absence can be told from a misspelling.
OF_LAYERS: Final = {
    "estimate": "cost",
    "eval": "eval",
    "middleware": "middleware",
    "replay": "debug",
    "serve": "serve",
    "worker": "distributed",
}

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
        return sorted({*COMMANDS, *_of_layers()[0]})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name][0].partition(":")
            return _debuggable(getattr(import_module(module), attribute))
        offer = _of_layers()[0].get(cmd_name)
        return None if offer is None else _debuggable(offer.load())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            raise _unknown(name, self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        offers, broken = _of_layers()
        rows = {name: offer.entry.help for name, offer in offers.items()}
        rows |= {name: help for name, (_, help) in COMMANDS.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))
        if broken:
            formatter.write_paragraph()
            formatter.write_text(_broken_text(broken))


def _of_layers() -> tuple[dict[str, Offer], list[str]]:
    """Commands of layers by name, and the layers that are broken; nothing heavy is imported."""
    try:
        sources = _registry.found()
    except LayerError as error:
        return {}, [error.layer]
    offers: dict[str, Offer] = {}
    broken: list[str] = []
    for name, source in sources.items():
        try:
            entries = source.load().entries("commands")
        except LayerError:
            broken.append(name)
            continue
        offers |= {entry.name: _registry.Offer(name, entry, source) for entry in entries}
    return offers, broken


def _broken_text(broken: list[str]) -> str:
    return f"Broken layers: {', '.join(broken)}; adk-fluent doctor tells why."


def _debuggable(command: click.Command) -> click.Command:
    """The command with `--debug`, which is then taken on either side of its name."""
    if all(param.name != "debug" for param in command.params):
        command.params.append(_DEBUG)
    return command


def _unknown(name: str, known: Sequence[str], ctx: click.Context) -> Exception:
    layer = OF_LAYERS.get(name)
    broken = _of_layers()[1]
    if layer is not None and not broken and layer not in _registry.found():
        return _registry.missing_layer(layer, f"the command {name!r}")
    near = nearest_name(name, [*known, *OF_LAYERS])
    text = f"There is no command {name!r}."
    text += f" Did you mean {near!r}?" if near else f" There are {', '.join(known)}."
    return click.UsageError(f"{text} {_broken_text(broken)}" if broken else text, ctx)


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
