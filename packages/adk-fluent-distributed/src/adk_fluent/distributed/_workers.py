# ruff: noqa: S608  # the statements are ours
"""Who works on a database of runs: kept in a table, so that the living find out who has died."""

from __future__ import annotations

import json
import os
import platform
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.distributed._database import unusable
from adk_fluent.distributed._errors import BoundaryError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from adk_fluent.distributed._database import Database

_HOST: Final = platform.node()
_TABLE: Final = "adk_fluent_workers"
_ALL: Final = f"select id, host, pid, started, beat, lease, reaper, segments from {_TABLE}"
_JOIN: Final = (
    f"insert into {_TABLE} values (:id, :host, :pid, :started, :segments, :beat, :lease, null)"
)


class Workers:
    """The workers of one database, this process among them.

    A worker on this machine is dead when its process is. One on another machine is dead when it has
    not beaten for its lease.

    Args:
        database: The database.
        lease: Seconds without a sign of life after which this worker counts as dead elsewhere.

    Attributes:
        id: This worker.
    """

    def __init__(self, database: Database, *, lease: float) -> None:
        self.id: str = f"{_HOST}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._database = database
        self._lease = lease

    def join(self, segments: Mapping[str, int | None]) -> None:
        """Become a worker.

        Args:
            segments: What it serves: the queue of each segment, and how many workers may serve it.

        Raises:
            BoundaryError: A segment has as many workers as it may have.
        """
        with self._table() as do:
            living = [json.loads(row[-1]) for row in do(_ALL).all() if _is_alive(*row[1:6])]
            for name, most in segments.items():
                there = sum(name in served for served in living)
                if most is not None and there >= most:
                    raise BoundaryError(
                        f"segment {name.partition('/')[2]!r} has all the workers it may have",
                        found=f"{there} workers, and max_instances={most}",
                        help="stop one of them, or allow more",
                    )
            pid, names = os.getpid(), json.dumps([*segments])
            row = {"host": _HOST, "pid": pid, "started": _started(pid), "segments": names}
            do(_JOIN, id=self.id, beat=time.time(), lease=self._lease, **row)

    def beat(self) -> None:
        """Give a sign of life."""
        with self._table() as do:
            do(f"update {_TABLE} set beat = :beat where id = :id", beat=time.time(), id=self.id)

    def leave(self) -> None:
        """Be a worker no more."""
        self.bury(self.id)

    def take_dead(self) -> list[str]:
        """Take the dead workers that no living one looks after; `bury` them when that is done."""
        with self._table() as do:
            rows = do(_ALL).all()
            alive = {row[0]: _is_alive(*row[1:6]) for row in rows}
            free = {None, self.id, *(id for id in alive if not alive[id])}
            dead = [row[0] for row in rows if not alive[row[0]] and row[6] in free]
            for id in dead:
                do(f"update {_TABLE} set reaper = :me where id = :id", me=self.id, id=id)
        return dead

    def bury(self, id: str) -> None:
        """Forget a worker, whose work has been given to others."""
        with self._table() as do:
            do(f"delete from {_TABLE} where id = :id", id=id)

    @contextmanager
    def _table(self) -> Generator[Callable[..., Any]]:
        from sqlalchemy import text  # noqa: PLC0415  # slow
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # slow

        try:
            with self._database.begin(lock=_TABLE) as db:  # of two that look, one looks first

                def do(statement: str, **values: Any) -> Any:
                    return db.execute(text(statement), values)

                yield do
        except SQLAlchemyError as error:
            raise unusable(error, self._database.address) from error


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
