"""A process that runs calls of segments for a worker; it ends when the worker does.

The url of the database, and then calls as JSON, come as lines on standard input. Results go to what
was standard output: what the pipeline prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Final

from adk_fluent.cli import load
from adk_fluent.distributed._call import SegmentCall, SegmentResult
from adk_fluent.distributed._database import Address, Database
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.distributed._station_adk import Station, stores
from adk_fluent.distributed._workers import Workers
from adk_fluent.extend import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB: Final = 2**20


def main(target: str, lease: float, memory_mb: int) -> None:
    """Run calls until standard input ends.

    Args:
        target: The pipeline.
        lease: Seconds without a sign of life after which this process counts as dead.
        memory_mb: Memory that it may take, in MiB; 0 is any.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # the worker, which drains, ends this one
        signal.signal(number, _ignore)  # not SIG_IGN, which programs begun here would keep
    results = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")
    url = sys.stdin.readline().rstrip("\n")
    calls = _read()
    database = Database(Address.of(url))
    workers = Workers(database, lease=lease)
    workers.join({})  # so that others see that what it owns is being done
    threading.Thread(target=_beat, args=(workers, lease), daemon=True).start()
    station = Station(load(target), None, *stores(database), url=url)
    _limit(memory_mb)
    with asyncio.Runner() as runner:
        for call in calls:
            if call.fingerprint == station.plan.fingerprint:
                result = runner.run(station.advance(call, workers.is_at_work))
            else:
                result = _other(call, target)
            results.write(json.dumps(result.to_dict()) + "\n")


def _ignore(*_: object) -> None:
    """Do nothing."""


def _read() -> Iterator[SegmentCall]:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(0)  # the worker has ended, so what runs here is somebody else's

    threading.Thread(target=read, daemon=True).start()
    return (SegmentCall.from_dict(json.loads(lines.get())) for _ in iter(int, 1))


def _beat(workers: Workers, lease: float) -> None:
    pause = threading.Event()
    while not pause.wait(lease / 4):
        try:
            if not workers.beat():
                os._exit(1)  # it was taken for dead
        except Exception:  # noqa: BLE001  # it is tried again; the worker ends it in time
            LOG.warning("a process of a segment could give no sign of life", exc_info=True)


def _limit(memory_mb: int) -> None:
    if memory_mb and sys.platform == "linux":
        import resource  # noqa: PLC0415  # not on Windows

        resource.setrlimit(resource.RLIMIT_DATA, (memory_mb * _MIB, memory_mb * _MIB))


def _other(call: SegmentCall, target: str) -> SegmentResult:
    error = {
        "type": BoundaryError.__name__,
        "code": BoundaryError.code,
        "message": f"{target} has other steps than the pipeline of run {call.run_id!r}",
        "help": "let ProcessIsolation(target=) name the pipeline that is served",
    }
    return SegmentResult("failed", call.segment, error=error)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
