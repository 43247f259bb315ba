"""Programs about fallbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    Fallback,
    Pipeline,
    expect,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._program import Program


def fallbacks() -> Iterator[Program]:
    """All of them."""

    def bad(name: str) -> Raised:
        return Raised("ValueError", text=f"{name} is bad", node=name)

    yield case(
        "fallback/the third attempt",
        "fallback",
        lambda p: Fallback(
            "root", p.fn("x", ends="raises"), p.agent("y", ends="raises"), p.agent("z")
        ),
        text="Z",
        calls=("x", "y", "z"),
        events=("f2 z 'Z'",),
    )
    yield case(
        "fallback/when all fail the last error is raised, with those before it",
        "fallback",
        lambda p: Fallback(
            "root",
            p.fn("x", ends="raises"),
            p.agent("y", ends="raises"),
            p.fn("z", ends="raises", later=True),
        ),
        calls=("x", "y", "z"),
        raises=Raised(
            "ValueError",
            text="z is bad",
            node="z",
            before=Raised("ValueError", text="y is bad", before=bad("x")),
        ),
    )
    yield case(
        "fallback/values go back to what they were",
        "fallback",
        lambda p: Fallback(
            "root",
            Pipeline(
                "one",
                p.fn("w", {"k": [2], "n": None, "new": "é", "user:u": 2, "app:a": 2}),
                p.agent("said", writes="k"),
                p.fn("x", ends="raises"),
            ),
            p.fn("look", {"seen": lambda s: [s.get("k"), s.get("n"), s.get("new")]}),
        ),
        start={"k": [1], "n": 0},
        end={"k": [1], "n": 0, "user:u": 2, "app:a": 2, "seen": [[1], 0, None]},
        calls=("w", "said", "x", "look"),
        events=(
            "~f0.s0 w@root {'app:a': 2, 'k': [2], 'n': None, 'new': 'é', 'user:u': 2}",
            "~f0.s1 said 'SAID' {'k': 'SAID'}",
            ". root {'k': [1], 'n': 0, 'new': None}",
            "f1 look@root {'seen': [[1], 0, None]}",
        ),
    )
    yield case(
        "fallback/in a fallback",
        "fallback",
        lambda p: Fallback(
            "root",
            Pipeline(
                "outer",
                Fallback("inner", p.fn("x", ends="raises"), p.fn("y", {"k": 1})),
                p.fn("z", ends="raises"),
            ),
            p.agent("b"),
        ),
        text="B",
        calls=("x", "y", "z", "b"),
        events=("~f0.s0.f1 y@root {'k': 1}", ". root {'k': None}", "f1 b 'B'"),
    )
    yield case(
        "fallback/of an expectation",
        "fallback",
        lambda p: Fallback(
            "root",
            Pipeline("one", p.agent("a"), expect(p.test("t", holds=False), "no")),
            p.agent("b"),
        ),
        text="B",
        calls=("a", "t", "b"),
        events=("~f0.s0 a 'A'", "f1 b 'B'"),
    )
