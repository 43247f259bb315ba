"""Recorded runs as lanes on a time axis."""

from __future__ import annotations

from typing import Any

from adk_fluent.debug._recorded_run import RecordedRun
from adk_fluent.debug._show import Row, duration, rows

Data = dict[str, Any]


def run(*tape: Data) -> RecordedRun:
    return RecordedRun({"tape": list(tape)})


def lanes(run: RecordedRun) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows(run):
        found.setdefault(row.lane, []).append(row)
    return found


def event(t: float, author: str, **fields: Any) -> Data:
    return {"t": t, "event": {"author": author, **fields}}


def test_lanes_are_agents_in_branches_in_the_order_in_which_they_begin() -> None:
    made = lanes(
        run(
            {"t": 1, "model_call": 0, "agent": "b", "branch": "p.b", "model": "m"},
            {"t": 2, "model_call": 1, "agent": "a", "branch": "p.a", "model": "m"},
            {"t": 5, "reply_of": 1, "responses": [{"usage_metadata": {"prompt_token_count": 7}}]},
            event(6, "a", branch="p.a", content="hi"),
            {"t": 7, "tool_call": 2, "agent": "a", "branch": "p.a", "tool": "t", "args": {}},
            {"t": 9, "result_of": 2, "error": {"type": "builtins:OSError", "message": "down"}},
            event(10, "root", node="count", branch="p.a"),
        )
    )
    assert list(made) == ["b", "a", "p.a/count"]
    [slow], [call, said, tool] = made["b"], made["a"]
    assert (slow.kind, slow.status) == ("model", "cancelled")
    assert (call.start_ms, call.end_ms, call.tokens, call.status) == (2, 5, 7, "ok")
    assert (said.kind, said.label, said.start_ms, said.end_ms) == ("event", "a", 6, 6)
    assert (tool.label, tool.status, tool.error) == ("t", "error", "OSError: down")


def test_rows_are_in_the_order_in_which_they_began() -> None:
    recorded = run(
        {"t": 1, "tool_call": 0, "agent": "a", "tool": "t"},
        {"t": 2, "model_call": 1, "agent": "inner", "within": 0},
        {"t": 3, "reply_of": 1, "responses": []},
        {"t": 4, "result_of": 0, "result": None},
        event(5, "a"),
    )
    found = [(row.lane, row.kind, row.within) for row in rows(recorded)]
    assert found == [("a", "tool", False), ("inner", "model", True), ("a", "event", False)]
    assert duration(recorded) == 5
    assert (rows(run()), duration(run())) == ([], 0.0)


def test_spans_stand_in_the_lane_of_their_agent() -> None:
    def span(id: str, above: str, start: float, end: float, agent: str = "") -> Data:
        made: Data = {"span_id": id, "parent_id": above, "start": start, "end": end, "name": id}
        return {**made, "agent": agent} if agent else made

    recorded = RecordedRun(
        {
            "tape": [
                {"t": 2, "model_call": 0, "agent": "a", "branch": "p.a", "model": "m"},
                {"t": 3, "model_call": 1, "agent": "each", "branch": "m.1", "model": "m"},
                {"t": 3, "model_call": 2, "agent": "each", "branch": "m.2", "model": "m"},
            ],
            "spans": [
                span("run", "", 0, 9),
                span("of a", "run", 1, 5, "a"),
                span("in it", "of a", 2.5, 4),
                span("of each", "run", 1, 8, "each"),
            ],
        }
    )
    found = {lane: [each.label for each in made] for lane, made in lanes(recorded).items()}
    assert found == {
        "spans": ["run", "in it"],
        "a": ["of a", "m"],
        "each": ["of each"],  # in which branch nobody can say
        "m.1/each": ["m"],
        "m.2/each": ["m"],
    }
