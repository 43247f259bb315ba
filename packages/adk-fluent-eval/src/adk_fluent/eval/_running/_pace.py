"""How many runs go on at the same time: as many as are allowed, and as the service takes.

The limit is halved when a service refuses a call because there are too many, and grows by one for
as many successes as it is large (additive increase, multiplicative decrease).
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

from adk_fluent.errors import AgentReportedError, unwrap
from adk_fluent.protocol import retry_after, status_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

#: Too many requests; and what overloaded services say.
_REFUSALS: Final = frozenset({429, 503, 529})
_CODES: Final = {"RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503}
_FIRST_WAIT: Final = 1.0  # seconds, doubled at each try
_LONGEST_WAIT: Final = 300.0  # longer waits, as for a quota of a day, are not waited for
TRIES: Final = 6


class Pace:
    """Lets in at most so many, and nobody while a service asks to wait.

    Args:
        limit: Runs at the same time, at most.
    """

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._limit = float(limit)
        self._inside = 0
        self._halved = 0.0
        self._until = 0.0
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        """How many are let in now."""
        return max(1, int(self._limit))

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[float]:
        """Wait for a turn, and have it; gives the time at which it began."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._inside < self.limit)
            self._inside += 1
        try:
            while (left := self._until - time.monotonic()) > 0:  # noqa: ASYNC110  # no event at a time
                await asyncio.sleep(left)
            yield time.monotonic()
        finally:
            self._inside -= 1
            async with self._changed:  # to wake all of thousands that wait takes longer than a run
                self._changed.notify(self.limit - self._inside)

    def succeeded(self) -> None:
        """Note a run that no service refused."""
        self._limit = min(self._most, self._limit + 1 / self._limit)

    def refused(self, error: BaseException, attempt: int, began: float) -> bool:
        """Let in fewer from now on, and nobody for a while.

        Args:
            error: The refusal.
            attempt: Refusals of this run, counted from 1.
            began: When its turn began; refusals of runs that went on together count once.

        Returns:
            Whether to run it again.
        """
        if began >= self._halved:
            self._limit = max(1.0, self._limit / 2)
            self._halved = time.monotonic()
        if (wait := wait_before(error, attempt)) is None:
            return False
        self._until = max(self._until, time.monotonic() + wait)
        return True


def wait_before(error: BaseException, attempt: int) -> float | None:
    """Return the seconds to wait before asking again after a refusal; None to give up."""
    wait = retry_after(error, time.time())
    if wait is None:
        wait = _FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.8, 1.2)  # noqa: S311  # no secret
    return None if wait > _LONGEST_WAIT or attempt >= TRIES else wait


def refusal_in(error: BaseException | None) -> BaseException | None:
    """Return the error, or its cause, that says that there are too many calls; None if none."""
    todo, seen = [error], set[int]()
    while todo:
        found = todo.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        each: BaseException = unwrap(found)
        if isinstance(found, BaseExceptionGroup):  # of agents that ran side by side
            todo += cast("BaseExceptionGroup[BaseException]", found).exceptions
        if _status(each) in _REFUSALS:
            return each
        todo.append(each.__cause__)
    return None


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, also of one that a model reported."""
    if not isinstance(error, AgentReportedError):
        return status_of(error)
    code = str(error.error_code)
    return int(code) if code.isascii() and code.isdigit() else _CODES.get(code)
