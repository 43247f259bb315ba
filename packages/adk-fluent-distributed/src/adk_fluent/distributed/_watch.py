"""Lists of runs in a terminal, also live; elsewhere, a line for each change."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from typing import TYPE_CHECKING, Final

from adk_fluent.distributed._summaries import STATUSES
from adk_fluent.extend import one_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from adk_fluent.distributed._summaries import RunSummary

_HEADS: Final = ("RUN", "STATUS", "SEGMENT", "CALLS")
_OWN_SCREEN, _BACK = "\x1b[?1049h", "\x1b[?1049l"
_HOME, _REST = "\x1b[H", "\x1b[J"


def table(runs: Sequence[RunSummary]) -> list[str]:
    """The lines of a table of runs; what needs somebody comes first."""
    ordered = sorted(runs, key=lambda each: STATUSES.index(each.status))
    rows = [(r.run_id, r.status, r.segment or "-", str(r.calls), one_line(r.note)) for r in ordered]
    widths = [
        max(map(len, column)) for column in zip(_HEADS, *(row[:4] for row in rows), strict=True)
    ]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]
        ).rstrip()
        for row in ((*_HEADS, ""), *rows)
    ]


def counted(runs: Sequence[RunSummary]) -> str:
    """How many runs there are of each status."""
    counts = Counter(each.status for each in runs)
    told = ", ".join(f"{counts[each]} {each}" for each in STATUSES if counts[each])
    return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}: {told}" if runs else "no runs"


async def watch(
    read: Callable[[], Awaitable[Sequence[RunSummary]]],
    *,
    seconds: float,
    over: Callable[[Sequence[RunSummary]], bool],
) -> None:
    """Show runs until they are over: the whole table in a terminal, else a line for each change.

    Args:
        read: Reads the runs.
        seconds: Pause between two looks.
        over: Whether there is nothing more to see.
    """
    out = sys.stdout
    known: dict[str, RunSummary] = {}
    live = out.isatty()
    if live:
        out.write(_OWN_SCREEN)
    runs: Sequence[RunSummary] = ()
    try:
        while True:
            runs = await read()
            if live:
                out.write(_screen(runs))
            else:
                out.writelines(
                    f"{_line(each)}\n" for each in runs if known.get(each.run_id) != each
                )
                known = {each.run_id: each for each in runs}
            out.flush()
            if over(runs):
                return
            await asyncio.sleep(seconds)
    finally:
        if live:  # what was seen last stays
            out.write(f"{_BACK}{counted(runs)}\n")
            out.flush()


def _screen(runs: Sequence[RunSummary]) -> str:
    width, height = shutil.get_terminal_size()
    lines = [counted(runs), "", *table(runs)]
    if len(lines) >= height:
        left = len(lines) - height + 2
        lines = [*lines[: height - 2], f"... and {left} more; Ctrl-C ends this"]
    return _HOME + "".join(f"{line[:width]}\x1b[K\n" for line in lines) + _REST


def _line(run: RunSummary) -> str:
    where = f" in segment {run.segment}" if run.segment else ""
    note = f" ({one_line(run.note)})" if run.note else ""
    return f"{run.run_id}: {run.status}{where}{note}"
