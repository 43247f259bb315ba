"""`adk api_server` and `adk web` over HTTP: sessions, streams, questions, graphs and traces."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from adk_commands import question, texts

if TYPE_CHECKING:
    from pathlib import Path

    from adk_commands import Server

pytestmark = pytest.mark.adk

ORDER = [
    ("classify", "order"),
    ("mood", "calm"),
    ("clerk", "It arrives on Monday."),
    ("writer", "Dear customer, it is on its way."),
    ("judge", "good"),
]
HELD = "Nothing was run: the run in this session waits for an answer. Answer it first."
GREETING = [("classify", "other"), ("mood", "calm"), ("general", "Hello! Ask about an order.")]


def test_two_turns_in_one_session(api: Server, agents: Path) -> None:
    desk = api.session("desk", **{"user:tier": "gold"})
    assert texts(desk.send("Where is A1?")) == ORDER
    assert desk.state == {
        "user:tier": "gold",
        "topic": "order",
        "mood": "calm",
        "answer": "Dear customer, it is on its way.",
        "verdict": "good",
    }
    assert texts(desk.send("Hello.")) == GREETING
    assert desk.state["topic"] == "other"
    assert (agents / "sessions.db").exists()


def test_a_stream_has_fragments_and_then_the_whole(api: Server) -> None:
    events = api.session("desk").send("Hello.", stream=True)
    assert sorted(texts(events)[:2]) == GREETING[:2]  # branches: as they come
    assert texts(events)[2:] == GREETING[2:]
    fragments = [text for author, text in texts(events, partial=True) if author == "general"]
    assert fragments == ["Hello! ", "Ask about an order."]


def test_all_arrangements(api: Server) -> None:
    mixed = api.session("mixed")
    for stream in (False, True):
        events = mixed.send("Hello.", stream=stream)
        assert texts(events) == [
            ("quick", "in time"),
            ("counted", "once more"),
            ("counted", "once more"),
            ("up", "In the end."),
        ]
        assert {event["customMetadata"]["by"] for event in events} == {"mixed"}
        assert {event["author"] for event in events if not texts([event])} >= {"mixed"}
    assert {key: value for key, value in mixed.state.items() if value is not None} == {
        "lengths": [3, 3],
        "winner": "in time",
        "rounds": 2,
        "end": "In the end.",
    }


@pytest.mark.parametrize(
    ("confirmed", "answer"), [(True, "Done, A1 is paid back."), (False, "Then not.")]
)
def test_a_confirmation_in_the_middle_of_a_pipeline(
    api: Server, confirmed: bool, answer: str
) -> None:
    refunds = api.session("refunds")
    asked = question(refunds.send("Refund A1."))
    assert asked["args"]["originalFunctionCall"]["args"] == {"order": "A1"}
    said = texts(refunds.answer(asked, confirmed=confirmed))
    assert said == [("clerk", answer), ("farewell", "Anything else?")]


@pytest.mark.parametrize("stream", [False, True], ids=["run", "run_sse"])
def test_a_gate(api: Server, stream: bool) -> None:
    press = api.session("press")
    events = press.send("Write.", stream=stream)
    assert texts(events) == [("write", "We open in Rome.")]
    asked = question(events)
    assert asked["name"] == "adk_request_input"
    assert asked["args"]["message"] == "Publish this?"
    assert asked["args"]["payload"] == {"release": "We open in Rome."}
    assert set(asked["args"]["response_schema"]["properties"]) == {"approved", "note"}

    ((_, held),) = texts(press.send("yes, do", stream=stream))
    assert held == f"{HELD}\n- approve: Publish this?"
    ((_, wrong),) = texts(press.answer(asked, stream=stream, approved="perhaps"))
    assert wrong.startswith("Nothing was run: approved 'perhaps' is no answer to gate 'approve'")
    said = texts(press.answer(asked, stream=stream, approved=True, note=None))
    assert said == [("announce", "It is out: We open in Rome.")]
    assert press.state["approve"] == {"approved": True, "note": ""}
    ((_, late),) = texts(press.answer(asked, stream=stream, approved=True))
    assert late.startswith(f"Nothing was run: question '{asked['id']}' is not open any more")

    asked = question(press.send("Write.", stream=stream))
    said = texts(press.answer(asked, stream=stream, approved=False, note="too long"))
    assert said == [("press", "approve was refused: too long. Nothing after it was run.")]
    assert press.state["approve"] == {"approved": False, "note": "too long"}


def test_another_process_takes_the_answer(api: Server, web: Server) -> None:
    press, refunds = api.session("press"), api.session("refunds")
    gate, confirmation = question(press.send("Write.")), question(refunds.send("Refund A1."))
    said = texts(press.at(web).answer(gate, approved=True))
    assert said == [("announce", "It is out: We open in Rome.")]
    said = texts(refunds.at(web).answer(confirmation, confirmed=True))
    assert said == [("clerk", "Done, A1 is paid back."), ("farewell", "Anything else?")]


def test_a_bare_agent_in_a_new_process_goes_on_behind_a_confirmation(
    api: Server, web: Server
) -> None:
    bare, whole = api.session("bare"), [("clerk", "Done."), ("farewell", "Anything else?")]
    assert texts(bare.answer(question(bare.send("Refund A1.")), confirmed=True)) == whole

    asked = question(bare.send("Refund A1."))
    bare = bare.at(web)
    assert texts(bare.answer(asked, confirmed=True)) == whole
    assert bare.state["paid"] == ["A1", "A1"]


def test_what_fails_is_told_and_logged(api: Server, agents: Path) -> None:
    broken = api.session("broken")
    assert broken.post("Hello.").status_code == 500
    *said, error = broken.send("Hello.", stream=True)
    assert texts(said)[-1] == ("weigh", "heavy")
    assert "'weight'" in error["error"]
    place = f"in node 'price' at {agents / 'broken' / 'agent.py'}:17"
    assert api.log.read_text("utf-8").count(place) >= 2


def test_a_changed_pipeline_is_loaded_again(api: Server, agents: Path) -> None:
    desk = api.session("desk")
    desk.send("Hello.")
    assert desk.state  # ADK 1.25 reloads the app whose session was asked for last
    source = agents / "desk" / "agent.py"
    before = source.read_text("utf-8")
    source.write_text(before.replace("Ask about an order.", "Say a number."), "utf-8")
    try:
        until = time.monotonic() + 60
        while (said := texts(desk.send("Hello."))) == GREETING and time.monotonic() < until:
            time.sleep(0.2)
        assert said == [*GREETING[:2], ("general", "Hello! Say a number.")]
    finally:
        source.write_text(before, "utf-8")


def test_all_are_listed(web: Server) -> None:
    names = ["bare", "broken", "desk", "mixed", "press", "refunds"]
    assert web.get("/list-apps") == names
    detailed = web.get("/list-apps?detailed=true")["apps"]
    assert [app["rootAgentName"] for app in detailed] == names


def test_graphs_and_traces_name_the_agents(web: Server) -> None:
    desk = web.session("desk")
    event = next(event for event in desk.send("Where is A1?") if event["author"] == "writer")
    known = {"app_name": "desk", "user_id": "ann", "session_id": desk.id, "event_id": event["id"]}
    seen = {
        path: str(web.get(path.format(**known)))
        for path, methods in web.get("/openapi.json")["paths"].items()
        if "get" in methods and ("graph" in path or "trace" in path)
    }
    graph = next(text for path, text in seen.items() if path.endswith("/events/{event_id}/graph"))
    for name in ("desk", "classify", "mood", "clerk", "look_up", "writer", "judge", "general"):
        assert f"{name} [" in graph
    trace = next(text for path, text in seen.items() if path.endswith("/session/{session_id}"))
    for name in ("desk", "classify", "mood", "clerk", "writer", "judge"):
        assert f"invoke_agent {name}" in trace
