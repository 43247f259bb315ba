"""Measures on the real engine what the simulation is fed with: three segments through queues."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Self

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from sqlalchemy import Connection, Engine, event

from adk_fluent import Agent, Pipeline
from adk_fluent.distributed import DbosEngine
from simulate.fleet import Costs

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.builders import Builder

SEGMENTS = 3
POLL = 0.05
_IDLE_SECONDS = 3.0
_WRITES = ("INSERT", "UPDATE", "DELETE")


class _Waits(BaseLlm):
    """A model that answers after a while."""

    model: str = "waits"
    seconds: float = 0.0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        await asyncio.sleep(self.seconds)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Done.")]))


def pipeline(wait_seconds: float) -> Builder:
    """Segments of one agent each."""
    steps = [
        Agent(f"a{at}", _Waits(seconds=wait_seconds)).writes(f"k{at}").execution_boundary()
        for at in range(SEGMENTS)
    ]
    return Pipeline("measured", *steps)


PIPELINE = pipeline(0.05)


class _Writes:
    """Notes how long each transaction that changes a database keeps it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __enter__(self) -> Self:
        event.listen(Engine, "before_cursor_execute", self._statement)
        event.listen(Engine, "commit", self._commit)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Engine, "before_cursor_execute", self._statement)
        event.remove(Engine, "commit", self._commit)

    def _statement(self, db: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(_WRITES):
            db.info.setdefault("since", time.perf_counter())

    def _commit(self, db: Connection) -> None:
        since = db.info.pop("since", None)
        if since is not None:
            self.seconds.append(time.perf_counter() - since)


async def run_all(url: str, *, runs: int, concurrency: int, wait_seconds: float) -> float:
    """Put runs into the queues at once; return the seconds until all have ended."""
    made = pipeline(wait_seconds)
    async with DbosEngine(url, concurrency=concurrency, poll_seconds=POLL) as engine:
        engine.register(made)
        ready = asyncio.Event()
        serving = asyncio.create_task(engine.serve(ready=ready.set))
        await ready.wait()
        await _over(engine, made, ["warm"])
        began = time.perf_counter()
        await _over(engine, made, [f"r{at}" for at in range(runs)])
        seconds = time.perf_counter() - began
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    return seconds


async def submit_all(url: str, *, runs: int, workers: list[subprocess.Popen[str]]) -> float:
    """Put runs into the queues of workers that have been started; return the seconds they took."""
    try:
        async with DbosEngine(url, poll_seconds=POLL) as engine:
            await _over(engine, PIPELINE, [f"warm{at}" for at in range(4 * len(workers))])
            began = time.perf_counter()
            await _over(engine, PIPELINE, [f"r{at}" for at in range(runs)])
            return time.perf_counter() - began
    finally:
        for each in workers:
            each.terminate()
        for each in workers:
            each.communicate()


async def _over(engine: DbosEngine, made: Builder, ids: list[str]) -> None:
    for id in ids:
        await engine.submit(made, "Go.", run_id=id)
    for id in ids:
        stands = await engine.status(id)
        while not stands.is_over:
            await asyncio.sleep(POLL)
            stands = await engine.status(id)
        assert stands.status == "completed", stands  # noqa: S101  # else it measures nothing


async def _idle() -> tuple[float, float]:
    """Processor time of a look of a worker that has nothing to do, and what it writes a second."""
    with tempfile.TemporaryDirectory() as folder, _Writes() as writes:
        url = f"sqlite:///{Path(folder) / 'runs.sqlite'}"
        async with DbosEngine(url, poll_seconds=POLL) as engine:
            engine.register(pipeline(0))
            ready = asyncio.Event()
            serving = asyncio.create_task(engine.serve(ready=ready.set))
            await ready.wait()
            await asyncio.sleep(1)
            cpu, began = time.process_time(), time.perf_counter()
            writes.seconds.clear()
            await asyncio.sleep(_IDLE_SECONDS)
            written = len(writes.seconds)
            cpu, seconds = time.process_time() - cpu, time.perf_counter() - began
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    return cpu / seconds * POLL, written / seconds


def measure(*, runs: int = 30) -> Costs:
    """What a call costs here, on SQLite, in one process that does one at a time."""
    with tempfile.TemporaryDirectory() as folder, _Writes() as writes:
        cpu = time.process_time()
        url = f"sqlite:///{Path(folder) / 'runs.sqlite'}"
        seconds = asyncio.run(run_all(url, runs=runs, concurrency=1, wait_seconds=0))
        cpu = time.process_time() - cpu
    calls = (runs + 1) * SEGMENTS
    each, per_write = len(writes.seconds) / calls, median(writes.seconds)
    look, idle_writes = asyncio.run(_idle())
    cpu -= look / POLL * seconds
    return Costs(
        cpu_seconds=round(max(cpu / calls - each * per_write, 0.0), 6),
        look_seconds=round(look, 6),
        writes=round(each, 2),
        write_seconds=round(per_write, 6),
        idle_writes=round(idle_writes, 2),
    )
