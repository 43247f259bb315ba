"""What passes between rules and the engine: signals up and down, and operations to perform.

Plain data that names nothing of the engine, so that everything else of it can build on this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.flow._port import Note
    from adk_fluent.ir import Predicate, Ref


class Signal(Enum):
    """What a rule is told, or tells the rule above it."""

    ENTER = "enter"
    EMITTED = "emitted"
    TRUE = "true"
    FALSE = "false"
    OK = "ok"
    ESCALATE = "escalate"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(slots=True)
class Returned:
    """The signal that brings back what a function returned."""

    value: Any


@dataclass(slots=True)
class Run:
    """Run the leaf of this frame."""


@dataclass(slots=True)
class Ask:
    """Ask the question of this frame's gate; answered with a decision."""


@dataclass(slots=True)
class Call:
    """Call a function over state; answered with `Returned`."""

    fn: Ref


@dataclass(slots=True)
class Test:
    """Evaluate a predicate; answered with `TRUE` or `FALSE`."""

    predicate: Predicate


@dataclass(slots=True)
class Fork:
    """Run children at the same time; answered with `Joined`."""


@dataclass(slots=True)
class Enclose:
    """Do what stands around the step of this frame, and the step inside it; answered `Ended`."""


@dataclass(slots=True)
class Emit:
    """Write state; answered `EMITTED`.

    Attributes:
        delta: What to write, computed in the moment it is committed: until then other branches
            may commit.
        note: Why.
        committed: Runs in the moment the write is committed.
        optional: Nothing is written when `delta` turns out to be empty.
    """

    delta: Callable[[], Mapping[str, Any]]
    note: Note
    committed: Callable[[], None]
    optional: bool = False


@dataclass(slots=True)
class Joined:
    """The signal that ends a fork.

    Attributes:
        ended: Child index to how it ended, in the order they ended.
        winner: The branch that won a race.
        error: What went wrong, if that ended the fork.
    """

    ended: dict[int, Any] = field(default_factory=dict[int, Any])
    winner: int | None = None
    error: Exception | None = None


@dataclass(slots=True)
class Ended:
    """The signal that ends a step and all that stands around it."""

    signal: Signal | Exception


Operation = Run | Ask | Call | Test | Fork | Enclose | Emit
Step = int | Operation | Signal | Exception
ENTER, OK, ESCALATE, PAUSE, STOP = (
    Signal.ENTER,
    Signal.OK,
    Signal.ESCALATE,
    Signal.PAUSE,
    Signal.STOP,
)
