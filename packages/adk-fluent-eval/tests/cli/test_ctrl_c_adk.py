"""Ctrl-C while ``adk-fluent eval run`` is at work, at a real terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from adk_fluent.eval import FluentEvalReport

from .terminal import CTRL_C, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Write

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminals"),
]

PROGRAM = [sys.executable, "-m", "adk_fluent.cli", "eval", "run", "slow.py"]
SLOW = """
import asyncio, os, threading, time
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import Call, ScriptedModel

async def wait(order: str) -> dict:
    "Wait for long, unless there is a file that says not to."
    while not os.path.exists("go"):
        await asyncio.sleep(0.05)
    return {}

def block(order: str) -> dict:
    "Let nobody else run."
    print("blocking now", flush=True)
    time.sleep(600)
    return {}

async def thread(order: str) -> dict:
    "Wait in a thread, which nothing can end."
    print("in a thread now", flush=True)
    await asyncio.to_thread(time.sleep, 600)
    return {}

async def swallow(order: str) -> dict:
    "Go on whatever happens."
    print("swallowing now", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

def say(asked):
    last = asked.raw.contents[-1].parts[0]
    word = asked.prompt.split()[0]
    is_over = last.function_response is not None or word == "hello"
    return "bye" if is_over else Call(word, {"order": "1"})

desk = Agent("desk", model=ScriptedModel(default=say))
desk = desk.tool(wait).tool(block).tool(thread).tool(swallow)
quick = [FluentCase(f"hello {n}", id=f"quick{n}", expected_response_contains="bye") for n in (1, 2)]

def suite(word):
    slow = FluentCase(f"{word} please", id="slow", expected_response_contains="bye")
    return FluentEvalSuite("slow", desk, [*quick, slow])

waiting, blocking, threading = suite("wait"), suite("block"), suite("thread")
swallowing = suite("swallow")
both = [waiting, FluentEvalSuite("other", desk, quick)]
"""


@pytest.fixture(autouse=True)
def slow(write: Write) -> None:
    write("slow.py", SLOW)


def _at_terminal(name: str, *args: str) -> Terminal:
    return Terminal([*PROGRAM[:-1], f"slow.py:{name}", *args])


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(place: Path) -> None:
    args = ("--json", "r.json", "--html", "r.html", "--journal", "j.jsonl")
    with _at_terminal("waiting", *args) as terminal:
        terminal.wait_for("2/3")
        terminal.press(CTRL_C)
        terminal.wait_for("stopping; what is done is kept. Ctrl-C again ends at once.")
        code = terminal.end()
        assert "\x1b[?25h" in terminal.shown  # the cursor is back
    assert code == 130
    assert "not passed, incomplete" in terminal.shown
    assert "written: r.json, r.html" in terminal.shown
    assert "interrupted with 2 runs done; j.jsonl keeps what is done" in terminal.shown
    report = FluentEvalReport.load(place / "r.json")
    assert report.interrupted
    assert [each.id for each in report.outcomes] == ["quick1", "quick2"]
    (place / "go").touch()
    with _at_terminal("waiting", *args) as terminal:
        assert terminal.end() == 0
    report = FluentEvalReport.load(place / "r.json")
    assert report.ok
    assert len(report.outcomes) == 3


def test_ctrl_c_begins_no_other_suite(place: Path) -> None:
    with _at_terminal("both", "--json", "r.json") as terminal:
        terminal.wait_for("2/3")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert (place / "r.slow.json").exists()
    assert not (place / "r.other.json").exists()


def test_without_a_journal_it_is_said_how_to_go_on(place: Path) -> None:
    with _at_terminal("waiting") as terminal:
        terminal.wait_for("2/3")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert "next time give --journal FILE" in terminal.shown
    assert "Traceback" not in terminal.shown


STUBBORN = pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("blocking", "blocking now"),
        ("threading", "in a thread now"),
        ("swallowing", "swallowing now"),
    ],
)


def _kept(place: Path) -> None:
    """What was done is there, and nothing is half written."""
    assert (place / "j.jsonl").read_text("utf-8").count("\n") == 3
    report = FluentEvalReport.load(place / "r.json")
    assert report.interrupted
    assert [each.id for each in report.outcomes] == ["quick1", "quick2"]
    assert (place / "r.html").read_text("utf-8").rstrip().endswith("</html>")
    assert (place / "r.xml").read_text("utf-8").count("<testcase") == 2
    assert not list(place.glob(".adk-fluent-*"))


KEEPING = ("--json", "r.json", "--html", "r.html", "--junit", "r.xml", "--journal", "j.jsonl")


@STUBBORN
def test_ctrl_c_twice_ends_at_once_whatever_hangs(place: Path, name: str, sign: str) -> None:
    with _at_terminal(name, *KEEPING, "--parallelism", "1") as terminal:
        terminal.wait_for(sign)
        terminal.press(CTRL_C)
        terminal.wait_for("stopping")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert "\x1b[?25h" in terminal.shown
    assert "interrupted with 2 runs done; j.jsonl keeps what is done" in terminal.shown
    _kept(place)


@STUBBORN
def test_sigterm_keeps_what_is_done_whatever_hangs(place: Path, name: str, sign: str) -> None:
    command = [*PROGRAM[:-1], f"slow.py:{name}", *KEEPING, "--parallelism", "1"]
    assert _ended(place, command, sign, signal.SIGTERM) == 143
    _kept(place)


def test_sigterm_is_like_ctrl_c(place: Path) -> None:
    command = [*PROGRAM[:-1], "slow.py:waiting", *KEEPING]
    assert _ended(place, command, "2 of 3 runs", signal.SIGTERM) == 143
    _kept(place)


def test_another_signal_after_ctrl_c_writes_at_once(place: Path) -> None:
    command = [*PROGRAM[:-1], "slow.py:swallowing", *KEEPING, "--parallelism", "1"]
    assert _ended(place, command, "swallowing now", signal.SIGINT, signal.SIGTERM) == 130
    _kept(place)


def test_an_event_loop_that_takes_the_signals_for_itself(write: Write, place: Path) -> None:
    taking = """    import signal
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)
    print("swallowing now", flush=True)
"""
    write("slow.py", SLOW.replace('    print("swallowing now", flush=True)\n', taking))
    command = [*PROGRAM[:-1], "slow.py:swallowing", *KEEPING, "--parallelism", "1"]
    assert _ended(place, command, "swallowing now", signal.SIGINT, signal.SIGINT) == 130
    _kept(place)


def test_a_standard_output_that_nobody_reads_holds_up_nothing(write: Write, place: Path) -> None:
    gone = "\nread, out = os.pipe()\nos.dup2(out, 1)\nos.close(read)\n"  # as of a `tee` that ended
    write("slow.py", SLOW + gone)
    command = [*PROGRAM[:-1], "slow.py:swallowing", *KEEPING, "--parallelism", "1"]
    assert _ended(place, command, "swallowing now", signal.SIGINT, signal.SIGINT) == 130
    _kept(place)
    said = (place / "err").read_text("utf-8")
    assert "Traceback" not in said
    assert said.count("error: BrokenPipeError: ") == 1
    assert "interrupted with 2 runs done; j.jsonl keeps what is done" in said


def test_a_report_for_standard_output_gets_there_whatever_hangs(place: Path) -> None:
    command = [*PROGRAM[:-1], "slow.py:blocking", "--json", "-", "--parallelism", "1"]
    assert _ended(place, command, "blocking now", signal.SIGINT, signal.SIGINT) == 130
    (place / "r.json").write_bytes((place / "out").read_bytes())
    assert len(FluentEvalReport.load(place / "r.json").outcomes) == 2


def _ended(place: Path, command: list[str], sign: str, *signals: signal.Signals) -> int:
    """The exit code of a process without a terminal that gets signals once it says something."""
    with (
        (place / "err").open("w+b") as err,
        (place / "out").open("w+b") as out,
        subprocess.Popen(command, stderr=err, stdout=out) as process,
    ):
        try:
            _await(place / "err", sign)
            for number, each in enumerate(signals):
                if number:
                    _await(place / "err", "stopping")
                os.kill(process.pid, each)
            return process.wait(60)
        finally:
            process.kill()


def _await(file: Path, text: str) -> None:
    for _ in range(600):
        if text.encode() in file.read_bytes():
            return
        time.sleep(0.1)
    pytest.fail(f"{text!r} is not in {file.read_text('utf-8')!r}")


def test_ctrl_c_before_anything_runs(write: Write) -> None:
    write("slow.py", "import time\nprint('importing', flush=True)\ntime.sleep(600)\n")
    with Terminal(PROGRAM) as terminal:
        terminal.wait_for("importing")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert "interrupted" in terminal.shown
    assert "Traceback" not in terminal.shown


def test_a_signal_without_a_terminal_is_the_same(place: Path) -> None:
    command = [*PROGRAM[:-1], "slow.py:waiting", "--json", "r.json"]
    assert _ended(place, command, "2 of 3 runs", signal.SIGINT) == 130
    assert len(FluentEvalReport.load(place / "r.json").outcomes) == 2


def test_the_bar_shows_what_fails(write: Write) -> None:
    write("slow.py", SLOW.replace('contains="bye") for n', 'contains="ciao") for n'))
    with _at_terminal("blocking", "--case", "quick1") as terminal:
        assert terminal.end() == 1
    assert 'quick1: answer contains of turn 1: the answer does not contain "ciao"' in terminal.shown
    assert "0 passed, 1 failed" in terminal.shown
