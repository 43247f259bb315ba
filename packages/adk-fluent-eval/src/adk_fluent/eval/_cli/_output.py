"""Files that commands write; standard output is ``-``."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli import FINDINGS, INFRASTRUCTURE, OK, note
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._source import with_suite, write_whole
from adk_fluent.eval._report._documents import document, plain_line
from adk_fluent.eval._report._report import FluentEvalReport, in_form
from adk_fluent.eval._text import encodable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


STDOUT: Final = "-"
OUT: Final = click.Path(dir_okay=False, allow_dash=True)
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_SUMMARY_BYTES: Final = 1 << 20  # GitHub shows nothing of a longer one
_CUT: Final = "\n\nCut here: GitHub shows no more than 1 MiB.\n"
_TITLES: Final = {"json": "JSON", "junit": "JUnit", "markdown": "Markdown", "html": "HTML"}
#: The documents that a report can be.
FORMS: Final = tuple(_TITLES)


def output_options(*forms: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each form, and one for GitHub's summary."""

    def add(command: Any) -> Any:
        for form in reversed(forms):
            help = f"Write {_TITLES[form]} there; - is stdout."
            command = click.option(f"--{form}", type=OUT, metavar="FILE", help=help)(command)
        return click.option(
            "--github-summary/--no-github-summary",
            default=None,
            callback=_summary_path,
            help=f"Add Markdown to the summary of a step; by default if {_SUMMARY} is set.",
        )(command)

    return add


def _summary_path(ctx: click.Context, param: click.Parameter, value: bool | None) -> str | None:
    path = os.environ.get(_SUMMARY)
    if value and not path:
        raise click.UsageError(f"--github-summary needs {_SUMMARY}, which GitHub sets.")
    return None if value is False else path


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
            self.fail(str(error))

    def fail(self, why: str) -> None:
        """Note what could not be written."""
        self.failed = True
        note(f"error: {why}", fg="red")

    def summarize(self, make: Callable[[], str]) -> None:
        """Add Markdown to the summary that GitHub shows of a step, as much as it has room for."""
        path: str | None = self._options.get("github_summary")
        if not path:
            return
        try:
            with Path(path).open("ab") as file:
                room = _SUMMARY_BYTES - file.tell()
                page = f"{encodable(make())}\n".encode()
                if len(page) > room:
                    end = page.rfind(b"\n", 0, max(0, room - len(_CUT)))
                    page = page[:end] + _CUT.encode() if end > 0 else b""
                file.write(page)
        except (OSError, ValueError) as error:
            self.fail(f"{path} cannot be written: {error}")

    def write_report(
        self, report: FluentEvalReport, baseline: FluentEvalReport | None = None, suite: str = ""
    ) -> None:
        """Write the documents of a report that were asked for."""
        for form in FORMS:
            self.write(form, partial(in_form, report, form, baseline), suite)
        self.summarize(report.to_markdown)

    def say(self, lines: Iterable[str]) -> None:
        """Print lines for the person: on standard error if standard output is a document."""
        for line in lines:
            click.echo(line, err=STDOUT in self._options.values())

    def say_report(self, report: FluentEvalReport, *, quiet: bool = False) -> None:
        """Print the verdict, and the report."""
        verdict = styled("passed" if report.ok else "not passed", ok=report.ok)
        lines = document("report.md.j2", report=report).splitlines()
        self.say([f"{plain_line(report.suite)}: {verdict}, {lines[0]}"])
        self.say([] if quiet else lines[2:])

    def code(self, *, ok: bool) -> int:
        """Return the exit code of a command whose documents are written."""
        return INFRASTRUCTURE if self.failed else OK if ok else FINDINGS


def styled(verdict: str, *, ok: bool) -> str:
    """Return a verdict in its color."""
    return click.style(verdict, fg="green" if ok else "red", bold=True)
