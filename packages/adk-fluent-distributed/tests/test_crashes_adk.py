"""Workers, submitters and those that run are killed at named points, until all runs are completed.

20 kills on SQLite, with ``--full`` 250 there and 250 on Postgres: each point just before and just
after its commit, and then at random. Nothing is lost, and no step is run again once it is part of
its run: what is done twice is the step in flight, with the same key.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from google.adk.events.event import Event
from postgres_server import ends_with_us
from sqlalchemy import text

from adk_fluent.distributed import DbosEngine
from adk_fluent.distributed._database import Address, Database
from adk_fluent.extend import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and ends with its parent"),
]
HERE = Path(__file__).parent
FEW, MANY = 20, 250
DONE = ["count", "charge", "work", "work"]
STEPS = {
    "pipeline:s0.s0/plan",
    "pipeline:s0.s1/count",
    "heavy:s1.s0/assess",
    "heavy:s1.s1/charge",
    "twice:s3.s0.l0.s0/work",
    "twice:s3.s0.l1.s0/work",
    "pipeline:s4/close",
}


TRANSCRIPT = [
    "Go.",
    "Plan",
    "count",
    "Assess",
    "charge",
    "question of pipeline",
    "answer of user",
    "work",
    "work",
    "Close",
]


class Call(NamedTuple):
    """A call of a step."""

    line: int
    pid: str


@pytest.fixture(scope="session")
def crashes() -> Iterator[subprocess.Popen[str]]:
    """Who starts and kills processes."""
    path = os.pathsep.join([str(HERE), *sys.path])
    server = subprocess.Popen(
        [*ends_with_us("KILL"), sys.executable, "-W", "ignore", str(HERE / "crashing.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
    )
    yield server
    server.communicate()


def killed(server: subprocess.Popen[str], **request: Any) -> dict[str, Any]:
    """Let a matrix of kills run its course."""
    assert server.stdin is not None
    assert server.stdout is not None
    print(json.dumps(request), file=server.stdin, flush=True)
    told: dict[str, Any] = json.loads(server.stdout.readline())
    assert not told["error"], told["error"]
    return told


def check_log(lines: list[list[str]], told: dict[str, Any]) -> int:
    """Check what was done outside of state; return how often something was done twice."""
    calls, committed = defaultdict[str, list[Call]](list), dict[str, int]()
    for at, (pid, what, *rest) in enumerate(lines):
        if what == "call":
            calls[rest[0]].append(Call(at, pid))
        else:
            run_id, step = rest
            committed.setdefault(f"{run_id}:{step}", at)
    assert {*calls} == {f"{run_id}:{step}" for run_id in told["runs"] for step in STEPS}
    for key, made in calls.items():
        run_id, _, step = key.split(":")
        for each in made[:-1]:  # the one that was in flight when its process was killed
            assert each.pid in told["killed"], (key, made)
        assert len({each.pid for each in made}) == len(made), (key, made)
        over = committed.get(f"{run_id}:{step}", len(lines))
        assert all(each.line < over for each in made), (key, made, over)
    return sum(len(made) - 1 for made in calls.values())


def transcript(url: str, run_id: str) -> list[str]:
    """What a run's session has of each step, and what was said, in order."""
    database = Database(Address.of(url))
    query = text("select data from adk_fluent_events where session = :id order by number")
    with database.begin() as db:
        rows = [str(row) for row in db.execute(query, {"id": run_id}).scalars()]
    database.close()
    found: list[str] = []
    for row in rows:
        event = Event.model_validate_json(row)
        stamp: dict[str, Any] = (event.custom_metadata or {}).get(METADATA_KEY) or {}
        if stamp.get("why") == "step":
            found.append(stamp["node"])
        for part in (event.content and event.content.parts) or ():
            kind = "question" if part.function_call else "answer"
            found.append(part.text or f"{kind} of {event.author}")
    return found


async def test_kills_at_every_point(
    crashes: subprocess.Popen[str], any_url: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills, seed = MANY if pytestconfig.option.full else FEW, pytestconfig.option.seed
    told = killed(crashes, url=any_url, folder=str(tmp_path), kills=kills, seed=seed)
    assert len(told["killed"]) >= kills
    lines = [line.split() for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    assert check_log(lines, told) > 0
    engine = DbosEngine(any_url)
    async with engine:
        for run_id in told["runs"]:
            stands = await engine.status(run_id)
            assert (stands.status, stands.answer, stands.error) == ("completed", "Close", None)
            state = dict(stands.state)
            assert state.pop("done") == DONE
            assert state == {
                "plan_says": "Plan",
                "assess_says": "Assess",
                "close_says": "Close",
                "ok": {"approved": True, "note": ""},
                "count": f"{run_id}:pipeline:s0.s1/count",
                "charge": f"{run_id}:heavy:s1.s1/charge",
                "work": f"{run_id}:twice:s3.s0.l1.s0/work",
            }
            assert transcript(any_url, run_id) == TRANSCRIPT
