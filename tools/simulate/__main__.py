"""``python -m tools.simulate``: tables of what a fleet of any size does.

``measure`` measures what a call costs here and keeps it in ``measured.json``; ``curve`` runs real
workers on one machine, beside the simulation of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from simulate.fleet import Costs, Fleet, Load, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MEASURED: Final = Path(__file__).with_name("measured.json")
#: Transactions that a server does at the same time, each as fast as measured here; such a one is
#: assumed for deaths and freezes.
WRITERS: Final = (8, 16, 32)
_RUNS: Final = 20_000
_NEAR: Final = 8  # transactions that a server on this machine does at the same time


def costs() -> Costs:
    """What was measured last."""
    return Costs(**json.loads(MEASURED.read_text("utf-8"))["costs"])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in lines)


def scaling(own: Costs, runs: int) -> str:
    """How throughput grows with workers, until the database is busy."""
    rows: list[list[object]] = []
    for writers in WRITERS:
        for workers in (50, 100, 200, 400):
            costs = replace(own, writers=writers)
            made = Simulation(Load(1000, runs=runs), Fleet(workers), costs).run()
            rows.append(
                [
                    writers,
                    workers,
                    f"{made.steady:.0f}",
                    f"{made.latency(50):.1f}",
                    f"{made.latency(99):.1f}",
                    f"{made.writes / made.seconds:.0f}",
                    f"{made.database_busy:.0%}",
                    f"{made.workers_busy:.0%}",
                ]
            )
    times = ["half within, s", "99 % within, s", "writes a second"]
    return table(["writers", "workers", "runs a second", *times, "database", "cores"], rows)


def deaths(own: Costs, runs: int) -> str:
    """What deaths of workers cost, by lease."""
    rows: list[list[object]] = []
    for per_hour in (0.1, 1, 10):
        for lease in (5, 30, 120):
            fleet = Fleet(200, deaths_per_hour=per_hour, lease_seconds=lease)
            made = Simulation(Load(1000, runs=runs), fleet, own).run()
            rows.append([per_hour, lease, made.lost, made.repeated, f"{max(made.latencies):.0f}"])
    return table(["deaths an hour", "lease, s", "lost", "begun again", "longest run, s"], rows)


def freezes(own: Costs, runs: int) -> str:
    """How often a worker that only froze is taken for dead, by lease."""
    rows: list[list[object]] = []
    for seconds in (1, 5, 20):
        for lease in (5, 30, 120):
            fleet = Fleet(200, freezes_per_hour=10, freeze_seconds=seconds, lease_seconds=lease)
            made = Simulation(Load(1000, runs=runs), fleet, own).run()
            rows.append([seconds, lease, made.lost, made.false_reaps, f"{made.latency(99):.1f}"])
    head = ["a freeze takes, s", "lease, s", "lost", "begun twice", "99 % within, s"]
    return table(head, rows)


def curve(most: int, runs: int, database: str | None) -> str:
    """Real workers of this machine, beside the simulation of them."""
    from simulate.measure import SEGMENTS, submit_all  # noqa: PLC0415  # imports ADK

    rows: list[list[object]] = []
    workers = 1
    while workers <= most:
        with tempfile.TemporaryDirectory() as folder:
            url = database or f"sqlite:///{Path(folder) / 'runs.sqlite'}"
            made = asyncio.run(submit_all(url, runs=runs, workers=_started(url, workers)))
        load = Load(0, SEGMENTS, 0.05, is_fixed=True, runs=runs)
        own = replace(costs(), writers=1 if database is None else _NEAR, is_file=database is None)
        told = Simulation(load, Fleet(workers, 2, 0.1, cores=os.cpu_count()), own).run()
        rows.append([workers, f"{runs / made:.1f}", f"{told.runs_per_second:.1f}"])
        workers *= 2
    return table(["workers", "runs a second", "simulated"], rows)


def _started(url: str, workers: int) -> list[subprocess.Popen[str]]:
    target = f"{Path(__file__).with_name('measure.py')}:PIPELINE"
    command = ["worker", target, "--database", url, "--concurrency", "2"]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "adk_fluent.cli", *command], stderr=subprocess.PIPE, text=True
        )
        for _ in range(workers)
    ]


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tools.simulate", description=__doc__)
    parser.add_argument(
        "command", nargs="?", choices=["tables", "measure", "curve"], default="tables"
    )
    parser.add_argument("--runs", type=int, help="how many runs each row takes")
    parser.add_argument("--workers", type=int, default=4, help="of curve: 1, 2, 4, up to this")
    parser.add_argument("--database", help="of curve; default: a file of SQLite's")
    given = parser.parse_args()
    match given.command:
        case "measure":
            from simulate.measure import measure  # noqa: PLC0415  # imports ADK

            made = {
                "date": datetime.now(UTC).date().isoformat(),
                "python": platform.python_version(),
                "costs": asdict(measure(runs=given.runs or 30)),
            }
            MEASURED.write_text(json.dumps(made, indent=2) + "\n", "utf-8")
            print(MEASURED.read_text("utf-8"))
        case "curve":
            print(curve(given.workers, given.runs or 40, given.database))
        case _:
            own = replace(costs(), writers=WRITERS[-1])
            began = time.perf_counter()
            for title, made in (("Scaling", scaling), ("Deaths", deaths), ("Freezes", freezes)):
                print(f"## {title}\n\n{made(own, given.runs or _RUNS)}\n")
            print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
