"""How many cases run at the same time: as many as are allowed, and as the service takes.

The limit is halved when a service refuses a call because there are too many, and grows by one for
as many successes as it is large (additive increase, multiplicative decrease: Chiu and Jain, 1989).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.errors import AgentReportedError, unwrap
from adk_fluent.protocol import retry_after, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

#: Too many requests; and what services that are overloaded say.
_REFUSALS: Final = frozenset({429, 503, 529})
_FIRST_WAIT: Final = 1.0  # seconds, doubled at each try
_LONGEST_WAIT: Final = 300.0  # a quota of the day is not worth waiting for
#: What services say in place of a number.
_CODES: Final = {"RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503}


class LeftAloneError(Exception):
    """A service wants to be left alone for longer than anybody waits.

    Args:
        seconds: For how long.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the service wants to be left alone for {seconds:,.0f} s")


class Pace:
    """Lets at most so many in, and nobody while a service wants to be left alone.

    Args:
        limit: Cases at the same time, at most.
    """

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._limit = float(limit)
        self._inside = 0
        self._halved = 0.0
        self._until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def limit(self) -> int:
        """How many are let in now."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[float]:
        """Wait until it is one's turn, and have it; gives the time at which it began.

        Who is refused waits behind those that came before, or one would be refused for all.

        Raises:
            LeftAloneError: A service wants to be left alone for too long.
        """
        await self._enter()
        try:
            await self._quiet()
            yield time.monotonic()
        finally:
            self._inside -= 1
            self._let_in()

    async def _enter(self) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._let_in()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # let in, and cancelled at once
                self._inside -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._inside < self.limit:
            place = self._waiting.popleft()
            if not place.done():  # who was cancelled while waiting is not there any more
                self._inside += 1
                place.set_result(None)

    async def _quiet(self) -> None:
        """Wait as long as a service wants to be left alone; meanwhile it may ask for more."""
        left = self._until - time.monotonic()
        while left > 0:
            if left > _LONGEST_WAIT:
                raise LeftAloneError(left)
            await asyncio.sleep(left)
            left = self._until - time.monotonic()

    def went_well(self) -> None:
        """A case ran through."""
        self._limit = min(self._most, self._limit + 1 / self._limit)
        self._let_in()

    def was_refused(self, error: BaseException, attempt: int, began: float) -> bool:
        """A service refused a call: fewer from now on, and none for a while.

        Args:
            error: What it said.
            attempt: How often it has refused this case, counted from 1.
            began: When the turn began; those that were under way together count as one refusal.

        Returns:
            Whether it is worth waiting for.
        """
        if began >= self._halved:
            self._limit = max(1.0, self._limit / 2)
            self._halved = time.monotonic()
        told = retry_after(error)
        wait = _FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311  # no secret
        wait = wait if told is None else told
        self._until = max(self._until, time.monotonic() + wait)
        return wait <= _LONGEST_WAIT


def reported(turns: Sequence[Iterable[Any]], error: str | None) -> list[BaseException]:
    """The errors that ended a run though nothing was raised: a model reported them.

    Args:
        turns: What happened in each, as events of ADK's.
        error: What the run ended with; None if it did not end with an error.
    """
    if error is None or not turns:
        return []
    codes = [str(getattr(each.error_code, "value", each.error_code)) for each in turns[-1]]
    return [AgentReportedError(error, error_code=code) for code in codes if error.startswith(code)]


def refusal_in(errors: Iterable[BaseException]) -> Exception | None:
    """The first error, or cause of one, that says that there are too many calls; None if none."""
    todo = list(errors)
    seen: list[BaseException] = []
    while todo:
        error = unwrap(todo.pop(0))
        if isinstance(error, Exception) and _status_of(error) in _REFUSALS:
            return error
        if isinstance(error, BaseExceptionGroup):  # of agents that ran side by side
            todo.extend(cast("BaseExceptionGroup[BaseException]", error).exceptions)
        if error.__cause__ is not None and error.__cause__ not in seen:
            seen.append(error.__cause__)
            todo.append(error.__cause__)
    return None


def _status_of(error: Exception) -> int | None:
    """The HTTP status that an error tells, also one that a model has reported."""
    if not isinstance(error, AgentReportedError):
        return status_of(error)
    code = error.error_code
    return int(code) if code.isascii() and code.isdigit() else _CODES.get(code)
