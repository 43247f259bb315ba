"""The table of a run: steps, times, tokens, changes of state."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, map_over, race, timeout
from adk_fluent.backends.mock import mock_backend
from adk_fluent.backends.trace import Trace, trace
from adk_fluent.errors import UsageError
from adk_fluent.protocol import AgentEvent, ErrorInfo, EventListener, ToolCallInfo, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping


class Ticks:
    """A clock that goes on by one second each time it is asked."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        self.time += 1
        return self.time

    def monotonic(self) -> float:
        return self.now()

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


def said(path: str, node: str, at: float = 0.0, **fields: Any) -> AgentEvent:
    fields = {"content": node, "is_final": True, **fields}
    return AgentEvent(node, path=path, node=node, timestamp=at, invocation_id="r", **fields)


def times(made: Trace) -> dict[str, tuple[float | None, float | None]]:
    return {row.path: (row.start, row.seconds) for row in made.rows}


def count(state: Mapping[str, Any]) -> dict[str, int]:
    return {"n": state.get("n", 0) + 1}


# --- a run ---------------------------------------------------------------------------------------


async def test_a_run_as_a_table() -> None:
    draft = Agent("draft").history("none").writes("text")
    review = Agent("review").history("none").writes("verdict")
    pipeline = (draft >> count >> review) * 2
    backend = mock_backend({"draft": ["one", "two"], "review": "good"})
    with Trace(pipeline, clock=Ticks()) as made:
        await pipeline.run("go", backend=backend, listeners=[made])
    assert str(made) == (
        """\
step   node    kind      start   time  tokens  state
l0.s0  draft   agent     0.000  1.000       1  +text="one"
l0.s1  count   function  1.000  1.000          +n=1
l0.s2  review  agent     2.000  1.000       1  +verdict="good"
l1.s0  draft   agent     3.000  1.000       1  ~text="two"
l1.s1  count   function  4.000  1.000          ~n=2
l1.s2  review  agent     5.000  1.000       1  =verdict="good\""""
    )


async def test_streams_and_questions_are_heard_too() -> None:
    backend = mock_backend({"a": "hello"})
    first, second = Trace(), Trace()
    async for _ in Agent("a").stream("go", backend=backend, listeners=[first, second]):
        assert len(first.rows) == len(second.rows) == 1, "told before the event is handed out"
    await Agent("a").ask_async("go", backend=backend, listeners=(second,))
    assert [row.node for row in second.rows] == ["a", "a"]


async def test_an_exception_that_ends_the_run_is_noted_and_goes_on() -> None:
    def fail(state: Mapping[str, Any]) -> None:
        raise RuntimeError("down")

    pipeline = Agent("a") >> fail
    made = Trace()
    with pytest.raises(RuntimeError, match="down"), made:
        await pipeline.run("go", backend=mock_backend({"a": "x"}), listeners=[made])
    assert made.error == ErrorInfo("RuntimeError", "down")
    assert str(made).endswith("ended by RuntimeError: down")
    assert made.to_dict()["error"] == "RuntimeError: down"


async def test_discarded_attempts_are_marked() -> None:
    pipeline = race(Agent("fast"), Agent("slow") >> Agent("later"))
    backend = mock_backend({"fast": "f", "slow": "s", "later": "l"})
    made = trace(await pipeline.run("go", backend=backend), pipeline)
    assert {row.node: row.discarded for row in made.rows}["fast"] is False
    assert "discarded" in str(made)
    failing = Agent("plan").writes("plan") >> Agent("act")
    backend = mock_backend({"plan": "p", "act": lambda _: 1 / 0, "backup": "b"})
    made = trace(await (failing // Agent("backup")).run("go", backend=backend))
    rows = {row.node: row for row in made.rows}
    assert rows["plan"].discarded
    assert not rows["backup"].discarded
    assert [str(change) for change in rows["fallback"].changes] == ["-plan"]


# --- times ---------------------------------------------------------------------------------------


def test_steps_begin_when_those_before_them_end() -> None:
    made = trace([said("s0", "a", 10), said("s1", "b", 13), said("s2", "c", 14)])
    assert times(made) == {"s0": (0, 0), "s1": (0, 3), "s2": (3, 1)}


@pytest.mark.parametrize("letter", ["p", "m", "w"])
def test_what_runs_at_the_same_time_begins_at_the_same_time(letter: str) -> None:
    events = [
        said("s0", "z", 10),
        said(f"s1.{letter}1.s0", "b", 12),
        said(f"s1.{letter}0", "a", 13),
        said(f"s1.{letter}1.s1", "c", 15),
        said("s1", "join", 15),
        said("s2", "d", 16),
    ]
    assert times(trace(events)) == {
        "s0": (0, 0),
        f"s1.{letter}1.s0": (0, 2),
        f"s1.{letter}0": (0, 3),
        f"s1.{letter}1.s1": (2, 3),
        "s1": (5, 0),
        "s2": (5, 1),
    }


def test_iterations_attempts_and_handed_over_work_come_after_each_other() -> None:
    events = [
        said("l0.s0.f0", "a", 10),
        said("l0.s0.f1", "b", 11),
        said("l1.s0.f0", "a", 13),
        said("l1.s1", "transfer", 14),
        said("l1.s1.x0", "c", 16),
    ]
    assert list(times(trace(events)).values()) == [(0, 0), (0, 1), (1, 2), (3, 1), (4, 2)]


def test_several_events_of_one_step_are_one_row() -> None:
    call = ToolCallInfo("search")
    events = [
        said("s0", "a", 1, content=None, is_final=False, tool_calls=[call], usage=Usage(prompt=5)),
        said("s0", "a", 2, is_partial=True, is_final=False, usage=Usage(prompt=6)),
        said("s0", "a", 4, usage=Usage(prompt=7, output=1)),
    ]
    (row,) = trace(events).rows
    assert row.usage == Usage(prompt=12, output=1)
    assert (row.events, row.tools, row.seconds) == (3, ("search",), 3)
    assert "calls search" in str(trace(events))


async def test_a_second_run_begins_at_a_time_that_nobody_knows() -> None:
    backend = mock_backend({"a": "x", "b": "y"})
    pipeline = Agent("a") >> Agent("b")
    made = Trace(clock=Ticks())
    for _ in range(2):
        await pipeline.run("go", backend=backend, listeners=[made])
    rows = made.rows
    assert [row.start is None for row in rows] == [False, False, True, False]
    assert len({row.run for row in rows}) == 2
    assert "?" in str(made)


# --- state ---------------------------------------------------------------------------------------


def test_changes_name_what_was_there_before() -> None:
    events = [
        said("s0", "a", state_delta={"k": 1, "new": [1, 2]}),
        said("s0", "a", state_delta={"k": 2}),
        said("s1", "b", state_delta={"new": None}),
    ]
    first, second = trace(events, state={"k": 0}).rows
    assert [(c.key, c.before, c.after) for c in first.changes] == [
        ("k", 0, 2),
        ("new", None, [1, 2]),
    ]
    assert [(c.key, c.before, c.after) for c in second.changes] == [("new", [1, 2], None)]
    assert [str(c) for c in first.changes] == ["~k=2", "+new=[1, 2]"]


def test_fragments_change_nothing() -> None:
    (row,) = trace([said("", "a", state_delta={"k": "par"}, is_partial=True)]).rows
    assert row.changes == ()


def test_credentials_are_not_kept() -> None:
    delta = {"api_key": "hunter2", "login": {"password": "hunter2", "name": "ann"}}
    made = trace([said("s0", "a", state_delta=delta)])
    assert "hunter2" not in str(made) + made.to_json()
    assert '+login={"name": "ann"}' in str(made)


def test_long_values_and_many_lines_stay_on_one_line() -> None:
    event = said("s0", "a", state_delta={"k": "x\n" * 10_000}, error=ErrorInfo("E", "a\nb" * 100))
    lines = str(trace([event])).splitlines()
    assert len(lines) == 2
    assert len(lines[1]) < 250
    assert lines[1].endswith("a b… (243 more characters)")


# --- forms ---------------------------------------------------------------------------------------


def test_json() -> None:
    event = said(
        "s0", "a", 5, state_delta={"k": 1}, usage=Usage(prompt=2), error=ErrorInfo("E", "m")
    )
    made = trace([event])
    assert json.loads(made.to_json()) == made.to_dict()
    assert made.to_dict()["steps"] == [
        {
            "path": "s0",
            "node": "a",
            "kind": "agent",
            "start": 0,
            "seconds": 0,
            "tokens": 2,
            "changes": [{"key": "k", "before": None, "after": 1}],
            "tools": [],
            "events": 1,
            "discarded": False,
            "error": "E: m",
            "run": "r",
        }
    ]


def test_nothing_yet() -> None:
    assert Trace().rows == ()
    assert str(Trace()).startswith("step")
    assert trace([]).rows == ()


def test_kinds_come_from_the_pipeline() -> None:
    pipeline = Pipeline("desk", timeout(map_over("rows", Agent("each")), 3), count)
    events = [AgentEvent("desk", path="s1", node="count", state_delta={"n": 1})]
    assert trace(events).rows[0].kind == "step"
    assert trace(events, pipeline).rows[0].kind == "function"
    assert trace(events, pipeline.to_ir()).rows[0].kind == "function"


def test_many_steps_are_quick() -> None:
    made = trace(said(f"l{n}.s{m}", "a", n) for n in range(5_000) for m in range(2))
    assert len(made.rows) == 10_000


# --- listeners -----------------------------------------------------------------------------------


def test_a_trace_is_a_listener() -> None:
    assert isinstance(Trace(), EventListener)


async def test_a_listener_that_fails_is_logged_once_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        told = 0

        def on_event(self, event: AgentEvent, /) -> None:
            self.told += 1
            raise ValueError("broken")

    broken, made = Broken(), Trace()
    backend = mock_backend({"a": "x", "b": "y"})
    with caplog.at_level(logging.ERROR, "adk_fluent"):
        result = await (Agent("a") >> Agent("b")).run(
            "go", backend=backend, listeners=[broken, made]
        )
    assert result.text == "y"
    assert broken.told == 1
    assert len(made.rows) == 2
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "listener Broken failed" in record.message


@pytest.mark.parametrize("listeners", [Trace(), [Trace], [print], "trace", [None]])
async def test_what_is_no_listener_is_refused(listeners: Any) -> None:
    with pytest.raises(UsageError, match="listeners= takes a list of listeners"):
        await Agent("a").run("go", backend=mock_backend({"a": "x"}), listeners=listeners)
