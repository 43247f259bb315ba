"""Answers kept in a file: an SQLite database, shared by threads and processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from adk_fluent.extend import LOG
from adk_fluent.middleware._cache._store import check_limits
from adk_fluent.protocol import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from adk_fluent.protocol import Clock

T = TypeVar("T")

#: In the header of the file, by which it is known as ours: "adkf".
_APPLICATION: Final = 0x61646B66
#: The layout of the file; what is kept in it has a version of its own.
_VERSION: Final = 1
#: Seconds to wait for a file that another process has locked: a model may be called meanwhile.
_PATIENCE = 0.1
#: Seconds to wait for it when it is to be emptied, which nobody takes no for an answer to.
_LONG_PATIENCE = 5.0
#: Seconds between two attempts.
_PAUSE: Final = 0.005
#: Seconds that reading or keeping one answer may take: a file from elsewhere may hold anything.
_DEADLINE = 1.0
#: How many steps SQLite takes before it looks at the time.
_STEPS: Final = 10_000
#: How many answers are dropped at once whose time is over, so that it is done in time.
_BATCH: Final = 1000
#: Seconds for which a file is left alone that was locked, or that took too long.
_REST: Final = 5.0
#: What SQLite says of a file that somebody else has locked.
_TAKEN: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
#: What SQLite says of a file that is broken; the further bits say where.
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
#: Those after which a file is left alone.
_LEFT_ALONE: Final = _TAKEN | {sqlite3.SQLITE_INTERRUPT}
#: Totals are kept by triggers: to count at every write would be to read the whole table.
_LAYOUT: Final = (
    """CREATE TABLE replies (key TEXT PRIMARY KEY, value BLOB NOT NULL, written REAL NOT NULL,
    expires REAL, used INTEGER)""",
    "CREATE INDEX by_use ON replies (used)",
    "CREATE INDEX by_start ON replies (written) WHERE expires IS NOT NULL",
    "CREATE INDEX by_end ON replies (expires) WHERE expires IS NOT NULL",
    "CREATE TABLE totals (entries INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT INTO totals VALUES (0, 0)",
    """CREATE TRIGGER added AFTER INSERT ON replies BEGIN
    UPDATE totals SET entries = entries + 1, bytes = bytes + LENGTH(NEW.value); END""",
    """CREATE TRIGGER removed AFTER DELETE ON replies BEGIN
    UPDATE totals SET entries = entries - 1, bytes = bytes - LENGTH(OLD.value); END""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
_COUNT: Final = """UPDATE totals SET entries = (SELECT COUNT(*) FROM replies),
    bytes = (SELECT COALESCE(SUM(LENGTH(value)), 0) FROM replies)"""
_NEXT_USE: Final = "(SELECT COALESCE(MAX(used), 0) + 1 FROM replies)"


class DiskStore:
    """Keeps answers in a file, which outlives the process and which several processes may share.

    Answers are in it in clear, and whoever can write it decides what agents say and which tools
    they call: it is made for its owner only (mode 0600). Where there are too many answers, those
    whose time is over go first, then those not used for longest. A file of ours that is damaged is
    put aside under another name; a file that is not ours is left alone. One that somebody else has
    locked, or that takes too long, is left alone for some seconds: nothing is found in it, and
    nothing is kept.

    Args:
        path: The file; it and the folders on the way are made.
        max_entries: How many answers it keeps.
        max_bytes: Bytes of all answers; one that is larger by itself is not kept.
        clock: Where the time comes from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_entries: int = 100_000,
        max_bytes: int = 2**30,
        clock: Clock | None = None,
    ) -> None:
        check_limits("DiskStore", max_entries=max_entries, max_bytes=max_bytes)
        self._path = Path(path).absolute()  # the process may go elsewhere
        self._limits = max_entries, max_bytes
        self._clock: Clock = clock or SystemClock()
        self._databases: dict[int, _Database] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_databases": {}}  # a connection belongs to a process

    def __repr__(self) -> str:
        """Where it is."""
        return f"DiskStore({str(self._path)!r})"

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key."""
        return await asyncio.to_thread(self._here().get, key, self._clock.now())

    async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep something under a key."""
        now = self._clock.now()
        expires = None if ttl is None else now + ttl
        await asyncio.to_thread(self._here().set, key, value, now, expires)

    async def clear(self) -> None:
        """Forget everything."""
        await asyncio.to_thread(self._here().clear)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._here().close)

    def _here(self) -> _Database:
        """The database of this process: SQLite forbids to use a connection beyond a fork."""
        made = self._databases.get(os.getpid())
        return made or self._databases.setdefault(
            os.getpid(), _Database(self._path, self._limits, self._clock)
        )


class _Database:
    """The connection of one process, used by one thread at a time."""

    def __init__(self, path: Path, limits: tuple[int, int], clock: Clock) -> None:
        self._path = path
        self._max_entries, self._max_bytes = limits
        self._clock = clock
        self._rests_until: float | None = None
        self._told = False
        self._ends: float | None = None
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def get(self, key: str, now: float) -> bytes | None:
        def read(database: sqlite3.Connection) -> bytes | None:
            row = database.execute(
                "SELECT value FROM replies WHERE key = ?1"
                " AND (expires IS NULL OR expires > ?2 AND written <= ?2)",
                (key, now),
            ).fetchone()
            if row is None:
                return None
            # on a full disk, or while another process writes, what is there can be read
            with suppress(sqlite3.OperationalError):
                database.execute(f"UPDATE replies SET used = {_NEXT_USE} WHERE key = ?", (key,))  # noqa: S608  # a constant
            return row[0] if isinstance(row[0], bytes) else None

        return self._in_time(read)

    def set(self, key: str, value: bytes, now: float, expires: float | None) -> None:
        def write(database: sqlite3.Connection) -> None:
            with _writing(database):
                database.execute("DELETE FROM replies WHERE key = ?", (key,))
                self._drop_over(database, now)
                if len(value) > self._max_bytes:
                    return
                database.execute(
                    f"INSERT INTO replies VALUES (?, ?, ?, ?, {_NEXT_USE})",  # noqa: S608  # a constant
                    (key, value, now, expires),
                )
                while self._is_full(database):
                    if not (self._drop_over(database, now) or self._drop_unused(database)):
                        database.execute(_COUNT)  # somebody else has changed the totals
                        break

        self._in_time(write)

    def clear(self) -> None:
        def forget(database: sqlite3.Connection) -> None:
            with _writing(database):
                database.execute("DELETE FROM replies")

        self._do(forget, _LONG_PATIENCE)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _drop_over(self, database: sqlite3.Connection, now: float) -> int:
        # what was written later than now was written by a clock that was ahead; with OR, SQLite
        # would look at all rows
        over = "SELECT rowid FROM replies WHERE expires <= ?1"
        ahead = "SELECT rowid FROM replies WHERE expires IS NOT NULL AND written > ?1"
        which = f"SELECT rowid FROM ({over} UNION ALL {ahead}) LIMIT ?2"  # noqa: S608  # constants
        what = f"DELETE FROM replies WHERE rowid IN ({which})"  # noqa: S608  # a constant
        return database.execute(what, (now, _BATCH)).rowcount

    def _drop_unused(self, database: sqlite3.Connection) -> int:
        which = "SELECT rowid FROM replies ORDER BY used LIMIT 1"
        return database.execute(f"DELETE FROM replies WHERE rowid = ({which})").rowcount  # noqa: S608  # a constant

    def _is_full(self, database: sqlite3.Connection) -> bool:
        entries, size = database.execute("SELECT entries, bytes FROM totals").fetchone()
        return entries > self._max_entries or size > self._max_bytes

    def _in_time(self, what: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something, or nothing when that is not to be had in time."""
        until = self._rests_until
        if until is not None and self._clock.monotonic() < until:
            return None
        try:
            return self._do(what, _PATIENCE, _DEADLINE)
        except sqlite3.OperationalError as error:
            code = _code(error)
            if code not in _LEFT_ALONE:
                raise
        self._rests_until = self._clock.monotonic() + _REST
        if not self._told:
            self._told = True
            why = "is locked" if code in _TAKEN else "takes too long"
            LOG.warning("the cache %s %s: models are called without it", self._path, why)
        return None

    def _do(
        self, what: Callable[[sqlite3.Connection], T], patience: float, seconds: float | None = None
    ) -> T:
        """Do something as soon as nobody else has locked the file; in between, others may try."""
        end = time.monotonic() + patience
        while True:
            try:
                with self._lock:
                    self._ends = None if seconds is None else time.monotonic() + seconds
                    return self._try(what)
            except sqlite3.OperationalError as error:
                if _code(error) not in _TAKEN or time.monotonic() >= end:
                    raise
            time.sleep(_PAUSE)

    def _try(self, what: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return what(self._connection())
        except sqlite3.DatabaseError as error:
            if _code(error) not in _DAMAGED:  # locked, full, read-only
                raise
            self._put_aside(error)
            return what(self._connection())

    def _connection(self) -> sqlite3.Connection:
        if self._open is not None and _identity(self._path) != self._file:
            self._close()  # it was deleted, or another one put in its place
        if self._open is None:
            self._open = _opened(self._path, self._is_late)
            self._file = _identity(self._path)
        return self._open

    def _is_late(self) -> bool:
        return self._ends is not None and time.monotonic() > self._ends

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _put_aside(self, error: Exception) -> None:
        """Give a damaged file another name, unless another process has already done so."""
        damaged = self._file or _identity(self._path)
        with suppress(sqlite3.Error):
            self._close()
        self._open = None
        if _identity(self._path) != damaged:
            return
        aside = next(
            name
            for number in range(1, 1_000_000)
            if not (name := Path(f"{self._path}.damaged-{number}")).exists()
        )
        with suppress(FileNotFoundError):
            self._path.rename(aside)
        with suppress(FileNotFoundError):
            Path(f"{self._path}-journal").rename(f"{aside}-journal")
        LOG.warning("the cache %s is damaged (%s): put aside as %s", self._path, error, aside.name)


def _code(error: sqlite3.Error) -> int:
    """What it is, without the bits that say where."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _opened(path: Path, is_late: Callable[[], bool]) -> sqlite3.Connection:
    """A connection to a file that is ours, or becomes ours if it is new.

    Raises:
        FileExistsError: Something else is kept in the file.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):  # SQLite would let everybody read it
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    _check(path)
    # SQLite itself does not wait: a lock of ours would be held meanwhile
    database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA trusted_schema = OFF")  # whatever is in it is only data
        database.execute("PRAGMA secure_delete = ON")  # what is forgotten is not left in the file
        # no write-ahead log: it is found by its name, and who closes a file that another one has
        # replaced would delete that of the new one
        database.execute("PRAGMA journal_mode = TRUNCATE")
        database.execute("PRAGMA synchronous = OFF")  # what a power cut damages is put aside
        database.set_progress_handler(is_late, _STEPS)
        _lay_out(database)
        if _layout(database) != _expected():  # such as a view, which may never come to an end
            raise _foreign(path)
    except BaseException:
        database.close()
        raise
    return database


def _check(path: Path) -> None:
    """Look before SQLite does: that would leave files of its own beside one that is not ours."""
    with path.open("rb") as file:
        header = file.read(100)
    ours = (
        header.startswith(b"SQLite format 3\0")
        and header[68:72] == _APPLICATION.to_bytes(4, "big")
        and header[60:64] == _VERSION.to_bytes(4, "big")
    )
    if header and not ours:
        raise _foreign(path)


def _foreign(path: Path) -> FileExistsError:
    return FileExistsError(
        f"{path} is no cache of this version of adk-fluent, or is damaged: "
        "it is left as it is. Delete it, or give the cache another path"
    )


def _layout(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    return database.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name LIMIT 100"
    ).fetchall()


@cache
def _expected() -> list[tuple[str, ...]]:
    """The layout of a file that is ours."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for statement in _LAYOUT:
            database.execute(statement)
        return _layout(database)


def _lay_out(database: sqlite3.Connection) -> None:
    if _version(database) != 0:
        return
    with _writing(database):  # one process does, and the others find it done
        if _version(database) == 0:
            for statement in _LAYOUT:
                database.execute(statement)


def _version(database: sqlite3.Connection) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return version


@contextmanager
def _writing(database: sqlite3.Connection) -> Generator[None]:
    """All of it or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")  # somebody may be reading
    except BaseException:
        if database.in_transaction:  # a full disk ends it
            database.execute("ROLLBACK")
        raise
