"""Programs about loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import (
    FanOut,
    Loop,
    Pipeline,
    until,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def loops() -> Iterator[Program]:
    """All of them."""

    def count(p: Bench) -> Any:
        return p.fn("f", {"n": lambda state: state.get("n", 0) + 1})

    for later in (False, True):
        yield case(
            f"loop/until {'an async' if later else 'a'} predicate holds",
            "loop",
            lambda p, later=later: (
                Pipeline(count(p)) * until(p.test("t", lambda s: s["n"] >= 2, later=later), max=5)
            ).named("root"),
            end={"n": 2},
            calls=("f", "t", "f", "t"),
            events=("l0 f@root {'n': 1}", "l1 f@root {'n': 2}"),
        )
    yield case(
        "loop/max ends it where the predicate never holds",
        "loop",
        lambda p: Loop("root", count(p), until=p.test("t", holds=False), max=2),
        end={"n": 2},
        calls=("f", "t", "f", "t"),
        events=("l0 f@root {'n': 1}", "l1 f@root {'n': 2}"),
    )
    yield case(
        "loop/a hundred times",
        "loop",
        lambda p: Loop("root", count(p), max=100),
        end={"n": 100},
        calls=("f",) * 100,
        events=tuple(f"l{n} f@root {{'n': {n + 1}}}" for n in range(100)),
    )
    for where in ("the loop", "a parallel in it"):
        inside = where != "the loop"
        at = "l0.s1.p0" if inside else "l0.s1"

        def body(p: Bench, inside: bool = inside) -> StepLike:
            leaves = p.agent("x", lambda _: reply(Call("exit_loop", id="c1")))
            leaves.tool(exit_loop)
            return FanOut("par", leaves, p.fn("o")) if inside else leaves

        yield case(
            f"loop/an agent that escalates ends {where}",
            "loop",
            lambda p, body=body: Pipeline(
                "root",
                Loop("l", p.fn("f", {"k": 1}), body(p), p.agent("never"), max=5),
                p.agent("z"),
            ),
            end={"k": 1},
            text="Z",
            calls=("f", *(beside(("x",), ("o",)) if inside else ("x",)), "z"),
            events=(
                "s0.l0.s0 f@root {'k': 1}",
                f"s0.{at} x calls exit_loop({{}})",
                f"s0.{at} x result of exit_loop escalates",
                "s1 z 'Z'",
            ),
        )
    yield case(
        "loop/of two steps that answer",
        "loop",
        lambda p: (Pipeline(p.agent("a"), p.agent("b")) * 2).named("root"),
        text="B",
        calls=("a", "b") * 2,
        events=("l0.s0 a 'A'", "l0.s1 b 'B'", "l1.s0 a 'A'", "l1.s1 b 'B'"),
    )


def exit_loop(tool_context: Any) -> None:
    """Leave the loop, as ADK's tool of this name does."""
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True
