"""Programs about tools that are called, and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._scripts._replies import Call, reply
from adk_fluent.builders import Pipeline
from adk_fluent.testing.conformance._case import case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._scripts._replies import Asked, Reply
    from adk_fluent.testing.conformance._program import Program


def keep(value: str, tool_context: Any) -> str:
    """Keep a value."""
    tool_context.state["k"] = value
    return "kept"


def _note(callback_context: Any) -> None:
    callback_context.state["k"] = "noted"


def tools() -> Iterator[Program]:
    """All of them."""

    def calls_keep(asked: Asked) -> str | Reply:
        return "Done." if "[result" in asked.prompt else reply(Call("keep", {"value": "é"}))

    yield case(
        "tool/one that writes to state",
        "tool",
        lambda p: Pipeline(
            "root", p.agent("a", calls_keep).tool(keep).writes("k", via="tool"), p.agent("z")
        ),
        end={"k": "é"},
        text="Z",
        calls=("a", "a", "z"),
        events=(
            "s0 a calls keep({'value': 'é'})",
            "s0 a {'k': 'é'} result of keep",
            "s0 a 'Done.'",
            "s1 z 'Z'",
        ),
    )
    yield case(
        "callback/one that writes to state",
        "callback",
        lambda p: Pipeline(
            "root", p.agent("a").before_agent(_note).writes("k", via="tool"), p.agent("z")
        ),
        end={"k": "noted"},
        text="Z",
        calls=("a", "z"),
        events=("s0 a {'k': 'noted'}", "s0 a 'A'", "s1 z 'Z'"),
    )
