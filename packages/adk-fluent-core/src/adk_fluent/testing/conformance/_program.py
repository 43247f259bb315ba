"""What a program of the suite is, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adk_fluent.builders import Builder
    from adk_fluent.ir import ExecutionConfig
    from adk_fluent.protocol import Pending
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._order import Order

#: Stands in expected texts, keys' values and messages for the number of the run, from 0.
NUMBER: Final = "§"

#: How a run is driven: to its end; cancelled from outside when all expected calls were made; closed
#: when all expected events came.
Way = Literal["run", "cancel", "close"]


def shown(delta: Mapping[str, Any]) -> str:
    """What is written to state, as lines show it."""
    return repr({key: delta[key] for key in sorted(delta)})


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that a run ends with.

    Attributes:
        type: Name of its type; "" is any, for errors of the backend's own.
        code: Its code, if it is an `AdkFluentError`.
        text: What its message contains.
        node: The step it names, as its `node` or in a note.
        before: The error before it in the chain of contexts.
    """

    type: str
    code: str | None = None
    text: str = ""
    node: str | None = None
    before: Raised | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run amounts to.

    Attributes:
        state: State of the session afterwards, what is None and temporary left out.
        text: The answer; not looked at if None, or where the run does not come to its end.
        calls: Names of the agents, functions and predicates that are called, in order; None is not
            looked at.
        events: The events, in order, as lines: position (``.`` is the root), step (and author,
            where that is somebody else, as ``step@author``), and what it says, writes and so on. A
            line of an attempt that is discarded in the end begins with ``~``. None is not looked
            at.
        raises: The error that ends it.
        errors: Errors that agents reported and nothing made good.
    """

    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text: str | None = ""
    calls: Order | None = ()
    events: Order | None = ()
    raises: Raised | None = None
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A message to the pipeline, in the session of the program.

    Attributes:
        expects: What comes of it.
        message: What the user says.
        way: How the run is driven.
        answers: What is sent instead of a message, given the questions that were asked last.
        may_refuse: An `AdkFluentError` is as good as nothing that happens.
    """

    expects: Expected
    message: str = "go"
    way: Way = "run"
    answers: Callable[[Sequence[Pending]], Any] | None = None
    may_refuse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A pipeline, and what happens when it runs.

    Attributes:
        id: What it is called, such as ``nested/race in loop``.
        capability: What a backend must be capable of to run it; a key of `CAPABILITIES`.
        build: Makes the pipeline, of steps that note their calls.
        turns: The messages, one after the other, in one session.
        state: State of the session at the start.
        config: How it is run.
        copies: How many runs of it go on at the same time, each in a session of its own.
        timed: A clock has a part in it: it is tried again with more time before it counts as wrong.
    """

    id: str
    capability: str
    build: Callable[[Bench], Builder]
    turns: tuple[Turn, ...]
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: ExecutionConfig | None = None
    copies: int = 1
    timed: bool = False

    def __str__(self) -> str:
        return self.id
