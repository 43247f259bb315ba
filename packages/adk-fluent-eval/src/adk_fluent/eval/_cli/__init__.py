"""``adk-fluent eval``: run a suite, compare and join reports, list cases."""

from __future__ import annotations

import click

from adk_fluent.eval._cli._commands import compare, list_cases, merge, run


@click.group("eval", context_settings={"show_default": True})
def evaluate() -> None:
    """Run a suite, compare and join reports, list cases.

    Exit codes: 0 passed, 1 a gate is not met, 2 wrong usage, 3 no service could be reached or a
    file could not be written, 130 interrupted.
    """


for _command in (run, compare, merge, list_cases):
    evaluate.add_command(_command)
