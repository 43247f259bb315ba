from __future__ import annotations

import copy
import pickle

from adk_fluent.protocol import (
    AgentEvent,
    ErrorInfo,
    Pending,
    RunResult,
    ToolResponseInfo,
    Usage,
)


def test_it_is_the_list_of_events() -> None:
    events = [AgentEvent("a", "hi"), AgentEvent("b", "ho", is_final=True, invocation_id="i")]
    result = RunResult(events, session_id="s", user_id="u", app_name="app")
    assert result == events
    assert list(result) == events
    assert result[1].content == "ho"
    assert (result.session_id, result.user_id, result.app_name) == ("s", "u", "app")
    assert (result.text, result.invocation_id) == ("ho", "i")
    assert repr(result) == "RunResult(2 events, text='ho', session_id='s')"


def test_nothing_happened() -> None:
    empty = RunResult()
    assert (empty.text, empty.state, empty.usage, empty.errors, empty.pending) == (
        "",
        {},
        Usage(),
        [],
        [],
    )
    assert empty.invocation_id == ""


def test_state_is_what_it_is_given_or_else_what_was_written() -> None:
    events = [
        AgentEvent("a", state_delta={"k": 1, "gone": 1, "temp:x": 1, "user:t": 2}),
        AgentEvent("a", state_delta={"k": 5}, is_partial=True),
        AgentEvent("a", state_delta={"gone": None}),
    ]
    assert RunResult(events).state == {"k": 1, "user:t": 2}
    given = {"before": 0}
    result = RunResult(events, state=given)
    assert result.state == given
    assert result.state is not given


def test_usage_counts_each_call_once_also_of_discarded_attempts() -> None:
    events = [
        AgentEvent("a", usage=Usage(prompt=1), is_partial=True),
        AgentEvent("a", usage=Usage(prompt=1, output=2), attempt="1"),
        AgentEvent("root", discarded=("1",)),
        AgentEvent("b", usage=Usage(prompt=10)),
    ]
    assert RunResult(events).usage == Usage(prompt=11, output=2)


def test_errors_are_those_nothing_made_good() -> None:
    lost, left = ErrorInfo("429"), ErrorInfo("SAFETY")
    events = [
        AgentEvent("a", error=lost, attempt="1"),
        AgentEvent("root", discarded=("1",)),
        AgentEvent("b", error=left),
    ]
    assert RunResult(events).errors == [left]


def test_an_error_that_is_streamed_counts_once() -> None:
    error = ErrorInfo("SAFETY")
    piece = AgentEvent("a", error=error, is_partial=True, path="s0")
    whole = AgentEvent("a", error=error, path="s0")
    elsewhere = AgentEvent("a", error=error, path="s1")
    assert RunResult([piece, whole, elsewhere]).errors == [error, error]
    assert RunResult([piece, elsewhere]).errors == [error, error]  # ADK 1.25 tells only pieces


def test_pending_is_what_nobody_answered_yet() -> None:
    gate, tool = Pending("q1", "gate"), Pending("q2", "tool")
    asked = AgentEvent("root", pending=(gate, tool))
    again = AgentEvent("root", pending=(gate,))
    answered = AgentEvent("user", tool_responses=[ToolResponseInfo("t", 1, "q2")])
    assert RunResult([asked]).pending == [gate, tool]
    assert RunResult([asked, answered, again]).pending == [gate]
    meanwhile = AgentEvent("root", tool_responses=[ToolResponseInfo("t", "wait", "q2")])
    assert RunResult([asked, meanwhile]).pending == [gate, tool]
    refused = AgentEvent("root", metadata={"settled": ["q2"]})
    assert RunResult([asked, refused]).pending == [gate]


def test_it_survives_pickle_and_copy() -> None:
    result = RunResult([AgentEvent("a", "hi", is_final=True)], state={"k": 1}, session_id="s")
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert type(again) is RunResult
        assert again == result
        assert vars(again) == vars(result)
        assert again.text == "hi"
