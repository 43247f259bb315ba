"""The summary that GitHub shows of a step of a job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._report._markdown import report_page
from adk_fluent.eval._write import unwritable

if TYPE_CHECKING:
    from adk_fluent.eval._report._report import FluentEvalReport

#: Bytes of a step's summary; GitHub shows none of one that is larger.
LIMIT: Final = 1024 * 1024

_NOTE: Final = (
    "\n\n*Cut here: GitHub shows summaries of up to 1 MiB. The report's file has it all.*\n"
)


def add_summary(report: FluentEvalReport, path: str | os.PathLike[str] | None = None) -> bool:
    """Adds a report to a summary, as much of it as there is room for.

    Args:
        report: The report.
        path: The file of the summary; None is the one that GitHub names.

    Returns:
        Whether it was added: not without a file, and not to one that is full.

    Raises:
        EvalFileError: The file cannot be written.
    """
    given = path or os.environ.get("GITHUB_STEP_SUMMARY")
    if not given:
        return False
    try:
        file = Path(given)
        used = file.stat().st_size if file.exists() else 0
        page = fitting(f"\n\n{report_page(report, report.baseline)}", LIMIT - used)
        if not page:
            return False
        with file.open("ab") as opened:
            opened.write(page)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise unwritable(given, error) from error
    return True


def fitting(page: str, room: int) -> bytes:
    """A page in UTF-8, cut after a line and with a note if it has no room; empty if none fits."""
    whole = page.encode()
    if len(whole) <= room:
        return whole
    cut = whole.rfind(b"\n", 0, max(0, room - len(_NOTE.encode())))
    return whole[:cut] + _NOTE.encode() if whole[: max(cut, 0)].strip() else b""
