"""Tables for terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GAP: Final = "  "


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; a head that ends in ``:`` puts its column to the right.

    Cells may have colours, and are taken as they are.
    """
    shown = [click.style(head.removesuffix(":").upper(), dim=True) for head in heads]
    table = [shown, *rows]
    widths = [max(_width(row[at]) for row in table) for at in range(len(heads))]
    for row in table:
        cells = (
            _padded(cell, width, right=head.endswith(":"))
            for cell, width, head in zip(row, widths, heads, strict=True)
        )
        yield _GAP.join(cells).rstrip()


def _padded(cell: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if right else cell + blanks


def _width(cell: str) -> int:
    return len(click.unstyle(cell))
