"""`adk-fluent demo` on ADK: fifty tickets, offline, to the end, whatever happens on the way."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from adk_fluent import demo
from adk_fluent.cli import main
from adk_fluent.cli._keys import CLOUD, KEYS
from adk_fluent.config import ExecutionConfig
from adk_fluent.demo import Database, Outcome, support_desk, tickets, work_off
from adk_fluent.demo._work import CONFIG
from adk_fluent.testing import Script, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

PROGRAM = [sys.executable, "-m", "adk_fluent.cli", "demo"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (*KEYS, *CLOUD, "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def work(path: Path, config: ExecutionConfig = CONFIG) -> list[Outcome]:
    model = ScriptedModel(script=demo.script())
    desk = support_desk(Database(path), model, model)
    outcomes = [outcome async for outcome in work_off(desk, tickets(), config=config)]
    return sorted(outcomes, key=lambda outcome: outcome.ticket.id)


def facts(outcome: Outcome) -> tuple[object, ...]:
    return (
        outcome.ticket.id,
        outcome.category,
        outcome.reply,
        outcome.drafts,
        outcome.backup,
        outcome.model_calls,
        outcome.tool_calls,
        outcome.error,
    )


@pytest.mark.full
async def test_the_same_tickets_twice_have_the_same_outcomes(place: Path) -> None:
    once, again = await work(place / "1.sqlite"), await work(place / "2.sqlite")
    assert list(map(facts, once)) == list(map(facts, again))
    assert all(outcome.error is None for outcome in once)
    assert sum(outcome.category == outcome.ticket.expected for outcome in once) >= 46
    assert sum(outcome.drafts > 1 for outcome in once) >= 3
    assert sum(outcome.backup for outcome in once) == 7
    assert all(outcome.tool_calls >= 1 for outcome in once)
    assert all(outcome.tokens > 0 for outcome in once)


@pytest.mark.full
async def test_streamed_it_comes_to_the_same(place: Path) -> None:
    whole = await work(place / "1.sqlite")
    streamed = await work(place / "2.sqlite", ExecutionConfig(streaming_mode="sse"))
    assert list(map(facts, streamed)) == list(map(facts, whole))


async def test_a_ticket_is_answered_as_it_should_be(place: Path) -> None:
    outcomes = {outcome.ticket.id: outcome for outcome in await work(place / "1.sqlite")}
    assert outcomes["T02"].reply == (
        "Hello Ben, thank you for writing about “Cannot connect”. Known issue (red light): "
        "Unplug the hub for ten seconds, then hold the button until it turns blue. "
        "We will get back to you within one working day."
    )
    angry = outcomes["T28"]
    assert (angry.drafts, angry.backup) == (2, True)
    assert "I am sorry for the trouble. Orders: 1028" in angry.reply
    assert outcomes["T50"].reply.startswith("Hello, thank you")  # no customer, no name


def test_all_fifty_tickets_in_a_process_of_its_own(place: Path) -> None:
    command = [*PROGRAM, "--database", "desk.sqlite"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    title, *lines = done.stdout.splitlines()
    assert title == "Support desk: 50 tickets on the built-in scripted model, offline"
    answered = [line.split()[1] for line in lines if line.startswith("✓ ")]
    assert sorted(answered) == [ticket.id for ticket in tickets()]
    told = dict(re.findall(r"^(\w+(?: \w+)?) {2,}(.+)$", done.stdout, re.MULTILINE))
    assert told["Ran on"] == "the built-in scripted model, offline"
    assert told["Tickets"] == "50 answered, 0 failed"
    assert told["Replies"] == "50 filed in desk.sqlite"
    assert int(told["Classified"].split()[0]) >= 46
    assert "of 50 as a person would" in told["Classified"]
    assert told["Fallback"] == "7 by the backup model"
    assert "because the review asked for it" in told["Drafts"]
    assert int(told["Tool calls"].split()[0]) > 50
    with closing(sqlite3.connect(place / "desk.sqlite")) as db:
        rows = db.execute("SELECT ticket, category, reply FROM replies ORDER BY ticket").fetchall()
    assert [row[0] for row in rows] == [ticket.id for ticket in tickets()]
    assert all(category and reply.startswith("Hello") for _, category, reply in rows)


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["demo", *args])
    assert isinstance(ended.value.code, int)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_fewer_tickets_and_their_replies(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    code, out, _ = run(capsys, "--tickets", "3", "--show", "--offline")
    assert code == 0
    assert "Support desk: 3 tickets" in out
    assert "3 answered, 0 failed" in out
    assert "\nT03 Password reset\nHello Chloe, thank you for writing" in out
    assert list(place.iterdir()) == []


def test_a_ticket_that_fails_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(
        rules=[
            rule("Ticket: T02", agent="classify", reply=reply(status=400)),
            rule("Ticket: T04", agent="review", reply=ValueError("[bold]no[/bold]\x1b[2J")),
        ],
        default=demo.script().answer,
    )
    monkeypatch.setattr(demo, "script", lambda: script)
    code, out, err = run(capsys, "--tickets", "6")
    assert (code, err) == (1, "")
    assert "4 answered, 2 failed" in out
    assert re.search(r"^✗ T02 400 INVALID_ARGUMENT: scripted", out, re.MULTILINE)
    assert re.search(r"^✗ T04 ValueError: \[bold\]no\[/bold\]\[2J$", out, re.MULTILINE)
    assert "4 filed" in out
    assert len(re.findall(r"^✓ T", out, re.MULTILINE)) == 4


def test_a_real_run_needs_a_key_before_it_begins(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    code, out, err = run(capsys, "--real", "--database", "desk.sqlite")
    assert (code, out) == (3, "")
    assert "a real run uses Gemini, and there is no key" in err
    assert "run it with --offline" in err
    assert list(place.iterdir()) == []


def test_a_model_that_adk_does_not_know_stops_it_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "never-used")
    code, out, err = run(capsys, "--model", "gimini-9", "--tickets", "2")
    assert code == 2
    assert out == "Support desk: 2 tickets on gimini-9, backup gemini-2.5-flash-lite\n"
    assert "ADK knows no model 'gimini-9'" in err


def test_a_database_that_is_there_is_left_alone(
    capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    path = place / "mine.sqlite"
    path.write_text("mine")
    code, out, err = run(capsys, "--database", str(path))
    assert (code, out) == (2, "")
    assert "mine.sqlite exists; name a new file." in err
    assert path.read_text() == "mine"
    code, _, err = run(capsys, "--database", str(place / "no" / "desk.sqlite"))
    assert (code, "cannot be made: unable to open database file" in err) == (2, True)


@pytest.mark.full
def test_ascii_is_enough(place: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [*PROGRAM, "--tickets", "23", "--show"]
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\n+ T01 billing    Charged twice\n" in done.stdout
    assert rb"+ T23 account    \u5220" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="there is no Ctrl-C for one process on Windows")
def test_after_ctrl_c_what_is_done_is_told(place: Path) -> None:
    with subprocess.Popen(PROGRAM, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        while not running.stdout.readline().startswith("✓".encode()):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130
    assert re.search(rb"Tickets +\d+ answered, 0 failed, \d+ not begun or not finished", out)
    assert err.decode().split() == ["interrupted"]


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo-terminals on Windows")
def test_progress_is_shown_on_a_terminal(place: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    shown = b""
    with subprocess.Popen(PROGRAM, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # Linux says so when the other side is closed
            assert running.wait(timeout=30) == 0
        os.close(ours)
    assert running.returncode == 0
    text = shown.decode()
    assert "\x1b[32m✓" in text
    assert re.search(r"\b[1-9]\d?/50", text)
    assert re.search(r"T\d\d (classify|customer|draft|review)", text)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert max(map(len, re.split(r"[\r\n]+", plain))) <= 100
