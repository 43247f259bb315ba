"""Files that commands write; standard output is ``-``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli import note
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._source import with_suite, write_whole
from adk_fluent.eval._text import encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STDOUT: Final = "-"
OUT: Final = click.Path(dir_okay=False, allow_dash=True)


def output_options(*forms: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each form."""

    def add(command: Any) -> Any:
        for form in reversed(forms):
            help = f"Write {form.upper() if form == 'json' else form.title()} there; - is stdout."
            command = click.option(f"--{form}", type=OUT, metavar="FILE", help=help)(command)
        return command

    return add


class Output:
    """The files of one command."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self.failed = False

    def write(self, form: str, make: Callable[[], str], suite: str = "") -> None:
        """Write a document if its form was asked for."""
        path: str | None = self._options.get(form)
        if path == STDOUT:
            sys.stdout.write(f"{encodable(make()).rstrip()}\n")
        elif path is not None:
            self.save(with_suite(path, suite), make)

    def save(self, path: str, make: Callable[[], str]) -> None:
        """Write a document to a file; a failure is noted, and the others are still written."""
        try:
            write_whole(path, [encodable(make())])
        except EvalFileError as error:
            self.failed = True
            note(f"error: {error}", fg="red")

    def say(self, line: str) -> None:
        """Print a line for the person: on standard error if standard output is a document."""
        click.echo(line, err=STDOUT in self._options.values())
