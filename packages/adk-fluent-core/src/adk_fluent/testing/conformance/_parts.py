"""Parts of programs with what they amount to, and how such accounts are put together.

This is arithmetic on plain data: nothing here knows of the engine or of events.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import each_line
from adk_fluent.testing.conformance._program import Program, Raised, Way, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._order import Order

#: How a part ends; behind one that hangs or fails nothing comes any more.
Ends = Literal["done", "hangs", "fails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a pipeline and what it amounts to.

    Attributes:
        build: Makes it.
        calls: The calls it makes.
        events: The lines of its events, at positions below its own (``.`` is its own).
        text: Its answer.
        writes: What it leaves in state.
        start: What it needs there at the start.
        ends: How it ends.
        raises: The error, if it fails.
    """

    build: Callable[[Bench], StepLike]
    calls: Order = ()
    events: Order = ()
    text: str = ""
    writes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    start: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ends: Ends = "done"
    raises: Raised | None = None

    def at(self, position: str) -> Part:
        """The account of this part at a position of what is around it."""

        def lower(line: str) -> str:
            dropped, line = line.startswith("~"), line.removeprefix("~")
            place, rest = line.split(" ", 1)
            here = position if place == "." else f"{position}.{place}"
            return f"{'~' * dropped}{here} {rest}"

        return replace(self, events=each_line(self.events, lower))

    def dropped(self, step: str, place: str = ".") -> Part:
        """The account of this part as an attempt that is discarded.

        Args:
            step: The step that discards it.
            place: The position of that.
        """
        events = each_line(self.events, lambda line: f"~{line.removeprefix('~')}")
        undone = {key: self.start.get(key) for key in self.writes}
        events = (*events, *compensation(step, undone, place))
        return replace(self, events=events, writes=undone, text="")


class Changes(TypedDict, total=False):
    """Fields of a part."""

    build: Callable[[Bench], StepLike]
    calls: Order
    events: Order
    text: str
    writes: Mapping[str, Any]
    start: Mapping[str, Any]
    ends: Ends
    raises: Raised | None


def but(part: Part, **changes: Unpack[Changes]) -> Part:
    """The same account, but for some fields; unlike `replace` it tells type checkers which."""
    return replace(part, **changes)


def compensation(step: str, delta: Mapping[str, Any], place: str = ".") -> Order:
    """The one event that takes writes back, if there is anything to take back."""
    return (f"{place} {of_engine(step)} {shown(delta)}",) if delta else ()


def of_engine(step: str) -> str:
    """A step whose events the root authors, as lines show it."""
    return step if step == "root" else f"{step}@root"


def then(*parts: Part) -> Part:
    """Parts one after the other; whoever takes this says how it is built."""
    total = Part(build=parts[0].build)
    for part in parts:
        total = replace(total, start={**total.start, **part.start})
    for part in parts:
        total = replace(
            total,
            calls=(*total.calls, *part.calls),
            events=(*total.events, *part.events),
            text=part.text or total.text,
            writes={**total.writes, **part.writes},
            ends=part.ends,
            raises=part.raises,
        )
        if part.ends != "done":
            break
    return total


def program(
    id: str, capability: str, part: Part, *, way: Way = "run", timed: bool = False, copies: int = 1
) -> Program:
    """A program of a part, which becomes the root; it has to be called ``root``."""
    end = {**part.start, **part.writes}
    return case(
        id,
        capability,
        part.build,
        start=part.start,
        end={key: value for key, value in end.items() if value is not None},
        text=part.text,
        calls=None if way == "close" else part.calls,
        events=part.events,
        raises=Raised("CancelledError") if way == "cancel" else part.raises,
        way=way,
        copies=copies,
        timed=timed,
    )
