"""Programs about tools whose results come later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import FanOut, Pipeline, map_over
from adk_fluent.testing.conformance._asked import answered, misanswered
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parts import Part
from adk_fluent.testing.conformance._resumed import IN_ORDER, paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.builders import Agent
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program

_ASKS: Final = "calls order({'what': 'é'}) asks tool order"


def order(what: str) -> None:
    """Order a thing; it is told later when it comes."""


def orders(p: Bench, name: str, *, things: tuple[str, ...] = ("é",)) -> Agent:
    """An agent that calls such a tool, and then says what it was told."""

    def says(asked: Asked) -> str | Reply:
        lines = [line for turn in asked.turns for line in turn.text.splitlines()]
        told = [line for line in lines if line.startswith("[result order")]
        if not told:
            return reply(*(Call("order", {"what": each}) for each in things))
        return " ".join(each.removeprefix("[result order ").removesuffix("]") for each in told)

    return p.agent(name, says).tool(p.long_running(order))


def long_running() -> Iterator[Program]:
    """All of them."""
    results: dict[str, tuple[Any, str]] = {
        "data": ({"came": ["é", 1]}, '{"came": ["é", 1]}'),
        "a text": ("it came", '{"result": "it came"}'),
        "None": (None, '{"result": null}'),
    }
    for what, (value, told) in results.items():
        yield case(
            f"long-running tool/its result is {what}",
            "long-running tool",
            lambda p: Pipeline("root", orders(p, "c").writes("k"), p.agent("z")),
            text=None,
            calls=("c",),
            events=(f"s0 c {_ASKS}",),
            then=(
                answered(
                    value,
                    state={"k": told},
                    text="Z",
                    calls=("c", "z"),
                    events=(f"s0 c {told!r} {{'k': {told!r}}}", "s1 z 'Z'"),
                ),
            ),
        )
    x, y = '{"result": "x"}', '{"result": "y"}'
    calls = [f"calls order({{'what': {each!r}}})" for each in "xy"]
    yield case(
        "long-running tool/a model is told of all its calls at once",
        "long-running tool",
        lambda p: orders(p, "c", things=("x", "y")),
        text=None,
        calls=("c",),
        events=(f". c {' '.join([*calls, *['asks tool order'] * 2])}",),
        then=(
            answered("y", only="y", events=None),
            answered("x", only="x", text=f"{x} {y}", calls=("c",), events=(f". c {f'{x} {y}'!r}",)),
        ),
    )
    yield from _arranged()
    yield from misanswered(
        "long-running tool",
        "long-running tool",
        lambda p: Pipeline("root", orders(p, "c"), p.agent("z")),
        calls=("c",),
        events=(f"s0 c {_ASKS}",),
        right=answered("x", text="Z", calls=("c", "z"), events=(f"s0 c {x!r}", "s1 z 'Z'")),
    )


def _arranged() -> Iterator[Program]:
    told = '{"result": true}'
    body = Part(
        build=lambda p: Pipeline("body", p.fn("w", {"k": 1}), orders(p, "c"), p.agent("x")),
        calls=("w", "c", "c", "x"),
        events=("s0 w@root {'k': 1}", f"s1 c {_ASKS}", f"s1 c {told!r}", "s2 x 'X'"),
        text="X",
        writes={"k": 1},
    )
    for kind in IN_ORDER:
        id = f"long-running tool/in {kind}"
        made, _, _ = paused(id, kind, "long-running tool", body, last_call="c", last_event=_ASKS)
        yield made
    one, two = (f"p0 c {told!r}",), (f"p1 d {told!r}",)
    answers = {
        "at once": (
            answered(
                text=f"{told}\n\n{told}",
                calls=beside(("c",), ("d",)),
                events=beside(one, two),
            ),
        ),
        "in turn": (
            answered(only="d", calls=("d",), events=None),
            answered(text=told, calls=("c",), events=one),
        ),
    }
    for how, then in answers.items():
        yield case(
            f"long-running tool/in two branches, answered {how}",
            "long-running tool",
            lambda p: FanOut("root", orders(p, "c"), orders(p, "d")),
            text=None,
            calls=beside(("c",), ("d",)),
            events=beside((f"p0 c {_ASKS}",), (f"p1 d {_ASKS}",)),
            then=then,
        )
    yield case(
        "long-running tool/in a map",
        "long-running tool",
        lambda p: map_over("items", orders(p, "c"), name="root"),
        start={"items": ["é"]},
        text=None,
        calls=("c",),
        events=(f"m0 c {_ASKS}",),
        then=(
            answered(
                state={"items": ["é"], "results": [told]},
                text=told,
                calls=("c",),
                events=(f"m0 c {told!r}", f". root {{'results': [{told!r}]}}"),
            ),
        ),
    )
