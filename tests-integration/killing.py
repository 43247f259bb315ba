"""A server that forks a process for every run, so that it may be killed: ADK is imported once.

It reads one request a line, `Request` as JSON, runs it in a fork, and answers with one line: how
the fork ended. What happens in a fork it writes to a log, a line a time, so that nothing of it is
lost with the fork.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.errors import SessionError
from adk_fluent.ir import AgentNode, ExecutionConfig, Ref, walk
from adk_fluent.protocol import Resume
from adk_fluent.testing._oracle import Program, Says, act, generate, meaning, recorded
from adk_fluent.testing._oracle._behaviours import _CALLS
from adk_fluent.testing._oracle._meaning import _flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.ir import Node
    from adk_fluent.testing._oracle._meaning import Meaning

CONFIG = ExecutionConfig(resumable=True, max_llm_calls=100_000, contracts="off")  # as they come
IDS: dict[str, Any] = {"user_id": "ann", "session_id": "s"}
FEWEST, MOST = 4, 80  # calls of a program that is worth killing

Store = Literal["sqlite", "database"]


@dataclass(frozen=True)
class Request:
    """One run, or what goes on with it.

    Attributes:
        seed: Makes the program.
        store: The session service.
        folder: Where its file lies, and the log.
        log: Name of the log.
        does: What is done: a run begins or goes on, or only the store is made.
        lines: After so many lines of the log it is killed.
        seconds: After so many seconds it is killed.
    """

    seed: int
    store: Store
    folder: str
    log: str
    does: Literal["begin", "go on", "make store"] = "begin"
    lines: int | None = None
    seconds: float | None = None


class Log(list[str]):
    """Writes each call to a file when it is made, with the task that makes it.

    A strand of a run is one task, and makes a call when all it did before is committed: of each
    task all calls but the last are over.
    """

    def __init__(self, path: Path, lines: int | None) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._tasks: dict[Any, int] = {}
        self._left = lines

    def append(self, name: str) -> None:
        task = self._tasks.setdefault(asyncio.current_task(), len(self._tasks))
        self.write(f"call {task} {name}")

    def write(self, line: str) -> None:
        os.write(self._file, f"{line}\n".encode())
        if self._left is not None:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def tells(self, service: BaseSessionService) -> None:
        """Note what a session service commits, before and after."""
        append = service.append_event

        async def append_event(session: Session, event: Event) -> Event:
            self.write("commits")
            made = await append(session=session, event=event)
            self.write("committed")
            return made

        setattr(service, "append_event", append_event)  # noqa: B010  # it is a method


def program_of(seed: int) -> Program:
    """A random pipeline that comes to its end, and does the same when a step is done once more.

    What is temporary ends with a process, and an agent that reads the key it writes reads something
    else when it is run once more.
    """
    made = random.Random(seed)
    while True:
        program = generate(made.randint)
        if "temp:" in repr(program) or any(map(_feeds_itself, walk(program.root))):
            continue
        told = told_of(program)
        calls = list(_flat(told.outcome.order))
        if told.outcome.end in ("done", "escalates") and FEWEST <= len(calls) <= MOST:
            return program


def told_of(program: Program) -> Meaning:
    """What a pipeline does when nobody kills it."""
    with recorded():
        return meaning(program.root, program.state, act)


def calls_of(told: Meaning) -> Counter[str]:
    """How often each call is made when nobody kills the run, those left out that depend on time."""
    flat = _flat(told.outcome.order)
    return Counter(name for name in flat if name not in told.outcome.loose)


def _feeds_itself(node: Node) -> bool:
    if not isinstance(node, AgentNode) or node.mock is None:
        return False
    says: Says = node.mock.value
    return says.reads in {ref.key for ref in node.writes_keys}


def service_of(store: Store, folder: Path) -> BaseSessionService:
    """The session service of a request."""
    path = folder / "sessions.db"
    if store == "sqlite":
        return SqliteSessionService(str(path))
    return DatabaseSessionService(f"sqlite+aiosqlite:///{path}")


async def run(request: Request) -> dict[str, Any]:
    """Run, or go on with the run; what became of it."""
    folder = Path(request.folder)
    program, service = program_of(request.seed), service_of(request.store, folder)
    log = Log(folder / request.log, request.lines)
    log.tells(service)
    _CALLS.set(log)
    backend = ADKBackend(session_service=service)
    compiled = backend.compile(program.root, CONFIG)
    end = "done"
    try:
        if request.does == "make store":  # ADK takes no database whose making was cut off
            await service.list_sessions(app_name=CONFIG.app_name)
        elif request.does == "go on":
            await backend.run(compiled, Resume(()), **IDS)
        else:
            await backend.run(compiled, "go", state=program.state, **IDS)
    except SessionError as error:
        end = error.what
    session = await service.get_session(app_name=CONFIG.app_name, **IDS)
    if isinstance(service, DatabaseSessionService):
        await service.close()
    told, events = told_of(program), [] if session is None else session.events
    stamps = [stamp for each in events if (stamp := stamp_of(each)) is not None]
    return {
        "end": end,
        "begun": bool(stamps),
        "wrong": told.state_differs({} if session is None else session.state),
        "steps": [
            f"{each.get('path')} {each.get('node')}" for each in stamps if each.get("why") == "step"
        ],
        "calls": calls_of(told),
        "loose": sorted(told.outcome.loose),
        "tests": sorted(_tests(program)),
        "program": repr(program),
    }


def _tests(program: Program) -> Iterator[str]:
    """The names of predicates, which write nothing and may be asked once more."""
    for node in walk(program.root):
        given = (*getattr(node, "tests", ()), getattr(node, "until", None))
        for each in (*given, getattr(node, "condition", None), getattr(node, "predicate", None)):
            if isinstance(each, Ref):
                yield each.name


def forked(request: Request) -> int:
    """Run in a fork, and give how that ended: 0, or the negative number of a signal."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            made = asyncio.run(run(request))
            path = Path(request.folder) / f"{request.log}.json"
            path.write_text(json.dumps(made), "utf-8")
            code = 0
        except BaseException:  # noqa: BLE001  # the server must not go on in the fork
            traceback.print_exc()
        finally:
            os._exit(code)
    if request.seconds is not None:
        time.sleep(request.seconds)
        os.kill(pid, signal.SIGKILL)  # it is there until it is waited for
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    """Serve until there are no more requests."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(forked(Request(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
