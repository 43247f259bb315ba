"""Several answer the same question or go on with the same run at once: one does, the others do not.

Whoever comes too late is told, and nothing that they write harms the one who goes on. With ADK's
services that keep sessions in files they are processes, in memory they are tasks.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, gate
from adk_fluent.builders import RunOptions, State
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.protocol import Answer

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

HERE = Path(__file__).parent
TIMES = 10
MOMENT = 0.15  # seconds, in which both have heard when to begin
LATE = "is not open any more: it was answered"
BOTH = ("answers", "goes on")


class Worker:
    """A process that does one thing after the other."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "claiming.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            encoding="utf-8",
        )

    def tell(self, **request: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, **request: Any) -> dict[str, Any]:
        self.tell(**request)
        return json.loads(self.line())

    def close(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Worker]]:
    with ExitStack() as stack:
        made = [Worker(), Worker()]
        for worker in made:
            stack.callback(worker.close)
        assert [worker.line() for worker in made] == ["ready", "ready"]
        yield made


@pytest.mark.parametrize("store", ["sqlite", pytest.param("database", marks=pytest.mark.full)])
@pytest.mark.parametrize("does", BOTH)
def test_of_two_processes_one_goes_on(
    workers: list[Worker], folder: Path, store: str, does: str
) -> None:
    first, _ = workers
    where: dict[str, Any] = {"path": str(folder / "sessions.db"), "store": store}
    for time_ in range(TIMES):
        where["session"] = f"s{time_}"
        begun = first.ask(does="asks" if does == "answers" else "fails", **where)
        asked = {"does": does, "question": begun.get("question", ""), **where}
        at = time.time() + MOMENT
        for worker in workers:
            worker.tell(at=at, **asked)
        came = [json.loads(worker.line()) for worker in workers]
        went_on = [each for each in came if each.get("text") == "Z"]
        told = [each for each in came if each.get("is") or LATE in each.get("text", "")]
        assert len(went_on) + len(told) == len(workers), came
        assert len(went_on) == 1, came
        assert first.ask(does="reads", **where) == {"n": 1}


@pytest.mark.parametrize("does", BOTH)
async def test_of_tasks_one_goes_on(does: str) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    broken = True

    def breaks(state: State) -> None:
        if broken:
            raise RuntimeError

    async def count(state: State) -> dict[str, int]:
        await asyncio.sleep(0.001)
        return {"n": int(str(state.get("n") or 0)) + 1}

    for time_ in range(TIMES):
        options = RunOptions(
            session_id=f"s{time_}",
            session_service=InMemorySessionService(),
            config=ExecutionConfig(resumable=True),
        )
        answers: tuple[Answer, ...] = ()
        if does == "answers":
            pipeline = Agent("a").mock("A") >> gate(message="Go?") >> count
            answers = ((await pipeline.run("hi", **options)).pending[0].answer(True),)
        else:
            pipeline, broken = Agent("a").mock("A") >> breaks >> count, True
            with pytest.raises(RuntimeError):
                await pipeline.run("hi", **options)
            broken = False
        came = await asyncio.gather(
            *(pipeline.resume(*answers, **options) for _ in range(4)), return_exceptions=True
        )
        went_on = [each for each in came if not isinstance(each, BaseException)]
        assert [each.state["n"] for each in went_on] == [1]
        assert all(isinstance(each, SessionError) for each in came if each not in went_on)
