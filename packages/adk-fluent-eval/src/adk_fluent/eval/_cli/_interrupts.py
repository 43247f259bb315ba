"""Ctrl-C and SIGTERM: what is done is kept, however little a tool does to let the run end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from adk_fluent._keys import without_keys
from adk_fluent.cli._failures import INTERRUPTED
from adk_fluent.eval._checks._same import told

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Self

T = TypeVar("T")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_STOPPING: Final = "\nstopping; what is done is kept. Ctrl-C again ends at once.\n"
_SHOW_CURSOR: Final = "\x1b[?25h"  # a bar hides it
#: Seconds that a run has to end by itself after SIGTERM, which nobody sends twice.
_GRACE: Final = 4.0
#: Seconds that writing what is done may take when a run does not end by itself.
_WRITING: Final = 30.0


class Interrupts:
    """Runs coroutines on one event loop, and ends them at Ctrl-C and at SIGTERM.

    Once cancels what runs. Twice, or some seconds after SIGTERM, what is done is written, and the
    program ends: tools may block the event loop, or not let themselves be cancelled. A third time
    ends it whatever is being written. Before anything runs there is nothing to be kept, and both
    signals do what they always do.

    A thread of its own gets the signals: functions that handle signals run in the main thread, and
    not before a tool that blocks it has returned.

    Attributes:
        happened: Whether a signal came while something ran.
        code: The exit code that the signal stands for.
    """

    def __init__(self) -> None:
        self.happened = False
        self.code = INTERRUPTED
        self._began = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._runner = asyncio.Runner()
        self._before: dict[signal.Signals, Any] = {}
        self._out, self._in = socket.socketpair()  # a byte for each signal
        self._in.setblocking(False)
        self._fd_before: int | None = None
        self._keep: Callable[[], object] | None = None
        self._keeping = threading.Lock()

    def __enter__(self) -> Self:
        self._runner.__enter__()
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                self._before[each] = signal.signal(each, self._interrupt)
            self._fd_before = signal.set_wakeup_fd(self._in.fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._runner.close()  # may wait for threads; a signal ends that
        finally:
            if self._fd_before is not None:
                signal.set_wakeup_fd(self._fd_before)
            for each, handler in self._before.items():
                signal.signal(each, handler)
            self._in.close()  # which ends the thread
            if not self._before:
                self._out.close()

    def keeping(self, keep: Callable[[], object]) -> None:
        """Say what writes what is done, if the run cannot be ended; in a thread of its own."""
        self._keep = keep

    def finish(self, finish: Callable[[], T]) -> T:
        """Write what is done where the run has ended; nothing else writes it after that."""
        with self._keeping:
            made = finish()
            self._keep = None
            _flush()
        return made

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end.

        Raises:
            CancelledError: A signal came; see `happened`.
        """
        return self._runner.run(self._watched(work))

    async def _watched(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine runs in one
        self._running, self._began = (asyncio.get_running_loop(), task), True
        try:
            if self.happened:  # before there was anything to be cancelled
                raise asyncio.CancelledError
            return await work
        finally:
            self._running = None
            work.close()

    def _interrupt(self, number: int, _: object) -> None:
        if not self._began:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            sys.exit(128 + number)
        own = self._in.fileno()
        if (other := signal.set_wakeup_fd(own, warn_on_full_buffer=False)) != own:
            signal.set_wakeup_fd(other)  # of an event loop, which takes it for itself
            self._in.send(bytes([number]))

    def _watch(self) -> None:
        """End what runs at the first signal, and the program at the second, or in time."""
        with self._out:
            number = self._next(None)
            while number and not self._began:
                number = self._next(None)
            if not number:
                return
            self._stop(number)
            if self._next(_GRACE if number == signal.SIGTERM else None) == 0:
                return
            threading.Thread(target=self._keep_now, daemon=True).start()
            self._next(_WRITING)  # a third one
            _end(self.code)

    def _next(self, timeout: float | None) -> int | None:
        """The next signal; 0 if there is none any more, None when the time is up."""
        self._out.settimeout(timeout)
        try:
            while number := int.from_bytes(self._out.recv(1)):
                if number in _SIGNALS:  # of others, too, a byte comes
                    return number
        except TimeoutError:
            return None
        return 0

    def _stop(self, number: int) -> None:
        self.happened, self.code = True, 128 + number
        if self._running is not None:
            loop, task = self._running
            with suppress(RuntimeError):  # it has ended just now
                loop.call_soon_threadsafe(task.cancel)
        _shout(_STOPPING)

    def _keep_now(self) -> None:
        """Write what is done, and end; also where that fails, as with nobody to read it."""
        try:
            with self._keeping:  # by the run, if it has ended after all
                if self._keep is not None:
                    self._keep()
                    _flush()
        except Exception as error:  # noqa: BLE001  # this is the last that happens
            _shout(f"error: {without_keys(told(error))}\n")
        finally:
            _end(self.code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it
            stream.flush()


def _end(code: int) -> NoReturn:
    """End without waiting for anything: not for threads, not for what hangs."""
    if sys.stderr.isatty():
        _shout(_SHOW_CURSOR)
    os._exit(code)


def _shout(text: str) -> None:
    """Write past what the program may be writing at this moment."""
    try:
        os.write(2, text.encode())
    except OSError:
        return  # nobody reads it
