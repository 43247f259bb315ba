"""Files that one process, or one part of it, has for itself."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

_LOCKED: Final = {errno.EAGAIN, errno.EACCES, errno.EDEADLK}  # the last two on Windows
_BEYOND: Final = 1 << 30  # a byte that no file has: Windows lets nobody read what is locked
_HELD: Final = set[int]()  # descriptors of this process


@contextmanager
def held_file(path: str | os.PathLike[str]) -> Generator[bool]:
    """Have a file for oneself until the block ends, or the process; it is made if there is none.

    Others read and write it as ever; they are kept away if they ask so, too. Where there is nothing
    to lock, as of a device, on a file system without locks or where the file cannot be opened,
    everybody has it.

    Args:
        path: The file.

    Yields:
        Whether it is held; False if somebody else has it.
    """
    file, lock = Path(path), None
    try:
        if not file.exists() or file.is_file():  # a device is everybody's
            with suppress(OSError):  # whoever writes to it says why it cannot be opened
                file.parent.mkdir(parents=True, exist_ok=True)
                lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
                _HELD.add(lock)
        yield lock is None or _take(lock)
    finally:
        if lock in _HELD:  # not in a process that was forked
            _HELD.remove(lock)
            _give_back(lock)


def _take(file: int) -> bool:
    """Lock an open file until it is closed; False if somebody else has."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415  # Windows alone has it

            os.lseek(file, _BEYOND, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415  # Windows does not have it

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # of another number where the file system has no locks
        return error.errno not in _LOCKED
    return True


def _give_back(file: int) -> None:
    """Unlock a file and close it: one that was forked may not have come to close it yet."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415  # Windows does not have it

        with suppress(OSError):  # where the file system has no locks
            fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


def _leave_to_parent() -> None:
    """Close what was inherited, or a lock would outlive the process that has it."""
    while _HELD:
        os.close(_HELD.pop())


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_leave_to_parent)
