"""Sessions kept in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import SessionStoreError

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS: Final = 5.0  # to wait for another process that writes


def session_service(path: Path) -> Any:
    """ADK's session service over a SQLite file, which is made if it is not there.

    Raises:
        SessionStoreError: The file cannot be such a database, or cannot be written. What is there
            stays as it is.
    """
    _check(path)
    from google.adk.sessions.sqlite_session_service import (  # ADK is slow to import
        SqliteSessionService,
    )

    try:
        return SqliteSessionService(str(path))
    except RuntimeError as error:  # written by ADK's other service
        raise _unusable(path, str(error)) from error


def _check(path: Path) -> None:
    """Look into the file before ADK does, which would add its tables to any database."""
    if not path.parent.is_dir():
        raise SessionStoreError(
            f"sessions cannot be kept in {path}",
            found=f"there is no directory {path.parent}",
            help="create the directory first, or name another file",
        )
    try:
        with closing(sqlite3.connect(path, timeout=_SECONDS, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")  # fails where writing would
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in rows}
            db.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise _unusable(path, str(error)) from error
    if tables and "sessions" not in tables:
        raise _unusable(path, f"a database of something else, with {', '.join(sorted(tables)[:3])}")


def _unusable(path: Path, found: str) -> SessionStoreError:
    return SessionStoreError(
        f"sessions cannot be kept in {path}",
        found=found,
        help="name another file, or restore this one; it was not changed",
    )
