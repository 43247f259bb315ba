"""Lists of runs: in a terminal, live, for programs, and as a page."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, cast

import pytest
from distributed_jobs import asks
from google.genai import types

from adk_fluent import Agent
from adk_fluent.cli import main
from adk_fluent.distributed import DbosEngine, DistributedRunError, RunSummary, WorkerSummary
from adk_fluent.distributed._page import page
from adk_fluent.distributed._watch import table, watch
from adk_fluent.errors import UsageError
from adk_fluent.extend import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adk_fluent.builders import State

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
#: What of each file names runs.
TABLES = {
    "runs": ("workflow_uuid from workflow_status", "workflow_uuid from operation_outputs"),
    "runs.sessions": (
        "session from adk_fluent_sessions",
        "session from adk_fluent_events",
        "session from adk_fluent_artifacts",
    ),
}
HOSTILE = "</td><script>alert(1)</script>\x1b[2J\" onload='x' &"


def fails(state: State) -> None:
    raise ValueError(HOSTILE)


async def three_runs(url: str) -> None:
    async with DbosEngine(url) as engine:
        await engine.run(asks, "Go.", run_id="asks")
        with pytest.raises(DistributedRunError):
            await engine.run(Agent("first").mock("One.") >> fails, "Go.", run_id="fails")
        await engine.submit(Agent("later").mock("L"), "Go.", run_id="Queued")


def called(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["status", *args])
    told = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, told.out, told.err


class Seen(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_all_runs_in_each_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    asyncio.run(three_runs(url))
    capsys.readouterr()
    code, out, _ = called(capsys, "--database", url)
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "3 runs: 1 failed, 1 waiting, 1 running")
    assert lines[1].split() == ["RUN", "STATUS", "SEGMENT", "CALLS"]
    assert [line.split()[:4] for line in lines[2:]] == [
        ["fails", "failed", "pipeline", "1"],
        ["asks", "waiting", "pipeline", "1"],
        ["Queued", "running", "later", "1"],
    ]
    assert "ValueError: </td><script>" in lines[2]
    assert "asks: ok" in lines[3]
    assert "\x1b" not in out
    told: list[dict[str, Any]] = json.loads(called(capsys, "--database", url, "--json")[1])
    assert {each["run_id"]: each["asks"] for each in told}["asks"] == ["ok"]
    assert len(json.loads(called(capsys, "--database", url, "--json", "--limit", "2")[1])) == 2

    file = tmp_path / "runs.html"
    code, out, err = called(capsys, "--database", url, "--html", str(file))
    assert (code, out, err) == (0, "", f"[wrote {file}]\n")
    seen = Seen(file.read_text("utf-8"))
    assert not seen.tags & {"script", "img", "link", "iframe", "object"}
    assert not {each for each in seen.attributes if each.startswith("on")} | (
        seen.attributes & {"src", "href"}
    )
    assert "<script>alert(1)</script>" in seen.text  # as text

    code, out, _ = called(capsys, "fails", "--watch", "--database", url)  # it is over
    assert (code, out.startswith("fails: failed in segment pipeline (ValueError")) == (0, True)
    for wrong in (
        ["asks", "--html", "x"],
        ["--watch", "--json"],
        ["--html", str(tmp_path / "no/x")],
    ):
        assert called(capsys, *wrong, "--database", url)[0] == 2
    code, _, err = called(capsys, "ASKS", "--watch", "--database", url)
    assert (code, "there is no run 'ASKS'" in err) == (1, True)


async def test_a_row_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    async with DbosEngine(url) as engine:
        for name in ("r1", "r2"):
            await engine.run(Agent("a").mock("A"), "Go.", run_id=name)
        with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db, db:
            db.execute("update workflow_output set output = '[1]' where workflow_uuid like 'r1%'")
        found = {each.run_id: each for each in await engine.runs()}
        assert [(await engine.runs(run_id="r2"))[0].status, found["r2"].status] == ["completed"] * 2
        assert (found["r1"].status, "holds no result" in found["r1"].error) == ("failed", True)
        (worker,) = await engine.workers()
        assert (worker.is_alive, worker.segments) == (True, ("*",))  # all, of runs of `run`
        with pytest.raises(UsageError, match="limit= is a whole number"):
            await engine.runs(limit=0)


def test_a_page_of_many_runs() -> None:
    runs = [
        RunSummary(f"r{n}", ("completed", "failed")[n % 50 == 0], "a", 3, "w", 1e9 + n)
        for n in range(10_000)
    ]
    workers = [WorkerSummary("<b>w", ("a",), 3.0, is_alive=False)]
    made = page("postgresql://h/<x>", runs, workers, limit=10_000, now=2e9)
    assert len(made) < 4_000_000
    assert made.count('<tr class="run ') == 10_000
    assert made.index('class="run failed"') < made.index('class="run completed"')
    assert "10,000 runs, the newest 10,000, as of 2033-05-18 03:33:20 UTC" in made
    assert "<b>" not in made
    assert "<x>" not in made
    assert "There are no runs." in page("sqlite:///r", [], [], limit=1, now=0)


async def test_a_change_is_told_once_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    looks = [["running"], ["running"], ["failed"]]

    async def read() -> list[RunSummary]:
        status: Any = looks.pop(0)[0]
        return [RunSummary("r", status, "a", 1, "", 1.0, error="" if looks else HOSTILE)]

    def over(runs: Sequence[RunSummary]) -> bool:
        return not looks

    await watch(read, seconds=0.001, over=over)
    assert capsys.readouterr().out.splitlines() == [
        "r: running in segment a",
        f"r: failed in segment a ({one_line(HOSTILE)})",
    ]
    assert "\x1b" not in one_line(HOSTILE)
    assert table([])[0] == "RUN  STATUS  SEGMENT  CALLS"


@pytest.mark.skipif(sys.platform != "linux", reason="pseudo terminals, SIGINT")
def test_a_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"

    async def submit() -> None:
        async with DbosEngine(url) as engine:
            await engine.submit(Agent("later").mock("L"), "Go.", run_id="r")

    asyncio.run(submit())
    ours, its = pty.openpty()
    command = [sys.executable, "-W", "ignore", "-m", "adk_fluent.cli", "status", "--watch"]
    process = subprocess.Popen(
        [*command, "--database", url], stdout=its, stderr=subprocess.PIPE, cwd=tmp_path
    )
    os.close(its)
    told = b""
    while b"later" not in told:
        told += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    while b"\x1b[?1049l" not in told:
        told += os.read(ours, 4096)
    _, errors = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, errors) == (0, b"")
    assert told.startswith(b"\x1b[?1049h\x1b[H")
    assert b"1 run: 1 running" in told


def test_runs_that_ended_are_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, pipeline = f"sqlite:///{tmp_path / 'runs.sqlite'}", Agent("far").mock("F")

    async def runs() -> None:
        await three_runs(url)
        async with DbosEngine(url) as engine:
            picture = types.Part.from_bytes(data=b"x" * 70_000, mime_type="image/png")
            await engine.run(pipeline.execution_boundary() >> pipeline, picture, run_id="done")
            await engine.submit(Agent("later").mock("L"), "Go.", run_id="dropped")
            await engine.cancel("dropped")

    def pruned(*args: str) -> tuple[str, dict[str, set[str]]]:
        with pytest.raises(SystemExit) as ended:
            main(["prune", *args, "--database", url])
        assert not ended.value.code
        kept = dict[str, set[str]]()
        for file in ("runs", "runs.sessions"):
            with closing(sqlite3.connect(tmp_path / f"{file}.sqlite")) as db:
                for table in TABLES[file]:
                    kept[table] = {
                        id for (id,) in db.execute(f"select distinct {table}")
                    }  # of ours
        return capsys.readouterr().out, kept

    asyncio.run(runs())
    said, kept = pruned("1d")
    assert said == "removed: no runs\n"
    dry, same = pruned("0s", "--dry-run")
    assert (same, "done" in dry, "dropped" in dry) == (kept, True, True)
    said, kept = pruned("0s")
    assert said == "removed: 2 runs: 1 cancelled, 1 completed\n"
    stay = {"asks", "fails", "Queued"}
    for found in kept.values():
        assert {id.partition("#")[0] for id in found} <= stay
    assert {id.partition("#")[0] for id in kept["workflow_uuid from workflow_status"]} == stay

    async def go_on() -> None:
        async with DbosEngine(url) as engine:
            (question,) = (await engine.status("asks")).pending
            await engine.answer("asks", question.answer(True))
            assert (await engine.run(asks, "Go.", run_id="asks")).text == "Two."
            assert (await engine.cancel("fails")).status == "cancelled"
            removed = await engine.prune(timedelta(0))
            assert {each.run_id for each in removed} == {"asks", "fails"}
            with pytest.raises(UsageError, match="how long ago"):
                await engine.prune(cast("Any", 30))

    asyncio.run(go_on())


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1.5h", "1w"])
def test_an_age_of_no_use(age: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["prune", "--", age])
    assert ended.value.code
    assert f"{age!r} is no age" in capsys.readouterr().err
