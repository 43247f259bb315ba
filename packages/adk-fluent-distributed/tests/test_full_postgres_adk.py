"""A Postgres without room, or away: what it was asked for is refused, and goes on once it can."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import postgres_server
import psycopg
import pytest

from adk_fluent import Agent
from adk_fluent.builders import Pipeline, State
from adk_fluent.distributed import DbosEngine, DistributedRunError, EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.adk,
    pytest.mark.full,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
_MOUNT = ("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs")


@pytest.fixture
def small(postgres_address: str) -> Iterator[str]:
    """The url of a new database that has 64 MB."""
    folder = tempfile.mkdtemp(prefix="adk-fluent-small-")
    made = subprocess.run([*_MOUNT, folder], check=False, capture_output=True, text=True)
    if made.returncode:
        Path(folder).rmdir()
        pytest.skip(f"a small file system cannot be mounted: {made.stderr.strip()}")
    shutil.chown(folder, "postgres", "postgres")
    try:
        with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as db:
            db.execute(f"create tablespace small location '{folder}'".encode())
            db.execute(b"create database small tablespace small")
            yield f"{postgres_address}/small"
            db.execute(b"drop database small with (force)")
            db.execute(b"drop tablespace small")
    finally:
        subprocess.run(["umount", folder], check=True)
        Path(folder).rmdir()


def fill(url: str) -> None:
    """Leave no room, also in pages that have some left."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(b"create table junk (data text)")
        for size in (1000, 1):
            with suppress(psycopg.errors.DiskFull):
                while True:
                    db.execute(
                        b"insert into junk select repeat('x', 1000) from generate_series(1, %d)"
                        % size
                    )


async def test_a_full_postgres(small: str, caplog: pytest.LogCaptureFixture) -> None:
    """What came of a step is written once there is room again."""
    is_full = False

    def write(state: State) -> dict[str, Any]:
        nonlocal is_full
        if not is_full:
            is_full = True
            fill(small)
        return {"big": os.urandom(200_000).hex()}

    pipeline = Agent("a").mock("A") >> Pipeline("heavy", write).execution_boundary()
    async with DbosEngine(small, poll_seconds=0.02) as engine, asyncio.timeout(60):
        waits = asyncio.create_task(engine.run(pipeline, "Go.", run_id="r"))
        while "DiskFull" not in caplog.text:  # noqa: ASYNC110  # of a thread
            await asyncio.sleep(0.02)
        with pytest.raises(EngineError, match="has room"):
            await engine.submit(pipeline, "Go." * 100_000, run_id="none")
        with psycopg.connect(small, autocommit=True) as db:
            db.execute(b"drop table junk")
        with pytest.raises(DistributedRunError, match="DiskFull"):
            await waits
        await engine.answer("r")
        result = await engine.run(pipeline, "Go.", run_id="r")
        assert (result.text, len(result.state["big"])) == ("A", 400_000)
        with pytest.raises(DistributedRunError, match="there is no run 'none'"):
            await engine.status("none")


class Held:
    """A pipeline of three segments, whose second waits; steps run on DBOS's loop."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()
        self.begun = 0

    async def wait(self, state: State) -> dict[str, Any]:
        self.begun += 1
        self.entered.set()
        await asyncio.to_thread(self.go.wait)
        return {"begun": self.begun}

    def pipeline(self) -> Pipeline:
        held = Pipeline("held", self.wait).execution_boundary()
        return Agent("a").mock("A") >> held >> Agent("b").mock("B")


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    folder = postgres_server.binaries()
    if folder is None:
        pytest.skip(postgres_server.MISSING)
    with postgres_server.started(folder) as server:
        yield server


async def test_a_postgres_that_is_started_anew_in_the_middle_of_a_step(
    server: postgres_server.Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Workers go on by themselves, and whoever asks meanwhile is told."""
    held, url = Held(), f"{server.address}/postgres"
    pipeline = held.pipeline()
    async with DbosEngine(url, poll_seconds=0.02) as engine, asyncio.timeout(120):
        engine.register(pipeline)
        works = asyncio.create_task(engine.serve())
        await engine.submit(pipeline, "Go.", run_id="r")
        await asyncio.to_thread(held.entered.wait)
        await asyncio.to_thread(server.stop)
        for asked in (engine.status("r"), engine.submit(pipeline, "Go.", run_id="none")):
            with pytest.raises(EngineError, match="see that the server runs") as caught:
                await asked
            assert caught.value.code == "ADKF852"
        while "could not look after its database" not in caplog.text:  # noqa: ASYNC110  # of a thread
            await asyncio.sleep(0.02)
        assert await asyncio.to_thread(server.start)
        held.go.set()
        while not (stands := await engine.status("r")).is_over:  # noqa: ASYNC110  # of a thread
            await asyncio.sleep(0.02)
        assert (stands.status, stands.answer, held.begun) == ("completed", "B", 1)
        (told,) = (each for each in caplog.records if "look after" in each.msg)
        assert told.exc_info is None
        with pytest.raises(DistributedRunError, match="there is no run 'none'"):
            await engine.status("none")
        works.cancel()
        with suppress(asyncio.CancelledError):
            await works


async def test_a_postgres_that_crashes_for_longer_than_a_lease(
    server: postgres_server.Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The step in flight is run again by whoever goes on, in this process, too."""
    held, url = Held(), f"{server.address}/postgres"
    pipeline = held.pipeline()
    async with (
        DbosEngine(url, poll_seconds=0.02, lease_seconds=1) as engine,
        asyncio.timeout(120),
    ):
        waits = asyncio.create_task(engine.run(pipeline, "Go.", run_id="r"))
        await asyncio.to_thread(held.entered.wait)
        await asyncio.to_thread(server.stop, signal.SIGQUIT)
        while "this worker ends what it runs" not in caplog.text:  # noqa: ASYNC110  # of a thread
            await asyncio.sleep(0.02)
        assert await asyncio.to_thread(server.start)
        with pytest.raises(EngineError) as caught:
            await waits
        assert caught.value.code == "ADKF852"
        held.go.set()
        result = await engine.run(pipeline, "Go.", run_id="r")
        assert (result.text, result.state["begun"], held.begun) == ("B", 2, 2)
