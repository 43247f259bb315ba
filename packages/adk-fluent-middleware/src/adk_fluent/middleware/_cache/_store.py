"""What keeps the answers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe


@runtime_checkable
class CacheStore(Protocol):
    """Keeps bytes under keys, for a time.

    It may be used from several event loops and threads at once. What it raises is logged by its
    type, and the model is called as if there were no cache; so it is where `get` or `set` take
    more than a second, and for some seconds after that.
    """

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key; None when there is nothing, or its time is over."""
        ...

    async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep something under a key, in the place of what is there, for `ttl` seconds."""
        ...

    async def clear(self) -> None:
        """Forget everything."""
        ...

    async def close(self) -> None:
        """Let go of files and connections; whoever uses it after that opens them again."""
        ...


def check_limits(store: str, **limits: int) -> None:
    """Refuse limits under which nothing could be kept.

    Raises:
        UsageError: One is less than 1.
    """
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  # of untyped code
            raise UsageError(
                f"{store}({name}=...) cannot have this value",
                found=describe(value),
                help="a whole number, at least 1",
            )
