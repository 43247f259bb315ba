"""A process at a terminal of its own, whose keys a test presses."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

_PATIENCE = 60.0  # seconds
CTRL_C = b"\x03"


class Terminal:
    """Runs a program, all of whose streams are one pseudo-terminal.

    Args:
        command: The program and its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        if sys.platform == "win32":
            raise NotImplementedError("Windows has no pseudo-terminals of this kind")
        import fcntl
        import pty
        import termios

        self._fd, inner = pty.openpty()

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C is a signal to its processes

        self._process = subprocess.Popen(
            command,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            close_fds=True,
            preexec_fn=own_terminal,  # noqa: PLW1509  # no thread of the test runs then
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(inner)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._fd)

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._fd, keys)

    def wait_for(self, text: str) -> None:
        """Wait until a text has been shown since the last one."""
        end = time.monotonic() + _PATIENCE
        while text not in self.shown:
            assert self._more(end), f"it ended without {text!r}, after {self.shown!r}"
        self.shown = self.shown.partition(text)[2]

    def end(self) -> int:
        """Wait until the program has ended, and give its code."""
        end = time.monotonic() + _PATIENCE
        while self._more(end):
            pass
        return self._process.wait(timeout=_PATIENCE)

    def _more(self, end: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(end - time.monotonic(), 0))
        assert ready, f"nothing more came after {self.shown!r}"
        try:
            some = os.read(self._fd, 65536)
        except OSError:  # so says Linux when nobody has the other side open
            return False
        self.shown += some.decode(errors="replace")
        return bool(some)
