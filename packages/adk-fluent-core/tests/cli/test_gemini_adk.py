"""`adk-fluent run` on Gemini: every way in which it fails says what to do, and loses nothing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from adk_fluent.testing import Call, GeminiEmulator, reply

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.testing import Reply

    from .conftest import Cli, Done, Write

pytestmark = pytest.mark.adk

DESK = """
from adk_fluent import Agent

def look_up(order: str) -> dict:
    \"\"\"Look an order up.\"\"\"
    return {"order": order}

pipeline = (
    Agent("first", "gemini-2.5-flash").instruct("Sum up.").tool(look_up).writes("fact")
    >> Agent("second", "gemini-2.5-flash").instruct("Polish.")
)
"""
KEY = "key-of-somebody"
KEPT = ("--session-db", "kept.sqlite", "--session", "s")


class Run(Protocol):
    def __call__(
        self, gemini: GeminiEmulator, *args: str, input: str = "", **environment: str
    ) -> Done: ...


@pytest.fixture
def run(here: Cli, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in this process, answered by the emulator."""

    def run(gemini: GeminiEmulator, *args: str, input: str = "", **environment: str) -> Done:
        for name, value in (gemini.env | environment).items():
            monkeypatch.setenv(name, value)
        return here("run", "desk.py", *args, input=input)

    return run


@dataclass
class Failure:
    """How Gemini fails, and what is said about it."""

    code: int
    said: tuple[str, ...]
    reply: Reply | None = None  # of the second agent
    option: str = "--no-stream"
    emulator: dict[str, Any] = field(default_factory=dict[str, Any])


BROKEN = ("the answer of Gemini broke off, or cannot be read", "try again")
FAILURES = {
    "a key that does not exist": Failure(
        3,
        ("Gemini rejects the key", "400 INVALID_ARGUMENT: API key", "the key in GOOGLE_API_KEY"),
        emulator={"keys": ["another"]},
    ),
    "a key that may not": Failure(
        3,
        ("Gemini refuses access", "403 PERMISSION_DENIED", "the key in GOOGLE_API_KEY"),
        emulator={"denied": [KEY]},
    ),
    "no such model": Failure(
        3,
        ("Gemini does not have this model", "models/gemini-2.5-flash is not", "check the name"),
        emulator={"models": ["gemini-9"]},
    ),
    "no quota": Failure(
        3,
        ("Gemini's quota is used up", "found: 429 RESOURCE_EXHAUSTED: ", " wait"),
        reply(status=429, retry_after=30),
    ),
    "overload": Failure(
        3, ("Gemini cannot answer now", "found: 503 UNAVAILABLE: ", "try again"), reply(status=503)
    ),
    "a type it does not take": Failure(
        1,
        (
            "Gemini does not take this type of file",
            "Unsupported MIME type: application/zip",
            "TYPE/SUBTYPE:PATH",
        ),
        reply(status=400, error_message="Unsupported MIME type: application/zip"),
    ),
    "a request it does not take": Failure(
        1,
        ("Gemini refuses the request", "found: 400 INVALID_ARGUMENT: Too many", "change what"),
        reply(status=400, error_message="Too many parts."),
    ),
    **{
        f"{fault} {stream}": Failure(
            3, BROKEN, reply("Hello.", chunks=["Hel", "lo."], fault=fault), option=stream
        )
        for fault in ("cut", "truncated", "bad_json", "html")
        for stream in ("--stream", "--no-stream")
    },
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_gemini_says_instead_of_an_answer(
    run: Run, case: str, write: Write, place: Path
) -> None:
    failure = FAILURES[case]
    write("desk.py", DESK)
    call = ("hi", failure.option, *KEPT)
    with GeminiEmulator("First.", failure.reply or "Second.", **failure.emulator) as gemini:
        done = run(gemini, *call, GOOGLE_API_KEY=KEY)
    assert done.code == failure.code, done.err
    new, kept, error, *rest = done.err.splitlines()
    assert new == "[session s is new]"
    assert kept == "[what was committed is kept; go on with --session s]"
    assert error.startswith("error: ")
    for text in failure.said:
        assert text in "\n".join([error, *rest])
    agent = "second" if failure.reply else "first"
    assert rest[-1].startswith(f"  in node '{agent}' at ")
    assert rest[0].startswith("  found: ")
    assert any(line.startswith("  help: ") for line in rest)
    assert "Traceback" not in done.err
    assert KEY not in done.err

    with closing(sqlite3.connect(place / "kept.sqlite")) as db:
        rows = db.execute("SELECT event_data FROM events ORDER BY rowid").fetchall()
    authors = [event["author"] for (row,) in rows if (event := json.loads(row)).get("content")]
    assert authors == (["user", "first"] if failure.reply else ["user"])


def test_a_session_goes_on_when_gemini_is_back(run: Run, write: Write) -> None:
    write("desk.py", DESK)
    with GeminiEmulator("First.", reply(chunks=["Half ", "of"], fault="cut")) as gemini:
        assert run(gemini, "hi", "--stream", *KEPT).out.startswith("first: First.\nsecond: Half")
    with GeminiEmulator("First again.", "Second again.") as gemini:
        again = run(gemini, "hi again", *KEPT)
        turns = [turn.text for turn in gemini.requests[0].turns]
    assert (again.code, again.err) == (0, "")
    assert again.out == "first: First again.\nsecond: Second again.\n"
    assert turns == ["hi", "First.", "hi again"]


def test_gemini_out_of_reach(here: Cli, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("desk.py", DESK)
    with GeminiEmulator() as gemini:
        for name, value in gemini.env.items():
            monkeypatch.setenv(name, value)
    done = here("run", "desk.py", "hi")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: Gemini cannot be reached\n  found: ")
    assert "\n  help: check the network\n" in done.err


def test_a_conversation_goes_on_after_a_failure(run: Run, write: Write) -> None:
    """What was said in the turn that failed stands in the session, and Gemini takes it."""
    write("desk.py", DESK)
    replies = (
        Call("look_up", {"order": "17"}),
        reply(status=503),  # after the tool: a call and its result are in the session now
        "First.",
        "Second.",
    )
    with GeminiEmulator(*replies) as gemini:
        done = run(gemini, "-i", input="Where is order 17?\nAnd now?\n")
        prompt = gemini.requests[2].prompt
    assert (done.code, done.out) == (0, "first: First.\nsecond: Second.\n")
    errors = done.err.splitlines()
    assert errors[:2] == ['[first calls look_up(order="17")]', "error: Gemini cannot answer now"]
    assert prompt == '[result look_up {"order": "17"}]\nAnd now?'


def test_files_go_to_gemini(run: Run, write: Write, place: Path) -> None:
    write("desk.py", DESK)
    write("notes.csv", "a,b")
    (place / "pic.png").write_bytes(b"\x89PNG\xff")
    with GeminiEmulator("First.", "Second.") as gemini:
        done = run(gemini, "What?", "--file", "pic.png", "--file", "notes.csv")
    assert (done.code, done.err) == (0, "")
    picture, *texts = gemini.requests[0].contents[0]["parts"]
    assert texts == [{"text": "File notes.csv:\n\na,b"}, {"text": "What?"}]
    assert picture["inlineData"]["data"] == "iVBOR_8="
    assert "image/png" in picture["inlineData"].values()  # the field has two ways of writing it


@pytest.mark.parametrize("stream", ["--stream", "--no-stream"])
def test_no_answer_at_all_is_told(run: Run, write: Write, stream: str) -> None:
    write("desk.py", 'from adk_fluent import Agent\npipeline = Agent("a", "gemini-2.5-flash")\n')
    with GeminiEmulator(reply("", fault="empty")) as gemini:
        done = run(gemini, "hi", stream)
    assert (done.code, done.out) == (1, "")
    assert "[nobody answered]" in done.err or "a reports" in done.err
