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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.distributed._database import unusable
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.distributed._summaries import WorkerSummary
from adk_fluent.extend import this_process

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from adk_fluent.distributed._database import Database

_TABLE: Final = "adk_fluent_workers"
_ALL: Final = f"select id, process, beat, lease, reaper, segments from {_TABLE}"
_JOIN: Final = f"insert into {_TABLE} values (:id, :process, :segments, :now, :lease, null)"


class _Worker(NamedTuple):
    id: str
    process: str
    beat: float
    lease: float
    reaper: str | None
    segments: str

    def is_alive(self, now: float) -> bool:
        """Whether it counts as alive."""
        name, _, numbered = self.process.partition(" ")
        host, pid, started = name.rsplit("/", 2)
        if started and host == this_process().rsplit("/", 2)[0] and numbered == _numbered():
            return _started(int(pid)) == started
        return now - self.beat < self.lease

    def owns(self, owner: str) -> bool:
        """Whether its process is the owner of a run, as core names it."""
        return owner.startswith(f"{self.process.partition(' ')[0]}/")


class Workers:
    """The workers of one database, this process among them.

    A worker on this machine is dead when its process is. One on another machine is dead when it has
    not beaten for its lease, by the clock of the database where that has one.

    Args:
        database: The database.
        lease: Seconds without a sign of life after which this worker counts as dead elsewhere.

    Attributes:
        id: This worker.
    """

    def __init__(self, database: Database, *, lease: float) -> None:
        self.id: str = f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._database = database
        self._lease = lease

    @property
    def has_others(self) -> bool:
        """Whether there may be workers on other machines, which go by signs of life."""
        return self._database.is_postgres

    def join(self, segments: Mapping[str, int | None]) -> None:
        """Become a worker.

        Args:
            segments: What it serves: the queue of each segment, and how many workers may serve it.

        Raises:
            BoundaryError: A segment has as many workers as it may have.
        """
        with self._table() as (do, now):
            living = [json.loads(each.segments) for each in _all(do) if each.is_alive(now)]
            for name, most in segments.items():
                there = sum(name in served for served in living)
                if most is not None and there >= most:
                    raise BoundaryError(
                        f"segment {name.partition('/')[2]!r} has all the workers it may have",
                        found=f"{there} workers, and max_instances={most}",
                        help="stop one of them, or allow more",
                    )
            row = {"process": _this_process(), "segments": json.dumps([*segments])}
            do(_JOIN, id=self.id, now=now, lease=self._lease, **row)

    def beat(self) -> bool:
        """Give a sign of life; whether this is a worker still, and nobody took it for dead."""
        with self._table(lock=False) as (do, now):
            done = do(f"update {_TABLE} set beat = :now where id = :id", now=now, id=self.id)
            return bool(done.rowcount)

    def leave(self) -> None:
        """Be a worker no more."""
        self.bury(self.id)

    def summaries(self) -> list[WorkerSummary]:
        """All workers, those who have died among them until somebody takes over."""
        with self._table(lock=False) as (do, now):
            return [
                WorkerSummary(
                    each.id,
                    tuple(name.partition("/")[2] for name in json.loads(each.segments)),
                    max(now - each.beat, 0.0),
                    each.is_alive(now),
                )
                for each in _all(do)
            ]

    def take_dead(self) -> list[str]:
        """Take the dead workers that no living one looks after; `bury` them when that is done."""
        with self._table(lock=False) as (do, now):  # mostly there are none
            if all(each.is_alive(now) for each in _all(do)):
                return []
        with self._table() as (do, now):
            known = _all(do)
            alive = {each.id: each.is_alive(now) for each in known}
            dead = [
                each.id
                for each in known
                if not alive[each.id]
                and (each.reaper in (None, self.id) or not alive.get(each.reaper, False))
            ]
            for id in dead:
                do(f"update {_TABLE} set reaper = :me where id = :id", me=self.id, id=id)
        return dead

    def bury(self, id: str) -> None:
        """Forget a worker, whose work has been given to others."""
        with self._table(lock=False) as (do, _):
            do(f"delete from {_TABLE} where id = :id", id=id)

    def is_at_work(self, owner: str) -> bool:
        """Whether the owner of a run, as core names it, is a process that counts as alive."""
        with self._table(lock=False) as (do, now):
            return any(each.owns(owner) and each.is_alive(now) for each in _all(do))

    @contextmanager
    def _table(self, *, lock: bool = True) -> Generator[tuple[Callable[..., Any], float]]:
        from sqlalchemy import text  # noqa: PLC0415  # slow
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # slow

        try:
            # of two that look, one looks first
            with self._database.begin(lock=_TABLE if lock else "") as db:

                def do(statement: str, **values: Any) -> Any:
                    return db.execute(text(statement), values)

                now = time.time()
                if self._database.is_postgres:  # the one clock that all machines have
                    now = float(do("select extract(epoch from clock_timestamp())").scalar_one())
                yield do, now
        except SQLAlchemyError as error:
            raise unusable(error, self._database.address) from error


def _all(do: Callable[..., Any]) -> list[_Worker]:
    return [_Worker(*row) for row in do(_ALL)]


def _this_process() -> str:
    """This process, as core names owners of runs, and where its number counts."""
    return f"{this_process()} {_numbered()}"


def _numbered() -> str:
    """Where numbers of processes are those of this one: two containers may share a host's name."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started, in ticks of its machine; "" where that cannot be told."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
