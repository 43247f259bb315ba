"""Random pipelines are killed at random moments, and go on until they have come to their end.

The end is that of a run nobody kills: the same state, every step, each write of a function once;
called once more is only what was in flight. One run is killed, after so many lines of its log; with
``--full`` it is 200, some of them after some time, which is another moment on a busy machine.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, so that it is fast"),
    pytest.mark.skipif(sys.platform == "darwin", reason="macOS may abort forks of busy processes"),
]

HERE = Path(__file__).parent
NO_RUN = "there is no run to go on with in this session"
NO_SESSION = "there is no session 's' of user 'ann' in app 'adk_fluent_app'"
FEW, MANY = 1, 200
LINES = 0.7  # of kills come after so many lines, the others after some time, with --full
SHARE = 4  # one in so many is kept by DatabaseSessionService


class Ran(NamedTuple):
    """How a process ended, its log, and what it told if nobody killed it."""

    code: int
    log: list[str]
    told: dict[str, Any]

    @property
    def calls(self) -> Counter[str]:
        """How often each call was made."""
        return Counter(line.split()[2] for line in self.log if line.startswith("call "))

    @property
    def in_flight(self) -> Counter[str]:
        """The calls that may not have been over: the last one of each task."""
        last = dict(line.split()[1:] for line in self.log if line.startswith("call "))
        return Counter(last.values())


class Server:
    """Runs each request in a process of its own."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "killing.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(self, folder: Path, log_name: str, **request: Any) -> Ran:
        """Run, or go on with a run."""
        assert self._process.stdin is not None
        asked = {"folder": str(folder), "log": log_name, **request}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        code = int(self.answer())
        log, told = folder / log_name, dict[str, Any]()
        if code == 0:
            told = json.loads(log.with_name(f"{log.name}.json").read_text("utf-8"))
        lines = log.read_text("utf-8").splitlines() if log.exists() else []
        return Ran(code, lines, told)

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    try:
        assert made.answer() == "ready"
        yield made
    finally:
        made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill" in metafunc.fixturenames:
        option = metafunc.config.option
        count = option.examples or (MANY if option.full else FEW)
        metafunc.parametrize("kill", range(option.seed, option.seed + count))


def test_a_run_that_is_killed_goes_on(
    server: Server, folder: Path, kill: int, pytestconfig: pytest.Config
) -> None:
    chance = random.Random(kill)
    asked: dict[str, Any] = {
        "seed": chance.randrange(2**32),
        "store": "database" if kill % SHARE == 0 else "sqlite",
    }
    (folder / "alive").mkdir()
    (killed := folder / "killed").mkdir()
    begin = time.monotonic()
    alive = server.run(folder / "alive", "log", **asked)
    took = time.monotonic() - begin
    assert alive.told["end"] == "done"
    assert alive.told["wrong"] is None
    server.run(killed, "store log", does="make store", **asked)
    ran: list[Ran] = []
    for times in range(chance.randint(1, 2)):
        lines, seconds = chance.randint(1, len(alive.log)), chance.uniform(0, took)
        timed = chance.random() >= LINES and pytestconfig.option.full
        how = {"seconds": seconds} if timed else {"lines": lines}
        does = "go on" if times else "begin"
        ran.append(server.run(killed, f"log{times}", does=does, **asked, **how))
    ran.append(server.run(killed, "log", does="go on", **asked))
    if ran[-1].told["end"] in (NO_RUN, NO_SESSION) and not ran[-1].told["begun"]:
        ran.append(server.run(killed, "log begun", **asked))
    check(alive, ran)


def check(alive: Ran, ran: list[Ran]) -> None:
    """Compare what was killed, and went on, with the run that nobody killed."""
    assert all(each.code in (0, -signal.SIGKILL) for each in ran)
    told, wanted = ran[-1].told, alive.told
    assert told["end"] in ("done", NO_RUN)
    assert told["wrong"] is None
    assert certain(told) == certain(wanted)
    made, may = Counter[str](), Counter[str](wanted["calls"])
    for each in ran:
        made += each.calls
        may += each.in_flight if each.code else Counter()
    lost = {name for name, count in wanted["calls"].items() if made[name] < count}
    assert not lost
    again = {name: n - may[name] for name, n in made.items() if n > may[name]}
    assert not {name for name in again if name not in (*wanted["loose"], *wanted["tests"])}


def certain(told: dict[str, Any]) -> Counter[str]:
    """The writes of functions that do not depend on timing, each with its place."""
    return Counter(each for each in told["steps"] if each.split()[1] not in told["loose"])
