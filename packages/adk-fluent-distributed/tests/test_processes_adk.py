"""Segments in processes of their own: what they may take, and what becomes of one that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, cast

import pytest
from isolated_jobs import job

from adk_fluent.distributed import (
    BoundaryError,
    DbosEngine,
    DistributedRunError,
    InlineEngine,
    ProcessIsolation,
    SegmentCall,
)
from adk_fluent.distributed._processes import Processes
from adk_fluent.errors import TargetError, UsageError
from adk_fluent.ir import ExecutionConfig

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, SIGKILL"),
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
SECONDS = 120
TARGET = f"{Path(__file__).with_name('isolated_jobs.py')}:job"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"


async def test_a_segment_in_a_process_of_its_own(url: str) -> None:
    isolation = ProcessIsolation(TARGET, memory_mb=1024)
    async with DbosEngine(url, poll_seconds=0.02, isolation=isolation) as engine:
        first = await engine.run(job, "Go.", run_id="r1", state={"how": "well"})
        assert (first.text, first.state["key"]) == ("Done.", "r1:heavy:s1.s0/work")
        by = first.state["by"]
        assert by != os.getpid()
        assert "runs.sqlite" not in command_of(by)  # nor a password
        assert os.getpgid(by) == by  # Ctrl-C of a terminal is for the worker
        for number in (signal.SIGINT, signal.SIGTERM):  # of whoever signals all processes
            os.kill(by, number)
        again = await engine.run(job, "Go.", run_id="r2", state={"how": "well"})
        assert again.state["by"] == by
        with pytest.raises(DistributedRunError, match="run 'r3' failed in segment 'heavy'") as much:
            await engine.run(job, "Go.", run_id="r3", state={"how": "greedy"})
        assert "MemoryError" in str(much.value)
        assert not children()  # what is left in it is not known


@pytest.mark.full
async def test_a_process_that_dies(url: str) -> None:
    async with DbosEngine(url, poll_seconds=0.02, isolation=ProcessIsolation(TARGET)) as engine:
        with pytest.raises(DistributedRunError, match="run 'r' failed in segment 'heavy'") as died:
            await engine.run(job, "Go.", run_id="r", state={"how": "dies"})
        assert "the process of segment 'heavy' was ended by signal 9" in str(died.value)


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("print('{', end='')", "ended with exit code 0"),
    ],
)
async def test_what_becomes_of_its_call(
    program: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(ProcessIsolation(TARGET), "sqlite:///unused.sqlite", lease=30)
    monkeypatch.setattr(processes, "_started", lambda: started(program))
    dead = started("")
    dead.wait()
    monkeypatch.setattr(processes, "_idle", [dead])  # which no call is given to
    result = await processes.advance(SegmentCall("r", "heavy", 0, "", "user", {}))
    processes.close()
    assert (result.status, result.error and result.error["message"]) == (
        "failed",
        f"the process of segment 'heavy' {found}",
    )


async def test_a_process_ends_with_its_call_once_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = 'input(); input(); print(\'{"status": "completed"}\', flush=True); input()'
    process = started(program)
    processes = Processes(ProcessIsolation(TARGET), "sqlite:///unused.sqlite", lease=30)
    monkeypatch.setattr(processes, "_started", lambda: process)
    running = asyncio.create_task(processes.advance(SegmentCall("r", "heavy", 0, "", "user", {})))
    await asyncio.sleep(0)  # it has begun
    processes.close()
    assert process.stdin is not None
    process.stdin.write(b"go on\n")
    process.stdin.flush()
    assert (await asyncio.wait_for(running, SECONDS)).status == "completed"
    assert process.poll() is not None


async def test_a_call_that_takes_too_long(url: str) -> None:
    isolation = ProcessIsolation(TARGET, timeout_seconds=0.05)  # with its start
    async with DbosEngine(url, poll_seconds=0.02, isolation=isolation) as engine:
        with pytest.raises(DistributedRunError, match="failed in segment 'heavy'") as late:
            await engine.run(job, "Go.", run_id="r", state={"how": "slow"})
        assert "took longer than 0.05 s" in str(late.value)


async def test_a_call_that_is_cancelled(url: str) -> None:
    isolation = ProcessIsolation(TARGET)
    async with DbosEngine(url, poll_seconds=0.02, isolation=isolation) as engine:
        running = asyncio.create_task(engine.run(job, "Go.", run_id="r", state={"how": "slow"}))
        async with asyncio.timeout(SECONDS):
            while not children():  # noqa: ASYNC110  # of a thread
                await asyncio.sleep(0.02)
            await engine.cancel("r")
            with pytest.raises(DistributedRunError, match="run 'r' was cancelled"):
                await running
            while children():  # noqa: ASYNC110  # of a thread
                await asyncio.sleep(0.02)


def children() -> list[str]:
    """The processes of segments that this one has."""
    return [
        pid
        for task in Path("/proc/self/task").iterdir()
        for pid in children_of(task).split()
        if "_child_adk" in command_of(pid)
    ]


def children_of(task: Path) -> str:
    """The processes that a thread has started; "" of one that has ended."""
    try:
        return (task / "children").read_text("utf-8")
    except FileNotFoundError:
        return ""


def command_of(pid: object) -> str:
    """The command line of a process; "" of one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    except OSError:
        return ""


def started(program: str) -> Popen[bytes]:
    """A process that runs a program, and needs nothing of ours."""
    return Popen([sys.executable, "-S", "-c", program], stdin=PIPE, stdout=PIPE)


async def test_who_cannot_host_it(url: str) -> None:
    with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
        await InlineEngine().run(job, "Go.")
    async with DbosEngine(url) as engine:
        assert (await engine.submit(job, "Go.", run_id="r", state={})).status == "running"
        with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
            await engine.run(job, "Go.")
        for segments in (None, ["heavy"]):
            with pytest.raises(BoundaryError, match="cannot host segment 'heavy'"):
                await engine.serve(segments)
    isolation = ProcessIsolation(TARGET)
    async with DbosEngine(url, config=ExecutionConfig(), isolation=isolation) as engine:
        with pytest.raises(BoundaryError, match="config= of the engine, which does not reach"):
            await engine.run(job, "Go.")


@pytest.mark.parametrize(
    "options",
    [
        {"target": "refund:"},
        {"target": 3},
        {"target": "a:b", "memory_mb": 0},
        {"target": "a:b", "memory_mb": 0.5},
        {"target": "a:b", "timeout_seconds": "x"},
    ],
)
def test_options_of_no_use(options: dict[str, Any]) -> None:
    with pytest.raises((UsageError, TargetError)):
        ProcessIsolation(**cast("Any", options))
