"""``adk-fluent eval``: the commands, each imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from adk_fluent.errors import nearest_name

if TYPE_CHECKING:
    from adk_fluent.cli._failures import Call

#: Name to (module:attribute, one line of help); the help is here so that `--help` imports nothing.
COMMANDS: Final = {
    "compare": ("_compare:compare", "Hold a report against an earlier one, case by case."),
    "export": ("_convert:export", "Write the cases of a suite to a file."),
    "import": ("_convert:import_", "Turn a file of cases into one of another format."),
    "list": ("_list:list_", "List the cases of a suite, running nothing."),
    "report": ("_render:report", "Show saved reports, or turn them into other formats."),
    "run": ("_run:run", "Run suites of cases, and say whether they pass."),
}


class _Group(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), attribute)
        if all(param.name != "debug" for param in command.params):
            command.params.append(_DEBUG)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest_name(name, COMMANDS)
            hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command {name!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in COMMANDS.items()])


def _set_debug(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    call: Call | None = ctx.obj  # of the program that this is a command of
    if value and call is not None:
        call.debug = True


_DEBUG: Final = click.Option(
    ["--debug"], is_flag=True, expose_value=False, callback=_set_debug, help="Show tracebacks."
)


@click.group("eval", cls=_Group)
def evaluate() -> None:
    """Run suites of cases against pipelines, compare and report.

    Ends with 0 if all is well, 1 if a gate is not met, 2 for wrong usage, 3 if a service cannot be
    reached or a file cannot be written, 130 after Ctrl-C, 143 after SIGTERM.
    """
