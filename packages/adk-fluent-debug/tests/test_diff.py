"""Differences between the events of two runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adk_fluent.debug import diff_events
from adk_fluent.errors import UsageError
from adk_fluent.protocol import AgentEvent, ToolCallInfo, ToolResponseInfo, asked_key


def run(mark: str) -> list[AgentEvent]:
    meta = {"run": f"run {mark}"}
    return [
        AgentEvent(
            "a",
            tool_calls=[ToolCallInfo("t", {"x": 1}, f"call {mark}")],
            id=f"1{mark}",
            invocation_id=mark,
            timestamp=float(len(mark)),
            attempt=f"s{mark}.t{mark}",
            metadata=dict(meta),
        ),
        AgentEvent(
            "a",
            tool_responses=[ToolResponseInfo("t", 2, f"call {mark}")],
            id=f"2{mark}",
            metadata=dict(meta),
        ),
        AgentEvent("b", "hi", branch="p.b", state_delta={"k": 1, "temp:x": mark}),
        AgentEvent("root", discarded=(f"t{mark}",)),
    ]


def test_identities_times_and_temporary_keys_do_not_count() -> None:
    diff = diff_events(run("x"), run("yy"))
    assert not diff
    assert diff.first is None
    assert diff.summary == "no difference in 4 events"
    assert diff.unified() == ""


def test_the_call_in_a_key_counts_by_its_order() -> None:
    def asked(id: str, by: str = "tool_approval") -> list[AgentEvent]:
        call = AgentEvent("a", tool_calls=[ToolCallInfo("t", {}, id)])
        return [call, AgentEvent("a", state_delta={asked_key(id): by})]

    assert not diff_events(asked("c1"), asked("c2"))
    first = diff_events(asked("c1"), asked("c2", by="other")).first
    assert first is not None
    assert (first.before, first.after) == ("tool_approval", "other")


def test_costs_do_not_count_and_other_metadata_does() -> None:
    def noted(**more: str) -> list[AgentEvent]:
        return [AgentEvent("a", "hi", custom_metadata=dict(more))]

    assert not diff_events(noted(adk_fluent_cost='[{"at": 1.5}]'), noted(adk_fluent_cost="[]"))
    assert not diff_events(noted(adk_fluent_cost='[{"at": 1.5}]'), noted())
    found = diff_events(noted(adk_fluent_cost="[]", team="x"), noted(team="y")).first
    assert found is not None
    assert found.path == ".custom_metadata.team"


def test_who_belongs_to_whom_counts() -> None:
    other = run("x")
    other[1] = replace(other[1], tool_responses=[ToolResponseInfo("t", 2, "another")])
    found = diff_events(run("x"), other).first
    assert found is not None
    assert found.path == ".tool_responses[0].call_id"


def test_ids_of_scopes_within_each_other_count_by_their_order() -> None:
    def attempts(outer: str, *inner: str, discards: str) -> list[AgentEvent]:
        events = [AgentEvent("a", attempt=f"{outer}.{each}") for each in inner]
        return [*events, AgentEvent("root", discarded=(discards,))]

    recorded = attempts("x", "y", "z", discards="y")
    assert not diff_events(recorded, attempts("u", "v", "w", discards="v"))
    assert diff_events(recorded, attempts("u", "v", "w", discards="w"))


def test_the_first_difference_is_told_and_that_of_each_lane() -> None:
    other = run("x")
    other[0] = replace(other[0], tool_calls=[ToolCallInfo("t", {"x": 9}, "c")])
    other[2] = replace(other[2], content="ho")
    diff = diff_events(run("x"), other)
    assert diff.first is not None
    assert (diff.first.index, diff.first.lane, diff.first.path) == (0, "a", ".tool_calls[0].args.x")
    assert (diff.first.before, diff.first.after) == (1, 9)
    assert list(diff.by_lane) == ["a", "b"]
    assert "also event 0 (b) differs at .content: 'hi' -> 'ho'" in diff.summary
    assert '-  "x": 1' in diff.unified().replace("   ", " ").replace("  ", " ").replace(
        ' "x"', '  "x"'
    )


def test_events_that_are_gone_new_or_elsewhere() -> None:
    events = run("x")
    gone = diff_events(events, events[:-1])
    assert "event 3 (root) is gone" in gone.summary
    new = diff_events(events[:-1], events)
    assert "event 3 (root) is new" in new.summary
    moved = diff_events(events[1:3], [events[2], events[1]])
    assert moved
    assert moved.by_lane == {}
    assert "in another order" in moved.summary


@pytest.mark.parametrize("wrong", ["text", 3, [1], None])
def test_what_is_no_list_of_events_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="diff_events"):
        diff_events(wrong, [])
