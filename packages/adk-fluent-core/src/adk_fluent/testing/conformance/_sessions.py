"""Programs about sessions that go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Pipeline, Route
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Expected, Raised, Turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked
    from adk_fluent.builders import State
    from adk_fluent.testing.conformance._bench import Bench, Value
    from adk_fluent.testing.conformance._order import Order
    from adk_fluent.testing.conformance._program import Program, Way


def sessions() -> Iterator[Program]:
    """All of them."""
    count: dict[str, Value] = {"n": _one_more}

    def turn(number: int) -> Expected:
        return Expected(
            state={"n": number},
            text=f"message {number}",
            calls=("count", "a"),
            events=(f"s0 count@root {{'n': {number}}}", f"s1 a 'message {number}'"),
        )

    yield case(
        "session/it remembers from message to message",
        "session",
        lambda p: Pipeline("root", p.fn("count", count), p.agent("a", _last_message)),
        message="message 1",
        end={"n": 1},
        text="message 1",
        calls=("count", "a"),
        events=("s0 count@root {'n': 1}", "s1 a 'message 1'"),
        then=tuple(Turn(message=f"message {n}", expects=turn(n)) for n in (2, 3)),
    )
    yield case(
        "session/it can be used after a failure",
        "session",
        lambda p: Pipeline(
            "root", p.fn("count", count), p.fn("f", {"k": _fails_at_first}), p.agent("a")
        ),
        end={"n": 1},
        calls=("count", "f"),
        events=("s0 count@root {'n': 1}",),
        raises=Raised("ValueError", text="the first time", node="f"),
        then=(
            Turn(
                expects=Expected(
                    state={"n": 2, "k": 2},
                    text="A",
                    calls=("count", "f", "a"),
                    events=("s0 count@root {'n': 2}", "s1 f@root {'k': 2}", "s2 a 'A'"),
                )
            ),
        ),
    )
    ways: tuple[tuple[Way, Order | None], ...] = (("cancel", ("count", "x")), ("close", None))
    for way, calls in ways:
        yield case(
            f"session/it can be used after {way}",
            "session",
            lambda p: Pipeline("root", p.fn("count", count), _hangs_at_first(p)),
            end={"n": 1},
            calls=calls,
            events=("s0 count@root {'n': 1}",),
            way=way,
            raises=Raised("CancelledError") if way == "cancel" else None,
            then=(
                Turn(
                    expects=Expected(
                        state={"n": 2},
                        calls=("count",),
                        events=("s0 count@root {'n': 2}",),
                    )
                ),
            ),
        )
    yield case(
        "session/an agent sees what was said before",
        "session",
        lambda p: Pipeline("root", p.agent("a", _all_turns)),
        message="first",
        text="first",
        calls=("a",),
        events=("s0 a 'first'",),
        then=(
            Turn(
                message="second",
                expects=Expected(
                    text="first|first|second", calls=("a",), events=("s0 a 'first|first|second'",)
                ),
            ),
        ),
    )


def _one_more(state: State) -> int:
    return state.get("n", 0) + 1


def _last_message(asked: Asked) -> str:
    return asked.turns[-1].text if asked.turns else ""


def _all_turns(asked: Asked) -> str:
    return "|".join(turn.text for turn in asked.turns)


def _fails_at_first(state: State) -> int:
    if state["n"] == 1:
        raise ValueError("the first time")
    return state["n"]


def _hangs_at_first(p: Bench) -> Any:
    return Route("n").eq(1, p.fn("x", ends="hangs"))
