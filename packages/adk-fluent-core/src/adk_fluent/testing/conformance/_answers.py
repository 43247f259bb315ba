"""Programs about answers: typed, empty, streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent._scripts._replies import reply
from adk_fluent.builders import Fallback, FanOut, Pipeline
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import Raised, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.testing.conformance._program import Program


def answers() -> Iterator[Program]:
    """Typed answers, and empty ones."""
    typed = (StateFieldRef("score", float), "user:größe")
    good, bad = '{"score": 1, "größe": "é"}', '{"score": "much"}'
    delta = {"score": 1.0, "user:größe": "é"}
    yield case(
        "typed answer/its fields are written",
        "typed answer",
        lambda p: Pipeline("root", p.agent("a", good).writes(*typed)),
        end=delta,
        text=good,
        calls=("a",),
        events=(f"s0 a {good!r} {shown(delta)}",),
    )
    yield case(
        "typed answer/one that does not fit is the agent's failure",
        "typed answer",
        lambda p: Pipeline("root", p.agent("a", bad).writes(*typed), p.agent("z")),
        calls=("a",),
        events=(f"s0 a {bad!r}",),
        raises=Raised("OutputInvalidError", "ADKF304", node="a"),
    )
    yield case(
        "typed answer/one that does not fit is made good by a fallback",
        "typed answer",
        lambda p: Fallback("root", p.agent("a", bad).writes(*typed), p.agent("b")),
        text="B",
        calls=("a", "b"),
        events=(f"~f0 a {bad!r}", "f1 b 'B'"),
    )
    yield case(
        "agent/an empty text is an answer",
        "agent",
        lambda p: Pipeline("root", p.agent("a", "", writes="k")),
        end={"k": ""},
        calls=("a",),
        events=("s0 a '' {'k': ''}",),
    )
    yield case(
        "agent/as the root",
        "agent",
        lambda p: p.agent("a", writes="k"),
        end={"k": "A"},
        text="A",
        calls=("a",),
        events=(". a 'A' {'k': 'A'}",),
    )


def streamed() -> Iterator[Program]:
    """Fragments of answers."""
    config = ExecutionConfig(streaming_mode="sse")

    def chunks(*given: str) -> Callable[[Asked], Reply]:
        return lambda _: reply(chunks=given)

    yield case(
        "streamed text/fragments come before the whole",
        "streamed text",
        lambda p: Pipeline("root", p.agent("a", chunks("Gu", "ten ", "🌍"), writes="k")),
        end={"k": "Guten 🌍"},
        text="Guten 🌍",
        calls=("a",),
        events=(
            *("s0 a +'Gu'", "s0 a +'ten '", "s0 a +'🌍'"),
            "s0 a 'Guten 🌍' {'k': 'Guten 🌍'}",
        ),
        config=config,
    )
    yield case(
        "streamed text/of branches at the same time",
        "streamed text",
        lambda p: FanOut("root", p.agent("a", chunks("1", "2")), p.agent("b", chunks("3", "4"))),
        text="12\n\n34",
        calls=beside(("a",), ("b",)),
        events=beside(
            ("p0 a +'1'", "p0 a +'2'", "p0 a '12'"), ("p1 b +'3'", "p1 b +'4'", "p1 b '34'")
        ),
        config=config,
    )
    yield case(
        "streamed text/of an attempt that is discarded",
        "streamed text",
        lambda p: Fallback(
            "root",
            Pipeline("one", p.agent("a", chunks("1", "2")), p.fn("x", ends="raises")),
            p.agent("b", chunks("3")),
        ),
        text="3",
        calls=("a", "x", "b"),
        events=("~f0.s0 a +'1'", "~f0.s0 a +'2'", "~f0.s0 a '12'", "f1 b +'3'", "f1 b '3'"),
        config=config,
    )
