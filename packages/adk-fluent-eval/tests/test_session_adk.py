from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import InMemoryRunner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part

from adk_fluent.eval import EvalError, EvalFileError, FluentCase, ToolCall, Turn
from adk_fluent.eval._files._session_adk import case_from_file, case_of
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk


def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order} is on its way"


async def _talk(*said: str, state_delta: dict[str, Any] | None = None) -> Session:
    model = ScriptedModel(Call("look_up", {"order": "7"}), "On its way.", "Bye.")
    runner = InMemoryRunner(LlmAgent(name="desk", model=model, tools=[look_up]), app_name="desk")
    made = await runner.session_service.create_session(app_name="desk", user_id="u")
    for text in said:
        message = Content(role="user", parts=[Part(text=text)])
        async for _ in runner.run_async(
            user_id="u", session_id=made.id, new_message=message, state_delta=state_delta
        ):
            pass
        state_delta = None
    session = await runner.session_service.get_session(
        app_name="desk", user_id="u", session_id=made.id
    )
    await runner.close()
    assert session is not None
    return session


async def test_a_session_that_was_run() -> None:
    case = FluentCase.from_session(
        await _talk("where is 7?", "thanks", state_delta={"tier": "gold", "temp:x": 1}),
        tags=["recorded"],
    )
    assert case == FluentCase(
        [
            Turn(
                "where is 7?",
                expected_trajectory=[ToolCall("look_up", {"order": "7"})],
                reference_response="On its way.",
            ),
            "thanks",
        ],
        expected_trajectory=[],
        reference_response="Bye.",
        initial_state={"tier": "gold"},
        tags=["recorded"],
    )
    assert case.location is not None
    assert case.location[0] == __file__


async def test_a_session_in_a_file(tmp_path: Path) -> None:
    session = await _talk("where is 7?")
    file = tmp_path / "session.json"
    for by_alias in (True, False):
        file.write_text(session.model_dump_json(by_alias=by_alias))
        assert case_from_file(file, {"id": "a"}) == case_of(session, {"id": "a"})
        assert FluentCase.from_session(str(file), id="a") == FluentCase.from_session(
            session, id="a"
        )


def _event(author: str, *parts: Part, **more: Any) -> Event:
    return Event(author=author, content=Content(role="user", parts=list(parts)), **more)


def _session(*events: Event) -> Session:
    return Session(id="s", app_name="desk", user_id="u", events=list(events))


def test_only_what_the_user_says_is_said() -> None:
    picture = Part(inline_data=Blob(data=b"\xff", mime_type="image/png"))
    answer = FunctionResponse(name="adk_request_confirmation", response={"confirmed": True})
    asked = FunctionCall(name="adk_request_confirmation", args={})
    case = case_of(
        _session(
            Event(author="system", actions=EventActions(state_delta={"since": 1})),
            _event("user", Part(text="look"), picture),
            _event("desk", Part(text="hm", thought=True), Part(text="A cat.")),
            _event("desk", Part(text="A c"), partial=True),
            _event("desk", Part(function_call=asked)),
            _event("user", Part(function_response=answer)),
            _event("desk", Part(text="A black cat.")),
            Event(author="desk", actions=EventActions(state_delta={"seen": "cat"})),
        ),
        {},
    )
    assert case == FluentCase(
        Content(role="user", parts=[Part(text="look"), picture]),
        expected_trajectory=[],
        reference_response="A black cat.",
        initial_state={"since": 1},
    )


def test_fields_win_over_the_session() -> None:
    session = _session(_event("user", Part(text="hi")), _event("desk", Part(text="hello")))
    case = case_of(session, {"expected_trajectory": None, "reference_response": "hey"})
    assert (case.expected_trajectory, case.reference_response) == (None, "hey")


def test_sessions_that_make_no_case() -> None:
    with pytest.raises(EvalError, match="the user says nothing in session 's'"):
        case_of(_session(_event("desk", Part(text="hello"))), {})
    with pytest.raises(EvalError, match="did you mean 'tags'"):
        FluentCase.from_session(_session(_event("user", Part(text="hi"))), tgas=[])  # pyright: ignore[reportCallIssue]
    with pytest.raises(EvalError, match="ADK session"):
        case_of({"events": []}, {})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("{", "", "broken JSON"),
        ("[]", "", "no session"),
        ('{"id": "a", "appName": "b", "userId": 3}', "userId", "string"),
        ('{"id": "a", "appName": "b"}', "user_id", "required"),
    ],
)
def test_files_that_are_no_session(tmp_path: Path, text: str, field: str, words: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(text)
    with pytest.raises(EvalFileError) as caught:
        case_from_file(file, {})
    assert caught.value.field == field
    assert words in str(caught.value)


async def test_what_a_session_was_made_with_is_its_initial_state() -> None:
    service = InMemorySessionService()
    made = await service.create_session(
        app_name="app", user_id="u", state={"plan": "gold", "user:x": 1, "n": 0}
    )
    event = Event(
        author="user",
        invocation_id="1",
        content=Content(role="user", parts=[Part(text="Hello")]),
    )
    wrote = Event(author="a", invocation_id="1", actions=EventActions(state_delta={"n": 1}))
    for each in (event, wrote):
        await service.append_event(made, each)
    session = await service.get_session(app_name="app", user_id="u", session_id=made.id)
    assert session is not None
    assert session.state["n"] == 1
    assert FluentCase.from_session(session).initial_state == {"plan": "gold", "user:x": 1}
