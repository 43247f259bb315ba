"""Runs pipelines in processes that are killed at named points, until all runs are completed.

A process is forked for each role: ADK is imported once. What it does is noted in a log, a line a
time, so that nothing of it is lost with the process. A point is a commit, told by the tables that
were written to: `SQL` is heard for DBOS and for ourselves alike. A process kills itself just before
the database is told to commit, or just after it has.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import gc
import json
import logging
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine.default import DefaultDialect

import adk_fluent.distributed._runtime as runtime
from adk_fluent import Agent, gate
from adk_fluent.builders import Pipeline, State
from adk_fluent.distributed import (
    DbosEngine,
    DistributedRunError,
    InlineEngine,
    idempotency_key,
)
from adk_fluent.extend import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Role = Literal["worker", "submitter", "runner"]
#: Where each role can be killed; `call` is inside of a step, `moment` after some milliseconds.
POINTS: Final[Mapping[Role, tuple[str, ...]]] = {
    "worker": (
        "call", "join", "dequeue", "event", "checkpoint", "next", "outcome",
        "take the dead", "give back", "bury",
    ),
    "submitter": ("submit", "answer"),
    "runner": ("submit", "call", "event", "checkpoint", "outcome"),
}  # fmt: skip
REAPING: Final = ("take the dead", "give back", "bury")
ROUNDS: Final = 400
#: Rounds without a kill after which its point is taken for one that nobody comes to.
MISSES: Final = 50
#: Seconds after which a round is taken for one that never ends.
ROUND: Final = 120
#: Runs of a round that are submitted, and that are run in the runner.
SUBMITTED, RUN = 3, 1


@dataclass(frozen=True)
class Kill:
    """When a process is killed.

    Attributes:
        role: Which one.
        point: At what.
        after: Whether after the commit.
        nth: How many times it comes there.
    """

    role: Role
    point: str
    after: bool = False
    nth: int = 1


@dataclass(frozen=True)
class Request:
    """What is run.

    Attributes:
        url: The database.
        folder: Where the log is.
        kills: So many kills at least.
        seed: Chooses among them.
    """

    url: str
    folder: str
    kills: int
    seed: int


class Log:
    """Notes what a process does, and kills it when it is time."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._lock = threading.Lock()
        self._kill: Kill | None = None
        self._left = 0

    def arm(self, kill: Kill | None) -> None:
        self._kill, self._left = kill, 0 if kill is None else kill.nth
        if kill is not None and kill.point == "moment":
            timer = threading.Timer(kill.nth / 1000, self._end)
            timer.daemon = True
            timer.start()

    def note(self, *words: object) -> None:
        os.write(self._file, f"{' '.join(map(str, (os.getpid(), *words)))}\n".encode())

    def reached(self, point: str, *, after: bool) -> None:
        kill = self._kill
        if kill is None or (kill.point, kill.after) != (point, after):
            return
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self._end()

    def _end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class _Here:
    """The log of this process."""

    log: Log


def called() -> str:
    """Note a call of a step's, which is what is done outside of state."""
    key = idempotency_key()
    _Here.log.note("call", key)
    _Here.log.reached("call", after=False)
    return key


def step(name: str) -> Callable[[State], dict[str, object]]:
    """A function that adds itself to what is done."""

    def run(state: State) -> dict[str, object]:
        key = called()
        return {"done": [*state.get("done", ()), name], name: key}

    run.__name__ = run.__qualname__ = name
    return run


def agent(name: str) -> Agent:
    """An agent whose model says a word."""

    def says(prompt: str) -> str:
        called()
        return name.capitalize()

    return Agent(name).writes(f"{name}_says").mock(says)


job = (
    Pipeline("job", agent("plan"), step("count"))
    >> Pipeline("heavy", agent("assess"), step("charge")).execution_boundary()
    >> gate(message="Go on?", name="ok")
    >> Pipeline("twice", Pipeline("again", step("work")) * 2).execution_boundary()
    >> agent("close")
)


def point_of(statements: list[tuple[str, Any]]) -> str | None:
    """What a transaction is about, by what it writes; None where that is of no interest."""
    text = "\n".join(statement for statement, _ in statements).lower()
    for each in ("main.", "dbos.", '"'):
        text = text.replace(each, "")
    if threading.current_thread().name == "dbos-background-jobs":
        return None
    first = "#000000" in repr(statements)
    points = {
        "insert into adk_fluent_workers": "join",
        "set reaper": "take the dead",
        "delete from adk_fluent_workers where id": "bury",
        "update adk_fluent_workers": None,  # a sign of life
        "delete from adk_fluent_workers where 0": None,  # a lock
        "insert into adk_fluent_events": "event",
        "insert into adk_fluent_sessions": "event",
        "insert into workflow_status": "submit" if first else "answer",
        "insert into operation_outputs": "checkpoint",
        "insert into workflow_output": "outcome",
        "executor_id=": "dequeue",
        "update workflow_status": "give back",
    }
    if "insert into workflow_status" in text and "insert into operation_outputs" in text:
        return "next"
    text = text.replace(" = ", "=")
    return next((point for words, point in points.items() if words in text), None)


def commits_itself(cursor: Any) -> bool:
    """Whether each statement is a transaction; DBOS writes outcomes so on Postgres."""
    return getattr(cursor.connection, "autocommit", False) is True


def about_to(writes: list[tuple[str, Any]]) -> None:
    """Note that writes are about to be committed."""
    if writes and (point := point_of(writes)) is not None:
        _Here.log.reached(point, after=False)


def have(writes: list[tuple[str, Any]]) -> None:
    """Note that writes were committed."""
    if writes and (point := point_of(writes)) is not None:
        for line in _committed(writes):
            _Here.log.note("committed", line)
        _Here.log.reached(point, after=True)


def hear() -> None:
    """Hear of every commit of this process, from SQLAlchemy."""

    @event.listens_for(Engine, "before_cursor_execute")
    def _(conn: Any, cursor: Any, statement: str, given: Any, *more: Any) -> None:
        if statement.lstrip().lower().startswith("select"):
            return
        if commits_itself(cursor):
            about_to([(statement, given)])
        else:
            conn.info.setdefault("writes", []).append((statement, given))

    @event.listens_for(Engine, "after_cursor_execute")
    def _(conn: Any, cursor: Any, statement: str, given: Any, *more: Any) -> None:
        if commits_itself(cursor) and not statement.lstrip().lower().startswith("select"):
            have([(statement, given)])

    @event.listens_for(Engine, "rollback")
    def _(conn: Any) -> None:
        conn.info.pop("writes", None)

    commits = DefaultDialect.do_commit

    def do_commit(self: DefaultDialect, dbapi_connection: Any) -> None:
        writes = dbapi_connection.info.pop("writes", [])
        about_to(writes)
        commits(self, dbapi_connection)
        have(writes)

    DefaultDialect.do_commit = do_commit


def _committed(writes: list[tuple[str, Any]]) -> Iterator[str]:
    """The functions whose writes a transaction makes part of their runs."""
    for statement, given in writes:
        if "insert into adk_fluent_events" in statement:
            values: list[Any] = [*(given.values() if hasattr(given, "values") else given)]
            data = next(each for each in values if str(each).startswith("{"))
            stamp = stamp_of(data)
            if stamp.get("why") == "step":
                yield f"{values[2]} {stamp['path']}/{stamp['node']}"


def stamp_of(data: str) -> dict[str, Any]:
    """What adk-fluent notes on an event, of its JSON."""
    noted: dict[str, dict[str, Any]] = json.loads(data).get("custom_metadata") or {}
    return noted.get(METADATA_KEY, {})


# --- the roles ----------------------------------------------------------------------------------


async def worker(engine: DbosEngine, runs: list[str]) -> None:
    """Serve, until killed."""
    await engine.serve()


async def submitter(engine: DbosEngine, runs: list[str]) -> None:
    """Submit runs, answer their questions, and wait until they are over."""
    async with engine:
        for run_id in runs[:SUBMITTED]:
            await engine.submit(job, "Go.", run_id=run_id, state={"done": []})
        for run_id in runs[:SUBMITTED]:
            while (stands := await engine.status(run_id)).status not in ("completed", "failed"):
                if stands.status == "waiting":
                    with suppress(DistributedRunError):  # it was answered before
                        await engine.answer(run_id, stands.pending[0].answer(True))
                await asyncio.sleep(0.02)


async def runner(engine: DbosEngine, runs: list[str]) -> None:
    """Run in this process."""
    async with engine:
        for run_id in runs[SUBMITTED:]:
            asked = await engine.run(job, "Go.", run_id=run_id, state={"done": []})
            if asked.pending:
                with suppress(DistributedRunError):
                    await engine.answer(run_id, asked.pending[0].answer(True))
                await engine.run(job, "Go.", run_id=run_id, state={"done": []})


def engine_of(url: str) -> DbosEngine:
    """An engine that has compiled the job, and is not connected; each fork opens its own."""
    engine = DbosEngine(url, poll_seconds=0.02)
    plan = engine.register(job)
    for name in plan.names:
        engine._stations[plan.fingerprint].compiled(name)
    return engine


ROLES: Final = {"worker": worker, "submitter": submitter, "runner": runner}


# --- who starts them ----------------------------------------------------------------------------


def planned(request: Request) -> list[Kill]:
    """So many kills: each point first before and after its commit, then at random."""
    chance = random.Random(request.seed)
    every = [
        Kill(role, point, after)
        for role, points in POINTS.items()
        for point in points
        for after in ((False,) if point == "call" else (False, True))
    ]
    chance.shuffle(every)
    if request.kills > len(every):
        more = [Kill(role, "moment") for role in POINTS]
        for each in islice(cycle([*every, *more]), request.kills - len(every)):
            nth = chance.randint(1, 400) if each.point == "moment" else chance.randint(1, 5)
            every.append(Kill(each.role, each.point, each.after, nth))
    return every[: request.kills]


class Matrix:
    """Starts processes that are killed, and others in their place."""

    def __init__(self, request: Request) -> None:
        self._engine = engine_of(request.url)
        self._chance = random.Random(request.seed)
        self._todo = planned(request)
        self._live: dict[int, tuple[Role, Kill | None]] = {}
        self.killed: dict[int, Kill] = {}
        self.runs: list[str] = []
        self._misses = Counter[tuple[Role, str, bool]]()

    def go(self) -> None:
        """Run rounds until every kill was made."""
        for at in range(ROUNDS):
            if not self._todo:
                return
            runs = [f"r{at}-{n}" for n in range(SUBMITTED + RUN)]
            self.runs += runs
            self._round(runs)
        raise AssertionError(f"never reached: {self._todo}")

    def _round(self, runs: list[str]) -> None:
        todo: set[Role] = {"submitter", "runner"}
        roles: list[Role] = ["submitter", "runner", "worker", "worker"]
        for role in roles:
            self._start(role, runs)
        signal.alarm(ROUND)
        while todo:
            pid, status = os.wait()
            role, kill = self._live.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL and kill is not None:
                self.killed[pid] = kill
                del self._misses[kill.role, kill.point, kill.after]
            elif code == 0 and role != "worker":
                todo.discard(role)
                self._put_back(kill)
                continue
            else:
                raise AssertionError(f"a {role} ended with {code}, armed with {kill}")
            self._start(role, runs)
        signal.alarm(0)
        for _, kill in self._live.values():
            self._put_back(kill)
        self.end()

    def end(self, *, traced: bool = False) -> None:
        """End the processes that are left, which say where they stand first if that is wanted."""
        for pid in self._live:
            if traced:
                os.kill(pid, signal.SIGUSR1)
                time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)  # idle
            os.waitpid(pid, 0)
        self._live.clear()

    def _put_back(self, kill: Kill | None) -> None:
        if kill is not None:
            self._misses[kill.role, kill.point, kill.after] += 1
            if max(self._misses.values()) > MISSES:
                raise AssertionError(f"never reached: {self._misses.most_common(1)}")
            self._todo.append(kill if kill.nth == 1 else Kill(kill.role, kill.point, kill.after))

    def _start(self, role: Role, runs: list[str]) -> None:
        kill = next((each for each in self._todo if each.role == role), None)
        if kill is not None:
            self._todo.remove(kill)
            if kill.point in REAPING and not any(k.point not in REAPING for k in self._todo):
                self._todo.append(Kill("worker", self._chance.choice(("call", "event"))))
        pid = os.fork()
        if pid:
            self._live[pid] = (role, kill)
            return
        code = 1
        try:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with who started it
            faulthandler.register(signal.SIGUSR1)
            _Here.log.arm(kill)
            asyncio.run(ROLES[role](self._engine, runs))
            code = 0
        except BaseException:  # noqa: BLE001  # it must not go on in the fork
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


async def _warm() -> None:
    """Import what a run imports."""
    await InlineEngine().run(Agent("a").mock("A").execution_boundary(), "Go.")
    for module in ("dbos._sys_db_sqlite", "dbos._sys_db_postgres"):
        import_module(module)
    for url in ("sqlite://", "postgresql+psycopg://"):
        create_engine(url).dispose()


def too_long(*_: object) -> None:
    """End a round that does not end by itself.

    Raises:
        AssertionError: Always.
    """
    raise AssertionError(f"a round did not end in {ROUND} s")


def main() -> None:
    """Serve one request a line."""
    signal.signal(signal.SIGALRM, too_long)
    logging.basicConfig(level=logging.ERROR)
    runtime._REAP = runtime._WATCH = 0.05
    asyncio.run(_warm())
    hear()
    gc.freeze()  # forks copy less
    for line in sys.stdin:
        request = Request(**json.loads(line))
        _Here.log = Log(Path(request.folder) / "log")
        matrix, began = Matrix(request), time.monotonic()
        error = ""
        try:
            matrix.go()
        except AssertionError as raised:
            error = str(raised)
            signal.alarm(0)
            matrix.end(traced=True)
        killed = {pid: asdict(kill) for pid, kill in matrix.killed.items()}
        seconds = time.monotonic() - began
        told = {"runs": matrix.runs, "killed": killed, "error": error, "seconds": seconds}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
