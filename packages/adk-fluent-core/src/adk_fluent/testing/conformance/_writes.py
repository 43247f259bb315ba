"""Programs about how functions and agents read and write state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Agent, Pipeline
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from adk_fluent._scripts._replies import Asked
    from adk_fluent.builders import Builder, State
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def _fn(name: str, writes: Mapping[str, Any]) -> Callable[[Bench], Builder]:
    return lambda p: Pipeline("root", p.fn(name, writes))


def writes() -> Iterator[Program]:
    """All of them."""
    yield case(
        "state/None is as good as absent",
        "function",
        lambda p: Pipeline(
            "root",
            p.fn("f", {"k": None, "other": 1}),
            p.fn(
                "g",
                {
                    "in": lambda state: "k" in state,
                    "get": lambda state: state.get("k", "default"),
                    "keys": sorted,
                },
            ),
        ),
        start={"k": 1},
        end={"other": 1, "in": False, "get": "default", "keys": ["other"]},
        calls=("f", "g"),
        events=(
            "s0 f@root {'k': None, 'other': 1}",
            "s1 g@root {'get': 'default', 'in': False, 'keys': ['other']}",
        ),
    )
    yield case(
        "state/a dict replaces a dict",
        "function",
        _fn("f", {"k": {"b": {"d": 2}}}),
        start={"k": {"a": 1, "b": {"c": 1}}},
        end={"k": {"b": {"d": 2}}},
        calls=("f",),
        events=("s0 f@root {'k': {'b': {'d': 2}}}",),
    )
    yield case(
        "state/a function that returns nothing writes nothing",
        "function",
        lambda p: Pipeline("root", p.fn("f"), p.fn("g", {})),
        start={"k": 1},
        calls=("f", "g"),
    )
    yield case(
        "state/several keys are written in one event",
        "function",
        _fn("f", {"b": 1, "a": None, "user:c": "é", "app:d": []}),
        end={"b": 1, "user:c": "é", "app:d": []},
        calls=("f",),
        events=("s0 f@root {'a': None, 'app:d': [], 'b': 1, 'user:c': 'é'}",),
    )
    yield case(
        "state/a missing key raises where it is read",
        "function",
        lambda p: Pipeline(
            "root", p.fn("f", {"k": 1}), p.fn("g", {"k": lambda state: state["größe"]})
        ),
        end={"k": 1},
        calls=("f", "g"),
        events=("s0 f@root {'k': 1}",),
        raises=Raised("KeyError", text="größe", node="g"),
    )
    yield case(
        "state/a function that returns no mapping is told so",
        "function",
        lambda _: Pipeline("root", _misreturns),
        raises=Raised("UsageError", "ADKF101", node="misreturns"),
    )
    shown_values: tuple[Any, ...] = ("é", 7, None, [], "two\nlines")
    for value in shown_values:
        yield case(
            f"state/an instruction shows {value!r}",
            "agent",
            lambda p: Pipeline("root", _echo(p, "«{größe?}»")),
            start={} if value is None else {"größe": value},
            text="" if value is None else str(value),
            calls=("a",),
            events=(f"s0 a {'' if value is None else str(value)!r}",),
        )


def _misreturns(state: State) -> Any:
    return ["no mapping"]


_misreturns.__name__ = "misreturns"


def _echo(p: Bench, instruction: str) -> Agent:
    """An agent that says what its instruction shows between the marks."""

    def says(asked: Asked) -> str:
        return asked.system.partition("«")[2].partition("»")[0]

    return p.agent("a", says).instruct(instruction)
