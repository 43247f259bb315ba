"""Lines of text for terminals, and for Markdown that is safe to show whatever a model said."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from adk_fluent.eval._text import one_line

Escape: TypeAlias = Callable[[str], str]

#: What has a meaning in Markdown, HTML or on GitHub; ``_`` inside a word has none.
_SPECIAL: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")
#: GitHub links names, numbers and addresses after Markdown; a zero-width space prevents it.
_SEPARATED: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}
_LINE: Final = 500
LISTED: Final = 50  # items that a page lists


def plain_line(text: str) -> str:
    """Return a text in one line, for a terminal."""
    return one_line(text, _LINE)


def escaped(text: str) -> str:
    """Return a text in one line without markup, HTML, mentions or links."""
    return _SPECIAL.sub(
        lambda found: _SEPARATED.get(found[0]) or f"&#{ord(found[0])};", one_line(text, _LINE)
    )


def listed(ids: Sequence[str], text: Escape) -> str:
    """Return the first ids in a line."""
    more = f", and {len(ids) - LISTED:,} more" if len(ids) > LISTED else ""
    return f"{', '.join(map(text, ids[:LISTED]))}{more}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table that reads well as Markdown and as text."""
    if not rows:
        return
    shown = rows[: 2 * LISTED]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    yield ""
    for row in (heads, ["-" * width for width in widths], *shown):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(cells)} |"
    if (more := len(rows) - len(shown)) > 0:
        yield f"\nand {more:,} more"
