"""Programs about transfers that no model asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import (
    Fallback,
    Pipeline,
    Route,
    transfer,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import StepLike
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def transfers() -> Iterator[Program]:
    """All of them."""

    def desk(p: Bench, when: Any) -> StepLike:
        return Pipeline(
            "root",
            p.agent("a"),
            transfer("x", when=when, name="hand"),
            p.fn("f", {"k": 1}),
            Route("missing").eq("x", p.agent("x")),
        )

    for holds in (True, False):
        yield case(
            f"transfer/when its condition {'holds' if holds else 'does not hold'}",
            "transfer",
            lambda p, holds=holds: desk(p, p.test("t", holds, later=True)),
            end={"k": 1},
            text="X" if holds else "A",
            calls=("a", "t", *(("x",) if holds else ()), "f"),
            events=(
                "s0 a 'A'",
                *(("s1 hand@root ->x", "s1.x0 x 'X'") if holds else ()),
                "s2 f@root {'k': 1}",
            ),
        )
    yield case(
        "transfer/to what is not there is refused before anything runs",
        "transfer",
        lambda p: Pipeline("root", p.agent("a"), transfer("nowhere", name="hand")),
        raises=Raised("", text="nowhere"),
    )
    yield case(
        "transfer/in a fallback is undone",
        "transfer",
        lambda p: Pipeline(
            "root",
            Fallback(
                "fb",
                Pipeline("one", transfer("target", name="hand"), p.fn("bad", ends="raises")),
                p.agent("b"),
            ),
            Route("missing").eq("x", Pipeline("target", p.agent("x", writes="k"))),
        ),
        text="B",
        calls=("x", "bad", "b"),
        events=(
            "~s0.f0.s0 hand@root ->target",
            "~s0.f0.s0.x0.s0 x 'X' {'k': 'X'}",
            "s0 fb@root {'k': None}",
            "s0.f1 b 'B'",
        ),
    )
