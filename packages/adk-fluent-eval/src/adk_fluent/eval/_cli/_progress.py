"""How far a run is: a bar at a terminal, lines elsewhere, all on standard error."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from adk_fluent._keys import without_keys
from adk_fluent.cli._status import is_watched
from adk_fluent.eval._cli._summary import missed_line
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from adk_fluent.eval._running._progress import Progress

#: How often a line says how far it is, of one run of a suite.
_LINES: Final = 10
#: What is counted, in this order, and what it is called.
_COUNTED: Final = {
    Status.PASSED: "passed",
    Status.FAILED: "failed",
    Status.ERROR: "in error",
    Status.SKIPPED: "skipped",
    Status.XFAILED: "failed as expected",
}


class Silent:
    """Shows nothing."""

    def begin(self, title: str) -> None:
        """A suite is about to be run."""

    def tell(self, progress: Progress) -> None:
        """A run of a case is done."""

    def end(self) -> None:
        """The suite is done, or is not run any more."""


class Lines(Silent):
    """Shows a line for each run that did not pass, and ten on the way."""

    def __init__(self) -> None:
        self._title = ""
        self._counts: Counter[Status] = Counter()
        self._resumed = 0

    def begin(self, title: str) -> None:
        self._title, self._resumed = one_line(title, 80), 0
        self._counts.clear()

    def tell(self, progress: Progress) -> None:
        outcome, done, total = progress.outcome, progress.done, progress.total
        self._counts[outcome.status] += 1
        if progress.resumed:
            self._resumed += 1
            return
        if outcome.status in {Status.FAILED, Status.ERROR}:
            _say(missed_line(outcome))
        if done * _LINES // total > (done - 1) * _LINES // total:
            _say(f"{self._title}: {done:,} of {total:,} runs, {_counted(self._counts)}")

    def end(self) -> None:
        if self._resumed:
            _say(f"{self._title}: {self._resumed:,} runs are taken from the journal")


class Bar(Silent):
    """Shows a bar with counts, and above it each run that did not pass."""

    def __init__(self) -> None:
        self._counts: Counter[Status] = Counter()
        self._bars: Bars | None = None

    def begin(self, title: str) -> None:
        self._counts.clear()
        self._bars = _bars()
        self._bars.add_task(one_line(title, 40), total=None, counted="getting ready")
        self._bars.start()

    def tell(self, progress: Progress) -> None:
        outcome, bars = progress.outcome, self._bars
        if bars is None:
            return
        self._counts[outcome.status] += 1
        bars.update(
            bars.task_ids[0],
            completed=progress.done,
            total=progress.total,
            counted=_counted(self._counts),
        )
        if outcome.status in {Status.FAILED, Status.ERROR} and not progress.resumed:
            from rich.text import Text  # noqa: PLC0415  # slow to import

            line = Text.from_ansi(without_keys(missed_line(outcome)))
            bars.console.print(line, soft_wrap=True)

    def end(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None


def display(*, wanted: bool) -> Silent:
    """What shows how far a run is.

    Args:
        wanted: Whether anything is to be shown.
    """
    if not wanted:
        return Silent()
    return Bar() if is_watched(sys.stderr) else Lines()


def _say(text: str) -> None:
    click.echo(without_keys(text), err=True)


def _counted(counts: Counter[Status]) -> str:
    return ", ".join(
        f"{counts[status]:,} {word}"
        for status, word in _COUNTED.items()
        if counts[status] or status is Status.PASSED
    )


def _bars() -> Bars:
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counted]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
