"""What is going on, for a person who waits at a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from adk_fluent.cli._text import short

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.progress import Progress

_WIDTH: Final = 60


def is_interactive(stream: IO[str] | None) -> bool:
    """Tell whether a stream is a terminal on which a line can be rewritten.

    Args:
        stream: Such as ``sys.stderr``; None is none.
    """
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


class Status:
    """A line that says what is at work and for how long; it gives way to everything else.

    Args:
        on: Whether there is anybody to look at it.
    """

    def __init__(self, *, on: bool) -> None:
        self.on: bool = on
        self._what = ""
        self._line: Progress | None = None

    def tell(self, what: str) -> None:
        """Say what is at work; "" if that is not known."""
        if what != self._what and self._line is not None:
            self._line.reset(self._line.task_ids[0], description=_shown(what))
        self._what = what

    def show(self) -> None:
        """Show the line, if it is not shown yet."""
        if self.on and self._line is None:
            self._line = _line()
            self._line.add_task(_shown(self._what), total=None)
            self._line.start()

    def hide(self) -> None:
        """Take the line away."""
        if self._line is not None:
            self._line.stop()
            self._line = None

    @contextmanager
    def shown(self, what: str) -> Generator[None]:
        """Show the line while something else is done."""
        self.tell(what)
        self.show()
        try:
            yield
        finally:
            self.hide()


def _shown(what: str) -> str:
    return short(what, _WIDTH)


def _line() -> Progress:
    from rich.console import Console  # slow to import, and seldom needed
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", style="dim", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # what tools print goes above the line
    )
