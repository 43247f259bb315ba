"""`adk-fluent demo` on Gemini: ADK's own model class and Google's own client, over HTTP."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from adk_fluent.cli._keys import CLOUD, KEYS

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Answer, Asked, Gemini

pytestmark = pytest.mark.adk

KEY = "AIza-not-a-real-key-0123456789"
PRIMARY, BACKUP = "gemini-2.5-flash", "gemini-2.5-flash-lite"
TITLE = "Support desk: {} on gemini-2.5-flash, backup gemini-2.5-flash-lite"


class Done:
    """How a call of the demo ended, and what it printed."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        found: list[tuple[str, str]] = re.findall(
            r"^(\w+(?: \w+)?) {2,}(.+)$", done.stdout, re.MULTILINE
        )
        self.told = dict(found)
        assert KEY not in self.out + self.err
        assert "Traceback" not in self.out + self.err


def demo(place: Path, url: str, *args: str, key: str = KEYS[0]) -> Done:
    """The command line, as a process of its own, with a key and nothing else."""
    taken = {*KEYS, *CLOUD, "NO_COLOR", "FORCE_COLOR"}
    environment = {name: value for name, value in os.environ.items() if name not in taken} | {
        key: KEY,
        "GOOGLE_GEMINI_BASE_URL": url,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PYTHONIOENCODING": "utf-8",
    }
    command = [sys.executable, "-m", "adk_fluent.cli", "demo", *args]
    return Done(
        subprocess.run(
            command,
            cwd=place,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    )


def answer(asked: Asked) -> Answer:
    """What the script never says: nothing of it can come from there."""
    said: Answer = "APPROVED"
    match asked.agent:
        case "classify":
            said = "technical"
        case "customer" if asked.result is None:
            said = "find_customer", {"email": "ana@example.com"}
        case "customer":
            said = f"served customer {asked.result['name']}"
        case "issues" if asked.result is None:
            said = "known_issues", {"product": "Camera"}
        case "issues":
            said = f"served {len(asked.result['issues'])} issues"
        case "draft" if asked.ticket == "T02":
            said = 503, "UNAVAILABLE", "The model is overloaded."
        case "draft" | "draft_backup":
            revised = " again" if "served remark" in asked.system else ""
            said = f"Served reply to {asked.ticket} by {asked.model}{revised}"
        case _:
            if asked.ticket == "T03" and "again" not in asked.system:
                said = "served remark"
    return said


def test_what_gemini_answers_is_what_the_demo_tells(gemini: Gemini, tmp_path: Path) -> None:
    gemini.answer = answer
    done = demo(tmp_path, gemini.url, "--tickets", "3", "--show")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == TITLE.format("3 tickets")
    for ticket, subject, marks in (
        ("T01", "Charged twice", "  (not billing)"),
        ("T02", "Cannot connect", "  (backup model)"),
        ("T03", "Password reset", "  (2 drafts, not account)"),
    ):
        assert f"\n✓ {ticket} technical  {subject}{marks}\n" in done.out
    assert f"\nT01 Charged twice\nServed reply to T01 by {PRIMARY}\n" in done.out
    assert f"\nT02 Cannot connect\nServed reply to T02 by {BACKUP}\n" in done.out
    assert f"\nT03 Password reset\nServed reply to T03 by {PRIMARY} again\n" in done.out

    answered = len(gemini.asked) - 1  # but for the overloaded one
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
        "Model calls": f"{answered}, {answered * gemini.tokens:,} tokens",
    }


def test_gemini_is_asked_what_the_desk_is_made_of(gemini: Gemini, tmp_path: Path) -> None:
    gemini.answer = answer
    demo(tmp_path, gemini.url, "--tickets", "3")
    assert {each.key for each in gemini.asked} == {KEY}
    assert Counter((each.agent, each.path) for each in gemini.asked) == {
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
    for each in gemini.of("classify"):
        assert each.system.startswith("Read the support ticket. Answer with exactly one word")
        [content] = each.body["contents"]
        assert content["role"] == "user"
        assert re.match(r"Ticket: T0[123]\nFrom: \w+@example\.com\nProduct: ", each.text)
    assert {each.ticket for each in gemini.of("classify")} == {"T01", "T02", "T03"}
    assert {tuple(each.tools) for each in gemini.of("customer")} == {("find_customer",)}
    results = [each.result for each in gemini.of("customer") if each.result is not None]
    assert [result["name"] for result in results] == ["Ana"] * 3
    for each in gemini.of("draft"):
        assert "Customer: served customer Ana Facts: served 3 issues" in each.system
        assert each.tools == []
    *_, last = (each for each in gemini.of("draft") if each.ticket == "T03")
    assert f"Your last draft: Served reply to T03 by {PRIMARY}" in last.system
    assert "The reviewer said: served remark" in last.system


def test_a_key_is_not_used_where_nobody_wants_gemini(gemini: Gemini, tmp_path: Path) -> None:
    done = demo(tmp_path, gemini.url, "--tickets", "2", "--offline")
    assert done.code == 0
    assert done.told["Ran on"] == "the built-in scripted model, offline"
    assert gemini.asked == []


def test_the_models_that_are_named_are_asked(gemini: Gemini, tmp_path: Path) -> None:
    gemini.answer = answer
    models = ("--model", "gemini-3-pro", "--backup-model", "gemini-3-flash")
    done = demo(tmp_path, gemini.url, "--tickets", "2", "--real", *models, key=KEYS[1])
    assert done.code == 0
    assert done.told["Ran on"] == "gemini-3-pro, backup gemini-3-flash"
    assert {each.model for each in gemini.asked} == {"gemini-3-pro", "gemini-3-flash"}
    assert {each.key for each in gemini.asked} == {KEY}


# --- when it does not answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "help"),
    [
        (
            (403, "PERMISSION_DENIED", f"The key {KEY} is not allowed to do this."),
            "check that the key in GEMINI_API_KEY is valid and may use this model",
        ),
        (
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "check the key in GEMINI_API_KEY",
        ),
        (
            (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
            "wait a minute or take fewer tickets: the quota of the key in GEMINI_API_KEY is used",
        ),
        (
            (404, "NOT_FOUND", "models/gemini-2.5-flash is not found"),
            "check the names of the models",
        ),
        ((503, "UNAVAILABLE", "The model is overloaded."), "try again later"),
    ],
)
def test_what_gemini_says_instead_of_answers_is_told(
    refusal: tuple[int, str, str], help: str, gemini: Gemini, tmp_path: Path
) -> None:
    code, status, message = refusal
    shown = f"{code} {status}: {message.replace(KEY, '[GEMINI_API_KEY]')}"
    gemini.answer = lambda asked: refusal
    done = demo(tmp_path, gemini.url, key=KEYS[1])
    assert done.code == 3
    title, *failed = done.out.partition("\nRan on")[0].splitlines()
    assert title == TITLE.format("50 tickets")
    assert [line.split(maxsplit=2)[2] for line in failed] == [shown] * 4
    assert done.told["Ran on"] == f"{PRIMARY}, backup {BACKUP}"
    assert done.told["Tickets"] == "0 answered, 4 failed, 46 not begun or not finished"
    assert len(gemini.asked) < 12  # four at once, and it is over
    assert {each.agent for each in gemini.asked} == {"classify"}
    what, found, what_to_do = done.err.splitlines()
    assert what == "error: Gemini answered no ticket"
    assert found == f"  found: {shown}"
    assert what_to_do.startswith(f"  help: {help}")
    assert what_to_do.endswith("; or run it with --offline, without a key")


def test_a_quota_that_ends_in_between_costs_only_what_comes_then(
    gemini: Gemini, tmp_path: Path
) -> None:
    def until_t04(asked: Asked) -> Answer:
        if asked.ticket in {"T01", "T02"}:
            return answer(asked)
        return 429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."

    gemini.answer = until_t04
    done = demo(tmp_path, gemini.url, "--tickets", "3", "--show")
    assert (done.code, done.err) == (1, "")
    assert done.told["Tickets"] == "2 answered, 1 failed"
    assert "\n✗ T03 429 RESOURCE_EXHAUSTED: You exceeded your current quota.\n" in done.out
    assert "\nT03 Password reset\n429 RESOURCE_EXHAUSTED: You exceeded" in done.out


def test_gemini_out_of_reach_is_told(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        port = nobody.getsockname()[1]
        done = demo(tmp_path, f"http://127.0.0.1:{port}", "--tickets", "1")
    assert done.code == 3
    assert done.told["Tickets"] == "0 answered, 1 failed"
    what, found, what_to_do = done.err.splitlines()
    assert what == "error: Gemini answered no ticket"
    assert "connect" in found.lower()
    assert what_to_do.startswith("  help: check the network; or run it with --offline")
