"""`adk run`: a conversation, a question, a failure, a file of messages, a session that is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adk_fluent.backends.adk._caps import CAPS

if TYPE_CHECKING:
    from pathlib import Path

    from adk_commands import Adk

pytestmark = pytest.mark.adk


@pytest.mark.full
def test_a_root_agent_talks(adk: Adk, agents: Path) -> None:
    assert adk.talk(agents / "desk", "Where is A1?", "Where is A2!", "Hello.") == [
        "Running agent desk, type exit to exit.",
        "[user]: Where is A1?",
        "[classify]: order",
        "[mood]: calm",
        "[clerk]: It arrives on Monday.",
        "[writer]: Dear customer, it is on its way.",
        "[judge]: good",
        "[user]: Where is A2!",
        "[classify]: order",
        "[mood]: angry",
        "[clerk]: It arrives on Friday.",
        "[writer]: Dear customer, it is on its way.",
        "[judge]: Say that we are sorry.",
        "[writer]: We are sorry. Soon!",
        "[judge]: good",
        "[user]: Hello.",
        "[classify]: other",
        "[mood]: calm",
        "[general]: Hello! Ask about an order.",
        "[user]: exit",
    ]


@pytest.mark.skipif(not CAPS.workflow, reason="`adk run` of ADK 1.x asks nobody")
def test_what_is_asked_can_be_answered(adk: Adk, agents: Path) -> None:
    said = adk.talk(agents / "refunds", "Refund A1.", "yes", "Refund A1.", "no")
    assert [line for line in said if line.startswith("[clerk]")] == [
        "[clerk]: (Paused for input...)",
        "[clerk]: Done, A1 is paid back.",
        "[clerk]: (Paused for input...)",
        "[clerk]: Then not.",
    ]
    assert said.count("[farewell]: Anything else?") == 2
    said = adk.talk(agents / "press", "Write.", "yes", "Write.", "no")
    assert [line for line in said if line.startswith(("[press]", "[announce]"))] == [
        "[press]: (Paused for input...)",
        "[announce]: It is out: We open in Rome.",
        "[press]: (Paused for input...)",
        "[press]: approve was refused. Nothing after it was run.",
    ]
    assert sum("Publish this?" in line for line in said) == 2


@pytest.mark.skipif(CAPS.workflow, reason="`adk run` of ADK 2.x asks")
def test_a_question_stays_open_where_nobody_is_asked(adk: Adk, agents: Path) -> None:
    said = adk.talk(agents / "press", "Write.", "yes")
    assert said[2:5] == [
        "[write]: We open in Rome.",
        "[user]: yes",
        "[press]: Nothing was run: the run in this session waits for an answer. Answer it first.",
    ]


@pytest.mark.full
def test_what_fails_says_what_and_where(adk: Adk, agents: Path) -> None:
    done = adk.run("run", agents / "broken", typed=["Hello."])
    assert done.returncode == 1
    assert "[weigh]: heavy" in done.stdout
    *_, error, note = done.stderr.splitlines()
    assert error == "KeyError: 'weight'"
    assert note == f"in node 'price' at {agents / 'broken' / 'agent.py'}:17"


@pytest.mark.full
def test_messages_from_a_file_and_a_session_that_is_kept(adk: Adk, agents: Path) -> None:
    messages = agents / "messages.json"
    told = {"state": {"user:tier": "gold"}, "queries": ["Hi.", "Hi!"]}
    messages.write_text(json.dumps(told), "utf-8")
    options = ("--replay", messages, "--save_session", "--session_id", "kept")
    done = adk.run("run", *options, agents / "mixed")
    assert done.returncode == 0, done.stderr
    once = ["[quick]: in time", "[counted]: once more", "[counted]: once more", "[up]: In the end."]
    said = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert said == ["[user]: Hi.", *once, "[user]: Hi!", *once]

    saved = json.loads((agents / "mixed" / "kept.session.json").read_text("utf-8"))
    state = {key: value for key, value in saved["state"].items() if value is not None}
    assert state == {
        "user:tier": "gold",
        "lengths": [3, 3],
        "winner": "in time",
        "rounds": 2,
        "end": "In the end.",
    }
    ours = [event for event in saved["events"] if event["author"] != "user"]
    assert {event["customMetadata"]["by"] for event in ours} == {"mixed"}
