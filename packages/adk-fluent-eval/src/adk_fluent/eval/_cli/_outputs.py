"""What is written of reports, each file even where another one cannot be."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent._keys import without_keys
from adk_fluent.cli._transcript import note
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._running._names import journal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adk_fluent.eval._report._matrix import ModelMatrix
    from adk_fluent.eval._report._report import FluentEvalReport

STDOUT: Final = "-"
FORMS: Final = ("json", "html", "junit", "markdown")


class Written:
    """The files of one call.

    Attributes:
        files: Those that were written.
        failed: Whether one could not be.
        to_stderr: Whether summaries go there, as standard output is one of the files.
    """

    def __init__(self, options: Mapping[str, Any], *, quiet: bool = False) -> None:
        self._options = {name: options.get(name) for name in FORMS}
        self._quiet = quiet
        self.files: list[str] = []
        self.failed = False
        self.to_stderr = STDOUT in self._options.values()

    def say(self, lines: Iterable[str]) -> None:
        """Show lines to the person."""
        for line in lines:
            click.echo(without_keys(line), err=self.to_stderr)

    def report(
        self,
        report: FluentEvalReport,
        label: str = "",
        *,
        baseline: FluentEvalReport | None = None,
        but: Iterable[str] = (),
    ) -> None:
        """Write a report in the forms that are asked for.

        Args:
            report: The report.
            label: What its files are told from others by; empty if there are no others.
            baseline: What the pages hold it against.
            but: Forms that are written otherwise.
        """
        makers: dict[str, Callable[[], str]] = {
            "json": report.to_json,
            "html": lambda: report.to_html(baseline),
            "junit": report.to_junit,
            "markdown": lambda: report.to_markdown(baseline),
        }
        for form, make in makers.items():
            if form in but or (place := self._place(form, label)) is None:
                continue
            if form == "json" and place != STDOUT:
                self.save(place, report)
            else:
                self.text(place, make)

    def matrix(self, matrix: ModelMatrix, label: str = "") -> None:
        """Write the models of a suite side by side, as JSON and in Markdown."""
        if (path := self._place("json", label)) == STDOUT:
            self.text(path, matrix.to_json)
        elif path is not None:
            self.save(path, matrix)
        if (path := self._place("markdown", label)) is not None:
            self.text(path, matrix.to_markdown)

    def save(self, path: str, made: FluentEvalReport | ModelMatrix) -> None:
        """Write a report or a matrix as it is read again."""

        def write() -> list[str]:
            made.save(path)
            return [path]

        self.attempt(write)

    def text(self, path: str, make: Callable[[], str]) -> None:
        """Write a text to a file, or to standard output."""
        from adk_fluent.eval._report._text import encodable  # noqa: PLC0415  # of files alone
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415  # of files alone

        if path == STDOUT:
            sys.stdout.write(f"{encodable(make()).rstrip()}\n")
            return

        def write() -> list[str]:
            write_whole(path, [encodable(make())])
            return [path]

        self.attempt(write)

    def attempt(self, write: Callable[[], Iterable[object]]) -> None:
        """Write something, which gives its files; tell if it fails."""
        try:
            files = write()
        except EvalFileError as error:
            self.failed = True
            note(f"error: {error}", fg="red")
        else:
            self.files.extend(map(str, files))

    def _place(self, form: str, label: str) -> str | None:
        path: str | None = self._options[form]
        return path if path in {None, STDOUT} or not label else str(journal_of(str(path), label))

    def github(self, reports: Iterable[FluentEvalReport]) -> None:
        """Add reports to the summary of a job of GitHub's, if this is one."""
        if not os.environ.get("GITHUB_STEP_SUMMARY"):
            return
        for each in reports:
            try:
                each.github_summary()
            except EvalFileError as error:
                note(f"warning: {error}", fg="yellow")

    def tell(self) -> None:
        """Name what was written."""
        if self.files and not self._quiet:
            self.say(["", f"written: {', '.join(self.files)}"])
