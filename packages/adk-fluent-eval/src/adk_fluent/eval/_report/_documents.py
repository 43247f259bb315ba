"""Reports as documents, made from the templates beside: Markdown, lines for terminals, JUnit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adk_fluent.eval import _text
from adk_fluent.extend import clean, one_line, plural, shorten

if TYPE_CHECKING:
    from jinja2 import Environment

Escape: TypeAlias = Callable[[str], str]

#: Functions that templates use.
_FILTERS: Final = (
    *(clean, one_line, plural, shorten),
    *(_text.dollars, _text.interval, _text.measured, _text.percent, _text.seconds),
)
#: What has a meaning in Markdown, HTML or on GitHub; ``_`` inside a word has none.
_SPECIAL: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")
#: GitHub links names, numbers and addresses after Markdown; a zero-width space prevents it.
_SEPARATED: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}
_LISTED: Final = 50  # items that a line lists; a table has twice as many rows


def escaped(text: str) -> str:
    """Return a text in one line without markup, HTML, mentions or links."""
    return _SPECIAL.sub(
        lambda found: _SEPARATED.get(found[0]) or f"&#{ord(found[0])};", one_line(text)
    )


def document(name: str, text: Escape = one_line, **given: Any) -> str:
    """Return what a template makes of a report.

    Args:
        name: The template.
        text: What makes a text of a model safe to show.
        **given: What the template shows.
    """
    made = environment(text).get_template(name).render(page=text is escaped, **given)
    return f"{made.strip()}\n"


def environment(text: Escape, **more: Any) -> Environment:
    """Return where templates are, and the functions they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415  # slow to import

    made = Environment(
        loader=PackageLoader("adk_fluent.eval", "_report"),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def listed(ids: Sequence[str]) -> str:
        return ", ".join(_text.bounded([*map(text, ids)], _LISTED))

    filters: dict[str, Any] = made.filters
    filters |= {each.__name__: each for each in _FILTERS}
    filters |= {"listed": listed, "quoted": _quoted, "table": _table}
    filters |= {"n": "{:,}".format, "text": text, **more}
    return made


def _quoted(text: str) -> str:
    """An attribute of XML, in which readers find the same line breaks."""
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415  # of one document alone

    return quoteattr(clean(text))


def _table(text: str) -> str:
    """Rows of cells between tabs, as a table that reads well as Markdown and as text."""
    heads, *rows = (line.split("\t") for line in text.splitlines())
    shown, more = rows[: 2 * _LISTED], rows[2 * _LISTED :]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    lines = [
        f"| {' | '.join(map(str.ljust, row, widths))} |"
        for row in (heads, ["-" * width for width in widths], *shown)
    ]
    return "\n".join([*lines, *([f"\nand {len(more):,} more"] if more else []), ""])
