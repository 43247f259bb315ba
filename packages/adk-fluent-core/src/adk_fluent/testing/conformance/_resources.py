"""Programs about resources that functions name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Pipeline, Resource
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.builders import Builder, State
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program


def resources() -> Iterator[Program]:
    """All of them."""

    def uses(state: State, shelf: dict[str, Any]) -> dict[str, Any]:
        return {"k": shelf["k"]}

    yield case(
        "resource/it is handed to functions by name",
        "resource",
        lambda _: Pipeline("root", uses).inject(shelf={"k": "é"}),
        end={"k": "é"},
        events=("s0 uses@root {'k': 'é'}",),
    )
    for ends in ("returns", "raises"):
        yield case(
            f"resource/one that is made is tidied up after a function that {ends}",
            "resource",
            lambda p, ends=ends: _tidied(p, ends == "raises"),
            end={} if ends == "raises" else {"k": 1},
            calls=("made", "used", "tidied"),
            events=() if ends == "raises" else ("s0 used@root {'k': 1}",),
            raises=Raised("ValueError", text="used is bad", node="used")
            if ends == "raises"
            else None,
        )


def _tidied(p: Bench, bad: bool) -> Builder:
    def make() -> Any:
        p.calls.append("made")
        try:
            yield {"k": 1}
        finally:
            p.calls.append("tidied")

    def used(state: State, shelf: dict[str, int]) -> dict[str, int]:
        p.calls.append("used")
        if bad:
            raise ValueError("used is bad")
        return shelf

    return Pipeline("root", used).inject(shelf=Resource(make))
