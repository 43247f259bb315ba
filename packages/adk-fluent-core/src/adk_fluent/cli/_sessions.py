"""Sessions kept in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from adk_fluent.errors import SessionStoreError

_SECONDS: Final = 5.0  # to wait for another process that writes
_COLUMNS: Final = frozenset({"app_name", "user_id", "id", "state"})
_SHOWN: Final = 3  # tables of another program that a message names


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


def session_owners(path: Path, session_id: str) -> list[tuple[str, str]]:
    """The app and the user of each session of that id.

    Raises:
        SessionStoreError: The file cannot be read.
    """
    query = "SELECT app_name, user_id FROM sessions WHERE id = ? ORDER BY update_time DESC"
    try:
        with closing(sqlite3.connect(path, timeout=_SECONDS)) as db:
            return db.execute(query, (session_id,)).fetchall()
    except sqlite3.Error as error:
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
        others = _others(path) if path.exists() else None
        if others is None:
            with closing(sqlite3.connect(path, timeout=_SECONDS, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")  # fails where writing would
                db.execute("ROLLBACK")
    except (sqlite3.Error, OSError) as error:
        raise _unusable(path, str(error)) from error
    if others is not None:
        raise _unusable(path, f"a database of something else, with {others}")


def _others(path: Path) -> str | None:
    """What the database of another program holds; None if it is none.

    One that its program has open, or has left in the middle, is only read: whoever opens it to
    write may move what waits beside it into it.
    """
    mode = "ro" if Path(f"{path}-wal").exists() else "rw"
    address = f"{path.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(address, timeout=_SECONDS, uri=True)) as db:
        there = [
            name
            for (name,) in db.execute(
                "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            )
        ]
        query = "SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c"
        columns = {(table, name): kind for table, name, kind in db.execute(query)}
    ours = all(("sessions", column) in columns for column in _COLUMNS)
    of_older_adk = "sessions" in there and ("events", "actions") in columns  # ADK tells what to do
    if ours and columns.get(("sessions", "update_time")) != "REAL" and not of_older_adk:
        return "sessions of ADK's DatabaseSessionService"
    if not there or ours or of_older_adk:
        return None
    return ", ".join(there[:_SHOWN]) + ("..." if there[_SHOWN:] else "")


def _unusable(path: Path, found: str) -> SessionStoreError:
    return SessionStoreError(
        f"sessions cannot be kept in {path}",
        found=found,
        help="name another file, or restore this one; it was not changed",
    )
