"""Programs about agents that hand over to others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import Fallback, Pipeline, gate, map_over, race
from adk_fluent.testing.conformance._asked import NO, YES, answered
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._confirmations import asking, pays, told
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parts import Part
from adk_fluent.testing.conformance._parts import program as part_program
from adk_fluent.testing.conformance._program import Expected, Raised, Turn
from adk_fluent.testing.conformance._wraps import WRAPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.builders import Agent, Builder, State, StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program

_TOOL: Final = "transfer_to_agent"


def hands_over(p: Bench, name: str, to: str, then: str | None = None) -> Agent:
    """An agent that hands over, and says something if it is handed back to."""

    def says(asked: Asked) -> str | Reply:
        again = any(f"[result {_TOOL}" in turn.text for turn in asked.turns)
        return then if again and then else reply(Call(_TOOL, {"agent_name": to}))

    return p.agent(name, says)


def handing(name: str, place: str, to: str) -> tuple[str, ...]:
    """The events of an agent that hands over."""
    return (
        f"{place} {name} calls {_TOOL}({{'agent_name': {to!r}}})",
        f"{place} {name} result of {_TOOL} ->{to}",
    )


def delegates() -> Iterator[Program]:
    """All of them."""
    yield from _to_agents()
    yield from _to_pipelines()
    yield from _arranged()


def _to_agents() -> Iterator[Program]:
    yield case(
        "delegation/the step is done when the delegate is",
        "delegation",
        lambda p: Pipeline(
            "root",
            hands_over(p, "d", "e").writes("owed").delegates(p.agent("e", writes="k")),
            p.agent("z"),
        ),
        end={"k": "E"},
        text="Z",
        calls=("d", "e", "z"),
        events=(*handing("d", "s0", "e"), "s0 d@e 'E' {'k': 'E'}", "s1 z 'Z'"),
    )
    yield case(
        "delegation/to the parent, and to a peer",
        "delegation",
        lambda p: hands_over(p, "d", "e", "back").delegates(
            hands_over(p, "e", "f"), hands_over(p, "f", "d")
        ),
        text="back",
        calls=("d", "e", "f", "d"),
        events=(
            *handing("d", ".", "e"),
            *handing("d@e", ".", "f"),
            *handing("d@f", ".", "d"),
            ". d 'back'",
        ),
    )
    yield case(
        "delegation/from delegate to delegate",
        "delegation",
        lambda p: hands_over(p, "d", "e").delegates(
            hands_over(p, "e", "f").delegates(p.agent("f"))
        ),
        text="F",
        calls=("d", "e", "f"),
        events=(*handing("d", ".", "e"), *handing("d@e", ".", "f"), ". d@f 'F'"),
    )
    yield case(
        "delegation/to nobody there is raises",
        "delegation",
        lambda p: Pipeline("root", hands_over(p, "d", "nobody").delegates(p.agent("e"))),
        calls=("d",),
        events=handing("d", "s0", "nobody"),
        raises=Raised("ValueError", text="Agent nobody not found in the agent tree", node="d"),
    )
    yield case(
        "delegation/to nobody there is is made good by a fallback",
        "delegation",
        lambda p: Fallback(
            "root", hands_over(p, "d", "nobody").delegates(p.agent("e")), p.agent("b")
        ),
        text="B",
        calls=("d", "b"),
        events=(*(f"~{line}" for line in handing("d", "f0", "nobody")), "f1 b 'B'"),
    )
    yield case(
        "delegation/the second message begins at the first step again",
        "delegation",
        lambda p: Pipeline("root", hands_over(p, "d", "e").delegates(p.agent("e", _hears))),
        message="one",
        text="one",
        calls=("d", "e"),
        events=(*handing("d", "s0", "e"), "s0 d@e 'one'"),
        then=(
            Turn(
                message="two",
                expects=Expected(
                    text="one two",
                    calls=("d", "e"),
                    events=(*handing("d", "s0", "e"), "s0 d@e 'one two'"),
                ),
            ),
        ),
    )
    yield case(
        "delegation/a delegate waits for a confirmation",
        "delegation",
        lambda p: Pipeline("root", hands_over(p, "d", "e").delegates(pays(p, "e")), p.agent("z")),
        text=None,
        calls=("d", "e"),
        events=(*handing("d", "s0", "e"), *asking("d@e", "s0")),
        then=(answered(text="Z", calls=("e", "z"), events=(*told("d@e", "s0"), "s1 z 'Z'")),),
    )


def _hears(asked: Asked) -> str:
    said = "\n".join(turn.text for turn in asked.turns if not turn.text.startswith("For context"))
    return " ".join(text for text in ("one", "two") if text in said)


def _to_pipelines() -> Iterator[Program]:
    yield case(
        "delegation/to a pipeline",
        "delegation",
        lambda p: _with(p, p.agent("e") >> p.fn("f", {"k": 1})),
        end={"k": 1},
        text="Z",
        calls=("d", "e", "f", "z"),
        events=(
            *handing("d", "s0", "pipe"),
            "s0.s0 e 'E'",
            "s0.s1 f@pipe {'k': 1}",
            "s1 z 'Z'",
        ),
    )
    yield case(
        "delegation/to a pipeline of which an attempt is discarded",
        "delegation",
        lambda p: _with(
            p, Pipeline(p.fn("f", {"k": 1}), p.agent("x", ends="raises")) // p.agent("e")
        ),
        start={"k": 0},
        text="Z",
        calls=("d", "f", "x", "e", "z"),
        events=(
            *handing("d", "s0", "pipe"),
            "~s0.f0.s0 f@pipe {'k': 1}",
            "s0 pipe {'k': 0}",
            "s0.f1 e 'E'",
            "s1 z 'Z'",
        ),
    )
    yield case(
        "delegation/to a pipeline that fails",
        "delegation",
        lambda p: _with(p, Pipeline(p.fn("f", {"k": 1}), p.fn("x", ends="raises"))),
        end={"k": 1},
        calls=("d", "f", "x"),
        events=(*handing("d", "s0", "pipe"), "s0.s0 f@pipe {'k': 1}"),
        raises=Raised("ValueError", text="x is bad", node="x"),
    )
    start = (*handing("d", "s0", "pipe"), "s0.s0 f@pipe {'k': 1}", "s0 pipe asks gate ask")
    no = "ask was refused. Nothing after it was run."
    turns = {
        "and goes on": answered(
            state={"k": 1, "ask": YES},
            text="Z",
            calls=("e", "z"),
            events=(f"s0.s1 ask@pipe {{'ask': {YES}}}", "s0.s2 e 'E'", "s1 z 'Z'"),
        ),
        "and is refused": answered(
            False,
            state={"k": 1, "ask": NO},
            text="",
            events=(f"s0.s1 ask@pipe {no!r} {{'ask': {NO}}}",),
        ),
    }
    for what, then in turns.items():
        yield case(
            f"delegation/to a pipeline that waits, {what}",
            "delegation",
            lambda p: _with(p, p.fn("f", {"k": 1}) >> gate(name="ask") >> p.agent("e")),
            text=None,
            calls=("d", "f"),
            events=start,
            then=(then,),
        )
    yield case(
        "delegation/to a pipeline of which an agent waits for a confirmation",
        "delegation",
        lambda p: _with(p, pays(p, "e") >> p.agent("f")),
        text=None,
        calls=("d", "e"),
        events=(*handing("d", "s0", "pipe"), *asking("e", "s0.s0")),
        then=(
            answered(
                text="Z",
                calls=("e", "f", "z"),
                events=(*told("e", "s0.s0"), "s0.s1 f 'F'", "s1 z 'Z'"),
            ),
        ),
    )


def _with(p: Bench, pipeline: Builder) -> StepLike:
    """An agent that hands over to a pipeline, and a step behind it."""
    return Pipeline(
        "root", hands_over(p, "d", "pipe").delegates(pipeline.named("pipe")), p.agent("z")
    )


def _arranged() -> Iterator[Program]:
    """The step stands in every arrangement."""
    part = Part(
        build=lambda p: hands_over(p, "d", "x").delegates(p.agent("x", writes="k")),
        calls=("d", "x"),
        events=(*handing("d", ".", "x"), ". d@x 'X' {'k': 'X'}"),
        text="X",
        writes={"k": "X"},
    )
    for kind, wrap in WRAPS.items():
        yield part_program(f"delegation/in {kind}", "delegation", wrap(part, "root", "1"))
    yield case(
        "delegation/in a map a pipeline sees the item",
        "delegation",
        lambda p: map_over(
            "items",
            hands_over(p, "d", "pipe").delegates(
                Pipeline(
                    "pipe", p.fn("f", {"k": lambda s: s["_item"] * 2}), p.fn("g", {"k": _doubled})
                )
            ),
            result_key="k",
            concurrency=1,
            name="root",
        ),
        start={"items": [1, 2]},
        end={"items": [1, 2], "results": [4, 8]},
        calls=("d", "f", "g") * 2,
        events=(
            *handing("d", "m0", "pipe"),
            *("m0.s0 f@pipe {'k': 2}", "m0.s1 g@pipe {'k': 4}"),
            *handing("d", "m1", "pipe"),
            *("m1.s0 f@pipe {'k': 4}", "m1.s1 g@pipe {'k': 8}"),
            ". root {'k': None, 'results': [4, 8]}",
        ),
    )
    yield case(
        "delegation/a race lost in a pipeline below it is undone",
        "delegation",
        lambda p: race(
            hands_over(p, "d", "pipe").delegates(
                Pipeline("pipe", p.fn("f", {"k": 1}), p.fn("h", ends="hangs"))
            ),
            Pipeline("w", p.awaits("wait", "h"), p.agent("y")),
            name="root",
        ),
        text="Y",
        calls=beside(("d", "f", "h"), ("wait", "y")),
        events=(
            *(f"~{line}" for line in handing("d", "w0", "pipe")),
            "~w0.s0 f@pipe {'k': 1}",
            "w1.s1 y 'Y'",
            ". root {'k': None}",
        ),
    )


def _doubled(state: State) -> int:
    return state["k"] * 2
