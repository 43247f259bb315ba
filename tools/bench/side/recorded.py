"""Ours with recordings: a run that is recorded, and the same without."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, Pipeline
from adk_fluent.debug import Recorder, ReplayerBackend
from adk_fluent.testing import ScriptedModel
from bench.side.around import agents
from bench.side.scripted import driven

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task


class Counts(Recorder):
    """Records runs, and counts them instead of keeping them for ever."""

    count = 0

    def begun(self, run: Any) -> None:
        """Count it."""
        self.count += 1


def run(recorded: bool, size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Run a pipeline of so many agents; return the events, and the runs that were recorded."""
    recorder = Counts()
    chain = agents(size)
    if recorded:
        chain = chain.middleware(recorder)
    go = driven(chain.to_runner())

    async def once() -> list[int]:
        before = recorder.count
        return [await go(), recorder.count - before]

    return once


def replayed(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Replay so many agents whose models took 50 ms each; return events and unused calls."""
    model = ScriptedModel(default="Good day.", latency=0.05)
    pipeline = Pipeline(*(Agent(f"a{number}", model) for number in range(size)))
    with Recorder() as recorder:
        pipeline.ask("Hello")
    recording = recorder.recording

    async def once() -> list[int]:
        backend = ReplayerBackend(recording)
        result = await pipeline.run("Hello", backend=backend)
        return [len(result), len(backend.unused)]

    return once


TASKS: dict[str, Task] = {
    "run-recorded": partial(run, True),
    "run-bare": partial(run, False),
    "run-replayed": replayed,
}
