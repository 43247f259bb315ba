from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import RunError
from adk_fluent.flow import Signal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


async def test_branches_run_at_the_same_time(b: Bench) -> None:
    here = asyncio.Barrier(3)

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        await here.wait()
        yield turn.event("met")

    ran = await b.run(b.par(*[b.agent(name, act) for name in "abc"]))
    assert len(ran.said) == 3


async def test_events_come_as_they_happen(b: Bench) -> None:
    ran = await b.run(b.par(b.say("slow", ticks=20), b.say("fast")))
    assert ran.said == ["fast", "slow"]


async def test_one_event_of_a_branch_is_under_way_at_a_time(b: Bench) -> None:
    progress: list[str] = []

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        for i in range(3):
            progress.append(f"{turn.node.name}{i}")
            yield turn.event(str(i))

    root = b.par(b.agent("a", act), b.agent("b", act))
    seen: list[str] = []
    engine = b.engine(root)
    async for event in engine.run():
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append(f"{event.node}{event.content}")
        assert set(progress) <= {*seen, f"{event.node}{event.content}"} | {
            "a0",
            "b0",
            "a1",
            "b1",
            "a2",
            "b2",
        }
        assert len(progress) <= len(seen) + 1
    assert seen == ["a0", "b0", "a1", "b1", "a2", "b2"]


async def test_branches_see_each_others_writes(b: Bench) -> None:
    reader = b.seq(b.say("idle", ticks=10), b.fn("f", seen=lambda s: s.get("x")))
    await b.run(b.par(b.say("w", x=1), reader))
    assert b.state["seen"] == 1


async def test_a_shared_key_holds_what_the_last_declared_branch_wrote(b: Bench) -> None:
    ran = await b.run(b.par(b.say("late", ticks=9, k="late"), b.say("early", k="early", own=1)))
    assert b.state == {"k": "early", "own": 1}
    [joined] = ran.events[2:]
    assert joined.state_delta == {"k": "early"}
    assert (joined.node, joined.author, joined.metadata["why"]) == ("par", "par", "joined")


async def test_no_event_joins_what_is_in_order_already(b: Bench) -> None:
    ran = await b.run(b.par(b.say("early", k=1), b.say("late", ticks=9, k=2)))
    assert len(ran.events) == 2
    assert b.state == {"k": 2}


async def test_no_event_joins_equal_values(b: Bench) -> None:
    ran = await b.run(b.par(b.say("late", ticks=9, k=[1]), b.say("early", k=[1])))
    assert len(ran.events) == 2


async def test_a_parallel_equals_a_sequence_whatever_the_timing(b: Bench) -> None:
    def branch(name: str, ticks: tuple[int, int]) -> Any:
        first = b.say(f"{name}1", ticks=ticks[0], s=f"{name}1", t=f"{name}1")
        second = b.say(f"{name}2", ticks=ticks[1], s=f"{name}2")
        return b.seq(first, second, b.fn(name, lambda _: {name: 1}))

    want = {"s": "c2", "t": "c1", "a": 1, "b": 1, "c": 1}
    for times in ((0, 9, 0), (9, 0, 0), (3, 6, 1), (0, 0, 9)):
        b.state = {}
        inner = b.par(branch("b", (times[1], times[2])), branch("c", (times[2], times[0])))
        await b.run(b.par(branch("a", (times[0], times[1])), inner, name="outer"))
        assert b.state == want


async def test_a_key_that_somebody_else_wrote_since_is_joined_by_the_outer_fork(b: Bench) -> None:
    inner = b.par(b.say("x", ticks=4, k="x"), b.say("y", k="y"), name="inner")
    await b.run(b.par(inner, b.say("z", ticks=2, k="z"), name="outer"))
    assert b.state["k"] == "z"


async def test_a_failure_cancels_the_others_and_is_raised_as_it_is(b: Bench) -> None:
    error = await b.error(b.seq(b.par(b.hangs("h", k=1), b.fails("x", ticks=5)), b.say("never")))
    assert isinstance(error, b.Boom)
    assert sorted(b.closed) == ["h", "x"]
    assert b.state == {"k": 1}


async def test_a_failure_leaves_no_joining_event(b: Bench) -> None:
    root = b.par(b.say("late", ticks=9, k=1), b.say("early", k=2), b.fails("x", ticks=30))
    await b.error(root)
    assert b.state == {"k": 1}


async def test_branches_that_did_not_start_yet_never_do(b: Bench) -> None:
    error = await b.error(b.par(b.fails("x"), b.say("b", ticks=1), b.say("c", ticks=1)))
    assert isinstance(error, b.Boom)
    assert b.state == {}


async def test_an_empty_parallel_is_done(b: Bench) -> None:
    ran = await b.run(b.seq(b.par(), b.say("a")))
    assert ran.said == ["a"]


async def test_a_node_may_stand_in_several_branches(b: Bench) -> None:
    same = b.seq(b.say("a", k=1), b.say("b"))
    ran = await b.run(b.par(same, same, same))
    assert sorted(b.calls) == ["a"] * 3 + ["b"] * 3
    assert {event.branch for event in ran.events} == {f"par.seq[{i}]" for i in range(3)}


async def test_branches_are_named_after_fork_and_branch(b: Bench) -> None:
    root = b.seq(b.par(b.say("x"), b.par(b.say("y"), name="inner"), name="outer"), b.say("z"))
    ran = await b.run(root)
    assert {event.node: event.branch for event in ran.events} == {
        "x": "outer.x",
        "y": "outer.inner.inner.y",
        "z": None,
    }


async def test_a_refusal_in_one_branch_cancels_the_others_and_ends_the_run(b: Bench) -> None:
    ran = await b.run(b.seq(b.par(b.hangs("h"), b.stops("no")), b.say("never")))
    assert ran.outcome is Signal.STOP
    assert sorted(b.closed) == ["h", "no"]


async def test_a_refusal_counts_more_than_an_escalation(b: Bench) -> None:
    body = b.par(b.escalates("up"), b.seq(b.say("idle", ticks=9), b.stops("no")))
    ran = await b.run(b.seq(b.loop(body), b.say("never")))
    assert ran.outcome is Signal.STOP
    assert b.calls == ["up", "idle", "no"]


async def test_a_refusal_counts_more_than_a_question(b: Bench) -> None:
    root = b.seq(b.par(b.waits("w"), b.seq(b.say("idle", ticks=9), b.stops("no"))), b.say("never"))
    engine = b.engine(root)
    async for event in engine.run():
        b.commit(event)
    assert engine.outcome is Signal.STOP


VAR: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="outside")


@pytest.mark.parametrize("kind", ["par", "race", "map"])
async def test_a_branch_starts_in_the_context_of_the_fork(b: Bench, kind: str) -> None:
    seen: list[str] = []

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        seen.append(VAR.get())
        VAR.set(turn.node.name)
        yield turn.event(error=None)
        assert VAR.get() == turn.node.name
        if kind == "race":
            raise b.Boom("lost")

    VAR.set("fork")
    b.state["list"] = [1, 2, 3, 4]
    if kind == "map":
        await b.run(b.map(b.agent("a", act), concurrency=2))
    elif kind == "par":
        await b.run(b.par(*[b.agent(name, act) for name in "abcd"]))
    else:
        await b.error(b.race(*[b.agent(name, act) for name in "abcd"]))
    assert seen == ["fork"] * 4
    assert VAR.get() == "fork"


async def test_a_branch_runs_from_start_to_end_in_one_task(b: Bench) -> None:
    tasks: dict[str, set[Any]] = {}

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        mine = tasks.setdefault(turn.strand.segment, set())
        for _ in range(3):
            mine.add(asyncio.current_task())
            yield turn.event("x")
        mine.add(asyncio.current_task())

    branch = b.seq(b.agent("a", act), b.agent("b", act))
    await b.run(b.par(branch, branch))
    assert [len(each) for each in tasks.values()] == [1, 1]


@pytest.mark.parametrize("kind", ["par", "race", "timeout", "fallback"])
async def test_a_leaf_that_is_cancelled_from_inside_fails_and_hangs_nothing(
    b: Bench, kind: str
) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        gone = asyncio.get_running_loop().create_future()
        gone.cancel()
        await gone
        yield turn.event()

    error = await b.error(b.par(getattr(b, kind)(b.agent("x", act)), name="outer"))
    assert isinstance(error, RunError)
    assert error.node == "x"
    assert isinstance(error.__cause__, asyncio.CancelledError)


async def test_a_branch_that_somebody_else_cancels_fails_and_hangs_nothing(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        yield turn.event()

    error = await b.error(b.par(b.agent("x", act), b.hangs("h")))
    assert isinstance(error, RunError)
    assert error.node == "par"
    assert isinstance(error.__cause__, asyncio.CancelledError)
    assert sorted(b.closed) == ["h", "x"]


async def test_ctrl_c_in_a_branch_is_not_taken_for_a_failure(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        raise SystemExit(3)
        yield turn.event()

    def run() -> None:
        asyncio.run(b.run(b.fallback(b.par(b.agent("x", act), b.hangs("h")), b.say("never"))))

    with pytest.raises(SystemExit):
        await asyncio.to_thread(run)
    assert "never" not in b.calls
