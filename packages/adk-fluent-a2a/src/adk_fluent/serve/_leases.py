"""The agents of a directory, in SQLite: whose they are, and until when."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from threading import Lock
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
#: Seconds after its lease for which an identifier stays its owner's, so that nobody takes the place
#: of an agent that is down.
HELD_SECONDS: Final = 86_400.0
_TABLE: Final = """
create table if not exists agents (
    identifier text primary key,
    owner text not null,
    entry text not null,
    until real not null
) without rowid
"""


class TakenError(Exception):
    """An identifier is another owner's."""


class FullError(Exception):
    """An owner, or the directory, has as many agents as there may be."""


class Leases:
    """Agents, each with an owner and the end of its lease. Several processes may share a file.

    Args:
        path: The database, made where it is absent; ``:memory:`` keeps nothing.
        per_owner: Agents of one owner, those that are held included.
        capacity: Agents of all.

    Raises:
        sqlite3.Error: It cannot be opened, or is of another program.
    """

    def __init__(self, path: str, *, per_owner: int, capacity: int) -> None:
        self._per_owner = per_owner
        self._capacity = capacity
        self._lock = Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute(_TABLE)
        self._db.execute("select identifier, owner, entry, until from agents limit 0")

    async def register(self, identifier: str, owner: str, entry: Any, lease: float) -> bool:
        """Keep an agent for so many seconds, or renew it; gives whether it is a new one.

        Raises:
            TakenError: It is another owner's.
            FullError: There are too many.
        """
        row = (identifier, owner, json.dumps(entry), time() + lease)
        return await self._run(lambda: self._register(*row))

    def _register(self, identifier: str, owner: str, entry: str, until: float) -> bool:
        db, now = self._db, time()
        db.execute("begin immediate")
        try:
            db.execute("delete from agents where until < ?", (now - HELD_SECONDS,))
            query = "select owner, until from agents where identifier = ?"
            known = db.execute(query, (identifier,)).fetchone()
            if known is not None and known[0] != owner:
                raise TakenError
            if known is None:
                own = "select count(*) from agents where owner = ?"
                (mine,) = db.execute(own, (owner,)).fetchone()
                (all,) = db.execute("select count(*) from agents").fetchone()
                if mine >= self._per_owner or all >= self._capacity:
                    raise FullError
            db.execute(
                "insert or replace into agents values (?, ?, ?, ?)",
                (identifier, owner, entry, until),
            )
        except BaseException:
            db.execute("rollback")
            raise
        db.execute("commit")
        return known is None or known[1] <= now

    async def unregister(self, identifier: str, owner: str) -> bool:
        """Drop an agent; gives whether the owner had it.

        Raises:
            TakenError: It is another owner's.
        """

        def run() -> bool:
            query = "delete from agents where identifier = ? and owner = ?"
            if self._db.execute(query, (identifier, owner)).rowcount:
                return True
            if self._entry(identifier) is not None:
                raise TakenError
            return False

        return await self._run(run)

    async def get(self, identifier: str) -> Any:
        """The entry of an agent; None where there is none now."""
        return await self._run(lambda: self._entry(identifier))

    def _entry(self, identifier: str) -> Any:
        query = "select entry from agents where identifier = ? and until > ?"
        row = self._db.execute(query, (identifier, time())).fetchone()
        return None if row is None else json.loads(row[0])

    async def all(self) -> list[Any]:
        """The entries of all agents that are there now, by identifier."""
        query = "select entry from agents where until > ? order by identifier"
        rows = await self._run(lambda: self._db.execute(query, (time(),)).fetchall())
        return [json.loads(row[0]) for row in rows]

    async def page(self, after: str, size: int) -> tuple[list[Any], int]:
        """Some entries with identifiers behind one, and how many agents there are."""
        live = "from agents where until > ?"
        some = f"select entry {live} and identifier > ? order by identifier limit ?"

        def run() -> tuple[list[Any], int]:
            now = time()
            rows = self._db.execute(some, (now, after, size)).fetchall()
            (total,) = self._db.execute(f"select count(*) {live}", (now,)).fetchone()
            return [json.loads(row[0]) for row in rows], total

        return await self._run(run)

    async def close(self) -> None:
        """Close the database."""
        await self._run(self._db.close)

    async def _run(self, work: Callable[[], _T]) -> _T:
        def locked() -> _T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)
