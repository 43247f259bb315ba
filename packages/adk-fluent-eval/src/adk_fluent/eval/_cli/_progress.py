"""Live progress on standard error: a bar at a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli import is_interactive
from adk_fluent.eval._report._report import outcome_line
from adk_fluent.eval._text import one_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.progress import Progress as Bar

    from adk_fluent.eval._outcome import Status
    from adk_fluent.eval._running._options import Progress

_UPDATES: Final = 10  # progress lines of a run without a terminal


class ProgressDisplay:
    """Shows the progress of one suite."""

    def __init__(self, title: str, *, on: bool) -> None:
        self._title = one_line(title, 40)
        self._on = on
        self._counts: Counter[Status] = Counter()
        self._bar: Bar | None = _bar() if on and is_interactive(sys.stderr) else None
        if self._bar is not None:
            self._task: Any = self._bar.add_task(self._title, total=None, counts="")

    def shown(self) -> AbstractContextManager[Any]:
        """Return the context in which the progress is shown."""
        return nullcontext() if self._bar is None else self._bar

    def __call__(self, progress: Progress) -> None:
        """Show a finished run."""
        outcome, done, total = progress.outcome, progress.done, progress.total
        self._counts[outcome.status] += 1
        counts = ", ".join(f"{count:,} {status}" for status, count in self._counts.items())
        missed = outcome_line(outcome) if outcome.status in {"failed", "error"} else None
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, counts=counts)
            if missed is not None:
                self._bar.console.print(missed, markup=False, highlight=False, soft_wrap=True)
        elif self._on:
            if missed is not None:
                click.echo(missed, err=True)
            if done * _UPDATES // total > (done - 1) * _UPDATES // total:
                click.echo(f"{self._title}: {done:,} of {total:,} runs, {counts}", err=True)


def _bar() -> Bar:
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
