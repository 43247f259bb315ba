"""A worker is killed in the middle of a segment, and another one completes the run.

One trial, with ``--full`` 20. The worker kills itself in the function of the second segment, before
its write is committed, which is the worst place: what it did outside of state is done again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from distributed_jobs import charge, job
from postgres_server import ends_with_us

from adk_fluent.distributed import DbosEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.distributed import RunStatus

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL"),
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]
HERE = Path(__file__).parent
SECONDS = 120


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "trial" in metafunc.fixturenames:
        metafunc.parametrize("trial", range(20 if metafunc.config.option.full else 1))


class Worker:
    """A process of ``adk-fluent worker``."""

    def __init__(self, folder: Path, *options: str, url: str = "") -> None:
        target = f"{HERE / 'distributed_jobs.py'}:job"
        command = [*ends_with_us("KILL"), sys.executable, "-W", "ignore"]
        command += ["-m", "adk_fluent.cli", "worker", target]
        command += ["--database", url or url_of(folder), *options]
        environment = {**os.environ, "ADK_FLUENT_TEST_LOG": str(folder / "calls")}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder
        )

    def wait_until(self, sign: str) -> None:
        assert self.process.stderr is not None
        lines: list[str] = []
        for line in self.process.stderr:
            lines.append(line)
            if line.startswith(sign):
                return
        raise AssertionError("".join(lines))

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    made: list[Worker] = []
    yield made
    for each in made:
        each.end()


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'runs.sqlite'}"


async def over(engine: DbosEngine, run_id: str) -> RunStatus:
    async with asyncio.timeout(SECONDS):
        while not (stands := await engine.status(run_id)).is_over:  # noqa: ASYNC110  # of another process
            await asyncio.sleep(0.05)
    return stands


async def test_another_worker_completes_the_run(
    tmp_path: Path, workers: list[Worker], trial: int
) -> None:
    engine = DbosEngine(url_of(tmp_path))
    run_id = f"job-{trial}"
    assert (await engine.submit(job, "Assess it.", run_id=run_id)).status == "running"
    workers.append(Worker(tmp_path))
    died = await asyncio.to_thread(workers[0].process.wait, SECONDS)
    assert died == -signal.SIGKILL
    assert (await engine.status(run_id)).status == "running"

    workers.append(Worker(tmp_path))
    stands = await over(engine, run_id)
    key = f"{run_id}:heavy:s2.s1/charge"
    assert stands.to_dict() | {"state": {}} == {
        "run_id": run_id,
        "status": "completed",
        "segment": "pipeline",
        "answer": "Done: {amount}",
        "state": {},
        "pending": (),
        "error": None,
    }
    assert stands.state == {"plan": "Plan.", "counted": 1, "amount": "250", "charged": key}
    calls = [line.split() for line in (tmp_path / "calls").read_text("utf-8").splitlines()]
    assert Counter(call[0] for call in calls) == {"count": 1, "charge": 2}
    assert len({call[1] for call in calls}) == 2  # two processes
    assert {call[2] for call in calls if call[0] == "charge"} == {key}

    second = workers[1]
    second.process.terminate()
    assert await asyncio.to_thread(second.process.wait, SECONDS) == 0
    await asyncio.to_thread(second.wait_until, "[draining]")


async def test_a_worker_on_postgres(
    tmp_path: Path, workers: list[Worker], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of the inner segment dies; this process, which serves the outer one, goes on."""
    monkeypatch.setitem(charge.__globals__, "LOG", tmp_path / "calls")  # the job's own module
    workers.append(Worker(tmp_path, "--segment", "heavy", url=postgres))
    async with DbosEngine(postgres) as engine:
        engine.register(job)
        outer = asyncio.create_task(engine.serve(["pipeline"]))
        await engine.submit(job, "Assess it.", run_id="job")
        died = await asyncio.to_thread(workers[0].process.wait, SECONDS)
        assert died == -signal.SIGKILL
        assert (await engine.status("job")).status == "running"
        outer.cancel()
        await asyncio.wait([outer])
        inner = asyncio.create_task(engine.serve())
        stands = await over(engine, "job")
        inner.cancel()
        await asyncio.wait([inner])
    key = "job:heavy:s2.s1/charge"
    assert (stands.status, stands.answer) == ("completed", "Done: {amount}")
    assert stands.state["charged"] == key
    calls = [line.split() for line in (tmp_path / "calls").read_text("utf-8").splitlines()]
    here, there = str(os.getpid()), str(workers[0].process.pid)
    assert [(name, pid, each) for name, pid, each in calls if name == "charge"] == [
        ("charge", there, key),
        ("charge", here, key),
    ]
    assert [pid for name, pid, _ in calls if name == "count"] == [here]


@pytest.mark.full
async def test_workers_of_segments_on_postgres(
    tmp_path: Path, workers: list[Worker], postgres: str
) -> None:
    """One worker of the outer segment; of two of the inner one, the first to begin it dies."""
    for name in ("pipeline", "heavy", "heavy"):
        options = ("--segment", name, "--concurrency", "8")
        workers.append(Worker(tmp_path, *options, url=postgres))
    outer = workers[0]
    async with DbosEngine(postgres) as engine:
        await asyncio.gather(
            *(engine.submit(job, "Assess it.", run_id=f"job-{n}") for n in range(4))
        )
        for n in range(4):
            stands = await over(engine, f"job-{n}")
            assert (stands.status, stands.answer) == ("completed", "Done: {amount}")
    ended = [each.process.poll() for each in workers]
    assert sorted(map(str, ended)) == ["-9", "None", "None"]
    assert ended[0] is None
    outer.process.terminate()
    assert await asyncio.to_thread(outer.process.wait, SECONDS) == 0
    await asyncio.to_thread(outer.wait_until, "[draining]")
    calls = [line.split() for line in (tmp_path / "calls").read_text("utf-8").splitlines()]
    assert {(name, pid == str(outer.process.pid)) for name, pid, _ in calls} == {
        ("count", True),
        ("charge", False),
    }
    keys = {name: [key for each, _, key in calls if each == name] for name in ("count", "charge")}
    assert sorted(keys["count"]) == [f"job-{n}:pipeline:s1/count" for n in range(4)]
    assert {*keys["charge"]} == {f"job-{n}:heavy:s2.s1/charge" for n in range(4)}
    assert 5 <= len(keys["charge"]) <= 8  # what was in flight at the kill is done again
