"""Cancelling, closing, and runs that go on at the same time."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from adk_fluent.flow import Signal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


async def test_a_leaf_is_closed_before_the_run_ends(b: Bench) -> None:
    """Cleaning up may take time, and whoever cancelled waits for it."""
    cleaned: list[str] = []

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        try:
            yield turn.event("started")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(turn.strand.segment)

    slow = b.agent("slow", act)
    task = asyncio.create_task(b.run(b.par(slow, b.race(slow, b.timeout(slow)))))
    await b.reach("slow", "slow", "slow")
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(cleaned) == 3


async def test_cancelling_again_while_branches_clean_up_leaves_nothing_half_done(b: Bench) -> None:
    cleaned: list[str] = []

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        try:
            yield turn.event("started")
            await asyncio.Event().wait()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            cleaned.append(turn.node.name)

    root = b.race(b.race(b.agent("x", act), b.agent("y", act), name="in"), b.agent("z", act))
    task = asyncio.create_task(b.run(root))
    await b.reach("x", "y", "z")
    for _ in range(5):
        await asyncio.sleep(0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert set(cleaned) == {"x", "y", "z"}


async def test_a_cancelled_run_can_go_on_from_where_it_stands(b: Bench) -> None:
    count = 0

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        nonlocal count
        count += 1
        if count == 1:
            await asyncio.Event().wait()
        yield turn.event("second time", state_delta={"s": 1})

    root = b.seq(b.mark("a"), b.par(b.agent("x", act), b.mark("b")), b.mark("c"))
    engine = b.engine(root)

    async def drive() -> None:
        async with aclosing(engine.run()) as events:
            async for event in events:
                b.commit(event)

    task = asyncio.create_task(drive())
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await b.run(root, position=engine.position)
    assert b.state == {"trail": "abc", "s": 1}
    assert b.calls == ["a", "x", "b", "x", "c"]


async def test_a_failed_run_can_go_on_from_the_failed_step(b: Bench) -> None:
    """Frames of what failed are gone; the last position saved before stands at the step."""
    good = False

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        if not good:
            raise b.Boom("not yet")
        yield turn.event("now", state_delta={"s": 1})

    saves: list[str] = []

    async def on_step(position: dict[str, object]) -> None:
        saves.append(json.dumps(position))

    root = b.seq(b.mark("a"), b.agent("x", act), b.mark("c"))
    await b.error(root, on_step=on_step)
    good = True
    await b.run(root, position=json.loads(saves[-1]))
    assert b.state == {"trail": "ac", "s": 1}


async def test_an_error_of_whoever_saves_ends_the_run(b: Bench) -> None:
    async def on_step(position: object) -> None:
        raise OSError("disk full")

    error = await b.error(b.seq(b.say("a"), b.say("b")), on_step=on_step)
    assert isinstance(error, OSError)


async def test_two_engines_interleaved_know_nothing_of_each_other(b: Bench) -> None:
    body = b.par(
        b.race(b.seq(b.say("l", k="l"), b.hangs("h")), b.say("w", ticks=5, k="w")),
        b.fallback(b.seq(b.say("p", f="p"), b.fails("x")), b.say("y", f="y")),
        b.map(b.say("m", ticks=2)),
    )
    b.state["list"] = [1, 2]
    root = b.seq(body, b.fn("end", end=lambda s: s["k"] + s["f"]))
    one, two = b.state.copy(), b.state.copy()
    engines: list[tuple[dict[str, object], AsyncGenerator[AgentEvent, None]]] = []
    for state in (one, two):
        b.state = state
        engines.append((state, b.engine(root).run()))
    live = list(engines)
    while live:
        for entry in list(live):
            state, events = entry
            event = await anext(events, None)
            if event is None:
                live.remove(entry)
            else:
                state.update(event.state_delta)
    assert one == two
    assert one["end"] == "wy"


async def test_many_runs_of_one_pipeline_at_once(b: Bench) -> None:
    root = b.seq(b.par(b.say("x", ticks=3, k=1), b.say("y", k=2)), b.mark("z"))

    async def one() -> dict[str, object]:
        own = type(b)()
        ran = await own_run(own)
        assert ran is Signal.OK
        return own.state

    async def own_run(own: Bench) -> object:
        state: dict[str, object] = {}
        own.state = state
        own.calls = b.calls
        engine = own.engine(root)
        async for event in engine.run():
            own.commit(event)
        return engine.outcome

    states = await asyncio.gather(*[one() for _ in range(20)])
    assert all(state == {"k": 2, "trail": "z"} for state in states)


async def test_an_engine_driven_from_another_task_at_each_step(b: Bench) -> None:
    """Python 3.11's `wait_for` runs each step of a generator in a task of its own."""
    root = b.seq(
        b.par(b.say("x", ticks=2), b.timeout(b.say("y"))), b.race(b.say("z"), b.hangs("h"))
    )
    events = b.engine(root).run()
    seen: list[str | None] = []
    while (event := await asyncio.wait_for(asyncio.ensure_future(next_of(events)), 5)) is not None:
        seen.append(event.content)
    assert seen == ["y", "x", "z"]


async def next_of(events: AsyncGenerator[AgentEvent, None]) -> AgentEvent | None:
    return await anext(events, None)


async def test_an_event_in_flight_when_its_branch_is_cancelled_still_counts_for_the_undo(
    b: Bench,
) -> None:
    """The consumer is busy with a loser's event while the winner ends."""

    async def winner(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        await asyncio.sleep(0.01)
        yield turn.event("won", state_delta={"w": 1})

    root = b.race(b.seq(b.say("l", k=1), b.hangs("h")), b.agent("w", winner))
    ran: list[AgentEvent] = []
    async with aclosing(b.engine(root).run()) as events:
        async for event in events:
            if event.node == "l":
                await asyncio.sleep(0.03)
            b.commit(event)
            ran.append(event)
    assert b.clean_state == {"w": 1}


async def test_an_event_that_was_never_taken_never_happened(b: Bench) -> None:
    """A branch is cancelled while its event still waits in line."""

    async def quick(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("q1", state_delta={"q": 1})
        raise b.Boom("now")

    root = b.fallback(
        b.par(b.agent("q", quick), *[b.say(f"s{i}", n=i) for i in range(5)]), b.say("f")
    )
    engine = b.engine(root)
    async with aclosing(engine.run()) as events:
        async for event in events:
            await asyncio.sleep(0.001)
            b.commit(event)
    assert b.clean_state == {}
