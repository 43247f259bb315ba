"""Ours in segments: each a durable step of DBOS on SQLite, in one process."""

from __future__ import annotations

import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, Pipeline
from adk_fluent.distributed import DbosEngine, InlineEngine
from bench.side.scripted import MESSAGE, Echo

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task


def _pipeline(size: int) -> Pipeline:
    steps = [Agent(f"a{at}", Echo(model="echo")).execution_boundary() for at in range(size)]
    return Pipeline("bench", *steps)


def run_durable(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Run so many segments of one agent; return the number of answers."""
    folder = Path(tempfile.mkdtemp())
    engine, pipeline, runs = DbosEngine(f"sqlite:///{folder}/r.sqlite"), _pipeline(size), count()

    async def once() -> int:
        return len(await engine.run(pipeline, MESSAGE, run_id=f"r{next(runs)}"))

    return once


def run_inline(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """The same in memory."""
    engine, pipeline, runs = InlineEngine(), _pipeline(size), count()

    async def once() -> int:
        return len(await engine.run(pipeline, MESSAGE, run_id=f"r{next(runs)}"))

    return once


TASKS: dict[str, Task] = {"run-durable": run_durable, "run-inline": run_inline}
