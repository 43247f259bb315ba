"""Who works on a database of runs: kept in a table, so that the living find out who has died."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.distributed._errors import BoundaryError, EngineError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

_HOST: Final = platform.node()
_TABLE: Final = """
create table if not exists adk_fluent_workers (
    id text primary key, host text not null, pid integer not null, started text not null,
    segments text not null, beat real not null, lease real not null, reaper text
)"""


class Workers:
    """The workers of one database, this process among them.

    A worker on this machine is dead when its process is. One on another machine is dead when it has
    not beaten for its lease.

    Args:
        path: The SQLite file.
        lease: Seconds without a sign of life after which this worker counts as dead elsewhere.

    Attributes:
        id: This worker.
    """

    def __init__(self, path: str, *, lease: float) -> None:
        self.id: str = f"{_HOST}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._path = path
        self._lease = lease

    def join(self, segments: Mapping[str, int | None]) -> None:
        """Become a worker.

        Args:
            segments: What it serves: the queue of each segment, and how many workers may serve it.

        Raises:
            BoundaryError: A segment has as many workers as it may have.
        """
        with self._opened() as db:
            for name, most in segments.items():
                there = sum(name in served for served in self._living(db))
                if most is not None and there >= most:
                    raise BoundaryError(
                        f"segment {name.partition('/')[2]!r} has all the workers it may have",
                        found=f"{there} workers, and max_instances={most}",
                        help="stop one of them, or allow more",
                    )
            row = (self.id, _HOST, os.getpid(), _started(os.getpid()), json.dumps([*segments]))
            db.execute(
                "insert into adk_fluent_workers values (?, ?, ?, ?, ?, ?, ?, null)",
                (*row, time.time(), self._lease),
            )

    def beat(self) -> None:
        """Give a sign of life."""
        with self._opened() as db:
            db.execute(
                "update adk_fluent_workers set beat = ? where id = ?", (time.time(), self.id)
            )

    def leave(self) -> None:
        """Be a worker no more."""
        with self._opened() as db:
            db.execute("delete from adk_fluent_workers where id = ?", (self.id,))

    def take_dead(self) -> list[str]:
        """Take the dead workers that no living one looks after; `bury` them when that is done."""
        with self._opened() as db:
            rows = db.execute(
                "select id, host, pid, started, beat, lease, reaper from adk_fluent_workers"
            ).fetchall()
            alive = {row[0]: _is_alive(*row[1:6]) for row in rows}
            dead = [
                id
                for id, *_, reaper in rows
                if not alive[id] and (reaper in (None, self.id) or not alive.get(reaper, False))
            ]
            db.executemany(
                "update adk_fluent_workers set reaper = ? where id = ?",
                [(self.id, id) for id in dead],
            )
        return dead

    def bury(self, id: str) -> None:
        """Forget a dead worker, whose work has been given to others."""
        with self._opened() as db:
            db.execute("delete from adk_fluent_workers where id = ?", (id,))

    @staticmethod
    def _living(db: sqlite3.Connection) -> list[list[str]]:
        rows = db.execute(
            "select host, pid, started, beat, lease, segments from adk_fluent_workers"
        ).fetchall()
        return [json.loads(row[5]) for row in rows if _is_alive(*row[:5])]

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as db:
                db.execute("begin immediate")  # of two that look, one looks first
                db.execute(_TABLE)
                yield db
                db.execute("commit")
        except sqlite3.Error as error:
            raise EngineError(
                "the database of workers cannot be used",
                found=f"{self._path}: {error}",
                help="see that the file is there, can be written, and is a database of this engine",
            ) from error


def _is_alive(host: str, pid: int, started: str, beat: float, lease: float) -> bool:
    if host == _HOST and started:
        return _started(pid) == started
    return time.time() - beat < lease


def _started(pid: int) -> str:
    """When a process was started, in ticks of its machine; "" where that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def served(segments: Sequence[str], pipeline: str) -> list[str]:
    """The names of the queues of segments."""
    return [f"{pipeline}/{each}" for each in segments]
