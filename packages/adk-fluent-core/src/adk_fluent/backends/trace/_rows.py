"""What a trace consists of, and how it is written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._texts import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.protocol import ErrorInfo, Usage

_CELL: Final = 60  # characters of a value in a table
_HEADS: Final = ("step", "node", "kind", "start", "time", "tokens", "state", "")
_RIGHT: Final = (3, 4, 5)


@dataclass(frozen=True, slots=True)
class Change:
    """How a state key changed; None is absent. As text: + is new, ~ other, = the same, - gone.

    Attributes:
        key: The key.
        before: What it held, as JSON data.
        after: What it holds now, as JSON data.
    """

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        if self.after is None:
            return f"-{self.key}"
        sign = "+" if self.before is None else "=" if self.before == self.after else "~"
        return f"{sign}{self.key}={_short(self.after)}"


@dataclass(frozen=True, slots=True)
class Row:
    """One step of a run.

    Attributes:
        path: Position of the step in the pipeline, such as ``s2.p1.l3``; "" is the root.
        node: Its name.
        kind: What it is: ``agent``, ``function``, ...; ``step`` where only the pipeline would tell.
        start: Seconds after the trace began, when the step began; None is not known.
        seconds: How long it took; None is not known.
        usage: Tokens of its model calls; None if it made none.
        changes: What it changed in state.
        tools: Tools it called, in order.
        events: Events it gave, fragments of a streamed text included.
        discarded: Its attempt was discarded: a lost race, or a failed attempt of a fallback.
        error: The error it reported; or the type and first line of the exception that ended it, and
            ``CancelledError`` where it was cut off.
        run: Identity of the run.
    """

    path: str
    node: str
    kind: str
    start: float | None
    seconds: float | None
    usage: Usage | None = None
    changes: tuple[Change, ...] = ()
    tools: tuple[str, ...] = ()
    events: int = 0
    discarded: bool = False
    error: ErrorInfo | None = None
    run: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {
            "path": self.path,
            "node": self.node,
            "kind": self.kind,
            "start": self.start,
            "seconds": self.seconds,
            "tokens": None if self.usage is None else self.usage.total,
            "changes": [{"key": c.key, "before": c.before, "after": c.after} for c in self.changes],
            "tools": list(self.tools),
            "events": self.events,
            "discarded": self.discarded,
            "error": None if self.error is None else str(self.error),
            "run": self.run,
        }


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text, one a line."""
    cells = [_HEADS, *(tuple(_cells(row)) for row in rows)]
    wide = [max(len(row[at]) for row in cells) for at in range(len(_HEADS))]
    lines = (
        "  ".join(
            cell.rjust(w) if at in _RIGHT else cell.ljust(w)
            for at, (cell, w) in enumerate(zip(row, wide, strict=True))
        )
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: Row) -> Iterator[str]:
    yield row.path or "."
    yield row.node
    yield row.kind
    yield "?" if row.start is None else f"{row.start:.3f}"
    yield "?" if row.seconds is None else f"{row.seconds:.3f}"
    yield "" if row.usage is None else str(row.usage.total)
    yield " ".join(map(str, row.changes))
    notes = [f"calls {', '.join(row.tools)}" if row.tools else ""]
    notes += ["discarded" if row.discarded else "", str(row.error) if row.error else ""]
    yield "; ".join(one_line(note, _CELL) for note in notes if note)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}…"


@dataclass(slots=True)
class Open:
    """A step while its events come.

    Attributes:
        path: As in `Row`.
        node: As in `Row`.
        run: As in `Row`.
        start: When it began; None is not known.
        last: When its last event came.
        works: Whether it does what only agents do.
        usage: As in `Row`.
        before: What state held before it, by key.
        after: What it wrote, by key.
        tools: As in `Row`.
        events: As in `Row`.
        attempt: The scopes it works in.
        error: As in `Row`.
    """

    path: str
    node: str
    run: str
    start: float | None
    last: float
    works: bool = False
    usage: Usage | None = None
    before: dict[str, Any] = field(default_factory=dict[str, Any])
    after: dict[str, Any] = field(default_factory=dict[str, Any])
    tools: list[str] = field(default_factory=list[str])
    events: int = 0
    attempt: str | None = None
    error: ErrorInfo | None = None
