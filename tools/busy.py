"""Run the tests while other processes burn every core: what fails then depends on the machine.

``python -m tools.busy [--runs N] [PYTEST OPTION...]`` runs ``pytest`` three times, or N times, with
one endless loop a core beside it. A test that fails here waits for milliseconds instead of for what
it means. The exit code is 1 when a run failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parent.parent
BURN = "while True: pass"


@contextmanager
def burning(count: int) -> Generator[None]:
    """Keep `count` processes busy that do nothing."""
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in burners:
            each.kill()
            each.wait()


def main(arguments: list[str] | None = None) -> int:
    """Run the tests, print how each run ended, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.busy", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    known, options = parser.parse_known_args(arguments)
    ended: list[int] = []
    with burning(os.cpu_count() or 1):
        for run in range(1, known.runs + 1):
            began = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", *options], cwd=ROOT, check=False
            )
            ended.append(done.returncode)
            took = time.monotonic() - began
            print(
                f"busy run {run} of {known.runs}: exit {done.returncode}, {took:.0f} s", flush=True
            )
    return int(any(ended))


if __name__ == "__main__":
    sys.exit(main())
