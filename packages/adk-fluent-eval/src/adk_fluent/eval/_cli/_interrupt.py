"""Ending a run by Ctrl-C or SIGTERM, with what is done kept."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

T = TypeVar("T")

_PATIENCE: Final = 2.0  # seconds that a tool may block the loop after Ctrl-C
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; a signal cancels it, or breaks into a tool that blocks the loop.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM came.
    """
    asked: list[int] = []

    async def interruptible() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop(number: int, _: Any) -> None:
            if asked:
                raise KeyboardInterrupt
            asked.append(number)
            _alarm(_PATIENCE)
            loop.call_soon_threadsafe(_alarm, 0.0)  # the loop is alive
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        with _handled(stop):
            return await work

    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        if not asked:
            raise
        raise KeyboardInterrupt from None


@contextmanager
def _handled(stop: Any) -> Generator[None]:
    def broken(_: int, __: Any) -> None:
        raise KeyboardInterrupt

    handlers: dict[int, Any] = dict.fromkeys(_SIGNALS, stop)
    if hasattr(signal, "SIGALRM"):
        handlers[signal.SIGALRM] = broken
    try:
        before = {number: signal.signal(number, each) for number, each in handlers.items()}
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        _alarm(0.0)
        for number, each in before.items():
            signal.signal(number, each)


def _alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
