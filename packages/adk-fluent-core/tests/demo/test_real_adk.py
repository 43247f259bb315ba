"""`adk-fluent demo` on Gemini: ADK's own model class and Google's own client, over HTTP."""

from __future__ import annotations

import gc
import os
import re
import socket
import subprocess
import sys
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.cli import main
from adk_fluent.cli._keys import CLOUD, KEYS
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, GeminiEmulator, Reply, Script, reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adk_fluent.testing import Asked, Fault

pytestmark = pytest.mark.adk

KEY = "AIza-not-a-real-key-0123456789"
PRIMARY, BACKUP = "gemini-2.5-flash", "gemini-2.5-flash-lite"
TITLE = "Support desk: {} on gemini-2.5-flash, backup gemini-2.5-flash-lite"
TAKEN = (*KEYS, *CLOUD, "NO_COLOR", "FORCE_COLOR")
COST = Usage(prompt=70, output=7)


@pytest.fixture
def gemini() -> Iterator[GeminiEmulator]:
    with GeminiEmulator(default=answer, keys=[KEY]) as emulator:
        yield emulator


class Done:
    """How a call of the demo ended, and what it printed."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        found: list[tuple[str, str]] = re.findall(r"^(\w+(?: \w+)?) {2,}(.+)$", out, re.MULTILINE)
        self.told = dict(found)
        assert KEY not in out + err
        assert "Traceback" not in out + err


def in_a_process(place: Path, environment: dict[str, str], *args: str) -> Done:
    """The command line, as a process of its own, with this environment and no other key."""
    rest = {name: value for name, value in os.environ.items() if name not in TAKEN}
    done = subprocess.run(
        [sys.executable, "-m", "adk_fluent.cli", "demo", *args],
        cwd=place,
        env=rest | environment | {"PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class Demo:
    """The command line, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capsys, self._patch = capsys, patch

    def __call__(self, environment: dict[str, str], *args: str) -> Done:
        for name in TAKEN:
            self._patch.delenv(name, raising=False)
        for name, value in environment.items():
            self._patch.setenv(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # clients of earlier runs close themselves in whatever loop runs, or never
        with pytest.raises(SystemExit) as ended:
            main(["demo", *args])
        out, err = self._capsys.readouterr()
        return Done(ended.value.code, out, err)


@pytest.fixture
def demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Demo:
    monkeypatch.chdir(tmp_path)
    return Demo(capsys, monkeypatch)


def environment(gemini: GeminiEmulator, key: str = KEYS[0]) -> dict[str, str]:
    """Its environment, with the key in this variable."""
    given = gemini.env
    return {name: value for name, value in given.items() if name not in KEYS} | {key: gemini.key}


def result(asked: Asked) -> Any:
    """What the tool that the model called has returned; None before it was called."""
    results = asked.raw.results
    return results[0]["response"] if results else None


def ticket(asked: Asked) -> str:
    return "".join(turn.text for turn in asked.turns).partition("Ticket: ")[2][:3]


def answer(asked: Asked) -> Reply:
    """What the demo's own script never says: nothing of it can come from there."""
    found = result(asked)
    said: Any = "APPROVED"
    match asked.agent:
        case "classify":
            said = "technical"
        case "customer" if found is None:
            said = Call("find_customer", {"email": "ana@example.com"})
        case "customer":
            said = f"served customer {found['name']}"
        case "issues" if found is None:
            said = Call("known_issues", {"product": "Camera"})
        case "issues":
            said = f"served {len(found['issues'])} issues"
        case "draft" if ticket(asked) == "T02":
            return reply(status=503, error_message="The model is overloaded.")
        case "draft" | "draft_backup":
            revised = " again" if "served remark" in asked.system else ""
            said = f"Served reply to {ticket(asked)} by {asked.model}{revised}"
        case _:
            if ticket(asked) == "T03" and "again" not in asked.system:
                said = "served remark"
    return reply(said, usage=COST)


def test_what_gemini_answers_is_what_the_demo_tells(gemini: GeminiEmulator, tmp_path: Path) -> None:
    done = in_a_process(tmp_path, gemini.env, "--tickets", "3", "--show")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == TITLE.format("3 tickets")
    for number, subject, marks in (
        ("T01", "Charged twice", "  (not billing)"),
        ("T02", "Cannot connect", "  (backup model)"),
        ("T03", "Password reset", "  (2 drafts, not account)"),
    ):
        assert f"\n✓ {number} technical  {subject}{marks}\n" in done.out
    assert f"\nT01 Charged twice\nServed reply to T01 by {PRIMARY}\n" in done.out
    assert f"\nT02 Cannot connect\nServed reply to T02 by {BACKUP}\n" in done.out
    assert f"\nT03 Password reset\nServed reply to T03 by {PRIMARY} again\n" in done.out

    answered = len(gemini.requests) - 1  # but for the overloaded one
    done.told.pop("Time")
    assert done.told == {
        "Ran on": f"{PRIMARY}, backup {BACKUP}",
        "Tickets": "3 answered, 0 failed",
        "Replies": "3 filed",
        "Categories": "technical 3",
        "Classified": "1 of 3 as a person would",
        "Drafts": "4, of which 1 because the review asked for it",
        "Fallback": "1 by the backup model",
        "Tool calls": "6 on SQLite",
        "Model calls": f"{answered}, {answered * COST.total:,} tokens",
    }


def test_gemini_is_asked_what_the_desk_is_made_of(gemini: GeminiEmulator, demo: Demo) -> None:
    demo(gemini.env, "--tickets", "3")
    assert Counter((each.agent, each.path) for each in gemini.requests) == {
        (agent, f"/v1beta/models/{model}:generateContent"): times
        for agent, model, times in (
            ("classify", PRIMARY, 3),
            ("customer", PRIMARY, 6),
            ("issues", PRIMARY, 6),
            ("draft", PRIMARY, 4),
            ("draft_backup", BACKUP, 1),
            ("review", PRIMARY, 4),
        )
    }
    for each in gemini.of(agent="classify"):
        assert each.system.startswith("Read the support ticket. Answer with exactly one word")
        [content] = each.contents
        assert content["role"] == "user"
        assert re.match(r"Ticket: T0[123]\nFrom: \w+@example\.com\nProduct: ", each.prompt)
    classified = {ticket(each.asked) for each in gemini.of(agent="classify")}
    assert classified == {"T01", "T02", "T03"}
    customer = gemini.of(agent="customer")
    assert {each.tools for each in customer} == {("find_customer",)}
    results = [each.results[0]["response"] for each in customer if each.results]
    assert [found["name"] for found in results] == ["Ana"] * 3
    for each in gemini.of(agent="draft"):
        assert "Customer: served customer Ana Facts: served 3 issues" in each.system
        assert each.tools == ()
    *_, last = (each for each in gemini.of(agent="draft") if ticket(each.asked) == "T03")
    assert f"Your last draft: Served reply to T03 by {PRIMARY}" in last.system
    assert "The reviewer said: served remark" in last.system


def test_a_key_is_not_used_where_nobody_wants_gemini(gemini: GeminiEmulator, demo: Demo) -> None:
    done = demo(gemini.env, "--tickets", "2", "--offline")
    assert done.code == 0
    assert done.told["Ran on"] == "the built-in scripted model, offline"
    assert gemini.requests == ()


def test_the_models_that_are_named_are_asked(gemini: GeminiEmulator, demo: Demo) -> None:
    models = ("--model", "gemini-3-pro", "--backup-model", "gemini-3-flash")
    done = demo(environment(gemini, KEYS[1]), "--tickets", "2", "--real", *models)
    assert done.code == 0
    assert done.told["Ran on"] == "gemini-3-pro, backup gemini-3-flash"
    assert {each.model for each in gemini.requests} == {"gemini-3-pro", "gemini-3-flash"}


# --- when it does not answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "shown", "help"),
    [
        (
            reply(status=403, error_message=f"The key {KEY} is not allowed to do this."),
            "403 PERMISSION_DENIED: The key [GEMINI_API_KEY] is not allowed to do this.",
            "check that the key in GEMINI_API_KEY is valid and may use this model",
        ),
        (
            reply(status=429, error_message="You exceeded your current quota.", retry_after=33),
            "429 RESOURCE_EXHAUSTED: You exceeded your current quota.",
            "wait a minute or take fewer tickets: the quota of the key in GEMINI_API_KEY is used",
        ),
        (
            reply(status=404, error_message="models/gemini-2.5-flash is not found"),
            "404 NOT_FOUND: models/gemini-2.5-flash is not found",
            "check the names of the models",
        ),
        (
            reply(status=503, error_message="The model is overloaded."),
            "503 UNAVAILABLE: The model is overloaded.",
            "try again later",
        ),
        (
            reply(status=503, fault="html"),
            "503 Service Unavailable: <!DOCTYPE html><html><title>Error</title>",
            "try again later",
        ),
    ],
    ids=["403", "429", "404", "503", "proxy"],
)
def test_what_gemini_says_instead_of_answers_is_told(
    refusal: Reply, shown: str, help: str, gemini: GeminiEmulator, demo: Demo
) -> None:
    gemini.script = Script(default=refusal)
    done = demo(environment(gemini, KEYS[1]))
    assert_given_up(done, gemini, shown, help)


def test_a_key_that_gemini_rejects_is_told(gemini: GeminiEmulator, demo: Demo) -> None:
    gemini.key = "AIza-another-key-0123456789"
    done = demo(environment(gemini, KEYS[1]))
    shown = "400 INVALID_ARGUMENT: API key not valid. Please pass a valid API key."
    assert_given_up(done, gemini, shown, "check the key in GEMINI_API_KEY")
    assert gemini.calls == ()


def assert_given_up(done: Done, gemini: GeminiEmulator, shown: str, help: str) -> None:
    """Four tickets without an answer, and it is over."""
    assert done.code == 3
    title, *lines = done.out.partition("\nRan on")[0].splitlines()
    assert title == TITLE.format("50 tickets")
    failed = [line for line in lines if line]
    assert [line.split(maxsplit=2)[2].startswith(shown) for line in failed] == [True] * 4
    assert done.told["Ran on"] == f"{PRIMARY}, backup {BACKUP}"
    assert done.told["Tickets"] == "0 answered, 4 failed, 46 not begun or not finished"
    assert len(gemini.requests) < 12  # four at once
    assert {each.agent for each in gemini.requests} == {"classify"}
    what, found, what_to_do = done.err.splitlines()
    assert what == "error: Gemini answered no ticket"
    assert found.startswith(f"  found: {shown}")
    assert what_to_do.startswith(f"  help: {help}")
    assert what_to_do.endswith("; or run it with --offline, without a key")


@pytest.mark.parametrize("fault", ["truncated", "html", "cut"])
def test_an_answer_that_cannot_be_read_costs_one_ticket(
    fault: Fault, gemini: GeminiEmulator, demo: Demo
) -> None:
    def garbled(asked: Asked) -> Reply:
        garbles = asked.agent == "classify" and ticket(asked) == "T02"
        return reply("technical", fault=fault) if garbles else answer(asked)

    gemini.script = Script(default=garbled)
    done = demo(gemini.env, "--tickets", "3", "--show")
    assert (done.code, done.err) == (1, "")
    assert done.told["Tickets"] == "2 answered, 1 failed"
    assert re.search(r"^✗ T02 \w+Error: ", done.out, re.MULTILINE)
    assert "\n✓ T03 technical" in done.out


def test_a_draft_that_is_blocked_is_written_by_the_backup_model(
    gemini: GeminiEmulator, demo: Demo
) -> None:
    def blocked(asked: Asked) -> Reply:
        blocks = asked.agent == "draft" and ticket(asked) == "T01"
        return reply(error_code="PROHIBITED_CONTENT") if blocks else answer(asked)

    gemini.script = Script(default=blocked)
    done = demo(gemini.env, "--tickets", "1")
    assert (done.code, done.err) == (0, "")
    assert done.told["Fallback"] == "1 by the backup model"


def test_a_quota_that_ends_in_between_costs_only_what_comes_then(
    gemini: GeminiEmulator, demo: Demo
) -> None:
    def until_t03(asked: Asked) -> Reply:
        if ticket(asked) in {"T01", "T02"}:
            return answer(asked)
        return reply(status=429, error_message="You exceeded your current quota.")

    gemini.script = Script(default=until_t03)
    done = demo(gemini.env, "--tickets", "3", "--show")
    assert (done.code, done.err) == (1, "")
    assert done.told["Tickets"] == "2 answered, 1 failed"
    assert "\n✗ T03 429 RESOURCE_EXHAUSTED: You exceeded your current quota.\n" in done.out
    assert "\nT03 Password reset\n429 RESOURCE_EXHAUSTED: You exceeded" in done.out


def test_gemini_out_of_reach_is_told(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        gone = {
            KEYS[0]: KEY,
            "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{nobody.getsockname()[1]}",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        done = in_a_process(tmp_path, gone, "--tickets", "1")
    assert done.code == 3
    assert done.told["Tickets"] == "0 answered, 1 failed"
    what, found, what_to_do = done.err.splitlines()
    assert what == "error: Gemini answered no ticket"
    assert "connect" in found.lower()
    assert what_to_do.startswith("  help: check the network; or run it with --offline")
