"""Programs about predicates that raise: they stop the run, and never count as false."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import (
    Fallback,
    Loop,
    Pipeline,
    Route,
    S,
    expect,
    transfer,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def predicates() -> Iterator[Program]:
    """All of them."""
    for later in (False, True):
        word = "async " * later
        raises = Raised("ValueError", text="test is bad", node="step")

        def test(p: Bench, later: bool = later) -> Any:
            return p.test("test", ends="raises", later=later)

        makes: dict[str, tuple[str, Callable[[Bench], StepLike]]] = {
            "a route": (
                "route",
                lambda p, test=test: (
                    Route().when(test(p), p.agent("x")).otherwise(p.agent("y")).named("step")
                ),
            ),
            "a loop": ("loop", lambda p, test=test: Loop("step", p.fn("x"), until=test(p))),
            "an expectation": ("expect", lambda p, test=test: expect(test(p), name="step")),
            "a transfer": (
                "transfer",
                lambda p, test=test: transfer("target", when=test(p), name="step"),
            ),
            "a guard": ("transform", lambda p, test=test: S.guard(test(p)).named("step")),
        }
        for where, (capability, make) in makes.items():
            before = ("x",) if where == "a loop" else ()
            yield case(
                f"predicate/{word}that raises in {where}",
                capability,
                lambda p, make=make: Pipeline(
                    "root",
                    p.fn("a", {"k": 1}),
                    make(p),
                    p.agent("z"),
                    Route("missing").eq("x", p.agent("target")),
                ),
                end={"k": 1},
                calls=("a", *before, "test"),
                events=("s0 a@root {'k': 1}",),
                raises=raises,
            )
    yield case(
        "predicate/that raises is made good by a fallback",
        "fallback",
        lambda p: Fallback(
            "root", Loop("l", p.fn("x"), until=p.test("t", ends="raises")), p.agent("b")
        ),
        text="B",
        calls=("x", "t", "b"),
        events=("f1 b 'B'",),
    )
