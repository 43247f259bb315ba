"""Programs in which much comes together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    map_over,
    race,
    timeout,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import Builder
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def together() -> Iterator[Program]:
    """All of them."""
    yield case(
        "together/parallel in loop in route",
        "sequence",
        lambda p: Pipeline(
            "root",
            p.agent("a", "x", writes="k"),
            Route("k")
            .eq("x", Loop("l", FanOut("par", p.agent("b"), p.fn("c", {"n": 1})), max=2))
            .otherwise(p.agent("u"))
            .named("r"),
        ),
        end={"k": "x", "n": 1},
        text="B",
        calls=("a", *beside(("b",), ("c",)), *beside(("b",), ("c",))),
        events=(
            "s0 a 'x' {'k': 'x'}",
            *beside(("s1.r0.l0.p0 b 'B'",), ("s1.r0.l0.p1 c@root {'n': 1}",)),
            *beside(("s1.r0.l1.p0 b 'B'",), ("s1.r0.l1.p1 c@root {'n': 1}",)),
        ),
    )
    yield case(
        "together/two hundred steps",
        "sequence",
        lambda p: Pipeline("root", *(p.fn(f"f{n}", {"n": n}) for n in range(200))),
        end={"n": 199},
        calls=tuple(f"f{n}" for n in range(200)),
        events=tuple(f"s{n} f{n}@root {{'n': {n}}}" for n in range(200)),
    )
    yield case(
        "together/a hundred levels",
        "sequence",
        _deep,
        text="X",
        calls=("x",),
        events=(f"{'.'.join(['f0', 't0'] * 50)} x 'X'",),
    )
    yield case(
        "together/everything at once",
        "sequence",
        lambda p: Pipeline(
            "root",
            map_over(
                "items",
                Fallback(
                    "fb",
                    timeout(
                        Pipeline("try", p.agent("a", writes="k"), p.fn("bad", ends="raises")), 60
                    ),
                    race(
                        p.fn("h", ends="hangs"), Pipeline("w", p.awaits("wait", "h"), p.agent("b"))
                    ),
                ),
                concurrency=1,
                name="m",
            ),
            p.agent("z"),
        ),
        start={"items": ["é"]},
        end={"items": ["é"], "results": ["B"]},
        text="Z",
        calls=("a", "bad", *beside(("h",), ("wait", "b")), "z"),
        events=(
            "~s0.m0.f0.t0.s0 a 'A' {'k': 'A'}",
            "s0.m0 fb@root {'k': None}",
            "s0.m0.f1.w1.s1 b 'B'",
            "s0 m@root {'results': ['B']}",
            "s1 z 'Z'",
        ),
    )
    for count in (2, 8):
        yield case(
            f"at once/{count} runs with state and messages of their own",
            "session",
            lambda p: Pipeline(
                "root",
                p.agent("a", lambda asked: asked.turns[0].text, writes="k"),
                FanOut(
                    "par", p.fn("b", {"b": lambda s: s["me"]}), p.fn("c", {"c": lambda s: s["k"]})
                ),
                map_over(
                    "items", p.fn("d", {"d": lambda s: s["_item"]}, later=True), result_key="d"
                ),
            ),
            start={"me": "me §", "items": ["item §", "é"]},
            end={
                "me": "me §",
                "items": ["item §", "é"],
                "k": "message §",
                "b": "me §",
                "c": "message §",
                "results": ["item §", "é"],
            },
            message="message §",
            text="message §",
            calls=("a", *beside(("b",), ("c",)), "d", "d"),
            events=(
                "s0 a 'message §' {'k': 'message §'}",
                *beside(("s1.p0 b@root {'b': 'me §'}",), ("s1.p1 c@root {'c': 'message §'}",)),
                *beside(("s2.m0 d@root {'d': 'item §'}",), ("s2.m1 d@root {'d': 'é'}",)),
                "s2 map_over@root {'d': None, 'results': ['item §', 'é']}",
            ),
            copies=count,
        )


def _deep(p: Bench) -> Builder:
    step: Builder = p.agent("x")
    for level in range(50):
        step = Fallback(f"f{level}", timeout(step, 60, name=f"t{level}"))
    return step.named("root")
