"""`adk-fluent run` as a conversation: at a terminal, and piped in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from .conftest import PROGRAM
from .terminal import CTRL_C, CTRL_D, UP, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli, Write

pytestmark = pytest.mark.adk
at_a_terminal = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind"
)

DESK = """
import asyncio, sys
from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel, reply, rule

async def wait(order: str) -> dict:
    \"\"\"Wait long.\"\"\"
    await asyncio.sleep(60)
    return {}

def pay(order: str) -> dict:
    \"\"\"Pay.\"\"\"
    return {}

def asked(word):
    return lambda asked: asked.prompt.split("\\n")[-1] == word

def leave(asked):
    exit(3)

endless = reply(chunks=["and ", "on "] * 10_000, pause=0.02)
model = ScriptedModel(
    rules=[
        rule(asked("wait"), reply=Call("wait", {"order": "1"})),
        rule(asked("pay"), reply=Call("pay", {"order": "1"})),
        rule(asked("fail"), reply=reply(raises=ValueError("no price"))),
        rule(asked("busy"), reply=reply(status=503)),
        rule(asked("leave"), reply=leave),
        rule(asked("talk"), reply=endless),
    ],
    default=lambda asked: f"{len(asked.turns)} turns, heard {asked.prompt}",
)
pipeline = Agent("clerk", model).tool(wait).tool(pay, require_confirmation=True).writes("said")
"""
PROMPT = "\n> "


@pytest.fixture
def desk(write: Write) -> str:
    write("desk.py", DESK)
    return "desk.py"


def terminal(*args: str, **environment: str) -> Terminal:
    plain = {"TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    return Terminal(*PROGRAM, "run", *args, **(plain | environment))


def interrupt(terminal: Terminal) -> None:
    """Press Ctrl-C at a prompt, which readline shows a moment before it listens."""
    time.sleep(1)
    terminal.type(CTRL_C)


def shown(terminal: Terminal, text: str) -> str:
    """What a line leads to, without the line itself and the next prompt."""
    terminal.type(f"{text}\n")
    return terminal.until(PROMPT).removeprefix(f"{text}\n").removesuffix(PROMPT)


# --- piped in ------------------------------------------------------------------------------------


def test_lines_are_messages_of_one_session(desk: str, cli: Cli) -> None:
    done = cli("run", desk, "-i", input="hello\n\nagain\n")
    assert (done.code, done.err) == (0, "")
    assert done.out == "clerk: 1 turns, heard hello\nclerk: 3 turns, heard again\n"


def test_a_message_begins_it(desk: str, here: Cli) -> None:
    done = here("run", desk, "--interactive", "first", input="then")
    assert done.out == "clerk: 1 turns, heard first\nclerk: 3 turns, heard then\n"


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ('"""one\n  two\n"""\n', "one\n  two"),
        ('"""one"""\n', "one"),
        ('"""\n/new\n"""\n', "/new"),
        ('"""one\ntwo', "one\ntwo"),
        (" /slash\n", "/slash"),
        ("Grüße 🙂\r\n", "Grüße 🙂"),
    ],
)
def test_a_message_may_have_several_lines(text: str, heard: str, desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", input=text)
    assert (done.code, done.out) == (0, f"clerk: 1 turns, heard {heard}\n")


def test_an_error_does_not_end_it(desk: str, process: Cli) -> None:
    done = process("run", desk, "-i", input="fail\nbusy\nleave\nstill there?\n")
    assert done.code == 0
    assert done.out.endswith("still there?\n")
    errors = [line for line in done.err.splitlines() if line.startswith("error")]
    assert errors == [
        "error: ValueError: no price",
        "error: Gemini cannot answer now",
        "error[ADKF300]: a step of the pipeline called exit(3)",
    ]
    one = process("run", desk, "fail")
    assert (one.code, one.err in done.err) == (1, True)


def test_a_debugged_error_shows_where_it_comes_from(desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", "--debug", input="fail\n")
    assert (done.code, done.err.count("Traceback (most")) == (0, 1)


def test_what_is_no_text_is_not_sent(desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", input=b"caf\xe9\nhello\n")
    assert (done.code, done.out) == (0, "clerk: 1 turns, heard hello\n")
    assert done.err == "[the message is not UTF-8: surrogates not allowed.]\n"


def test_each_event_may_be_a_line_of_json(desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", "--json", input="hello\n/state\nagain\n")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["content"][:7] for event in events] == ["1 turns", "3 turns"]
    assert json.loads(done.err) == {"said": "1 turns, heard hello"}


def test_what_can_never_run_is_said_before_anything_is_asked(write: Write, here: Cli) -> None:
    write("desk.py", "from adk_fluent import Agent\npipeline = Agent('a', 'gtp-5')")
    done = here("run", "desk.py", "-i", input="hello\n")
    assert (done.code, done.out, done.err.count("error[ADKF")) == (2, "", 1)


# --- commands ------------------------------------------------------------------------------------


def test_commands(desk: str, here: Cli) -> None:
    typed = "/state\nhello\n/state\n/new\n/state\nagain\n/quit\nnever\n"
    done = here("run", desk, "-i", "--state", "tier=gold", input=typed)
    assert done.code == 0
    assert done.out == "clerk: 1 turns, heard hello\nclerk: 1 turns, heard again\n"
    first, said, new = done.err.replace("}\n", "}\0", 2).split("\0")
    assert json.loads(first) == {"tier": "gold"}
    assert json.loads(said) == {"tier": "gold", "said": "1 turns, heard hello"}
    assert new == '[a new session]\n{\n  "tier": "gold"\n}\n'


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "/nwe",
            "[there is no command /nwe: did you mean /new? A message that begins with a slash",
        ),
        ("/xyzzy 1", "[there is no command /xyzzy: There are /answer, /file, /help, /new, /quit, "),
        ("/", "[there is no command /: There are"),
        ("/help", "/file [TYPE:]PATH"),
        ("/file", "[no file waits; give the path of one]"),
        ("/file no.png", "[There is no file no.png.]"),
    ],
)
def test_what_commands_say(typed: str, said: str, desk: str, here: Cli) -> None:
    done = here("run", desk, "-i", input=f"{typed}\n/exit\nnever\n")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(said)


def test_files_go_with_the_next_message(desk: str, here: Cli, place: Path) -> None:
    (place / "a pic.png").write_bytes(b"\x89PNG\xff")
    (place / "notes").write_text("Hi.")
    typed = "/file 'a pic.png'\n/file text/plain:notes\nlook\nand now?\n/file notes\n/file\nthen?\n"
    done = here("run", desk, "-i", "--file", "notes", input=typed)
    assert done.out.startswith(
        "clerk: 1 turns, heard File notes:\n\nHi.\n[image/png 5 bytes]\nFile notes:\n\nHi.\nlook\n"
        "clerk: 3 turns, heard and now?\nclerk: 5 turns, heard then?\n"
    )
    notes, picture = "notes, text/plain, 3 bytes", "a pic.png, image/png, 5 bytes"
    assert done.err.splitlines() == [
        f"[with the next message: {notes}]",
        f"[with the next message: {notes}; {picture}]",
        f"[with the next message: {notes}; {picture}; {notes}]",
        f"[with the next message: {notes}]",
        "[taken back: notes]",
    ]


def test_sessions_that_are_kept(desk: str, here: Cli) -> None:
    call = ("run", desk, "-i", "--session-db", "kept.sqlite")
    done = here(*call, "--session", "s", input="hello\n")
    assert done.err == "[session s is new]\n[go on with --session s]\n"
    done = here(*call, "--session", "s", input="again\n/new\nhello\n")
    assert done.out == "clerk: 3 turns, heard again\nclerk: 1 turns, heard hello\n"
    new, end = done.err.splitlines()
    assert new.startswith("[session ")
    assert end == f"[go on with --session {new.split()[1][:-1]}]"


# --- at a terminal -------------------------------------------------------------------------------


@at_a_terminal
def test_a_conversation_at_a_terminal(desk: str) -> None:
    with terminal(desk, "--session-db", "kept.sqlite", "--session", "s") as person:
        assert person.until(PROMPT) == (
            "[session s is new]\n[/help shows what can be done; Ctrl-D ends it]\n> "
        )
        assert shown(person, "hello") == "clerk: 1 turns, heard hello"
        assert shown(person, "fail").startswith("error: ValueError: no price\n")
        assert shown(person, "/state") == '{\n  "said": "1 turns, heard hello"\n}'
        person.type('"""one\n')
        person.until("\n. ")
        assert shown(person, 'two"""').endswith("heard fail\none\ntwo")
        person.type(f"{UP}{UP}{UP}{UP}{UP}\n")
        assert "heard hello" in person.until(PROMPT)
        person.type(CTRL_D)
        assert person.rest() == "\n[go on with --session s]\n"
    assert person.code == 0


@at_a_terminal
def test_ctrl_c_stops_the_run_and_not_the_conversation(desk: str) -> None:
    with terminal(desk, "--session-db", "kept.sqlite", "--session", "s") as person:
        person.until(PROMPT)
        person.type("talk\n")
        person.until("clerk: and on and on")
        person.type(CTRL_C)
        assert person.until(PROMPT).endswith("[stopped; what was committed before is kept]\n> ")
        person.type("wait\n")
        person.until('[clerk calls wait(order="1")]')
        person.type(CTRL_C)
        assert person.until(PROMPT).endswith("[stopped; what was committed before is kept]\n> ")
        said = shown(person, "still there?")
        assert said.startswith("clerk: ")
        assert said.endswith("heard talk\nwait\nstill there?")
        person.type("not sent")
        person.until("not sent")
        interrupt(person)
        person.until(PROMPT)
        person.type('"""\n')
        person.until("\n. ")
        interrupt(person)
        person.until(PROMPT)
        interrupt(person)
        assert person.rest().endswith("\n[go on with --session s]\n")
    assert person.code == 0


@pytest.mark.full
@at_a_terminal
def test_ctrl_c_twice_ends_even_a_run_that_takes_its_time_to_stop(write: Write) -> None:
    write(
        "desk.py",
        """
        import asyncio
        from adk_fluent import Agent
        from adk_fluent.testing import ScriptedModel

        async def stubborn(asked):
            print("working", flush=True)
            try:
                await asyncio.sleep(60)
            finally:
                print("cleaning up", flush=True)
                await asyncio.sleep(60)

        pipeline = Agent("a", ScriptedModel(default=stubborn))
        """,
    )
    with terminal("desk.py") as person:
        person.until(PROMPT)
        person.type("hello\n")
        person.until("working")
        person.type(CTRL_C)
        person.until("cleaning up")
        person.type(CTRL_C)
        assert person.rest().endswith("interrupted\n")
    assert person.code == 130


@pytest.mark.full
@at_a_terminal
def test_a_person_who_waits_sees_what_is_at_work(desk: str) -> None:
    with terminal(desk, "hello", "-i", TERM="xterm") as person:
        first = person.until("> ")
        assert "getting ready" in first
        assert "\x1b[36m\x1b[1mclerk\x1b[0m: 1 turns" in first
        person.type("wait\n")
        assert "clerk" in person.until("clerk: wait")
        person.type(CTRL_C)
        person.until("> ")
        person.type(CTRL_D)
        person.rest()
    assert person.code == 0


@at_a_terminal
@pytest.mark.parametrize(
    "environment",
    [{"TERM": "xterm", "NO_COLOR": "1"}, pytest.param({"TERM": "dumb"}, marks=pytest.mark.full)],
)
def test_colors_are_left_out_where_they_are_not_wanted(
    environment: dict[str, str], desk: str
) -> None:
    with terminal(desk, "hello", **environment) as person:
        text = person.rest()
    assert person.code == 0
    assert "clerk: 1 turns, heard hello\n" in text
    assert "\x1b[3" not in text
    assert "\x1b[1m" not in text


@at_a_terminal
def test_answers_may_go_into_a_file_while_a_person_talks(desk: str, place: Path) -> None:
    command = f"exec {' '.join(PROGRAM)} run {desk} > answers.txt"
    with Terminal("sh", "-c", command, TERM="dumb", PYTHONIOENCODING="utf-8") as person:
        person.until("\n> ")
        person.type("hello\n")
        person.until("> ")
        person.type(CTRL_D)
        person.rest()
    assert person.code == 0
    assert (place / "answers.txt").read_text() == "clerk: 1 turns, heard hello\n"


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="there is no Ctrl-C for one process on Windows")
def test_ctrl_c_ends_what_is_piped_in(desk: str) -> None:
    command = [*PROGRAM, "run", desk, "-i", "hello"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"clerk: 1 turns, heard hello\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=20)
    assert (running.returncode, errors.split()) == (130, [b"interrupted"])
