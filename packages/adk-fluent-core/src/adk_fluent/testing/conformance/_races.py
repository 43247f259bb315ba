"""Programs about races."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    Pipeline,
    race,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._program import Program


def races() -> Iterator[Program]:
    """All of them."""
    yield case(
        "race/a failure is no success",
        "race",
        lambda p: race(
            p.agent("x", ends="raises"),
            Pipeline("w", p.awaits("wait", "x"), p.agent("y", writes="k")),
            name="root",
        ),
        end={"k": "Y"},
        text="Y",
        calls=beside(("x",), ("wait", "y")),
        events=("w1.s1 y 'Y' {'k': 'Y'}",),
    )
    yield case(
        "race/a winner reads nothing of a loser's",
        "race",
        lambda p: race(
            Pipeline("l", p.fn("lw", {"k": "loser"}), p.fn("h", ends="hangs")),
            Pipeline("w", p.awaits("wait", "h"), p.fn("y", {"seen": lambda s: s.get("k")})),
            name="root",
        ),
        start={"k": "old"},
        end={"k": "old", "seen": "old"},
        calls=beside(("lw", "h"), ("wait", "y")),
        events=(
            "~w0.s0 lw@root {'k': 'loser'}",
            "w1.s1 y@root {'seen': 'old'}",
            ". root {'k': 'old'}",
        ),
    )
    yield case(
        "race/a loser that wrote over the winner gives way to it",
        "race",
        lambda p: race(
            Pipeline("w", p.fn("ww", {"k": "winner"}), p.awaits("wait", "h"), p.agent("y")),
            Pipeline(
                "l", p.awaits("wait2", "wait"), p.fn("lw", {"k": "loser"}), p.fn("h", ends="hangs")
            ),
            name="root",
        ),
        end={"k": "winner"},
        text="Y",
        calls=beside(("ww", "wait", "y"), ("wait2", "lw", "h")),
        events=(
            "w0.s0 ww@root {'k': 'winner'}",
            "~w1.s1 lw@root {'k': 'loser'}",
            "w0.s2 y 'Y'",
            ". root {'k': 'winner'}",
        ),
    )
    yield case(
        "race/keys of the user and the app are not undone",
        "race",
        lambda p: race(
            Pipeline(
                "l",
                p.fn("lw", {"user:u": 1, "app:a": 2, "k": 3}),
                p.fn("h", ends="hangs"),
            ),
            Pipeline("w", p.awaits("wait", "h"), p.agent("y")),
            name="root",
        ),
        end={"user:u": 1, "app:a": 2},
        text="Y",
        calls=beside(("lw", "h"), ("wait", "y")),
        events=(
            "~w0.s0 lw@root {'app:a': 2, 'k': 3, 'user:u': 1}",
            "w1.s1 y 'Y'",
            ". root {'k': None}",
        ),
    )
    yield case(
        "race/of one",
        "race",
        lambda p: race(p.agent("x", writes="k"), name="root"),
        end={"k": "X"},
        text="X",
        calls=("x",),
        events=("w0 x 'X' {'k': 'X'}",),
    )
    yield case(
        "race/of functions alone",
        "race",
        lambda p: race(
            p.fn("h", ends="hangs"),
            Pipeline("w", p.awaits("wait", "h"), p.fn("f", {"k": None, "n": 0})),
            name="root",
        ),
        end={"n": 0},
        calls=beside(("h",), ("wait", "f")),
        events=("w1.s1 f@root {'k': None, 'n': 0}",),
    )
