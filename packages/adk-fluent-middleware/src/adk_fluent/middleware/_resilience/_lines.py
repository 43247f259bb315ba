"""Lines in which calls wait for their turn: first come, first served, also across event loops."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.middleware._errors import RateLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.protocol import Clock

#: What is counted by: the kind of call, and whose.
Key = tuple[str, ...]
#: Calls a minute, tokens a minute, calls at once.
Limits = tuple[int | None, int | None, int | None]
_MINUTE: Final = 60.0
#: What is said when nobody can know: the calls under way take as long as they take.
_SOON: Final = 1.0


class Lines:
    """The lines in which calls wait, by what is counted.

    Every method holds one lock, for a moment; nobody waits while holding it, so that event loops
    in several threads can share it.

    Args:
        clock: Where the time comes from.
        max_wait: Seconds that a call may wait.
    """

    def __init__(self, clock: Clock, max_wait: float | None = None) -> None:
        self._clock = clock
        self._max_wait = max_wait
        self._lock = threading.RLock()  # a call that is dropped ends wherever it is collected
        self._lines: dict[Key, Line] = {}
        self._crowd = 64

    def __reduce__(self) -> tuple[Any, ...]:
        return (Lines, (self._clock, self._max_wait))  # whoever unpickles it has called nothing

    async def turn(self, key: Key, what: str, limits: Limits, tokens: int = 0) -> Turn:
        """Wait for one's turn.

        Raises:
            RateLimitError: It would take longer than it may.
        """
        bell = _Bell()
        with self._lock:
            now = self._clock.monotonic()
            due = None if self._max_wait is None else now + self._max_wait
            line = self._line(key, limits, now)
            line.drop_lost()
            if due is not None and (expected := line.expected(tokens, now)) > due:
                raise self._refusal(what, expected - now)
            mine = line.come(tokens, bell.ring, bell.loop)
        try:
            while True:
                with self._lock:
                    now = self._clock.monotonic()
                    line.drop_lost()
                    at = line.look(mine, now)
                    if mine.spent is not None:
                        return mine
                    if at is None and line.is_behind_another_loop(mine):
                        at = now + _SOON  # nobody tells that a loop was closed
                if due is not None and now >= due:
                    raise self._refusal(what, _SOON if at is None else at - now)
                until = min((each for each in (at, due) if each is not None), default=None)
                await bell.wait(self._clock, None if until is None else until - now)
        except BaseException:
            with self._lock:
                line.leave(mine)
            raise

    def settle(self, turn: Turn, tokens: int) -> None:
        """Count so many tokens for a turn, instead of those that were reserved."""
        with self._lock:
            turn.line.settle(turn, tokens, self._clock.monotonic())

    def end(self, turn: Turn) -> None:
        """A call is over, or gives its place up; nothing if it has done so before."""
        with self._lock:
            if not turn.over:
                turn.over = True
                turn.line.end()

    def _line(self, key: Key, limits: Limits, now: float) -> Line:
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= self._crowd:  # users come and go
                self._lines = {k: line for k, line in self._lines.items() if not line.idle(now)}
                self._crowd = max(self._crowd, 2 * len(self._lines))
            found = self._lines[key] = Line(*limits)
        return found

    def _refusal(self, what: str, seconds: float) -> RateLimitError:
        return RateLimitError(
            f"{what} is not called: its turn would come in {seconds:.3g} seconds",
            retry_after=seconds,
            found=f"rate_limiter(max_wait={self._max_wait:g})",
            help="make fewer calls at once, wait longer, or raise the limit",
        )


class _Bell:
    """Wakes somebody who waits in an event loop, from any thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        with suppress(RuntimeError):  # the loop is closed just now; who is behind will see it
            self.loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, clock: Clock, seconds: float | None) -> None:
        """Wait to be woken, and no longer than that."""
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._rung.wait())]
        if seconds is not None:
            waiting.append(asyncio.ensure_future(clock.sleep(seconds)))
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()  # a clock that fails is heard
        finally:
            for each in waiting:
                each.cancel()
        self._rung.clear()


@dataclass(slots=True, eq=False)
class Spent:
    """What one call has taken of a window."""

    at: float
    tokens: int


@dataclass(slots=True, eq=False)
class Turn:
    """A place in a line.

    Attributes:
        line: The line.
        tokens: What is reserved.
        wake: Lets the one who waits look again.
        loop: Where it is waited for.
        spent: What was taken; None before it is its turn.
        over: It has given its place up.
    """

    line: Line
    tokens: int
    wake: Callable[[], None]
    loop: asyncio.AbstractEventLoop | None = None
    spent: Spent | None = None
    over: bool = False

    @property
    def lost(self) -> bool:
        """Whether nobody will ever look: the loop was closed, and the call not cancelled."""
        return self.loop is not None and self.loop.is_closed()


class Line:
    """Those who wait for the same limits, and the calls of the last minute.

    Args:
        requests: Calls a minute.
        tokens: Tokens a minute.
        concurrency: Calls at once.
    """

    def __init__(
        self,
        requests: int | None = None,
        tokens: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        self._window = Window(requests, tokens)
        self._concurrency = concurrency
        self._waiting: deque[Turn] = deque()
        self._loops: Counter[asyncio.AbstractEventLoop | None] = Counter()  # of those
        self._running = 0
        self._ahead: Ahead | None = None

    def come(
        self,
        tokens: int,
        wake: Callable[[], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Turn:
        """Join at the end."""
        turn = Turn(self, tokens, wake, loop)
        self._waiting.append(turn)
        self._loops[loop] += 1
        return turn

    def look(self, turn: Turn, now: float) -> float | None:
        """Go, if it is one's turn.

        Returns:
            When to look again; None where one is woken then, or has gone.
        """
        full = self._concurrency is not None and self._running >= self._concurrency
        if full or self._waiting[0] is not turn:
            return None
        at = self._window.free_at(turn.tokens, now)
        if at > now:
            return at
        self._remove(turn)
        self._running += 1
        turn.spent = self._window.take(turn.tokens, now)
        self._wake_first()
        return None

    def leave(self, turn: Turn) -> None:
        """Wait no longer."""
        with suppress(ValueError):
            self._remove(turn)
        self._wake_first()

    def drop_lost(self) -> None:
        """See that the first is somebody who will look."""
        if self._waiting and self._waiting[0].lost:
            self._wake_first()

    def is_behind_another_loop(self, turn: Turn) -> bool:
        """Whether somebody before may be lost while this one is not."""
        return self._waiting[0] is not turn and len(self._loops) > 1

    def settle(self, turn: Turn, tokens: int, now: float) -> None:
        """Count so many tokens for one that has gone; `end` comes after it, and wakes the next."""
        if turn.spent is not None:
            self._window.change(turn.spent, tokens, now)
            self._ahead = None

    def end(self) -> None:
        """One of the calls is over."""
        self._running -= 1
        self._wake_first()

    def expected(self, tokens: int, now: float) -> float:
        """When it would be the turn of somebody who comes now, if calls took no time.

        It may be a second too early: what is foreseen of those who wait is kept meanwhile.
        """
        closed = sum(each is not None and each.is_closed() for each in self._loops)
        ahead = self._ahead
        if ahead is None or ahead.closed != closed or now > ahead.first + _SOON:
            ahead = self._ahead = Ahead(self._window.copy(), closed, now)
        for place in range(ahead.seen, len(self._waiting)):
            ahead.see(self._waiting[place], now)
        return ahead.window.free_at(tokens, max(now, ahead.at))

    def idle(self, now: float) -> bool:
        """Whether nothing would be forgotten with it."""
        return not (self._waiting or self._running or self._window.used(now))

    def _wake_first(self) -> None:
        while self._waiting and self._waiting[0].lost:
            self._remove(self._waiting[0])
        if self._waiting:
            self._waiting[0].wake()

    def _remove(self, turn: Turn) -> None:
        self._waiting.remove(turn)
        self._ahead = None
        self._loops[turn.loop] -= 1
        if not self._loops[turn.loop]:
            del self._loops[turn.loop]


@dataclass(slots=True, eq=False)
class Ahead:
    """What is foreseen of those who wait, so that not each who comes has to work it out anew.

    Attributes:
        window: What will have been taken when the last of them goes.
        closed: Event loops that were closed, whose calls will not go.
        at: When the last of them will go.
        first: When the first of them will go.
        seen: How many of them were looked at.
    """

    window: Window
    closed: int
    at: float
    first: float = math.inf
    seen: int = 0

    def see(self, turn: Turn, now: float) -> None:
        """The next one, who waits still."""
        self.seen += 1
        if not turn.lost:
            self.at = self.window.free_at(turn.tokens, max(now, self.at))
            self.first = min(self.first, self.at)
            self.window.take(turn.tokens, self.at)


class Window:
    """What was taken within the last minute.

    Args:
        requests: How many may take something.
        tokens: How much they may take; whoever needs more may have all of it.
    """

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._requests = requests
        self._limit = tokens
        self._taken: deque[Spent] = deque()
        self._sum = 0

    def copy(self) -> Window:
        """One that can be changed without this one."""
        made = Window(self._requests, self._limit)
        made._taken, made._sum = self._taken.copy(), self._sum
        return made

    def free_at(self, tokens: int, now: float) -> float:
        """When there is room: now or later."""
        self._forget(now)
        number, total = len(self._taken), self._sum
        for each in self._taken:
            if self._has_room(number, total, tokens):
                break
            number, total, now = number - 1, total - each.tokens, each.at + _MINUTE
        return now

    def take(self, tokens: int, now: float) -> Spent:
        """Take it, whether or not there is room."""
        spent = Spent(now, tokens if self._limit is None else min(tokens, self._limit))
        self._taken.append(spent)
        self._sum += spent.tokens
        return spent

    def change(self, spent: Spent, tokens: int, now: float) -> None:
        """Put another number in the place of what was taken."""
        self._forget(now)
        if self._taken and self._taken[0].at <= spent.at:  # else it is out of it
            self._sum += tokens - spent.tokens
            spent.tokens = tokens

    def used(self, now: float) -> bool:
        """Whether anything was taken."""
        self._forget(now)
        return bool(self._taken)

    def _has_room(self, number: int, total: int, tokens: int) -> bool:
        requests, limit = self._requests, self._limit
        return (requests is None or number < requests) and (
            limit is None or total + tokens <= limit
        )

    def _forget(self, now: float) -> None:
        while self._taken and self._taken[0].at + _MINUTE <= now:
            self._sum -= self._taken.popleft().tokens
