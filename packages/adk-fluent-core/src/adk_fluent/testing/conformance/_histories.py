"""Programs about what agents are shown of the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import Fallback, FanOut, Pipeline
from adk_fluent.ir import HISTORIES
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import Expected, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent._scripts._replies import Asked
    from adk_fluent.ir import History
    from adk_fluent.testing.conformance._program import Program


def _sees(*texts: str) -> Callable[[Asked], str]:
    """An answer that tells which texts the agent was shown in the conversation."""

    def says(asked: Asked) -> str:
        every = "\n".join(turn.text for turn in asked.turns)
        return " ".join(text for text in texts if text in every)

    return says


_ALL = ("hello", "FIRST", "SIDE")


def histories() -> Iterator[Program]:
    """All of them."""
    seen = {"transcript": "hello FIRST SECOND", "own": "hello", "input": "SECOND", "none": ""}
    for mode in HISTORIES:
        yield case(
            f"history/{mode}",
            "history",
            lambda p, mode=mode: Pipeline(
                "root",
                p.agent("first"),
                p.agent("second"),
                p.agent("a", _sees("hello", "FIRST", "SECOND")).history(mode),
            ),
            message="hello",
            text=seen[mode] or "SECOND",
            calls=("first", "second", "a"),
            events=("s0 first 'FIRST'", "s1 second 'SECOND'", f"s2 a {seen[mode]!r}"),
        )
    turns: tuple[tuple[History, str, str], ...] = (
        ("transcript", "hello FIRST", "hello FIRST AGAIN"),
        ("own", "hello", "hello AGAIN"),
        ("input", "FIRST", "FIRST"),
    )
    for mode, first, second in turns:
        yield case(
            f"history/{mode}, in the second message",
            "history",
            lambda p, mode=mode: Pipeline(
                "root",
                p.agent("first"),
                p.agent("a", _sees("hello", "FIRST", "AGAIN")).history(mode),
            ),
            message="hello",
            text=first,
            calls=("first", "a"),
            events=("s0 first 'FIRST'", f"s1 a {first!r}"),
            then=(
                Turn(
                    message="AGAIN",
                    expects=Expected(
                        text=second,
                        calls=("first", "a"),
                        events=("s0 first 'FIRST'", f"s1 a {second!r}"),
                    ),
                ),
            ),
        )
    yield case(
        "history/nobody sees what a discarded attempt said",
        "history",
        lambda p: Pipeline(
            "root",
            Fallback(
                "fb",
                Pipeline("one", p.agent("lost"), p.fn("x", ends="raises")),
                p.agent("b", _sees("hello", "LOST")),
            ),
            p.agent("a", _sees("hello", "LOST")),
        ),
        message="hello",
        text="hello",
        calls=("lost", "x", "b", "a"),
        events=("~s0.f0.s0 lost 'LOST'", "s0.f1 b 'hello'", "s1 a 'hello'"),
    )
    yield case(
        "history/branches see what was before and nothing of each other",
        "history",
        lambda p: Pipeline(
            "root",
            p.agent("first"),
            FanOut(
                "par",
                Pipeline(
                    "b0",
                    p.awaits("wait", "side"),
                    p.awaits("w2", "more"),
                    p.agent("a", _sees(*_ALL)),
                ),
                Pipeline("b1", p.agent("side"), p.fn("more")),
            ),
            p.agent("z", _sees(*_ALL)),
        ),
        message="hello",
        text="hello FIRST SIDE",
        calls=("first", *beside(("wait", "w2", "a"), ("side", "more")), "z"),
        events=(
            "s0 first 'FIRST'",
            *beside(("s1.p0.s2 a 'hello FIRST'",), ("s1.p1.s0 side 'SIDE'",)),
            "s2 z 'hello FIRST SIDE'",
        ),
    )
