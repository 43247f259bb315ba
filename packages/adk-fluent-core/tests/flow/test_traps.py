"""What went wrong before, each by its name; and the undo log by itself."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.flow._log import UndoLog, differs
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Clock, Turn


# 1
@pytest.mark.parametrize("kind", ["race", "first", "map"])
async def test_undo_cannot_undo_a_read(b: Bench, kind: str) -> None:
    """A winner, or an item, must never have read what a loser, or another item, wrote."""
    b.state.update(k="start", list=[0, 1])
    lose = b.seq(b.fn("l", k="loser's"), b.hangs("h"))
    read = b.seq(b.say("idle", ticks=20), b.fn("r", read=lambda s: s["k"]))
    if kind == "map":
        body = b.route((lambda s: s["item"] == 0, b.fn("w", k="item 0")), default=read)
        await b.run(b.map(body, result="read"))
        assert b.state["results"] == [None, "start"]
    else:
        await b.run(getattr(b, kind)(lose, read))
        assert b.clean_state == {"k": "start", "read": "start", "list": [0, 1]}


# 2
async def test_a_write_is_recorded_only_when_it_is_committed(b: Bench) -> None:
    """An event that never reached the consumer must not hide the value that did."""

    async def two(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(state_delta={"k": 1})
        yield turn.event(state_delta={"k": 2})
        await asyncio.Event().wait()

    root = b.race(b.agent("l", two), b.seq(b.say("w1", w=1), b.say("w2", w=2)))
    seen: list[Any] = []
    async with aclosing(b.engine(root).run()) as events:
        async for event in events:
            # the loser's second event waits in line while the winner's last is committed
            b.commit(event)
            seen.append(event.state_delta)
    assert b.clean_state == {"w": 2}


# 3
async def test_a_cancelled_branch_waits_for_the_commit_that_is_under_way(
    b: Bench, clock: Clock
) -> None:
    """Else the undo would look at state before the loser's write got there."""
    committed = asyncio.Event()

    async def lose(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(state_delta={"k": "lost"})
        await asyncio.Event().wait()

    root = b.fallback(b.timeout(b.agent("l", lose), 0.01), b.fn("look", seen=lambda s: s.get("k")))
    async with aclosing(b.engine(root).run()) as events:
        async for event in events:
            if event.node == "l":
                clock.start()
                await asyncio.sleep(0.03)  # the timer fires in here
                committed.set()
            b.commit(event)
    assert committed.is_set()
    assert b.state == {"k": None, "seen": None}


# 4
async def test_a_second_cancellation_does_not_leave_a_join_half_done(b: Bench) -> None:
    """A race in a losing racer: it cancels its own branches while it is cancelled."""

    async def stubborn(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(state_delta={turn.node.name: 1})
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)

    inner = b.race(
        b.agent("x", stubborn), b.seq(b.say("idle", ticks=5), b.say("in", i=1)), name="in"
    )
    outer = b.race(b.seq(inner, b.hangs("h")), b.seq(b.say("idle2", ticks=8), b.say("w", w=1)))
    await b.run(outer)
    assert b.clean_state == {"w": 1}
    assert sorted(b.closed) == sorted(b.calls)


# 5
@pytest.mark.parametrize("after", range(12))
async def test_a_compensating_or_joining_event_is_itself_cancellable(b: Bench, after: int) -> None:
    """Until it is committed, everything must still count as undoable by the attempt around it."""
    b.state["k"] = "start"
    joining = b.par(b.say("late", ticks=5, k="late"), b.say("early", k="early"), name="join")
    undoing = b.fallback(
        b.seq(b.say("p", k="p", n=1), b.fails("x")), b.say("y", k="y"), name="undo"
    )
    racing = b.race(b.seq(b.say("l", k="l"), b.hangs("h")), b.say("w", ticks=4, k="w"))
    lose = b.seq(b.par(joining, undoing, racing, name="all"), b.hangs("h2"))
    await b.run(b.race(lose, b.seq(b.say("idle", ticks=after), b.say("won", won=1))))
    assert b.clean_state == {"k": "start", "won": 1}


# 6
async def test_commit_order_decides_the_current_value_declared_order_only_the_join(
    b: Bench,
) -> None:
    """Two branches write one key in an attempt; undoing one of them gives the other's value."""
    first = b.fallback(
        b.seq(b.say("f1", ticks=6, k="first"), b.say("f2", ticks=6), b.fails("x")), b.say("y")
    )
    second = b.seq(b.say("s1", k="second"), b.say("s2", ticks=30))
    look = b.seq(b.say("idle", ticks=25), b.fn("look", seen=lambda s: s["k"]))
    await b.run(b.par(first, second, look))
    assert (b.state["k"], b.state["seen"]) == ("second", "second")


# 7
async def test_a_loser_is_undone_to_the_winners_value_not_to_the_start(b: Bench) -> None:
    b.state["k"] = "start"
    win = b.seq(b.say("w", k="winner"), b.say("idle", ticks=12))
    inner = b.fallback(b.seq(b.say("l", ticks=4, k="loser"), b.fails("x")), b.hangs("h"))
    await b.run(b.race(win, inner))
    assert b.state == {"k": "winner"}


# 8
async def test_joining_writes_only_what_differs_from_the_last_declared_writer(b: Bench) -> None:
    ran = await b.run(
        b.par(b.say("x", ticks=5, same=1, mine=1, a="x"), b.say("y", same=1, yours=1, a="y"))
    )
    assert ran.wrote[-1] == {"a": "y"}


# 8
async def test_joining_looks_at_what_the_branches_wrote_not_at_what_is_live(b: Bench) -> None:
    """Another fork may have written the very same in the meantime, and be undone later."""
    branches = b.say("late", ticks=6, k="late"), b.say("early", k="early"), b.say("idle", ticks=14)
    join = b.par(*branches, name="join")
    other = b.fallback(
        b.seq(b.say("same", ticks=9, k="early"), b.say("idle2", ticks=15), b.fails("x")), b.say("y")
    )
    await b.run(b.par(other, join, name="both"))
    assert b.state["k"] == "early"


# 9
async def test_live_errors_never_enter_the_position(b: Bench) -> None:
    class Unspeakable(Exception):  # noqa: N818
        def __init__(self) -> None:
            super().__init__(object())

    saves = await b.saves(b.fallback(b.fails("x", Unspeakable()), b.say("y"), b.say("never")))
    assert all(json.loads(save.position) for save in saves)


# 10
async def test_a_position_is_saved_only_after_the_event_of_its_step_is_committed(b: Bench) -> None:
    order: list[str] = []

    async def on_step(position: Any) -> None:
        order.append(f"save {position['strands']['0'][0]['i']}")

    engine = b.engine(b.seq(b.say("a"), b.fn("b", x=1), b.say("c")), on_step=on_step)
    async for event in engine.run():
        order += [f"commit {event.node}"]
    assert order == ["commit a", "save 1", "commit b", "save 2", "commit c"]


# 12
async def test_escalation_unwinds_to_the_nearest_loop_at_once(b: Bench) -> None:
    body = b.seq(b.seq(b.escalates("up"), b.say("skipped")), b.say("skipped too"))
    await b.run(b.seq(b.loop(body, 3), b.say("after")))
    assert b.calls == ["up", "after"]


# 14
async def test_a_timer_ends_a_fork_and_never_fires_across_a_yield(b: Bench, clock: Clock) -> None:
    """The consumer's own awaiting is never cancelled by a timer of the flow."""
    root = b.fallback(b.timeout(b.seq(b.say("a"), b.hangs("h")), 0.005), b.say("f"))
    seen: list[str | None] = []
    async with aclosing(b.engine(root).run()) as events:
        async for event in events:
            clock.start()
            await asyncio.sleep(0.02)
            seen.append(event.content)
    assert seen == ["a", None, "f"]


# --- undo --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["user:k", "app:k"])
async def test_keys_that_outlive_the_session_are_never_undone(b: Bench, key: str) -> None:
    b.state[key] = "before"
    attempt = b.seq(b.fn("f", lambda _: {key: "after", "temp:t": 1, "k": 1}), b.fails("x"))
    ran = await b.run(b.fallback(attempt, b.say("y")))
    assert b.clean_state == {key: "after"}
    assert ran.wrote == [{key: "after", "temp:t": 1, "k": 1}, {"k": None, "temp:t": None}]


async def test_what_was_absent_becomes_none(b: Bench) -> None:
    await b.run(b.fallback(b.fails("x", k=1), b.say("y")))
    assert b.state == {"k": None}


async def test_what_was_written_back_already_needs_no_write(b: Bench) -> None:
    b.state["k"] = 1
    attempt = b.seq(b.say("p", k=2), b.say("q", k=1), b.fails("x"))
    ran = await b.run(b.fallback(attempt, b.say("y")))
    assert ran.wrote == [{"k": 2}, {"k": 1}]


async def test_what_somebody_outside_of_the_flow_wrote_since_stays(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(state_delta={"k": 1, "j": 1})
        b.state["k"] = "somebody else's"
        raise b.Boom("x")

    await b.run(b.fallback(b.agent("x", act), b.say("y")))
    assert b.state == {"k": "somebody else's", "j": None}


async def test_what_another_branch_wrote_since_stays(b: Bench) -> None:
    b.state["k"] = "start"
    attempt = b.seq(b.say("p", k="p"), b.say("idle", ticks=12), b.fails("x"))
    other = b.seq(b.say("idle2", ticks=5), b.say("o", k="o"), b.say("idle3", ticks=12))
    ran = await b.run(b.par(b.fallback(attempt, b.say("y")), other))
    assert b.state["k"] == "o"
    assert {"k": "start"} not in ran.wrote


async def test_what_another_branch_wrote_before_comes_back(b: Bench) -> None:
    b.state["k"] = "start"
    attempt = b.seq(b.say("p", ticks=6, k="p"), b.say("idle", ticks=6), b.fails("x"))
    other = b.seq(b.say("o", k="o"), b.say("idle2", ticks=30))
    await b.run(b.par(other, b.fallback(attempt, b.say("y"))))
    assert b.state["k"] == "o"


async def test_a_snapshot_forgets_discarded_writes(b: Bench) -> None:
    b.state["k"] = "start"
    body = b.seq(
        b.fn("own", own="own"),
        b.fallback(b.seq(b.fn("f", k="f", own="f", n=1), b.fails("x")), b.say("y")),
        b.fn("look", seen=lambda s: [s["k"], s["own"], s.get("n"), s["item"]]),
    )
    b.state["list"] = [1]
    await b.run(b.race(b.map(body, result="seen"), b.hangs("h")))
    assert b.state["results"] == [["start", "own", None, 1]]


async def test_a_snapshot_still_sees_what_is_never_undone(b: Bench) -> None:
    b.state["list"] = [1]
    attempt = b.seq(b.fn("f", lambda _: {"user:u": 1, "k": 1}), b.fails("x"))
    look = b.fn("look", seen=lambda s: [s.get("user:u"), s.get("k")])
    await b.run(b.map(b.seq(b.fallback(attempt, b.say("y")), look), result="seen"))
    assert b.state["results"] == [[1, None]]
    assert b.state["user:u"] == 1


async def test_what_is_never_undone_stays_also_when_the_attempt_around_it_fails(b: Bench) -> None:
    inner = b.fallback(
        b.seq(b.fn("f", lambda _: {"app:p": 1}), b.fails("x")), b.say("y"), name="in"
    )
    await b.run(b.fallback(b.seq(inner, b.fails("z")), b.say("last")))
    assert b.clean_state == {"app:p": 1}


async def test_a_snapshot_sees_what_a_race_on_it_left(b: Bench) -> None:
    inner = b.race(b.hangs("h", k="lost"), b.say("w", ticks=3, k="won"), name="in")
    b.state["list"] = [1]
    await b.run(b.map(b.seq(inner, b.fn("look", seen=lambda s: s["k"])), result="seen"))
    assert b.state["results"] == ["won"]


async def test_attempts_nested_in_attempts_in_branches(b: Bench) -> None:
    b.state.update(k="start", m="start")
    third = b.fallback(
        b.seq(b.say("t", k="t", m="t"), b.fails("tx")), b.fails("ty", m="ty"), name="t"
    )
    second = b.seq(b.say("s", k="s"), b.par(third, b.hangs("h", z=1)))
    await b.run(
        b.fallback(b.race(second, b.fails("rx")), b.fn("look", seen=lambda s: [s["k"], s["m"]]))
    )
    assert b.clean_state == {"k": "start", "m": "start", "seen": ["start", "start"]}


async def test_values_that_cannot_be_compared_are_undone_too(b: Bench) -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        def __hash__(self) -> int:
            return 1

    old, new = Odd(), Odd()
    b.state["k"] = old
    await b.run(b.fallback(b.seq(b.fn("f", lambda _: {"k": new}), b.fails("x")), b.say("y")))
    assert b.state["k"] is old


def test_differs() -> None:
    class Array:
        """As NumPy's: comparing gives an array, which is no bool."""

        def __ne__(self, other: object) -> Any:
            return self

        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    nan = float("nan")
    assert not differs(nan, nan)
    assert differs(nan, float("nan"))
    assert not differs([1, {"a": None}], [1, {"a": None}])
    assert differs(1, "1")
    assert differs(Array(), Array())
    assert not differs(array := Array(), array)


# --- the log by itself -------------------------------------------------------------------------


def test_the_log_keeps_nothing_when_no_scope_is_open() -> None:
    state: dict[str, Any] = {"k": 0}
    journal: dict[str, Any] = {}
    log = UndoLog(journal, state)
    scope = log.enter("1", None, None)
    log.record(scope, {"k": 1})
    state["k"] = 1
    assert journal["base"] == {"k": 0}
    log.settle(scope)
    assert (journal["scopes"], journal["base"], log.open) == ({}, {}, {})


def test_the_log_found_again_in_its_journal() -> None:
    state: dict[str, Any] = {"k": 0, "n": None}
    log = UndoLog(journal := {}, state)
    outer = log.enter("1", None, None)
    inner = log.enter("2", outer, None)
    for scope, delta in ((outer, {"k": 1}), (inner, {"k": 2, "n": 2})):
        log.record(scope, delta)
        state.update(delta)
    found = UndoLog(json.loads(json.dumps(journal)), state)
    assert found.open["2"].path() == "1.2"
    assert found.compensation([found.open["2"]]) == {"k": 1, "n": None}
    assert found.compensation([found.open["1"]]) == {"k": 0, "n": None}
    found.discard([found.open["2"]])
    assert found.compensation([found.open["1"]]) == {}  # state holds 2, which nobody here wrote


def test_a_settled_scope_is_its_parents() -> None:
    state: dict[str, Any] = {}
    log = UndoLog({}, state)
    outer = log.enter("1", None, None)
    inner = log.enter("2", outer, None)
    log.record(inner, {"k": 1})
    log.record(outer, {"k": 2})
    state["k"] = 2
    assert not outer.touched
    inner.data["t"] = 1
    assert outer.touched
    log.settle(inner)
    assert outer.writes == {"k": [2, 2]}
    assert outer.touched
    assert log.compensation([outer]) == {"k": None}


def test_bench_nodes_are_nodes(b: Bench) -> None:
    assert isinstance(b.mark("a"), Node)
