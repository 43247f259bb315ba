"""One call for all who ask the same at the same time."""

from __future__ import annotations

import asyncio
import threading
from typing import Final, Literal
from weakref import WeakKeyDictionary

#: What came of a flight: bytes; nothing to share; or its leader failed or is held up, and another
#: one may try.
Landing = bytes | Literal["alone", "again"]

_Loop = asyncio.AbstractEventLoop


class Flight:
    """A call that is under way, and may be waited for in the event loop it was begun in."""

    def __init__(self) -> None:
        self._landing: asyncio.Future[Landing] = asyncio.get_running_loop().create_future()

    def land(self, landing: Landing) -> None:
        """Tell all who wait; what is told first holds."""
        if not self._landing.done():
            self._landing.set_result(landing)

    async def wait(self, seconds: float) -> Landing:
        """What came of it; ``"alone"`` if that takes too long."""
        # unlike `wait_for`, this leaves the future to the others when one of them gives up
        done, _ = await asyncio.wait([self._landing], timeout=seconds)
        return self._landing.result() if done else "alone"


class Flights:
    """The calls under way. Each event loop has its own: a future belongs to one."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._of: WeakKeyDictionary[_Loop, dict[str, Flight]] = WeakKeyDictionary()

    def board(self, key: str) -> tuple[Flight, bool]:
        """The flight under this key, and whether whoever asks is its leader, and must `leave`."""
        loop = asyncio.get_running_loop()
        with self._lock:
            under_way = self._of.setdefault(loop, {})
            found = under_way.get(key)
            if found is not None:
                return found, False
            made = under_way[key] = Flight()
            return made, True

    def leave(self, key: str, flight: Flight) -> None:
        """The leader is done, whatever came of it; or is held up, and others need not wait."""
        with self._lock:
            under_way = self._of.get(asyncio.get_running_loop(), {})
            if under_way.get(key) is flight:
                del under_way[key]
        flight.land("again")
