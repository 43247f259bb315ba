"""A program at a terminal, as a person sees and uses it."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PATIENCE = 30.0  # seconds
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


class Terminal:
    """Runs a program behind a pseudo-terminal, and ends it when the block is left.

    Args:
        *command: The program and its arguments.
        **environment: Changes to the environment.
    """

    def __init__(self, *command: str, **environment: str) -> None:
        self._command = command
        self._environment = os.environ | environment
        self._pid = self._fd = -1
        self._seen = ""
        self.code: int | None = None

    def __enter__(self) -> Self:
        if sys.platform == "win32":
            raise NotImplementedError("Windows has no pseudo-terminals of this kind")
        import pty

        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            os.execvpe(self._command[0], self._command, self._environment)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self.code is None:
            os.kill(self._pid, signal.SIGKILL)
            self._wait()
        os.close(self._fd)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._fd, text.encode())

    def until(self, text: str) -> str:
        """All that is shown up to a text, and that; each part of it is given once."""
        end = time.monotonic() + _PATIENCE
        while text not in self._seen:
            assert self._read(end), f"it ended without {text!r}, after {self._seen!r}"
        shown, _, self._seen = self._seen.partition(text)
        return (shown + text).replace("\r\n", "\n")

    def rest(self) -> str:
        """All that is shown to the end of the program, whose code is known then."""
        end = time.monotonic() + _PATIENCE
        while self._read(end):
            continue
        self._wait()
        shown, self._seen = self._seen, ""
        return shown.replace("\r\n", "\n")

    def _read(self, end: float) -> bool:
        """Take note of what is shown next; False at the end of the program."""
        ready = select.select([self._fd], [], [], max(end - time.monotonic(), 0))[0]
        assert ready, f"nothing more came after {self._seen!r}"
        try:
            some = os.read(self._fd, 4096)
        except OSError:  # so says Linux at the end
            return False
        self._seen += some.decode(errors="replace")
        return bool(some)

    def _wait(self) -> None:
        _, status = os.waitpid(self._pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
