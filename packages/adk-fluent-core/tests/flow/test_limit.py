"""The time a run may take belongs to the run: whoever goes on with it may give it another one."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import StepTimeoutError
from adk_fluent.flow import Signal
from adk_fluent.flow._limit import fit

from .test_restart import LIST, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.flow import Position
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn

LIMITS = [None, 60.0]


@pytest.mark.parametrize("first", LIMITS)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_run_goes_on_from_every_step_with_a_limit_and_without(
    b: Bench, name: str, first: float | None
) -> None:
    b.state.update(LIST)
    start, root = copy.deepcopy(b.state), PROGRAMS[name](b)
    saves: list[tuple[str, dict[str, Any]]] = []

    async def save(position: Position) -> None:
        saves.append((json.dumps(position), copy.deepcopy(b.state)))

    await b.run(root, on_step=save, limit=first)
    end = b.clean_state
    assert saves
    for text, state in saves:
        for then in LIMITS:
            position = json.loads(text)
            fit(position, limit=first is None)  # there and back again
            fit(position, limit=first is not None)
            b.state = copy.deepcopy(state)
            await b.run(root, position=position, limit=then)
            assert b.clean_state == end, (text, then)
    b.state = start


@pytest.mark.parametrize("first", LIMITS)
@pytest.mark.parametrize("then", LIMITS)
async def test_what_an_attempt_wrote_is_undone_to_what_was_before_it(
    b: Bench, first: float | None, then: float | None
) -> None:
    b.state["k"] = 0
    attempt = b.seq(b.say("p", k=2, n=1), b.waits("w"), b.fn("again", k=3), b.fails("x"))
    look = b.fn("look", seen=lambda s: [s["k"], s.get("n"), s["m"]])
    root = b.seq(b.fn("one", k=1, m=5), b.fallback(attempt, look))
    ran = await b.run(root, limit=first)
    position = json.loads(json.dumps(ran.engine.position))
    b.state["m"] = 6  # written by somebody else while it waits
    await b.run(root, position=position, answers={"w": 1}, limit=then)
    assert b.clean_state == {"k": 1, "m": 6, "seen": [1, None, 6]}


async def test_events_stand_where_they_stand_without_a_limit(b: Bench) -> None:
    root = b.seq(b.say("a"), b.par(b.say("b"), b.say("c")))
    paths = [[e.path for e in (await b.run(root, limit=limit)).events] for limit in LIMITS]
    assert paths[0] == paths[1] == ["s0", "s1.p0", "s1.p1"]


async def test_a_limit_strikes_in_a_run_that_was_begun_without(b: Bench) -> None:
    root = b.seq(b.waits("w"), b.hangs("h"))
    ran = await b.run(root)
    error = await b.error(root, position=ran.engine.position, answers={"w": 1}, limit=0.01)
    assert isinstance(error, StepTimeoutError)
    assert error.what == "seq: no result within 0.01 s"


async def test_a_run_that_ended_stays_ended(b: Bench) -> None:
    root = b.seq(b.say("a"))
    for first in LIMITS:
        for then in LIMITS:
            ran = await b.run(root, limit=first)
            again = await b.run(root, position=ran.engine.position, limit=then)
            assert again.outcome is Signal.OK
            assert again.events == []


async def test_the_time_before_a_question_counts_and_that_of_thinking_does_not(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        await asyncio.sleep(0.06)
        yield turn.event("slow")

    root = b.seq(b.agent("slow", act), b.waits("w"), b.agent("again", act))
    ran = await b.run(root, limit=0.1)
    await asyncio.sleep(0.1)
    position = json.dumps(ran.engine.position)
    error = await b.error(root, position=json.loads(position), answers={"w": 1}, limit=0.1)
    assert isinstance(error, StepTimeoutError)
    ran = await b.run(root, position=json.loads(position), answers={"w": 1}, limit=60)
    assert ran.said == ["w done", "slow"]
