"""Ours between workers: runs of three segments, each put into the queue of the next one."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, Pipeline
from adk_fluent.distributed import DbosEngine
from bench.side.scripted import MESSAGE, Echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

SEGMENTS, POLL = 3, 0.05


def run_queued(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Submit so many runs and wait for them; return the number of answers."""
    steps = [Agent(f"a{at}", Echo(model="echo")).execution_boundary() for at in range(SEGMENTS)]
    pipeline, runs = Pipeline("bench", *steps), count()
    url = f"sqlite:///{Path(tempfile.mkdtemp()) / 'r.sqlite'}"
    engine = DbosEngine(url, concurrency=size, poll_seconds=POLL)
    engine.register(pipeline)
    serving: list[asyncio.Task[None]] = []

    async def once() -> int:
        if not serving:
            ready = asyncio.Event()
            serving.append(asyncio.create_task(engine.serve(ready=ready.set)))
            await ready.wait()
        ids = [f"r{next(runs)}" for _ in range(size)]
        for id in ids:
            await engine.submit(pipeline, MESSAGE, run_id=id)
        done = await asyncio.gather(*(engine.run(pipeline, MESSAGE, run_id=id) for id in ids))
        return sum(len(each) for each in done)

    return once


TASKS: dict[str, Task] = {"run-queued": run_queued}
