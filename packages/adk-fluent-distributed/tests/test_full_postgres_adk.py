"""A Postgres without room: what it was asked for is refused, and goes on once there is some."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
