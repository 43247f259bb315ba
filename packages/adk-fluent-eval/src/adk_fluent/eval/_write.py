"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._errors import EvalFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

_BUFFER: Final = 1 << 20


def write_whole(path: str | os.PathLike[str], chunks: Iterable[str]) -> None:
    """Writes text to a file, which is the old one until all of the new one is on disk.

    Folders that are not there are made: nobody wants to lose a long run to one.

    Args:
        path: The file.
        chunks: The text, in parts that UTF-8 can write.

    Raises:
        EvalFileError: It cannot be written; the old file stays as it was.
    """
    try:
        target = Path(path).resolve()  # a link stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        kept = target.is_file()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise unwritable(path, error) from error
    temporary = target.with_name(f".adk-fluent-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        try:
            with temporary.open("x", encoding="utf-8", newline="\n", buffering=_BUFFER) as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            _remove(temporary)
            raise
    except OSError as error:
        raise unwritable(path, error, kept=kept) from error


def unwritable(
    path: str | os.PathLike[str], error: OSError | ValueError, *, kept: bool = False
) -> EvalFileError:
    """The error for a file that cannot be written, and whether an old one is still there."""
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return EvalFileError(
        f"the file cannot be written: {why}",
        path=os.fspath(path),
        found="the file that was there before is as it was" if kept else None,
        help="nothing is lost: save again to another place, or when there is room",
    )


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return  # it was never made, or the disk is gone with it
