from __future__ import annotations

import asyncio
from time import monotonic, sleep
from typing import TYPE_CHECKING

import pytest

from adk_fluent.errors import StepTimeoutError
from adk_fluent.ir import Location

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Clock, Turn


async def test_a_body_in_time_is_as_without(b: Bench) -> None:
    ran = await b.run(b.seq(b.timeout(b.say("a", x=1)), b.say("z", y=lambda s: s["x"])))
    assert b.state == {"x": 1, "y": 1}
    assert [event.branch for event in ran.events] == [None, None]
    assert [event.path for event in ran.events] == ["s0.t0", "s1"]


async def test_a_body_that_is_too_slow_is_cancelled(b: Bench, clock: Clock) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        clock.start()
        await asyncio.Event().wait()
        yield turn.event()

    start = monotonic()
    node = b.timeout(b.seq(b.say("a", x=1), b.agent("h", act)), 0.02).replace(
        location=Location("flow.py", 3)
    )
    error = await b.error(b.seq(node, b.say("never")))
    assert isinstance(error, StepTimeoutError)
    assert isinstance(error, TimeoutError)
    assert error.seconds == pytest.approx(0.02)
    assert error.what == "timeout: no result within 0.02 s"
    assert (error.node, str(error.location)) == ("timeout", "flow.py:3")
    assert monotonic() - start < 5
    assert b.closed == ["a", "h"]
    assert b.state == {"x": 1}


@pytest.mark.parametrize(
    "wrap", ["par", "race", "first", "loop", "fallback", "seq", "map", "timeout"]
)
async def test_whatever_is_inside_is_cancelled(b: Bench, wrap: str, clock: Clock) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        clock.start()  # the limit may pass before a busy machine has come to the agent
        await asyncio.Event().wait()
        yield turn.event()

    b.state["list"] = [1]
    error = await b.error(b.timeout(getattr(b, wrap)(b.agent("h", act)), 0.01, name="outer"))
    assert isinstance(error, StepTimeoutError)
    assert error.node == "outer"
    assert b.closed == ["h"]


async def test_the_inner_timeout_comes_first(b: Bench) -> None:
    inner = b.timeout(b.hangs("h"), 0.01, name="inner")
    error = await b.error(b.timeout(inner, 5, name="outer"))
    assert isinstance(error, StepTimeoutError)
    assert error.node == "inner"


async def test_an_error_of_the_body_is_its_own(b: Bench) -> None:
    error = await b.error(b.timeout(b.fails("x", TimeoutError("mine"))))
    assert type(error) is TimeoutError


async def test_no_timer_is_left(b: Bench) -> None:
    await b.run(b.seq(b.timeout(b.say("a"), 50), b.timeout(b.say("b", ticks=3), 100)))
    assert b.calls == ["a", "b"]
    timers: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
    assert all(timer.cancelled() for timer in timers)


async def test_time_passes_while_the_consumer_is_busy(b: Bench, clock: Clock) -> None:
    """A timer never fires across a yield into the consumer: it ends the fork, nothing else."""
    seen: list[str | None] = []

    async def busy() -> None:
        async for event in b.engine(b.timeout(b.seq(b.say("a"), b.hangs("h")), 0.01)).run():
            seen.append(event.content)
            clock.start()
            sleep(0.03)  # noqa: ASYNC251  # it blocks the loop

    with pytest.raises(StepTimeoutError):
        await busy()
    assert seen == ["a"]


async def test_a_timeout_in_every_iteration_starts_anew(b: Bench) -> None:
    await b.run(b.loop(b.timeout(b.say("a", ticks=2), 0.5), 5))
    assert b.calls == ["a"] * 5


async def test_what_a_timed_out_branch_wrote_stays_unless_an_attempt_is_around_it(
    b: Bench,
) -> None:
    body = b.par(b.seq(b.say("a", x=1), b.hangs("h")), b.hangs("i", y=1))
    await b.run(b.seq(b.fallback(b.timeout(body, 0.2), b.say("f")), b.say("z")))
    assert b.clean_state == {}
    await b.error(b.timeout(body, 0.2))
    assert b.clean_state == {"x": 1, "y": 1}


def busy(seconds: float) -> None:
    """Compute without ever waiting."""
    end = monotonic() + seconds
    while monotonic() < end:
        continue


async def test_functions_that_never_wait_are_late_too(b: Bench) -> None:
    async def slow(_: object) -> None:
        busy(0.04)

    with pytest.raises(StepTimeoutError):
        await b.run(b.timeout(b.fn("f", lambda _: busy(0.04)), 0.02))
    with pytest.raises(StepTimeoutError):
        await b.run(b.timeout(b.fn("f", slow), 0.02))


async def test_a_late_function_is_the_last_one(b: Bench) -> None:
    slow = b.seq(b.tap(lambda _: busy(0.04)), b.fn("never"))
    await b.run(b.fallback(b.timeout(slow, 0.02), b.fn("instead", x=1)))
    assert b.calls == ["instead"]
    inner = b.timeout(b.seq(slow), 60)
    with pytest.raises(StepTimeoutError):
        await b.run(b.timeout(inner, 0.02))
    assert b.calls == ["instead"]
