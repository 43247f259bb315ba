"""Programs about parallels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    FanOut,
    Pipeline,
    tap,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._program import Program


def parallels() -> Iterator[Program]:
    """All of them."""
    yield case(
        "parallel/the last declared write counts, whoever is last",
        "parallel",
        lambda p: FanOut(
            "root",
            Pipeline("one", tap(p.awaits("wait", "b")), p.agent("a", writes="k")),
            p.agent("b", writes="k"),
        ),
        end={"k": "B"},
        text="A\n\nB",
        calls=beside(("wait", "a"), ("b",)),
        events=("p1 b 'B' {'k': 'B'}", "p0.s1 a 'A' {'k': 'A'}", ". root {'k': 'B'}"),
    )
    yield case(
        "parallel/answers stand in declared order",
        "parallel",
        lambda p: FanOut(
            "root",
            Pipeline("one", tap(p.awaits("w1", "b")), p.agent("a")),
            Pipeline("two", tap(p.awaits("w2", "c")), p.agent("b")),
            p.agent("c"),
        ),
        text="A\n\nB\n\nC",
        calls=beside(("w1", "a"), ("w2", "b"), ("c",)),
        events=beside(("p0.s1 a 'A'",), ("p1.s1 b 'B'",), ("p2 c 'C'",)),
    )
    names = [f"b{number}" for number in range(50)]
    yield case(
        "parallel/of fifty branches",
        "parallel",
        lambda p: FanOut("root", *(p.fn(name, {name: name}) for name in names)),
        end={name: name for name in names},
        calls=beside(*((name,) for name in names)),
        events=beside(
            *((f"p{n} {name}@root {{{name!r}: {name!r}}}",) for n, name in enumerate(names))
        ),
    )
    yield case(
        "parallel/branches wait for each other",
        "parallel",
        lambda p: FanOut("root", p.awaits("a", "b"), p.awaits("b", "a")),
        calls=beside(("a",), ("b",)),
    )
    yield case(
        "parallel/the first failure is raised, and what was written stays",
        "parallel",
        lambda p: FanOut(
            "root",
            Pipeline("one", p.fn("w", {"k": 1}), p.agent("h", ends="hangs")),
            Pipeline("two", p.awaits("wait", "h"), p.agent("x", ends="raises")),
        ),
        end={"k": 1},
        calls=beside(("w", "h"), ("wait", "x")),
        events=("p0.s0 w@root {'k': 1}",),
        raises=Raised("ValueError", text="x is bad", node="x"),
    )
