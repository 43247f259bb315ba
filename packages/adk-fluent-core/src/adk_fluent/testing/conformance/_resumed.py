"""Programs that stop in the midst of arrangements, and go on with an answer in a fresh compile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.builders import FanOut, Loop, Pipeline, gate, map_over
from adk_fluent.testing.conformance._asked import NO, YES, answered, says_to_all
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parts import Part, program
from adk_fluent.testing.conformance._program import Expected, Turn
from adk_fluent.testing.conformance._wraps import WRAPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._order import Order
    from adk_fluent.testing.conformance._program import Program

_REFUSED: Final = "ask was refused. Nothing after it was run."
_ASKS: Final = ". root asks gate ask"
_APPROVED: Final = f"ask@root {{'ask': {YES}}}"
#: Arrangements whose steps come one after the other, so that a pause cuts events and calls in two.
IN_ORDER: Final = tuple(
    kind for kind in WRAPS if kind not in {"race", "first_complete", "parallel", "loop", "map_over"}
)


def resumed() -> Iterator[Program]:
    """All of them."""
    body = Part(
        build=lambda p: Pipeline("body", p.fn("w", {"k": 1}), gate(name="ask"), p.agent("x")),
        calls=("w", "x"),
        events=("s0 w@root {'k': 1}", f"s1 {_APPROVED}", "s2 x 'X'"),
        text="X",
        writes={"k": 1, "ask": YES},
    )
    for kind in IN_ORDER:
        id = f"resumed/{kind}"
        made, first, at = paused(
            id, kind, "gate", body, last_call="w", last_event=" w@root", asks=(_ASKS,)
        )
        yield made
        refused = Expected(
            state={**made.state, "k": 1, "ask": NO},
            text="",
            events=(f"{at} ask@root {_REFUSED!r} {{'ask': {NO}}}",),
        )
        yield replace(
            made,
            id=f"resumed/{kind}, refused",
            turns=(first, Turn(expects=refused, answers=says_to_all(False))),
        )
    yield from _side_by_side()
    yield from _repeated()


def paused(
    id: str,
    kind: str,
    capability: str,
    body: Part,
    *,
    last_call: str,
    last_event: str,
    asks: Order = (),
) -> tuple[Program, Turn, str]:
    """A body in an arrangement, cut in two where it asks, and gone on with by a yes.

    Args:
        id: What the program is called.
        kind: The arrangement, of `IN_ORDER`.
        capability: What it asks of a backend.
        body: The body, as if nobody asked.
        last_call: What is called before it asks.
        last_event: In the line of the last event of the body before it asks, and in none before.
        asks: The line in which it asks, where that is no line of the body.

    Returns:
        The program, its first turn, and the position of the step that asks.
    """
    whole = program("", capability, WRAPS[kind](body, "root", "1"))
    (turn,) = whole.turns
    expects, events, calls = turn.expects, turn.expects.events or (), turn.expects.calls or ()
    at = next(n for n, line in enumerate(events, start=1) if last_event in str(line))
    cut = calls.index(last_call) + 1
    first = Turn(expects=Expected(text=None, calls=calls[:cut], events=(*events[:at], *asks)))
    rest = replace(expects, calls=calls[cut:], events=events[at:])
    last = Turn(expects=rest, answers=says_to_all(True))
    place = str(events[at]).split(" ", 1)[0]
    return replace(whole, id=id, turns=(first, last)), first, place


def _side_by_side() -> Iterator[Program]:
    yield case(
        "resumed/parallel",
        "gate",
        lambda p: FanOut(
            "root", Pipeline("b", p.agent("x"), gate(name="ask"), p.agent("y")), p.agent("o")
        ),
        text=None,
        calls=beside(("x",), ("o",)),
        events=(*beside(("p0.s0 x 'X'",), ("p1 o 'O'",)), _ASKS),
        then=(
            answered(
                state={"ask": YES},
                text="Y",
                calls=("y",),
                events=(f"p0.s1 {_APPROVED}", "p0.s2 y 'Y'"),
            ),
        ),
    )
    one = (f"p0.s0 ask1@root {{'ask1': {YES}}}", "p0.s1 x 'X'")
    two = (f"p1.s0 ask2@root {{'ask2': {YES}}}", "p1.s1 y 'Y'")
    end = {"ask1": YES, "ask2": YES}
    turns = {
        "at once": (
            answered(
                state=end, text="X\n\nY", calls=beside(("x",), ("y",)), events=beside(one, two)
            ),
        ),
        "in turn": (
            answered(only="ask2", calls=("y",), events=None),
            answered(state=end, text="X", calls=("x",), events=one),
        ),
    }
    for how, then in turns.items():
        yield case(
            f"resumed/two gates beside each other, answered {how}",
            "gate",
            lambda p: FanOut(
                "root",
                Pipeline("one", gate(name="ask1"), p.agent("x")),
                Pipeline("two", gate(name="ask2"), p.agent("y")),
            ),
            text=None,
            events=(". root asks gate ask1 asks gate ask2",),
            then=then,
        )


def _repeated() -> Iterator[Program]:
    yield case(
        "resumed/loop, which asks each time",
        "gate",
        lambda p: Loop("root", p.agent("x"), gate(name="ask"), p.fn("f", {"n": _count}), max=2),
        text=None,
        calls=("x",),
        events=("l0.s0 x 'X'", _ASKS),
        then=(
            answered(
                calls=("f", "x"),
                events=(f"l0.s1 {_APPROVED}", "l0.s2 f@root {'n': 1}", "l1.s0 x 'X'", _ASKS),
            ),
            answered(
                state={"ask": YES, "n": 2},
                text="",
                calls=("f",),
                events=(f"l1.s1 {_APPROVED}", "l1.s2 f@root {'n': 2}"),
            ),
        ),
    )
    yield case(
        "resumed/map_over",
        "gate",
        lambda p: map_over(
            "items",
            Pipeline(
                "body", p.fn("w", {"k": lambda s: s["_item"]}), gate(name="ask"), p.agent("x")
            ),
            name="root",
        ),
        start={"items": ["é"]},
        text=None,
        calls=("w",),
        events=("m0.s0 w@root {'k': 'é'}", _ASKS),
        then=(
            answered(
                state={"items": ["é"], "results": ["X"]},
                text="X",
                calls=("x",),
                events=(
                    f"m0.s1 {_APPROVED}",
                    "m0.s2 x 'X'",
                    ". root {'ask': None, 'k': None, 'results': ['X']}",
                ),
            ),
        ),
    )
    yield case(
        "resumed/a failure behind a gate is made good",
        "gate",
        lambda p: (
            Pipeline("one", p.fn("w", {"k": 1}), gate(name="ask"), p.fn("x", ends="raises"))
            // p.agent("b")
        ).named("root"),
        text=None,
        calls=("w",),
        events=("f0.s0 w@root {'k': 1}", _ASKS),
        then=(
            answered(
                text="B",
                calls=("x", "b"),
                events=(f"~f0.s1 {_APPROVED}", ". root {'ask': None, 'k': None}", "f1 b 'B'"),
            ),
        ),
    )


def _count(state: Any) -> int:
    return state.get("n", 0) + 1
