"""Programs about gates: whether they ask, and what is an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import FanOut, Pipeline, gate, race
from adk_fluent.testing.conformance._asked import YES, answered, misanswered
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def gates() -> Iterator[Program]:
    """All of them."""
    for later in (False, True):
        yield case(
            f"gate/{'async ' * later}predicate that does not hold asks nobody",
            "gate",
            lambda p, later=later: Pipeline(
                "root", gate(p.test("t", holds=False, later=later), name="ask"), p.agent("x")
            ),
            text="X",
            calls=("t", "x"),
            events=("s1 x 'X'",),
        )
        yield case(
            f"gate/{'async ' * later}predicate that raises stops the run",
            "gate",
            lambda p, later=later: Pipeline(
                "root", gate(p.test("t", ends="raises", later=later), name="ask"), p.agent("x")
            ),
            calls=("t",),
            raises=Raised("ValueError", text="t is bad", node="ask"),
        )
    own = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    said = {"approved": False}
    yield case(
        "gate/a field approved of its schema is data",
        "gate",
        lambda p: Pipeline("root", gate(name="ask", response_schema=own), p.agent("z")),
        text=None,
        events=(". root asks gate ask",),
        then=(
            answered(
                said,
                state={"ask": said},
                text="Z",
                calls=("z",),
                events=(f"s0 ask@root {{'ask': {said}}}", "s1 z 'Z'"),
            ),
        ),
    )
    for kind in ("race", "first_complete"):
        yield case(
            f"resumed/{kind} is refused",
            "gate",
            lambda p, kind=kind: _in_a_race(p, kind),
            raises=Raised("BuildError", "ADKF100", text="ask", node="ask"),
        )
    yield from misanswered(
        "resumed",
        "gate",
        lambda p: Pipeline("root", p.agent("a"), gate(name="ask"), p.agent("z")),
        calls=("a",),
        events=("s0 a 'A'", ". root asks gate ask"),
        malformed={"approved": "perhaps"},
        right=answered(
            state={"ask": YES},
            text="Z",
            calls=("z",),
            events=(f"s1 ask@root {{'ask': {YES}}}", "s2 z 'Z'"),
        ),
    )


def _in_a_race(p: Bench, kind: str) -> StepLike:
    steps = (p.agent("a"), gate(name="ask"))
    if kind == "race":
        return race(*steps, name="root")
    return FanOut("root", *steps, merge="first_complete")
