"""Reports as documents, made from the templates beside: Markdown, lines for terminals, JUnit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adk_fluent.eval import _text

if TYPE_CHECKING:
    from jinja2 import Environment

Escape: TypeAlias = Callable[[str], str]

#: Functions of `_text` that templates use.
_FILTERS: Final = (
    *("clean", "dollars", "interval", "measured", "one_line", "percent", "plural", "seconds"),
    "shorten",
)
#: What has a meaning in Markdown, HTML or on GitHub; ``_`` inside a word has none.
_SPECIAL: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")
#: GitHub links names, numbers and addresses after Markdown; a zero-width space prevents it.
_SEPARATED: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}
_LINE: Final = 500
_LISTED: Final = 50  # items that a line lists; a table has twice as many rows


def plain_line(text: str) -> str:
    """Return a text in one line, for a terminal."""
    return _text.one_line(text, _LINE)


def escaped(text: str) -> str:
    """Return a text in one line without markup, HTML, mentions or links."""
    return _SPECIAL.sub(
        lambda found: _SEPARATED.get(found[0]) or f"&#{ord(found[0])};", plain_line(text)
    )


def document(name: str, text: Escape = plain_line, **given: Any) -> str:
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
    filters |= {name: getattr(_text, name) for name in _FILTERS}
    filters |= {"listed": listed, "quoted": _quoted, "table": _table}
    filters |= {"n": "{:,}".format, "text": text, **more}
    return made


def _quoted(text: str) -> str:
    """An attribute of XML, in which readers find the same line breaks."""
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415  # of one document alone

    return quoteattr(_text.clean(text))


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
