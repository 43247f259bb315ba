"""How many cases run at the same time, and when."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval._running._pace import Pace, refusal_in

if TYPE_CHECKING:
    from collections.abc import Iterator


class ServiceError(Exception):
    """What a service says."""

    def __init__(self, code: int, retry_after: float | None = None) -> None:
        super().__init__(f"status {code}")
        self.code = code
        self.retry_after = retry_after


BUSY = ServiceError(429, 0.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that goes on when somebody sleeps; its last element is the time."""
    now = [100.0]
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        now.append(now[-1] + seconds)
        await really(0)

    def monotonic() -> float:
        return now[-1]

    monkeypatch.setattr(time, "monotonic", monotonic)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    yield now
    monkeypatch.undo()


async def turn(pace: Pace) -> float:
    """A turn that does nothing."""
    async with pace.turn() as began:
        return began


@pytest.mark.parametrize("limit", [1, 3, 10])
async def test_no_more_are_inside_than_are_allowed(limit: int) -> None:
    pace, inside, most = Pace(limit), 0, 0

    async def one() -> None:
        nonlocal inside, most
        async with pace.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(50)))
    assert most == limit
    assert inside == 0


@given(st.integers(1, 12), st.lists(st.sampled_from(["ok", "busy"]), max_size=60))
def test_the_limit_stays_within_its_bounds(limit: int, events: list[str]) -> None:
    pace = Pace(limit)
    for each in events:
        before = pace.limit
        if each == "ok":
            pace.went_well()
            assert before <= pace.limit <= limit
        else:
            pace.was_refused(BUSY, 1, time.monotonic())
            assert 1 <= pace.limit <= before
    for _ in range(limit * limit):
        pace.went_well()
    assert pace.limit == limit


def test_the_limit_halves_and_grows_by_one_for_as_many_successes() -> None:
    pace = Pace(16)
    found: list[int] = []
    for _ in range(5):
        pace.was_refused(BUSY, 1, time.monotonic())
        found.append(pace.limit)
    assert found == [8, 4, 2, 1, 1]
    pace.went_well()
    assert pace.limit == 2
    for _ in range(3):
        pace.went_well()
    assert pace.limit == 3


async def test_what_was_under_way_together_is_one_refusal() -> None:
    pace = Pace(10)
    began = [await turn(pace) for _ in range(10)]
    for each in began:
        pace.was_refused(BUSY, 1, each)
    assert pace.limit == 5
    pace.was_refused(BUSY, 2, await turn(pace))
    assert pace.limit == 2


async def test_the_limit_holds_for_those_that_wait() -> None:
    pace, inside, most = Pace(8), 0, 0
    pace.was_refused(BUSY, 1, time.monotonic())

    async def one() -> None:
        nonlocal inside, most
        async with pace.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(one() for _ in range(30)))
    assert most == 4


async def test_nobody_begins_while_a_service_wants_to_be_left_alone(clock: list[float]) -> None:
    pace = Pace(4)
    assert pace.was_refused(ServiceError(429, 30.0), 1, clock[-1])
    assert await turn(pace) == 130.0
    assert clock == [100.0, 130.0]
    assert await turn(pace) == 130.0


async def test_the_longest_wait_counts(clock: list[float]) -> None:
    pace = Pace(4)
    for wait in (5.0, 20.0, 10.0):
        pace.was_refused(ServiceError(429, wait), 1, clock[-1])
    assert await turn(pace) == 120.0


async def test_a_wait_that_grows_while_one_waits_is_waited(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(4)
    pace.was_refused(ServiceError(429, 5.0), 1, clock[-1])
    really: Any = asyncio.sleep

    async def sleep(seconds: float) -> None:
        await really(seconds)
        if len(clock) == 2:
            pace.was_refused(ServiceError(429, 7.0), 1, clock[-1])

    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert await turn(pace) == 112.0


async def test_without_a_word_of_the_service_waits_double(clock: list[float]) -> None:
    for attempt in range(1, 6):
        pace, now = Pace(4), clock[-1]
        pace.was_refused(ServiceError(503), attempt, now)
        waited = await turn(pace) - now
        assert 0.8 * 2 ** (attempt - 1) <= waited <= 1.2 * 2 ** (attempt - 1)


def test_a_wait_of_hours_is_not_worth_it() -> None:
    pace = Pace(4)
    assert not pace.was_refused(ServiceError(429, 3600.0), 1, time.monotonic())
    assert pace.was_refused(ServiceError(429, 60.0), 1, time.monotonic())


async def test_who_is_cancelled_leaves_his_place() -> None:
    pace = Pace(1)
    async with pace.turn():
        waiting = asyncio.create_task(turn(pace))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await asyncio.wait_for(turn(pace), 5)


async def test_who_comes_first_is_let_in_first() -> None:
    """Who tries again waits behind those that have not tried yet."""
    pace, order = Pace(1), list[str]()

    async def one(name: str, times: int) -> None:
        for _ in range(times):
            async with pace.turn():
                order.append(name)
                await asyncio.sleep(0)

    await asyncio.gather(one("a", 3), one("b", 2), one("c", 1))
    assert order == ["a", "b", "c", "a", "b", "a"]


async def test_who_is_cancelled_when_let_in_leaves_his_place() -> None:
    pace = Pace(1)
    async with pace.turn():
        waiting = asyncio.create_task(turn(pace))
        await asyncio.sleep(0)
    waiting.cancel()  # the place is his by now
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(turn(pace), 5)


async def test_who_waits_is_let_in_when_the_limit_grows() -> None:
    pace = Pace(2)
    pace.was_refused(BUSY, 1, time.monotonic())
    async with pace.turn():
        waiting = asyncio.create_task(turn(pace))
        await asyncio.sleep(0)
        assert not waiting.done()
        pace.went_well()
        await asyncio.wait_for(waiting, 5)


async def test_who_raises_leaves_his_place() -> None:
    pace = Pace(1)
    with pytest.raises(ServiceError):
        async with pace.turn():
            raise BUSY
    await asyncio.wait_for(turn(pace), 5)


@pytest.mark.parametrize("code", [429, 503, 529])
def test_refusals(code: int) -> None:
    error = ServiceError(code)
    assert refusal_in([ValueError(), error]) is error
    assert refusal_in([ExceptionGroup("several", [KeyError(), error])]) is error
    nested = ExceptionGroup("o", [ExceptionGroup("i", [error])])
    assert refusal_in([nested]) is error
    outer = RuntimeError("the user could not be played")
    outer.__cause__ = error
    error.__cause__ = outer  # in a circle
    assert refusal_in([outer]) is error


@pytest.mark.parametrize(
    "error", [ServiceError(400), ServiceError(401), ServiceError(500), ValueError("429")]
)
def test_other_errors_are_no_refusals(error: Exception) -> None:
    error.__cause__ = error
    assert refusal_in([error]) is None
    assert refusal_in([]) is None
