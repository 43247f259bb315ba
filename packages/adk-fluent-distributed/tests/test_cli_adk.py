"""The commands ``submit``, ``status``, ``answer`` and ``cancel``, and wrong use of ``worker``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from distributed_jobs import asks

from adk_fluent import Agent
from adk_fluent.cli import main
from adk_fluent.distributed import DbosEngine, DistributedRunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import State

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]
TARGET = f"{Path(__file__).with_name('distributed_jobs.py')}:asks"
Run = tuple[int, str, str]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.sqlite'}"


@pytest.fixture
def cli(url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    def run(command: str, *args: str) -> Run:
        code = called(command, *args, "--database", url)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def called(*args: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def work(url: str) -> None:
    """Run what is submitted until it rests."""

    async def serve() -> None:
        async with DbosEngine(url, poll_seconds=0.02) as engine:
            engine.register(asks)
            serving = asyncio.create_task(engine.serve())
            async with asyncio.timeout(30):
                while not (await engine.status("r")).is_over:  # noqa: ASYNC110  # of another process
                    await asyncio.sleep(0.02)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())


def test_a_run_from_its_submission_to_its_end(cli: Callable[..., Run], url: str) -> None:
    submitted = "r: running in segment pipeline\n"
    assert cli("submit", TARGET, "Go.", "--run-id", "r", "--state", "n=1") == (0, submitted, "")
    assert cli("submit", TARGET, "Go.", "--run-id", "r") == (0, submitted, "")
    work(url)
    assert cli("status", "r") == (
        0,
        "r: waiting in segment pipeline\n  ok asks: Go on?\nOne.\n",
        "",
    )
    told: dict[str, Any] = json.loads(cli("status", "r", "--json")[1])
    assert list(told) == ["run_id", "status", "segment", "answer", "state", "pending", "error"]
    assert (told["state"], told["pending"][0]["name"], told["error"]) == ({"n": 1}, "ok", None)
    code, _, err = cli("answer", "r")
    assert (code, "waits for an answer, and none was given" in err) == (1, True)
    code, _, err = cli("answer", "r", "okay=yes")
    assert (code, "has no open question 'okay'" in err) == (1, True)
    code, _, err = cli("answer", "r", "ok=perhaps")
    assert (code, "is no answer to gate 'ok'" in err) == (2, True)
    assert cli("answer", "r", "ok=yes")[:2] == (0, submitted)
    assert json.loads(cli("status", "r", "--json")[1])["state"] == {"n": 1}  # of its last rest
    work(url)
    assert cli("status", "r") == (0, "r: completed in segment pipeline\nTwo.\n", "")
    code, _, err = cli("answer", "r", "ok=yes")
    assert (code, "has no open question for this answer" in err) == (1, True)


def test_a_run_that_failed_is_told(
    cli: Callable[..., Run], url: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(state: State) -> None:
        raise ValueError("no network")

    async def run() -> None:
        async with DbosEngine(url) as engine:
            with pytest.raises(DistributedRunError):
                await engine.run(Agent("first").mock("One.") >> fails, "Go.", run_id="r")

    asyncio.run(run())
    assert "run r failed in segment pipeline: ValueError: no network" in caplog.text
    code, out, _ = cli("status", "r")
    assert (code, "ValueError: no network" in out) == (1, True)
    assert "adk-fluent answer r goes on with it" in out


def test_a_run_is_cancelled_before_a_worker_takes_it(cli: Callable[..., Run]) -> None:
    cli("submit", TARGET, "Go.", "--run-id", "r")
    assert cli("cancel", "r")[:2] == (0, "r: cancelled in segment pipeline\n")
    assert json.loads(cli("status", "r", "--json")[1])["status"] == "cancelled"


def test_wrong_use(cli: Callable[..., Run], tmp_path: Path) -> None:
    code, _, err = cli("status", "r")
    assert (code, "there is no such database of runs" in err) == (3, True)
    assert not (tmp_path / "runs.sqlite").exists()
    code, _, err = cli("submit", TARGET, "Go.", "--state", "n")
    assert (code, "--state takes KEY=VALUE" in err) == (2, True)
    cli("submit", TARGET, "Go.", "--run-id", "r")
    code, _, err = cli("status", "other")
    assert (code, "there is no run 'other'" in err) == (1, True)
    code, _, err = cli("worker", TARGET, "--segment", "light")
    assert (code, "has no segment 'light'" in err) == (2, True)
    plain = tmp_path / "plain.py"
    plain.write_text("from adk_fluent import Agent\npipeline = Agent('a').mock('A')\n", "utf-8")
    code, _, err = cli("worker", str(plain), "--segment", "light")  # without an attribute
    assert (code, "has no segment 'light'" in err) == (2, True)


def test_another_database(capsys: pytest.CaptureFixture[str]) -> None:
    assert called("status", "r", "--database", "mysql://u:pa55@host/db") == 3
    err = capsys.readouterr().err
    assert "DbosEngine takes the url of a SQLite file" in err
    assert "pa55" not in err
