"""The worker processes, and how a round goes: every side once, in turn."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from bench.environments import ROOT, BenchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from bench.environments import Environments
    from bench.stats import Grouped


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure.

    Attributes:
        side: ``ours``, ``adk`` or ``mono``; ``traced`` is ours with spans, ``typed`` with schemas,
            ``evaluated`` with suites, ``local`` ADK's own evaluation, ``remote`` with an A2A server
            beside it, ``segments`` with boundaries, ``durable`` DBOS by hand, ``hops`` and
            ``queued`` both through queues, ``priced`` with costs, ``recorded`` with recordings,
            ``served`` ours and ``to_a2a`` ADK's as an A2A server with its clients beside it.
        task: What it does; one of the side's tasks, or a key of `COLD`.
        size: How much of it.
        expect: What it must return, or the time says nothing.
        repeat: How often in one sample.
        quick: How much of it with ``--quick``, where that is less.
    """

    side: str
    task: str
    size: int = 0
    expect: object = None
    repeat: int = 1
    quick: int | None = None

    def quickly(self) -> Case:
        """The same, as ``--quick`` has it."""
        return self if self.quick is None else replace(self, size=self.quick)


@dataclass(slots=True)
class Samples:
    """What was measured for one row: seconds a call, by label, process and round.

    Attributes:
        seconds: The samples.
        failed: Label to what went wrong, for cases that could not be measured.
        results: Label to what the case returned.
    """

    seconds: dict[str, Grouped] = field(default_factory=dict[str, "Grouped"])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    results: dict[str, Any] = field(default_factory=dict[str, Any])


_SOAK = "from bench.side import soak; soak.main({level!r}, {{size}})"
_IMPORT = """\
import time
start = time.process_time()
{statement}
seconds = time.process_time() - start
import json, sys
found = any(name == "google" or name.startswith("google.") for name in sys.modules)
print(json.dumps({{"seconds": seconds, "result": "google" if found else "no google"}}))
"""

#: What runs in a new process each time; prints CPU seconds and a result.
COLD: dict[str, str] = {
    "import": _IMPORT,
    "import-names": _IMPORT,
    "suite": """\
import json, os, subprocess, sys
pytest = [sys.executable, "-m", "pytest", "-q", "-m", "not adk", "-p", "no:cacheprovider"]
done = subprocess.run([*pytest, "packages/adk-fluent-core/tests"], capture_output=True, text=True)
spent = os.times()
seconds = spent.children_user + spent.children_system
print(json.dumps({{"seconds": seconds, "result": done.stdout.strip().splitlines()[-1]}}))
sys.exit(done.returncode)
""",
    "soak-calls": _SOAK.format(level="calls"),
    "soak-runs": _SOAK.format(level="runs"),
    "streams": "from bench.side import streams; streams.main({size})",
}
_COST = "Budget, CostReport, cost_attribution, estimate_cost"
_DEBUG = "Recorder, Recording, ReplayerBackend, diff_events"
_EVAL = "FluentCase, FluentEvalReport, FluentEvalSuite"
#: What they import: the package alone, or the names that most programs need of it.
_STATEMENTS: dict[str, dict[str, str]] = {
    "import": {
        "ours": "import adk_fluent",
        "adk": "import google.adk",
        "mono": "import adk_fluent",
        "priced": "import adk_fluent.cost",
        "recorded": "import adk_fluent.debug",
        "evaluated": "import adk_fluent.eval",
    },
    "import-names": {
        "ours": "from adk_fluent import Agent",
        "adk": "from google.adk.agents import LlmAgent",
        "mono": "from adk_fluent import Agent",
        "priced": f"from adk_fluent.cost import {_COST}",
        "recorded": f"from adk_fluent.debug import {_DEBUG}",
        "evaluated": f"from adk_fluent.eval import {_EVAL}",
    },
}


class Worker:
    """A process of one side."""

    def __init__(self, environments: Environments, side: str) -> None:
        self.side = side
        self._stderr: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115  # open as long as it runs
            "w+", encoding="utf-8", errors="replace"
        )
        self._process = subprocess.Popen(
            [environments.python(side), "-m", "bench.side.worker", side],
            env=environments.variables(side),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Have a task done.

        Raises:
            BenchError: The process died.
        """
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None and pipe_out is not None  # noqa: S101, PT018  # both are pipes
        try:
            pipe_in.write(json.dumps(request) + "\n")
            pipe_in.flush()
        except BrokenPipeError:
            raise self._died() from None
        line = pipe_out.readline()
        if not line:
            raise self._died()
        return json.loads(line)

    def close(self) -> None:
        """Let the process end, and wait for it."""
        self._process.communicate()
        self._stderr.close()

    def _died(self) -> BenchError:
        self._process.wait()
        self._stderr.seek(0)
        return BenchError(f"the worker of {self.side!r} died:\n{self._stderr.read().strip()}")


class Crew:
    """One worker of each side that is needed; a context manager.

    Args:
        environments: Where they run.
        sides: Which.
        collect: Whether garbage is collected while something is measured.
    """

    def __init__(
        self, environments: Environments, sides: Sequence[str], *, collect: bool = False
    ) -> None:
        self.environments = environments
        self.workers = {side: Worker(environments, side) for side in sides}
        self.collect = collect

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers.values():
            worker.close()

    def versions(self) -> dict[str, dict[str, str]]:
        """What is installed on each side."""
        return {side: w.ask(task="hello")["versions"] for side, w in self.workers.items()}

    def play(self, row: str, cases: Mapping[str, Case], rounds: int, samples: Samples) -> None:
        """Measure a row: in each round every case once, each round starting with another one."""
        labels = [label for label in cases if label not in samples.failed]
        for label in labels:
            samples.seconds.setdefault(label, []).append([])
        for turn in range(rounds):
            for at in range(len(labels)):
                label = labels[(turn + at) % len(labels)]
                if label not in samples.failed:
                    self._sample(row, label, cases[label], samples)

    def _sample(self, row: str, label: str, case: Case, samples: Samples) -> None:
        answer = self._cold(case) if case.task in COLD else self._warm(row, case)
        error: str | None = answer.get("error")
        if error is None and case.expect not in (None, answer["result"]):
            error = f"returned {answer['result']!r}, not {case.expect!r}"
        if error is not None:
            samples.failed[label] = error
            del samples.seconds[label]
            return
        samples.seconds[label][-1].append(answer["seconds"])
        samples.results[label] = answer["result"]

    def _warm(self, row: str, case: Case) -> dict[str, Any]:
        return self.workers[case.side].ask(
            row=row, task=case.task, size=case.size, repeat=case.repeat, gc=self.collect
        )

    def _cold(self, case: Case) -> dict[str, Any]:
        statement = _STATEMENTS.get(case.task, {}).get(case.side)
        code = COLD[case.task].format(statement=statement, size=case.size)
        done = subprocess.run(
            [self.environments.python(case.side), "-c", code],
            env=self.environments.variables(case.side),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return {"error": (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}
        return json.loads(done.stdout)


def interleaved(
    environments: Environments,
    rows: Mapping[str, Mapping[str, Case]],
    *,
    rounds: Callable[[str, int], int],
    processes: int,
    collect: bool = False,
    progress: Callable[[str], None],
) -> tuple[dict[str, Samples], dict[str, dict[str, str]]]:
    """Measure rows with several generations of processes.

    Args:
        environments: Where.
        rows: Row to its cases by label.
        rounds: How many in one process, by row and number of the process.
        processes: How many generations of processes.
        collect: Whether garbage is collected while something is measured.
        progress: Told what is being measured.

    Returns:
        The samples of each row, and what is installed on each side.
    """
    samples = {row: Samples() for row in rows}
    sides = sorted({case.side for cases in rows.values() for case in cases.values()})
    versions: dict[str, dict[str, str]] = {}
    for generation in range(processes):
        with Crew(environments, sides, collect=collect) as crew:
            versions = crew.versions()
            for row, cases in rows.items():
                if count := rounds(row, generation):
                    progress(f"process {generation + 1} of {processes}: {row}")
                    crew.play(row, cases, count, samples[row])
    return samples, versions
