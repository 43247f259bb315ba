"""Work of commands that people and supervisors may stop."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, which SIGINT or SIGTERM cancels; a second one breaks into what blocks.

    Args:
        work: The coroutine.

    Raises:
        KeyboardInterrupt: A signal came.
    """

    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)  # which asyncio knows what to do about

    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)  # signals are of the main thread
    # of a job in the background, shells make SIGINT ignored
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: interrupt}
    before = {number: signal.signal(number, each) for number, each in handlers.items()}
    try:
        return asyncio.run(work)
    finally:
        for number, each in before.items():  # None was not set from Python, and cannot be again
            signal.signal(number, signal.SIG_DFL if each is None else each)
