"""Steps that fail or are cut off stand in a trace, on every backend."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, expect, map_over, race, timeout
from adk_fluent.backends.mock import mock_backend
from adk_fluent.backends.trace import Row, Trace
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ExpectationError, StepTimeoutError, UsageError
from adk_fluent.protocol import AgentEvent, EventListener, NoticeListener
from adk_fluent.testing import Call, Reply, reply

if TYPE_CHECKING:
    from collections.abc import Mapping

CUT_OFF = "CancelledError: cut off before its end"


@pytest.fixture(params=["mock", pytest.param("adk", marks=pytest.mark.adk)])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where a pipeline runs: each agent says for itself what it answers."""
    return {"backend": mock_backend()} if request.param == "mock" else {}


async def traced(pipeline: Any, where: dict[str, Any], **options: Any) -> Trace:
    with Trace(pipeline) as made:
        await pipeline.run("go", listeners=[made], **where, **options)
    return made


def errors(made: Trace) -> dict[str, str | None]:
    return {row.path: str(row.error) if row.error else None for row in made.rows}


def code(row: Row) -> str | None:
    return row.error and row.error.code


def by_node(made: Trace) -> dict[str, Row]:
    rows = {row.node: row for row in made.rows}
    assert len(rows) == len(made.rows)
    return rows


def broken(name: str, text: str = "down") -> Agent:
    return Agent(name).mock(reply(raises=RuntimeError(text)))


def slow(name: str, *begun: asyncio.Event) -> Agent:
    """Answers late; says that it has been asked."""

    def late(request: object) -> Reply:
        for each in begun:
            each.set()
        return reply("late", latency=30)

    return Agent(name).mock(late)


# --- attempts ------------------------------------------------------------------------------------


async def test_a_failed_attempt_of_a_fallback(where: dict[str, Any]) -> None:
    pipeline = Agent("a").mock("x") >> (broken("b", "down\nand out") // Agent("c").mock("y"))
    made = await traced(pipeline, where)
    assert errors(made) == {"s0": None, "s1.f0": "RuntimeError: down", "s1.f1": None}
    a, b, c = made.rows
    assert (b.node, b.kind, b.events) == ("b", "agent", 0)
    assert [row.discarded for row in made.rows] == [False, True, False]
    assert len({row.run for row in made.rows}) == 1
    assert None not in (a.start, a.seconds, b.start, b.seconds)
    assert b.start == pytest.approx((a.start or 0) + (a.seconds or 0))
    assert c.start == pytest.approx((b.start or 0) + (b.seconds or 0))
    assert "RuntimeError: down" in str(made)


async def test_a_step_that_said_something_before_it_failed_is_one_row(
    where: dict[str, Any],
) -> None:
    pipeline = (Agent("a").mock(reply(chunks=["x"], raises=RuntimeError("down")))) // Agent(
        "b"
    ).mock("y")
    made = await traced(pipeline, where, config=ExecutionConfig(streaming_mode="sse"))
    row = by_node(made)["a"]
    assert str(row.error) == "RuntimeError: down"
    assert row.discarded


async def test_what_a_model_reported_is_not_hidden_by_the_failure_of_its_step(
    where: dict[str, Any],
) -> None:
    pipeline = Agent("a").mock(reply(error_code="SAFETY")) // Agent("b").mock("y")
    made = await traced(pipeline, where)
    assert code(by_node(made)["a"]) == "SAFETY"


async def test_a_loser_of_a_race(where: dict[str, Any]) -> None:
    pipeline = race(Agent("fast").mock("f"), slow("slow"), Agent("early").mock("e") >> slow("late"))
    made = await traced(pipeline, where)
    rows = by_node(made)
    assert rows["fast"].error is None
    assert not rows["fast"].discarded
    for name in "slow", "late":
        assert str(rows[name].error) == CUT_OFF
        assert rows[name].discarded
        assert (rows[name].seconds or 9) < 9
    assert rows["slow"].start == rows["fast"].start


async def test_a_branch_beside_one_that_fails(where: dict[str, Any]) -> None:
    pipeline = ((broken("b") | slow("s")) // Agent("c").mock("y")) >> Agent("d").mock("z")
    made = await traced(pipeline, where)
    rows = by_node(made)
    assert {name: str(rows[name].error) for name in "bs"} == {
        "b": "RuntimeError: down",
        "s": CUT_OFF,
    }
    assert {name: rows[name].discarded for name in "bscd"} == {
        "b": True,
        "s": True,
        "c": False,
        "d": False,
    }


# --- the end of a run ----------------------------------------------------------------------------


async def test_the_step_that_ends_a_run(where: dict[str, Any]) -> None:
    made = Trace()
    with pytest.raises(RuntimeError, match="down"), made:
        await (Agent("a").mock("x") >> broken("b")).run("go", listeners=[made], **where)
    assert errors(made) == {"s0": None, "s1": "RuntimeError: down"}
    assert not made.rows[1].discarded
    assert str(made.error) == "RuntimeError: down"


async def test_a_function_that_raises(where: dict[str, Any]) -> None:
    def fail(state: Mapping[str, Any]) -> None:
        raise LookupError("k")

    def wrong(state: Mapping[str, Any]) -> Any:
        return 3

    pipeline = Agent("a").mock("x") >> (Agent("b").mock("y") >> fail) // (
        Agent("c").mock("y") >> wrong
    ) // Agent("d").mock("z")
    made = await traced(pipeline, where)
    rows = by_node(made)
    assert str(rows["fail"].error) == "LookupError: k"
    assert rows["fail"].kind == "function"
    assert code(rows["wrong"]) == UsageError.__name__


async def test_an_expectation_that_does_not_hold(where: dict[str, Any]) -> None:
    pipeline = Agent("a").mock("x") >> expect(lambda state: False, "never")
    made = Trace(pipeline)
    with pytest.raises(ExpectationError):
        await pipeline.run("go", listeners=[made], **where)
    row = made.rows[1]
    assert (row.path, code(row)) == ("s1", "ExpectationError")


# --- cut off -------------------------------------------------------------------------------------


async def test_a_step_that_takes_too_long(where: dict[str, Any]) -> None:
    pipeline = Agent("a").mock("x") >> timeout(slow("s"), 0.05, name="limit")
    made = Trace(pipeline)
    with pytest.raises(StepTimeoutError), made:
        await pipeline.run("go", listeners=[made], **where)
    assert errors(made) == {
        "s0": None,
        "s1.t0": CUT_OFF,
        "s1": "StepTimeoutError: limit: no result within 0.05 s",
    }
    _, inner, outer = made.rows
    assert (outer.node, outer.kind) == ("limit", "timeout")
    assert outer.start == inner.start
    assert (outer.seconds or 0) >= (inner.seconds or 0) >= 0.04


async def test_a_function_that_took_too_long_without_waiting(
    where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, now = asyncio.get_running_loop(), asyncio.get_running_loop().time

    def long(state: Mapping[str, Any]) -> dict[str, int]:
        monkeypatch.setattr(loop, "time", lambda: now() + 100)  # as if it had taken so long
        return {"n": 1}

    pipeline = timeout(Agent("a").mock("x") >> long >> Agent("b").mock("y"), 1000)
    assert errors(await traced(pipeline, where)) == {"t0.s0": None, "t0.s1": None, "t0.s2": None}
    monkeypatch.undo()
    pipeline = timeout(long, 100, name="limit") >> Agent("b").mock("y")
    made = Trace(pipeline)
    with pytest.raises(StepTimeoutError):
        await pipeline.run("go", listeners=[made], **where)
    assert errors(made) == {
        "s0.t0": CUT_OFF,
        "s0": "StepTimeoutError: limit: no result within 100 s",
    }


async def test_an_item_of_a_map_that_fails(where: dict[str, Any]) -> None:
    def each(state: Mapping[str, Any]) -> dict[str, int]:
        return {"out": 6 // state["_item"]}

    pipeline = map_over("rows", each >> Agent("s").mock("x"), concurrency=1)
    made = Trace(pipeline, state={"rows": [1, 0, 2]})
    with pytest.raises(ZeroDivisionError):
        await pipeline.run("go", listeners=[made], state={"rows": [1, 0, 2]}, **where)
    assert list(errors(made)) == ["m0.s0", "m0.s1", "m1.s0"]
    assert code(made.rows[-1]) == "ZeroDivisionError"


async def test_a_map_over_what_is_no_list(where: dict[str, Any]) -> None:
    pipeline = map_over("rows", Agent("s").mock("x"), name="every")
    made = Trace(pipeline)
    with pytest.raises(UsageError):
        await pipeline.run("go", listeners=[made], state={"rows": 3}, **where)
    assert [(row.path, row.node, code(row)) for row in made.rows] == [("", "every", "UsageError")]


async def test_a_run_that_is_cancelled(where: dict[str, Any]) -> None:
    begun = asyncio.Event(), asyncio.Event()
    pipeline = Agent("a").mock("x") >> (slow("b", begun[0]) | slow("c", begun[1]))
    made = Trace(pipeline)
    task = asyncio.create_task(pipeline.run("go", listeners=[made], **where))
    for each in begun:
        await each.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert errors(made) == {"s0": None, "s1.p0": CUT_OFF, "s1.p1": CUT_OFF}
    assert not any(row.discarded for row in made.rows)


async def test_a_single_agent_that_is_cancelled(where: dict[str, Any]) -> None:
    made, begun = Trace(), asyncio.Event()
    task = asyncio.create_task(slow("a", begun).run("go", listeners=[made], **where))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert errors(made) == {"": CUT_OFF}


async def test_a_stream_that_nobody_reads_on_is_no_failure(where: dict[str, Any]) -> None:
    made = Trace()
    pipeline = Agent("a").mock("x") >> Agent("b").mock("y")
    stream = pipeline.stream("go", listeners=[made], **where)
    await anext(stream)
    await stream.aclose()
    assert errors(made) == {"s0": None}


# --- who is told ---------------------------------------------------------------------------------


async def test_a_plain_listener_is_told_of_events_only(where: dict[str, Any]) -> None:
    class Plain:
        def __init__(self) -> None:
            self.nodes: list[str | None] = []

        def on_event(self, event: AgentEvent, /) -> None:
            self.nodes.append(event.node)

    plain, made = Plain(), Trace()
    assert isinstance(plain, EventListener)
    assert not isinstance(plain, NoticeListener)
    assert isinstance(made, NoticeListener)
    pipeline = broken("b") // Agent("c").mock("y")
    result = await pipeline.run("go", listeners=[plain, made], **where)
    assert plain.nodes == [event.node for event in result] == ["c"]
    assert [row.node for row in made.rows] == ["b", "c"]


async def test_a_listener_that_fails_at_a_notice_is_told_no_more(
    where: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Trace):
        def on_notice(self, notice: AgentEvent, /) -> None:
            raise ValueError("broken")

    made = Broken()
    pipeline = broken("b") // Agent("c").mock("y")
    with caplog.at_level(logging.ERROR, "adk_fluent"):
        result = await pipeline.run("go", listeners=[made], **where)
    assert result.text == "y"
    assert made.rows == ()
    assert ["listener Broken failed" in record.message for record in caplog.records].count(
        True
    ) == 1


@pytest.mark.adk
async def test_what_fails_in_the_run_of_a_tool_is_not_a_step() -> None:
    inner = (broken("deep") // Agent("spare").mock("y")).named("inner")
    pipeline = Agent("a").agent_tool(inner).mock([Call("inner", {"request": "x"}), "done"])
    made = Trace(pipeline)
    await pipeline.run("go", listeners=[made])
    assert {row.node for row in made.rows} == {"a"}


@pytest.mark.adk
async def test_a_flow_that_runs_inside_a_step() -> None:
    inner = (broken("deep") // Agent("spare").mock("y")).named("inner")
    pipeline = Agent("a").mock("x") >> (inner.to_agent() >> broken("b")) // Agent("c").mock("z")
    made = await traced(pipeline, {})
    rows = by_node(made)
    assert (rows["deep"].path, str(rows["deep"].error)) == ("s1.f0.s0.f0", "RuntimeError: down")
    assert len({row.run for row in made.rows}) == 1
    discarded = {name for name, row in rows.items() if row.discarded}
    assert {"deep", "spare", "b"} <= discarded <= rows.keys() - {"a", "c"}
