"""What became of a run, told from its events."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent.protocol import AgentEvent, ErrorInfo, Pending, RunResult


def said(node: str = "a", text: str | None = "hi", **more: Any) -> AgentEvent:
    return AgentEvent(node, text, node=node, path="s0", is_final=True, **more)


REFUSED = said("ask", "ask was refused.", metadata={"why": "refused"})
ASKS = said("ask", None, pending=(Pending("q", "gate", "ask", message="Pay?"),))
CUT = said("a", "On Mon", error=ErrorInfo("MAX_TOKENS"))
SAFETY_CUT = said("a", "On Mon", error=ErrorInfo("SAFETY"))
EMPTY_CUT = said("a", None, error=ErrorInfo("MAX_TOKENS"))
BLOCKED = said("a", None, error=ErrorInfo("SAFETY", "no"))
LATE = said("root", "Nothing was run.", metadata={"why": "held"})
LEFT = said("a", "Ask a person.", escalate=True)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([], ("completed", "", "")),
        ([said()], ("completed", "", "")),
        ([said(), ASKS], ("waiting", "ask: Pay?", "ask")),
        ([said(), REFUSED], ("rejected", "ask was refused.", "ask")),
        ([CUT, said("b")], ("truncated", "MAX_TOKENS", "a")),
        ([SAFETY_CUT], ("truncated", "SAFETY", "a")),
        ([EMPTY_CUT], ("truncated", "MAX_TOKENS", "a")),
        ([BLOCKED, said("b")], ("failed", "SAFETY: no", "a")),
        ([LATE], ("completed", "Nothing was run.", "root")),
        ([LEFT, said("b")], ("escalated", "Ask a person.", "a")),
        ([LEFT, CUT, REFUSED, ASKS], ("waiting", "ask: Pay?", "ask")),
        ([LEFT, CUT, REFUSED], ("rejected", "ask was refused.", "ask")),
        ([LEFT, CUT], ("truncated", "MAX_TOKENS", "a")),
        ([CUT, BLOCKED], ("failed", "SAFETY: no", "a")),
    ],
)
def test_status_reason_and_step(events: list[AgentEvent], told: tuple[str, str, str]) -> None:
    result = RunResult(events)
    assert (result.status, result.reason, result.step) == told


def test_what_the_framework_says_is_no_answer() -> None:
    assert RunResult([said(), REFUSED]).text == "hi"
    held = said("root", "Nothing was run.", metadata={"why": "held"}, pending=ASKS.pending)
    result = RunResult([held])
    assert (result.text, result.status, result.reason) == ("", "waiting", "Nothing was run.")


def test_what_a_discarded_attempt_did_does_not_count() -> None:
    gone = said("a", "On Mon", error=ErrorInfo("MAX_TOKENS"), attempt="1")
    undone = AgentEvent("root", discarded=("1",))
    assert RunResult([gone, undone, said("b")]).status == "completed"


def test_what_a_loop_takes_ends_the_loop_alone() -> None:
    taken = AgentEvent("a", "done", node="a", path="s0.l1.s2", escalate=True)
    assert RunResult([taken]).status == "completed"
    below = AgentEvent("sub", "done", node="adk_loop", path="s0", escalate=True)
    assert RunResult([below]).status == "completed"


def test_of_several_runs_the_last_counts() -> None:
    first = said("ask", "refused", metadata={"why": "refused", "run": "1"})
    assert RunResult([first, said(metadata={"run": "2"})]).status == "completed"
