"""A process of one side: reads tasks as JSON lines, measures them, answers in JSON lines.

Collection of garbage is off while something is measured, as `timeit` does it, and what was made
before is frozen; ``"gc": true`` in a request leaves it on. The rules are the same on every side.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module, metadata
from inspect import iscoroutinefunction
from time import process_time
from typing import Any, TextIO

#: Does the work once and returns something by which to tell that it was done.
Once = Callable[[], Any]
#: Prepares a task of some size.
Task = Callable[[int], Once]


class Worker:
    """Measures the tasks of one side.

    Args:
        side: The module with its ``TASKS``.
    """

    def __init__(self, side: str) -> None:
        self.tasks: dict[str, Task] = import_module(f"bench.side.{side}").TASKS
        self.loop = asyncio.new_event_loop()
        self.row = ""
        self.ready: dict[tuple[str, int], Once] = {}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure what was asked."""
        if request["task"] == "hello":
            return {"versions": versions(), "tasks": sorted(self.tasks)}
        try:
            return self.timed(request)
        except Exception as error:  # noqa: BLE001  # the report says so
            return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}

    def timed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Measure a task; those of a row stay ready, so that each is as warm as the others."""
        key = request["task"], request["size"]
        if request["row"] != self.row:
            self.row = request["row"]
            self.ready.clear()  # only the row that is being measured takes memory
        if key not in self.ready:
            gc.unfreeze()
            self.ready[key] = self.tasks[key[0]](key[1])
            self.measure(self.ready[key], 1, collect=False)  # what happens once does not count
            gc.collect()
            gc.freeze()
        seconds, result = self.measure(
            self.ready[key], request["repeat"], collect=request.get("gc", False)
        )
        return {"seconds": seconds / request["repeat"], "result": result}

    def measure(self, once: Once, repeat: int, *, collect: bool) -> tuple[float, Any]:
        """CPU seconds of all repetitions, and what the last one returned."""
        gc.collect()
        if not collect:
            gc.disable()
        try:
            if iscoroutinefunction(once):
                return self.loop.run_until_complete(_timed_async(once, repeat))
            return _timed(once, repeat)
        finally:
            gc.enable()


def _timed(once: Once, repeat: int) -> tuple[float, Any]:
    result: Any = None
    started = process_time()
    for _ in range(repeat):
        result = once()
    return process_time() - started, result


async def _timed_async(once: Callable[[], Awaitable[Any]], repeat: int) -> tuple[float, Any]:
    result: Any = None
    started = process_time()
    for _ in range(repeat):
        result = await once()
    return process_time() - started, result


def versions() -> dict[str, str]:
    """What is installed here."""
    found = {"python": sys.version.split()[0]}
    for name in (
        "google-adk",
        "google-genai",
        "pydantic",
        "a2a-sdk",
        "opentelemetry-sdk",
        "adk-fluent",
    ):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found


def main() -> None:
    """Answer until there are no more requests."""
    # Whatever prints goes to stderr; only answers go to the pipe.
    answers: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(worker.answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
