"""Answers kept in the memory of the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from adk_fluent.middleware._cache._store import check_limits
from adk_fluent.protocol import SystemClock

if TYPE_CHECKING:
    from adk_fluent.protocol import Clock


class MemoryStore:
    """Keeps answers in memory, as long as the process lives.

    Where there are too many, those whose time is over go first, then those not used for longest.

    Args:
        max_entries: How many it keeps.
        max_bytes: Bytes of all of them; one that is larger by itself is not kept.
        clock: Where the time comes from.
    """

    def __init__(
        self,
        *,
        max_entries: int = 1_000,
        max_bytes: int = 64 * 2**20,
        clock: Clock | None = None,
    ) -> None:
        check_limits("MemoryStore", max_entries=max_entries, max_bytes=max_bytes)
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._clock: Clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[bytes, float | None]] = OrderedDict()
        self._bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return {
            "max_entries": self._max_entries,
            "max_bytes": self._max_bytes,
            "clock": self._clock,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        MemoryStore.__init__(self, **state)  # whoever unpickles it has nothing in it

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            value, expires = found
            if _over(expires, self._clock.monotonic()):
                self._drop(key)
                return None
            self._kept.move_to_end(key)
            return value

    async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep something under a key."""
        now = self._clock.monotonic()
        with self._lock:
            if key in self._kept:
                self._drop(key)
            if len(value) > self._max_bytes:
                return
            self._kept[key] = (value, None if ttl is None else now + ttl)
            self._bytes += len(value)
            if self._is_full():
                for each in [k for k, (_, expires) in self._kept.items() if _over(expires, now)]:
                    self._drop(each)
            while self._is_full():
                self._drop(next(iter(self._kept)))

    async def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self._bytes = 0

    async def close(self) -> None:
        """There is nothing to close."""

    def _is_full(self) -> bool:
        return len(self._kept) > self._max_entries or self._bytes > self._max_bytes

    def _drop(self, key: str) -> None:
        value, _ = self._kept.pop(key)
        self._bytes -= len(value)


def _over(expires: float | None, now: float) -> bool:
    return expires is not None and expires <= now
