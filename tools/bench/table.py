"""The report as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.judges import Finding
    from bench.rows import Row

HEADINGS = ("row", "ours", "raw ADK", "monolith", "ratio (95 % bound)", "goal", "verdict")
NOT_YET = "not yet"


def verdict(row: Row, finding: Finding | None) -> str:
    """One word on a row."""
    if not row.cases:
        return NOT_YET
    if finding is None:
        return "failed"
    return {None: "-", True: "reached", False: "MISSED"}[finding.reached]


def goal(row: Row) -> str:
    """The goal, with the spec's budget behind it."""
    return f"{row.goal} [{row.budget}]" if row.budget else row.goal


def report(rows: Sequence[Row], findings: Mapping[str, Finding]) -> str:
    """The table."""
    lines: list[tuple[str, ...]] = [HEADINGS]
    for row in rows:
        finding = findings.get(row.id)
        cells = finding.cells if finding else {}
        lines.append(
            (
                row.what,
                *(cells.get(side, "") for side in ("ours", "adk", "mono")),
                finding.ratio if finding else "",
                goal(row),
                verdict(row, finding),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
