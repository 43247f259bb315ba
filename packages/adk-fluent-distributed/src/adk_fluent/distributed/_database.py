# ruff: noqa: S608  # the statements are ours
"""The database of an engine: a file of SQLite's, or Postgres. DBOS has its tables in it, too."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.distributed._errors import EngineError
from adk_fluent.extend import describe, public_address

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Connection, Engine

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://", "postgresql+psycopg://")
_BUSY: Final = 30  # seconds that a statement waits for others who have the file
_FILES: Final[set[str]] = set()  # that DBOS has its tables in
_TABLES: Final = (
    """create table if not exists adk_fluent_sessions (
    app text not null, owner text not null, session text not null, state text not null,
    made double precision not null, updated double precision not null, events integer not null,
    primary key (app, owner, session))""",
    """create table if not exists adk_fluent_events (
    app text not null, owner text not null, session text not null, number integer not null,
    id text not null, data text not null, bytes text,
    primary key (app, owner, session, number), unique (app, owner, session, id))""",
    """create table if not exists adk_fluent_states (
    app text not null, owner text not null, key text not null, value text not null,
    primary key (app, owner, key))""",
    """create table if not exists adk_fluent_artifacts (
    app text not null, owner text not null, session text not null, name text not null,
    version integer not null, part text not null, data {bytes}, made double precision not null,
    told text not null, primary key (app, owner, session, name, version))""",
    """create table if not exists adk_fluent_workers (
    id text primary key, process text not null, segments text not null,
    beat double precision not null, lease double precision not null, reaper text)""",
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the database of an engine is.

    Attributes:
        url: What DBOS takes.
        own: What SQLAlchemy takes for our own tables: with SQLite, a file beside DBOS's.
        shown: The url without user and password.
        path: The file; None with Postgres.
    """

    url: str
    own: str
    shown: str
    path: Path | None

    @classmethod
    def of(cls, url: Any) -> Address:
        """The address that a url names.

        Raises:
            EngineError: It names no database that an engine can use.
        """
        if isinstance(url, str) and url.startswith(_POSTGRES) and url.partition("://")[2]:
            plain = "postgresql://" + url.partition("://")[2]
            own = "postgresql+psycopg://" + url.partition("://")[2]
            return cls(plain, own, public_address(plain), None)
        name = url.removeprefix(_SQLITE) if isinstance(url, str) else ""
        if name not in ("", url, ":memory:"):  # memory is no file, and no other process sees it
            path = Path(name).absolute()
            own = path.with_suffix(f".sessions{path.suffix}")
            return cls(f"{_SQLITE}{path}", f"{_SQLITE}{own}", f"{_SQLITE}{path}", path)
        raise EngineError(
            "DbosEngine takes the url of a SQLite file or of Postgres",
            found=public_address(url) if isinstance(url, str) else describe(url),
            help="such as sqlite:///runs.sqlite or postgresql://user@host/runs",
        )


class Database:
    """Our own tables in the database of an engine; they are made when they are first used.

    Args:
        address: Where it is.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._engine: Engine | None = None
        self._making = threading.Lock()
        self._pid = 0

    @property
    def is_postgres(self) -> bool:
        """Whether it is Postgres."""
        return self.address.path is None

    @contextmanager
    def begin(self, *, lock: str = "") -> Generator[Connection]:
        """A transaction.

        Args:
            lock: A table that no other transaction may lock, or write to, meanwhile.
        """
        from sqlalchemy import text  # noqa: PLC0415  # slow

        with self._opened().begin() as db:
            if lock:  # SQLite locks the file when a statement might write
                how = f"lock table {lock} in exclusive mode"
                db.execute(text(how if self.is_postgres else f"delete from {lock} where 0"))
            yield db

    def close(self) -> None:
        """Let go of its connections."""
        with self._making:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    def _opened(self) -> Engine:
        with self._making:
            if self._engine is None or self._pid != os.getpid():
                self._engine, self._pid = self._made(), os.getpid()
            return self._engine

    def _made(self) -> Engine:
        from sqlalchemy import create_engine, event, text  # noqa: PLC0415  # slow

        seconds = {"connect_timeout": 10} if self.is_postgres else {"timeout": _BUSY}
        options: dict[str, Any] = {"connect_args": seconds}
        engine = create_engine(
            self.address.own, pool_size=4, pool_pre_ping=self.is_postgres, **options
        )
        if not self.is_postgres:
            event.listen(engine, "connect", _set_up_sqlite)
        try:
            with engine.begin() as db:
                if self.is_postgres:  # of two that make the tables, one makes them first
                    db.execute(text("select pg_advisory_xact_lock(7236015)"))
                for table in _TABLES:
                    made = table.format(bytes="bytea" if self.is_postgres else "blob")
                    db.execute(text(made))
        except BaseException:
            engine.dispose()
            raise
        return engine


def _set_up_sqlite(connection: Any, _: object) -> None:
    """Let readers not wait for writers; every commit still reaches the disk."""
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")


def ready_for_dbos(address: Address) -> None:
    """Let readers of a SQLite file not wait for writers, nor writers for readers.

    Let a SQLite before 3.42 count milliseconds as DBOS asks it to, on Python 3.12 and newer.
    """
    if address.path is None:
        return
    with (
        suppress(sqlite3.Error),  # DBOS finds the same, which is told then
        closing(sqlite3.connect(address.path, timeout=_BUSY)) as db,
    ):
        db.execute("pragma journal_mode = wal")  # the file remembers
    if sqlite3.sqlite_version_info >= (3, 42):
        return
    from sqlalchemy import Engine, event  # noqa: PLC0415  # slow

    _FILES.add(os.path.realpath(address.path))
    if not event.contains(Engine, "connect", _add_milliseconds):  # DBOS makes its engines itself
        event.listen(Engine, "connect", _add_milliseconds)


def _add_milliseconds(connection: Any, _: object) -> None:
    if not isinstance(connection, sqlite3.Connection):
        return
    opened = {os.path.realpath(row[2]) for row in connection.execute("pragma database_list")}
    if opened & _FILES:  # those of others keep what SQLite has
        connection.create_function("unixepoch", 1, _now)


def _now(what: object) -> float | None:
    return time.time() if what == "subsec" else None


def unusable(error: Exception, address: Address) -> EngineError:
    """The error about a database that cannot be read or written."""
    file = address.path is not None
    return EngineError(
        "the database of the engine cannot be used",
        found=f"{address.shown}: {type(error).__name__}: {str(error).partition(chr(10))[0]}",
        help="see that the file is there, can be written, and has room; runs keep their place"
        if file
        else "see that the server runs, lets this user in, and has room; runs keep their place",
    )
