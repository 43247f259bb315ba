"""One user of a file at a time."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from io import FileIO

#: Behind whatever is written: Windows lets nobody read what is locked.
_FAR: Final = 0x7FFF_0000


def lock(file: FileIO) -> bool:
    """Lock a file until it is closed; False if somebody else has it.

    A file system that knows no locks has none to refuse.
    """
    try:
        _lock(file.fileno())
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        pass
    return True


if sys.platform == "win32":

    def _lock(file: int) -> None:
        import msvcrt  # noqa: PLC0415  # of Windows alone

        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

else:

    def _lock(file: int) -> None:
        import fcntl  # noqa: PLC0415  # Windows has none

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
