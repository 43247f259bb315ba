"""Programs about tools that a person confirms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import FanOut, Loop, Pipeline, map_over
from adk_fluent.testing.conformance._asked import answered, misanswered
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parts import Part
from adk_fluent.testing.conformance._resumed import IN_ORDER, paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.builders import Agent, StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program

_CALLS: Final = "calls pay({'order': 'é'})"
_ASKS: Final = "asks confirmation pay"
_TOLD: Final = "result of pay"


def pay(order: str) -> str:
    """Pay an order back."""
    return f"paid {order}"


def pays(p: Bench, name: str, *, asks: Any = True, orders: tuple[str, ...] = ("é",)) -> Agent:
    """An agent that calls a tool, and then says what it was told: yes or no to each call."""

    def says(asked: Asked) -> str | Reply:
        told = [line for turn in asked.turns for line in turn.text.splitlines()]
        results = [line for line in told if line.startswith("[result pay")]
        if not results:
            return reply(*(Call("pay", {"order": each}) for each in orders))
        return " ".join("no" if "error" in each else "yes" for each in results)

    return p.agent(name, says).tool(pay, require_confirmation=asks)


def asking(name: str, place: str) -> tuple[str, ...]:
    """The events of such an agent until it waits."""
    return tuple(f"{place} {name} {each}" for each in (_CALLS, _ASKS, _TOLD))


def told(name: str, place: str, says: str = "yes") -> tuple[str, ...]:
    """The events of such an agent when it goes on."""
    return (f"{place} {name} {_TOLD}", f"{place} {name} {says!r}")


def confirmations() -> Iterator[Program]:
    """All of them."""
    yield from _one()
    yield from _several()
    yield from _arranged()


def _desk(p: Bench) -> StepLike:
    return Pipeline("root", pays(p, "c"), p.agent("z"))


def _one() -> Iterator[Program]:
    for value in (True, False):
        says = "yes" if value else "no"
        yield case(
            f"confirmation/the answer {says}",
            "confirmation",
            lambda p: Pipeline("root", pays(p, "c").writes("k"), p.agent("z")),
            text=None,
            calls=("c",),
            events=asking("c", "s0"),
            then=(
                answered(
                    value,
                    state={"k": says},
                    text="Z",
                    calls=("c", "z"),
                    events=(f"s0 c {_TOLD}", f"s0 c {says!r} {{'k': {says!r}}}", "s1 z 'Z'"),
                ),
            ),
        )
    yield case(
        "confirmation/where the predicate does not hold, nobody is asked",
        "confirmation",
        lambda p: Pipeline("root", pays(p, "c", asks=_is_large), p.agent("z")),
        text="Z",
        calls=("c", "c", "z"),
        events=(f"s0 c {_CALLS}", *told("c", "s0"), "s1 z 'Z'"),
    )
    yield case(
        "confirmation/where the predicate holds, somebody is",
        "confirmation",
        lambda p: pays(p, "c", asks=_is_short),
        text=None,
        calls=("c",),
        events=asking("c", "."),
        then=(answered(text="yes", calls=("c",), events=told("c", ".")),),
    )
    yield from misanswered(
        "confirmation",
        "confirmation",
        _desk,
        calls=("c",),
        events=asking("c", "s0"),
        malformed={"confirmed": "perhaps"},
        right=answered(text="Z", calls=("c", "z"), events=(*told("c", "s0"), "s1 z 'Z'")),
    )


def _is_large(order: str) -> bool:
    return len(order) > 9


def _is_short(order: str) -> bool:
    return not _is_large(order)


def _several() -> Iterator[Program]:
    both = (
        ". c calls pay({'order': 'x'}) calls pay({'order': 'y'})",
        f". c {_ASKS} {_ASKS}",
        f". c {_TOLD} {_TOLD}",
    )
    yield case(
        "confirmation/of two calls, answered in turn",
        "confirmation",
        lambda p: pays(p, "c", orders=("x", "y")),
        text=None,
        calls=("c",),
        events=both,
        then=(
            answered(only="y", events=None),
            answered(
                only="x", text="yes yes", calls=("c",), events=(f". c {_TOLD}", ". c 'yes yes'")
            ),
        ),
    )
    yield case(
        "confirmation/of two calls at once",
        "confirmation",
        lambda p: pays(p, "c", orders=("x", "y")),
        text=None,
        calls=("c",),
        events=both,
        then=(
            answered(
                text="yes yes", calls=("c",), events=(f". c {_TOLD} {_TOLD}", ". c 'yes yes'")
            ),
        ),
    )
    one, two = told("c", "p0"), told("d", "p1")
    turns = {
        "at once": (
            answered(text="yes\n\nyes", calls=beside(("c",), ("d",)), events=beside(one, two)),
        ),
        "in turn": (
            answered(only="d", calls=("d",), events=None),
            answered(text="yes", calls=("c",), events=one),
        ),
    }
    for how, then in turns.items():
        yield case(
            f"confirmation/in two branches, answered {how}",
            "confirmation",
            lambda p: FanOut("root", pays(p, "c"), pays(p, "d")),
            text=None,
            calls=beside(("c",), ("d",)),
            events=beside(asking("c", "p0"), asking("d", "p1")),
            then=then,
        )


def _arranged() -> Iterator[Program]:
    body = Part(
        build=lambda p: Pipeline("body", p.fn("w", {"k": 1}), pays(p, "c"), p.agent("x")),
        calls=("w", "c", "c", "x"),
        events=("s0 w@root {'k': 1}", *asking("c", "s1"), *told("c", "s1"), "s2 x 'X'"),
        text="X",
        writes={"k": 1},
    )
    for kind in IN_ORDER:
        id = f"confirmation/in {kind}"
        made, _, _ = paused(id, kind, "confirmation", body, last_call="c", last_event=_TOLD)
        yield made
    yield case(
        "confirmation/in a loop",
        "confirmation",
        lambda p: Loop("root", p.agent("x"), pays(p, "c"), max=2),
        text=None,
        calls=("x", "c"),
        events=("l0.s0 x 'X'", *asking("c", "l0.s1")),
        then=(
            answered(
                text="yes",
                calls=("c", "x", "c"),
                events=(*told("c", "l0.s1"), "l1.s0 x 'X'", "l1.s1 c 'yes'"),
            ),
        ),
    )
    yield case(
        "confirmation/in a map",
        "confirmation",
        lambda p: map_over("items", pays(p, "c"), name="root"),
        start={"items": ["é"]},
        text=None,
        calls=("c",),
        events=asking("c", "m0"),
        then=(
            answered(
                state={"items": ["é"], "results": ["yes"]},
                text="yes",
                calls=("c",),
                events=(*told("c", "m0"), ". root {'results': ['yes']}"),
            ),
        ),
    )
    yield case(
        "confirmation/a failure behind one is made good",
        "confirmation",
        lambda p: (
            Pipeline("one", pays(p, "c").writes("k"), p.fn("x", ends="raises")) // p.agent("b")
        ).named("root"),
        text=None,
        calls=("c",),
        events=asking("c", "f0.s0"),
        then=(
            answered(
                text="B",
                calls=("c", "x", "b"),
                events=(
                    f"~f0.s0 c {_TOLD}",
                    "~f0.s0 c 'yes' {'k': 'yes'}",
                    ". root {'k': None}",
                    "f1 b 'B'",
                ),
            ),
        ),
    )
