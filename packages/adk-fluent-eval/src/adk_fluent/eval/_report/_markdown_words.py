"""Texts and tables in Markdown that stay what they are, whatever a model said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: What means something to Markdown, HTML or GitHub. ``_`` within a word does not.
_MEANS: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")

#: What needs no care in backticks.
_SAFE_CODE: Final = re.compile(r"[\w .,:;/()+=%-]*[\w.,:;/()+=%-]")

#: GitHub looks for names, numbers and addresses when Markdown is done: something is put between.
_BETWEEN: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}

#: Rows of a table, and characters of a cell.
ROWS, CELL = 100, 120


def text(value: str, limit: int = 500) -> str:
    """A text in one line, which shows as it is: no markup, no HTML, no mention, no link."""
    return _MEANS.sub(_harmless, one_line(value, limit))


def code(value: str, limit: int = CELL) -> str:
    """A name in the font of code."""
    line = one_line(value, limit)
    if _SAFE_CODE.fullmatch(line) and not line.startswith(" "):
        return f"`{line}`"
    return f"<code>{_MEANS.sub(_harmless, line)}</code>" if line else NONE


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that are safe already; a head that ends in ``:`` puts numbers to the right.

    Rows beyond a hundred are counted.
    """
    every = list(rows)
    lines = [_row([head.removesuffix(":") for head in heads])]
    lines.append(_row(["---:" if head.endswith(":") else "---" for head in heads]))
    lines += [_row(each) for each in every[:ROWS]]
    if (more := len(every) - ROWS) > 0:
        lines += ["", f"*and {more:,} more*"]
    return [*lines, ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _harmless(found: re.Match[str]) -> str:
    sign = found[0]
    return _BETWEEN.get(sign) or f"&#{ord(sign)};"
