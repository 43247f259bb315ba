"""Programs about routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import (
    Pipeline,
    Route,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.builders import Agent
    from adk_fluent.testing.conformance._program import Program


def routes() -> Iterator[Program]:
    """All of them."""
    table: dict[str, tuple[Any, Callable[[Route, Agent], Route], bool]] = {
        "eq a text": ("é", lambda route, x: route.eq("é", x), True),
        "eq is exact": ("É", lambda route, x: route.eq("é", x), False),
        "eq a number": (7, lambda route, x: route.eq(7, x), True),
        "eq False": (False, lambda route, x: route.eq(False, x), True),
        "eq None where it is absent": (None, lambda route, x: route.eq(None, x), True),
        "contains in a text": ("the word", lambda route, x: route.contains("word", x), True),
        "contains in any letter case": (
            "The WORD.",
            lambda route, x: route.contains("Word", x),
            True,
        ),
        "contains in a list": (["word", 1], lambda route, x: route.contains("word", x), True),
        "contains in a list, in any letter case": (
            ["WORD", 1],
            lambda route, x: route.contains("word", x),
            True,
        ),
        "contains in the same letter case": (
            "The WORD.",
            lambda route, x: route.contains("word", x, case=True),
            False,
        ),
        "contains where it is absent": (None, lambda route, x: route.contains("word", x), False),
        "gt": (1000.5, lambda route, x: route.gt(1000, x), True),
        "gt of the same": (1000, lambda route, x: route.gt(1000, x), False),
        "gt where it is absent": (None, lambda route, x: route.gt(1000, x), False),
        "lt": (-1, lambda route, x: route.lt(0, x), True),
    }
    for what, (value, test, holds) in table.items():
        yield case(
            f"route/{what}",
            "route",
            lambda p, test=test: test(Route("k"), p.agent("x")).named("root"),
            start={} if value is None else {"k": value},
            text="X" if holds else "",
            calls=("x",) if holds else (),
            events=("r0 x 'X'",) if holds else (),
        )
    yield case(
        "route/what cannot be compared is told",
        "route",
        lambda p: Pipeline("root", Route("k").gt(0, p.agent("x")).named("r")),
        start={"k": "text"},
        raises=Raised("UsageError", "ADKF101", node="r"),
    )
    yield case(
        "route/by the key that was written last",
        "route",
        lambda p: (p.agent("a", "é", writes="k") >> {"x": p.agent("x"), "é": p.agent("y")}).named(
            "root"
        ),
        end={"k": "é"},
        text="Y",
        calls=("a", "y"),
        events=("s0 a 'é' {'k': 'é'}", "s1.r1 y 'Y'"),
    )
    yield case(
        "route/tests after the one that holds are not asked",
        "route",
        lambda p: (
            Route()
            .when(p.test("one", holds=False, later=True), p.agent("x"))
            .when(p.test("two"), p.agent("y"))
            .when(p.test("three", ends="raises"), p.agent("z"))
            .named("root")
        ),
        text="Y",
        calls=("one", "two", "y"),
        events=("r1 y 'Y'",),
    )
