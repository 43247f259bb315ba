"""The lines in which calls wait, against a plain account of what they have to do."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kit import Time

from adk_fluent.errors import UsageError
from adk_fluent.middleware import RateLimiterMiddleware, RateLimitError, rate_limiter
from adk_fluent.middleware._resilience._lines import Line, Lines, Window
from adk_fluent.protocol import Middleware, SystemClock

if TYPE_CHECKING:
    from adk_fluent.middleware._resilience._lines import Limits, Turn

#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"
MAYBE = st.none() | st.integers(1, 3)


class Account(RuleBasedStateMachine):
    """Keeps who waits and who went, and works out from that who may go."""

    @initialize(
        requests=MAYBE,
        tokens=st.none() | st.integers(1, 30),
        concurrency=st.sampled_from([None, None, None, 2]),
    )
    def begin(self, requests: int | None, tokens: int | None, concurrency: int | None) -> None:
        self.requests, self.tokens, self.concurrency = requests, tokens, concurrency
        self.line = Line(requests, tokens, concurrency)
        self.now = 1000.0
        self.waiting: list[Turn] = []
        self.woken: set[int] = set()
        self.went: list[tuple[float, Turn, int]] = []  # when, who, how many tokens now
        self.running: list[Turn] = []

    def may_go(self, turn: Turn) -> bool:
        full = self.concurrency is not None and len(self.running) >= self.concurrency
        return turn is self.waiting[0] and not full and self.has_room(turn.tokens, self.now)

    def has_room(self, tokens: int, now: float) -> bool:
        within = [taken for at, _, taken in self.went if at + 60.0 > now]
        return not within or (
            (self.requests is None or len(within) < self.requests)
            and (self.tokens is None or sum(within) + tokens <= self.tokens)
        )

    def look(self, turn: Turn) -> None:
        expected = self.may_go(turn)
        at = self.line.look(turn, self.now)
        assert (turn.spent is not None) == expected
        if not expected:
            later = [gone + 60.0 for gone, _, _ in self.went if gone + 60.0 > self.now]
            assert at is None or at == next(t for t in later if self.has_room(turn.tokens, t))
            return
        self.waiting.remove(turn)
        self.running.append(turn)
        self.went.append((self.now, turn, min(turn.tokens, self.tokens or turn.tokens)))

    @rule(tokens=st.integers(0, 40))
    def come(self, tokens: int) -> None:
        turn = self.line.come(tokens, lambda: self.woken.add(id(turn)))
        self.waiting.append(turn)
        self.look(turn)

    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        if self.waiting:
            turn = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
            self.line.leave(turn)

    @rule(data=st.data(), tokens=st.none() | st.integers(0, 40))
    def end(self, data: st.DataObject, tokens: int | None) -> None:
        if not self.running:
            return
        turn = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        if tokens is not None:
            self.line.settle(turn, tokens, self.now)
            self.went = [(at, who, tokens if who is turn else n) for at, who, n in self.went]
        self.line.end()

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.waiting and self.may_go(self.waiting[0]):  # time wakes nobody, so it looks itself
            self.look(self.waiting[0])

    @rule()
    def look_again(self) -> None:
        for turn in tuple(self.waiting):
            self.look(turn)

    @rule(tokens=st.integers(0, 40))
    def ask(self, tokens: int) -> None:
        """What is kept of what is foreseen is what would be foreseen now, or a second earlier."""
        window = self.line._window.copy()
        at = self.now
        for each in (*self.waiting, None):
            at = window.free_at(tokens if each is None else each.tokens, at)
            if each is not None:
                window.take(each.tokens, at)
        assert max(self.now, at - 1.0) <= self.line.expected(tokens, self.now) <= at

    @invariant()
    def nobody_is_forgotten(self) -> None:
        """The first has been woken, or knows when to look, if it may go."""
        if getattr(self, "waiting", None) and self.may_go(self.waiting[0]):
            assert id(self.waiting[0]) in self.woken


Account.TestCase.settings = settings(max_examples=200 if FULL else 40, stateful_step_count=40)
TestAccount = Account.TestCase


# --- in an event loop ----------------------------------------------------------------------------

CALLS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 7.0, 30.0]),  # seconds after the one before
        st.integers(0, 50),  # tokens
        st.sampled_from([None, None, 0.0, 5.0, 40.0]),  # seconds after which it is cancelled
    ),
    max_size=14,
)


async def went(calls: Any, limits: Limits) -> tuple[list[tuple[float, int, int]], Lines]:
    """When each call went, with its place among those that came, and its tokens."""
    time, lines = Time(), None
    lines = Lines(time)
    found: list[tuple[float, int, int]] = []

    async def call(place: int, tokens: int) -> None:
        turn = await lines.turn(("all",), "it", limits, tokens)
        assert turn.spent is not None
        found.append((time.time, place, turn.spent.tokens))
        lines.end(turn)

    async def cancelled(task: asyncio.Task[None], after: float) -> None:
        await time.sleep(after)
        task.cancel()

    tasks: list[asyncio.Task[None]] = []
    for place, (gap, tokens, after) in enumerate(calls):
        await time.sleep(gap)
        tasks.append(asyncio.create_task(call(place, tokens)))
        if after is not None:
            tasks.append(asyncio.create_task(cancelled(tasks[-1], after)))
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    return found, lines


@given(CALLS, MAYBE, st.none() | st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_no_minute_has_more_than_is_allowed_and_nobody_goes_before_their_turn(
    calls: Any, requests: int | None, tokens: int | None
) -> None:
    found, lines = asyncio.run(went(calls, (requests, tokens, 2)))
    assert [place for _, place, _ in found] == sorted(place for _, place, _ in found)
    for start, _, _ in found:
        minute = [n for at, _, n in found if start <= at < start + 60.0]
        assert requests is None or len(minute) <= requests
        assert tokens is None or sum(minute) <= tokens
    certain = [place for place, (_, _, after) in enumerate(calls) if after is None]
    assert set(certain) <= {place for _, place, _ in found}  # who waits gets a turn
    line = lines._lines.get(("all",))
    assert line is None or line.idle(float("inf"))


@given(st.lists(st.integers(0, 50), max_size=14), MAYBE, st.none() | st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_what_is_expected_is_what_happens(
    calls: list[int], requests: int | None, tokens: int | None
) -> None:
    line, now, expected = Line(requests, tokens, None), 1000.0, list[float]()
    turns: list[Turn] = []
    for each in calls:
        expected.append(line.expected(each, now))
        turns.append(line.come(each, lambda: None))
    for turn, at in zip(turns, expected, strict=True):
        while (later := line.look(turn, now)) is not None:
            now = later
        assert turn.spent is not None
        assert turn.spent.at == at


@pytest.mark.parametrize("limits", [(100, None, None), (100, 1000, 2)])
async def test_who_comes_does_not_work_out_anew_when_all_others_go(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that this takes is that of the event loop, and of everybody in it."""
    looked = 0
    free_at = Window.free_at

    def counted(self: Window, tokens: int, now: float) -> float:
        nonlocal looked
        looked += 1
        return free_at(self, tokens, now)

    monkeypatch.setattr(Window, "free_at", counted)
    lines = Lines(Time(), 1_000_000.0)
    waiting = [asyncio.create_task(lines.turn(("all",), "it", limits, 10)) for _ in range(1000)]
    await asyncio.sleep(0)
    assert looked < 5 * len(waiting)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)


async def test_a_large_one_is_not_overtaken_by_small_ones() -> None:
    calls = [(0.0, 30, None), (0.0, 100, None), *[(1.0, 1, None)] * 5]
    found, _ = await went(calls, (None, 100, None))
    assert [place for _, place, _ in found] == list(range(7))
    assert found[1][0] - found[0][0] >= 60.0


async def test_one_that_is_larger_than_the_limit_goes_when_it_is_alone() -> None:
    found, _ = await went([(0.0, 10, None), (0.0, 1000, None), (0.0, 10, None)], (None, 100, None))
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(found)]
    assert gaps == [60.0, 60.0]


def test_who_waits_looks_again_when_the_first_call_leaves_the_window() -> None:
    line = Line(requests=2)
    for at in (1000.0, 1010.0):
        assert line.look(line.come(0, lambda: None), at) is None
    assert line.look(line.come(0, lambda: None), 1020.0) == 1060.0


async def test_what_was_not_needed_is_there_for_the_next_at_once() -> None:
    time = Time()
    lines, limits = Lines(time), (None, 100, None)
    first = await lines.turn(("all",), "it", limits, 90)
    second = asyncio.create_task(lines.turn(("all",), "it", limits, 80))
    for _ in range(5):
        await asyncio.sleep(0)
    lines.settle(first, 20)
    lines.end(first)
    assert (await second).spent is not None
    assert time.time == 1_000_000.0


async def test_what_was_needed_besides_is_missing_for_the_next() -> None:
    time = Time()
    lines, limits = Lines(time), (None, 100, None)
    first = await lines.turn(("all",), "it", limits, 10)
    lines.settle(first, 95)
    lines.end(first)
    await lines.turn(("all",), "it", limits, 10)
    assert time.time == 1_000_060.0


async def test_what_comes_to_light_after_a_minute_counts_no_more() -> None:
    time = Time()
    lines, limits = Lines(time), (None, 100, None)
    slow = await lines.turn(("all",), "it", limits, 10)
    time.time += 60.0
    await lines.turn(("all",), "it", limits, 10)
    lines.settle(slow, 1000)
    await lines.turn(("all",), "it", limits, 90)
    assert time.time == 1_000_060.0


async def test_a_clock_that_fails_is_heard() -> None:
    class Broken(SystemClock):
        async def sleep(self, seconds: float) -> None:
            raise OSError("no time")

    lines = Lines(Broken())
    await lines.turn(("all",), "it", (1, None, None))
    with pytest.raises(OSError, match="no time"):
        await lines.turn(("all",), "it", (1, None, None))


async def test_loops_in_threads_wait_in_one_line() -> None:
    """Those in one loop go when those in another are done."""
    lines = Lines(SystemClock())
    at_once, most = 0, 0
    lock = threading.Lock()

    async def call() -> None:
        nonlocal at_once, most
        turn = await lines.turn(("all",), "it", (None, None, 2))
        with lock:
            at_once += 1
            most = max(most, at_once)
        await asyncio.sleep(0.002)
        with lock:
            at_once -= 1
        lines.end(turn)

    async def many() -> None:
        await asyncio.gather(*(call() for _ in range(25)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        await asyncio.to_thread(each.join, 60)
    assert not any(each.is_alive() for each in threads)
    assert most == 2


#: What was left behind is not collected, which would cancel it.
KEPT: list[Any] = []


def left_behind(lines: Lines, limits: Limits) -> asyncio.AbstractEventLoop:
    """A loop with a call that waits, and is never told that the loop stops."""
    loop = asyncio.new_event_loop()

    async def come() -> None:
        waiting = asyncio.create_task(lines.turn(("all",), "it", limits))
        KEPT.append((loop, waiting))
        await asyncio.sleep(0.05)

    loop.run_until_complete(come())
    return loop


class Hasty(SystemClock):
    """A minute is over in less than a second."""

    def monotonic(self) -> float:
        return super().monotonic() * 100

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 100)


@pytest.mark.parametrize("limits", [(None, None, 1), (1, None, None)])
@pytest.mark.parametrize("comes", ["before", "after"])
async def test_who_waits_in_a_loop_that_is_closed_holds_nobody_up(
    limits: Limits, comes: str
) -> None:
    lines = Lines(Hasty())
    first = await lines.turn(("all",), "it", limits)
    loop = await asyncio.to_thread(left_behind, lines, limits)
    later = [asyncio.create_task(lines.turn(("all",), "it", limits)) for _ in range(2)]
    if comes == "before":
        await asyncio.sleep(0.05)
    loop.close()
    lines.end(first)
    for each in later:
        lines.end(await asyncio.wait_for(each, 10))
    assert not lines._lines["all",]._waiting


async def test_who_was_woken_and_did_not_look_holds_nobody_up() -> None:
    """The loop is closed between the two."""
    lines, limits = Lines(Hasty()), (None, None, 1)
    first = await lines.turn(("all",), "it", limits)
    loop = await asyncio.to_thread(left_behind, lines, limits)
    later = asyncio.create_task(lines.turn(("all",), "it", limits))
    await asyncio.sleep(0.05)
    lines.end(first)
    loop.close()
    lines.end(await asyncio.wait_for(later, 10))


async def test_lines_that_nobody_needs_are_dropped() -> None:
    time = Time()
    lines = Lines(time)
    waiting = await lines.turn(("user", "first"), "it", (5, None, None))
    for number in range(1000):
        lines.end(await lines.turn(("user", str(number)), "it", (5, None, None)))
        time.time += 1.0
    kept: dict[Any, Any] = lines._lines
    assert len(kept) < 200
    assert waiting.line is kept["user", "first"]


# --- what it is given ----------------------------------------------------------------------------


async def test_copies_stand_in_one_line_and_those_that_were_pickled_do_not() -> None:
    limiter = rate_limiter(requests_per_minute=1, max_wait=0)
    await limiter._lines.turn(("all",), "it", (1, None, None))
    with pytest.raises(RateLimitError):
        await copy.copy(limiter)._lines.turn(("all",), "it", (1, None, None))
    for anew in (copy.deepcopy(limiter), pickle.loads(pickle.dumps(limiter))):
        await anew._lines.turn(("all",), "it", (1, None, None))
        with pytest.raises(RateLimitError):
            await anew._lines.turn(("all",), "it", (1, None, None))


def test_it_is_a_middleware() -> None:
    assert isinstance(RateLimiterMiddleware(requests_per_minute=1), Middleware)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"requests_per_minute": 0}, "requests_per_minute"),
        ({"tokens_per_minute": 1.5}, "tokens_per_minute"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1, "per": "agent"}, "per"),
        ({"concurrency": 1, "max_wait": -1}, "max_wait"),
        ({"tools": {"search": 0}}, "tools"),
        ({"tools": ["search"]}, "tools"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"rate_limiter\({option}=\.\.\.\)") as caught:
        RateLimiterMiddleware(**options)
    assert __file__ in str(caught.value)


def test_one_that_limits_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="limits nothing"):
        rate_limiter(max_wait=5)


def test_the_error_says_when_to_come_again() -> None:
    async def twice() -> None:
        lines = Lines(Time(), 10.0)
        for _ in range(2):
            await lines.turn(("all",), "model 'm'", (1, None, None))

    with pytest.raises(RateLimitError, match=r"model 'm' is not called: .* in 60 sec") as caught:
        asyncio.run(twice())
    assert caught.value.retry_after == 60.0
