"""The command group: core's commands, then those that layers bring, each imported when used."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from adk_fluent._registry import offers
from adk_fluent.cli._failures import report

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Name to (module:attribute, one line of help); the help is here so that `--help` imports nothing.
COMMANDS = {
    "demo": (
        "adk_fluent.cli._demo:demo",
        "Run a support desk over fifty tickets, offline or real.",
    ),
    "doctor": ("adk_fluent.cli._doctor:doctor", "Look at what is installed and whether it fits."),
    "explain": ("adk_fluent.cli._explain:explain", "Show what a pipeline is, step by step."),
    "run": ("adk_fluent.cli._run:run", "Run a pipeline once."),
}


class _Group(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *(offer.name for offer in offers("commands"))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name][0].partition(":")
            return getattr(import_module(module), attribute)
        return next((o.load() for o in offers("commands") if o.name == cmd_name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, COMMANDS[name][1] if name in COMMANDS else "(from an installed layer)")
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="adk-fluent-core", prog_name="adk-fluent")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Build, check and run agent pipelines on Google's ADK."""
    ctx.obj = {"debug": debug}


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # targets name modules of where the user stands
    debug = "--debug" in (sys.argv[1:] if args is None else args)
    try:
        code = cli.main(args, prog_name="adk-fluent", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # every failure has a message and a code
        if debug and not isinstance(error, click.ClickException | click.Abort):
            raise
        code = report(error)
    sys.exit(code if isinstance(code, int) else 0)
