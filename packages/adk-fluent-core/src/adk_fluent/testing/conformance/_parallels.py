"""Programs about parallels."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from adk_fluent.builders import (
    Fallback,
    FanOut,
    Pipeline,
    tap,
)
from adk_fluent.ir import Ref, StateFieldRef
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    yield from _reduced()


def _reduced() -> Iterator[Program]:
    """A reducer makes one value of what branches wrote."""
    yield case(
        "parallel/a reducer merges in declared order, without the value from before",
        "parallel",
        lambda p: FanOut(
            "root",
            Pipeline(
                "one", tap(p.awaits("wait", "b")), p.agent("a").writes(reduced("k", operator.add))
            ),
            p.agent("b", writes="k"),
            p.fn("f", {"k": None}),
        ),
        start={"k": "before"},
        end={"k": "AB"},
        text="A\n\nB",
        calls=beside(("wait", "a"), ("b",), ("f",)),
        events=(
            *beside(("p1 b 'B' {'k': 'B'}", "p0.s1 a 'A' {'k': 'A'}"), ("p2 f@root {'k': None}",)),
            ". root {'k': 'AB'}",
        ),
    )
    yield case(
        "parallel/a value that one branch alone wrote is no matter of the reducer",
        "parallel",
        lambda p: Pipeline(
            "root",
            FanOut(
                "y",
                p.agent("a").writes(reduced("k", _boom)),
                Pipeline("two", p.awaits("wait", "a"), p.fn("f", {"n": 1})),
            ),
        ),
        end={"k": "A", "n": 1},
        text="A",
        calls=beside(("a",), ("wait", "f")),
        events=beside(("s0.p0 a 'A' {'k': 'A'}",), ("s0.p1.s1 f@root {'n': 1}",)),
    )
    yield case(
        "parallel/a reducer merges what nested branches merged",
        "parallel",
        lambda p: FanOut(
            "root",
            FanOut(
                "inner",
                p.agent("a").writes(reduced("k", operator.add)),
                p.agent("b", writes="k"),
            ),
            p.agent("c", writes="k"),
        ),
        end={"k": "ABC"},
        text="A\n\nB\n\nC",
        calls=None,
        events=(
            *beside(
                (
                    *beside(("p0.p0 a 'A' {'k': 'A'}",), ("p0.p1 b 'B' {'k': 'B'}",)),
                    "p0 inner@root {'k': 'AB'}",
                ),
                ("p1 c 'C' {'k': 'C'}",),
            ),
            ". root {'k': 'ABC'}",
        ),
    )
    yield case(
        "parallel/a reducer that raises is the failure of the step",
        "parallel",
        lambda p: Pipeline(
            "root",
            Fallback(
                "o",
                FanOut(
                    "y",
                    p.agent("a").writes(reduced("k", _boom)),
                    p.agent("b", writes="k"),
                ),
                p.agent("c"),
            ),
        ),
        text="C",
        calls=None,
        events=(
            *beside(("~s0.f0.p0 a 'A' {'k': 'A'}",), ("~s0.f0.p1 b 'B' {'k': 'B'}",)),
            "s0 o@root {'k': None}",
            "s0.f1 c 'C'",
        ),
    )


def reduced(key: str, fn: Callable[[Any, Any], Any]) -> StateFieldRef:
    """A key with a reducer."""
    return StateFieldRef(key, reducer=Ref.to(fn))


def _boom(one: Any, other: Any) -> Any:
    raise ValueError(f"cannot merge {one} and {other}")
