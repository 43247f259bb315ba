"""What backends can do, as a table for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from adk_fluent.testing.conformance._programs import programs
from adk_fluent.testing.conformance._subject import CAPABILITIES, WORKS, Status

if TYPE_CHECKING:
    from collections.abc import Mapping


def capability_table(columns: Mapping[str, Mapping[str, Status]]) -> str:
    """A table of Markdown: a row a capability, with the number of programs about it.

    Args:
        columns: By the name of a backend, what it lacks.
    """
    counts = Counter(program.capability for program in programs())
    rows = [("capability", "programs", *columns), ("---", "---:", *["---"] * len(columns))]
    rows += [
        (
            f"{name}: {means}",
            str(counts[name]),
            *(_cell(lacks.get(name, WORKS)) for lacks in columns.values()),
        )
        for name, means in CAPABILITIES.items()
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cell(status: Status) -> str:
    return f"{status.word}: {status.reason}" if status.reason else status.word
