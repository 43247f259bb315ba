"""Programs about what state holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.builders import Pipeline
from adk_fluent.testing.conformance._case import case

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.testing.conformance._program import Program


#: Values that are easily lost, or taken for something else.
VALUES: Final[Mapping[str, Any]] = {
    "zero": 0,
    "false": False,
    "an empty text": "",
    "an empty list": [],
    "an empty dict": {},
    "a float": 0.1,
    "a big number": 2**53 - 1,
    "non-ASCII text": "Grüße, 世界 🌍 \u200d\u0301",
    "lines and quotes": "a\n\"b\"\t'c'\\ {d} %s",
    "a nested list": [1, [2, [None, {"é": []}]]],
    "a nested dict": {"ä": {"b": {"c": [None, False]}}},
    "a dict with None in it": {"x": None, "y": 1},
    "a long text": "x" * 10_000,
}


KEYS: Final = ("größe", "with space", "a.b", "世界", "user:größe", "app:größe", "0", "K", "_k")


def values() -> Iterator[Program]:
    """What state holds is kept."""
    for what, value in VALUES.items():
        delta = {"k": value}
        yield case(
            f"state/{what} is kept",
            "function",
            lambda p, value=value: Pipeline(
                "root",
                p.fn("f", {"k": lambda state: state["given"]}),
                p.fn("g", {"same": lambda state: state["k"] == value}),
            ),
            start={"given": value},
            end={"given": value, "k": value, "same": True},
            calls=("f", "g"),
            events=(f"s0 f@root {delta}", "s1 g@root {'same': True}"),
        )
    for what in ("non-ASCII text", "lines and quotes", "a long text"):
        said = VALUES[what]
        yield case(
            f"state/an agent says and writes {what}",
            "agent",
            lambda p, said=said: Pipeline("root", p.agent("a", said, writes="k")),
            end={"k": said},
            text=said,
            calls=("a",),
            events=(f"s0 a {said!r} {{'k': {said!r}}}",),
        )


def keys() -> Iterator[Program]:
    """Any key is as good as another."""
    for key in KEYS:
        yield case(
            f"state/the key {key!r}",
            "function",
            lambda p, key=key: Pipeline(
                "root", p.fn("f", {key: "é"}), p.fn("g", {"seen": lambda state: state[key]})
            ),
            end={key: "é", "seen": "é"},
            calls=("f", "g"),
            events=(f"s0 f@root {{{key!r}: 'é'}}", "s1 g@root {'seen': 'é'}"),
        )
    yield case(
        "state/a temporary key lives as long as the run",
        "function",
        lambda p: Pipeline(
            "root",
            p.fn("f", {"temp:t": 1}),
            p.fn("g", {"seen": lambda state: state["temp:t"]}),
        ),
        end={"seen": 1},
        calls=("f", "g"),
        events=("s1 g@root {'seen': 1}",),
    )
