"""What commands share: their targets, the files they write, and how Ctrl-C ends them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from adk_fluent.cli import (
    FINDINGS,
    INFRASTRUCTURE,
    OK,
    Target,
    attribute_of,
    module_of,
    note,
)
from adk_fluent.errors import AdkFluentError
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._report._documents import document, plain_line
from adk_fluent.eval._report._report import FluentEvalReport, in_form
from adk_fluent.eval._suite import FluentEvalSuite
from adk_fluent.eval._text import encodable, error_line
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping


FROM_0: Final = click.IntRange(min=0)
#: What reads a file of cases, by its ending.
_READERS: Final = {
    **dict.fromkeys((".yaml", ".yml"), FluentEvalSuite.from_yaml),
    **dict.fromkeys((".csv", ".jsonl", ".ndjson"), FluentEvalSuite.from_table),
    ".json": FluentEvalSuite.from_eval_set,
}


def load_suite(text: str, pipeline: str | None = None) -> FluentEvalSuite:
    """Return the suite that a target names.

    Modules print to standard error while they are imported: standard output is for results.

    Args:
        text: The target, of a module or a file of cases.
        pipeline: The target of what the cases of a file are for.
    """
    if read := _READERS.get(Path(text).suffix.lower()):
        with redirect_stdout(sys.stderr):
            given = None if pipeline is None else _attribute(Target.parse(pipeline))
        return read(text, given)
    if pipeline is not None:
        raise click.UsageError("--pipeline is for files of cases; the suite of a module has one.")
    target = Target.parse(text)
    with redirect_stdout(sys.stderr):
        module = module_of(target)
        known = [name for name, each in vars(module).items() if isinstance(each, FluentEvalSuite)]
        names = ", ".join(known) or "none"
        if target.attribute is not None:
            value = attribute_of(target, module)
        elif len(known) == 1:
            value = vars(module)[known[0]]
        else:
            help = f"name one: {target.source}:{(*known, 'suite')[0]}"
            raise target.error(f"{text} names no suite", help, found=names)
        if callable(value) and not isinstance(value, type):
            try:
                value = value()
            except EvalError:
                raise
            except Exception as error:
                what, found = f"{text} cannot be called", error_line(error)
                help = "a function without arguments returns a suite"
                raise target.error(what, help, found=found) from error
    if not isinstance(value, FluentEvalSuite):
        what = f"{text} is not a FluentEvalSuite"
        raise target.error(what, f"suites in the module: {names}", found=describe(value))
    return value


def _attribute(target: Target) -> Any:
    """What a target names, as it is: a suite takes graphs and Apps of ADK, too."""
    return attribute_of(target, module_of(target))


STDOUT: Final = "-"
OUT: Final = click.Path(dir_okay=False, allow_dash=True)
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_SUMMARY_BYTES: Final = 1 << 20  # GitHub shows nothing of a longer one
_CUT: Final = "\n\nCut here: GitHub shows no more than 1 MiB.\n"
_TITLES: Final = {"json": "JSON", "junit": "JUnit", "markdown": "Markdown", "html": "HTML"}
#: The documents that a report can be.
FORMS: Final = tuple(_TITLES)


def output_options(*forms: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each form."""

    def add(command: Any) -> Any:
        for form in reversed(forms):
            help = f"Write {_TITLES[form]} there; - is stdout."
            command = click.option(f"--{form}", type=OUT, metavar="FILE", help=help)(command)
        return command

    return add


class Output:
    """The files of one command, and in a step of GitHub Actions its summary."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self.failed = False

    def write(self, form: str, make: Callable[[], str]) -> None:
        """Write a document if its form was asked for."""
        path: str | None = self._options.get(form)
        if path == STDOUT:
            sys.stdout.write(f"{encodable(make()).rstrip()}\n")
        elif path is not None:
            self.save(path, make, Source.write_page if form == "html" else Source.write)

    def save(
        self, path: str, make: Callable[[], str], write: Callable[..., None] = Source.write
    ) -> None:
        """Write a document to a file; a failure is noted, and the others are still written."""
        text = encodable(make())
        with self.noting():
            write(path, [text])

    @contextmanager
    def noting(self) -> Generator[None]:
        """Note a file that cannot be written, and go on."""
        try:
            yield
        except OSError as error:
            self.failed = True
            own = isinstance(error, AdkFluentError)
            what = error if own else f"{error.filename} cannot be written: {error.strerror}"
            note(f"error: {what}", fg="red")

    def summarize(self, make: Callable[[], str]) -> None:
        """Add Markdown to the summary that GitHub shows of a step, as much as it has room for."""
        if not (path := os.environ.get(_SUMMARY)):
            return
        page = f"{encodable(make())}\n".encode()
        with self.noting(), Path(path).open("ab") as file:
            room = _SUMMARY_BYTES - file.tell()
            if len(page) > room:
                end = page.rfind(b"\n", 0, max(0, room - len(_CUT)))
                page = page[:end] + _CUT.encode() if end > 0 else b""
            file.write(page)

    def write_report(
        self, report: FluentEvalReport, baseline: FluentEvalReport | None = None
    ) -> None:
        """Write the documents of a report that were asked for."""
        for form in FORMS:
            self.write(form, partial(in_form, report, form, baseline))
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


T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, which SIGINT or SIGTERM cancels; a second one breaks into what blocks.

    Raises:
        KeyboardInterrupt: A signal came.
    """

    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)  # which asyncio knows what to do about

    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)  # signals are of the main thread
    # of a job in the background, shells make SIGINT ignored
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt}
    before = {number: signal.signal(number, each) for number, each in handlers.items()}
    try:
        return asyncio.run(work)
    finally:
        for number, each in before.items():
            signal.signal(number, each)
