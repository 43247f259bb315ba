"""Cases from sessions of ADK: what was said once is said again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.session import Session
from google.genai.types import Content

from adk_fluent.eval._arguments import require_type
from adk_fluent.eval._cases._turn import ToolCall, Turn
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import initial_state, kept_state, to_agent_event
from adk_fluent.protocol import RunResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.events.event import Event
    from google.genai.types import FunctionCall

    from adk_fluent.protocol import AgentEvent, Pending


_USER: Final = "user"
_REQUEST: Final = "adk_request_"  # how ADK asks the user; not a tool
#: What becomes of runs that is meant to become of them again.
_EXPECTED: Final = ("waiting", "rejected", "escalated")


def captured(session: Session) -> dict[str, Any]:
    """Return the fields of the case that a session was."""
    help = "of a Recording: replay it with a session_service=, and get the session of that run"
    require_type(session, Session, "from_session() takes a Session of ADK", help=help)
    turns: list[Turn] = []
    runs: list[list[AgentEvent]] = []
    state = initial_state(session)
    for event in session.events:
        if not turns:
            state |= event.actions.state_delta or {}
        if (said := _said(event)) is not None:
            turns.append(Turn(text_or_content(said), []))
            runs.append([])
        elif turns:
            runs[-1].append(to_agent_event(event))
            _expect(turns[-1], event)
    if not turns:
        what = f"the user says nothing in session {session.id!r}"
        help = "load the session with its events"
        raise EvalError(what, found=f"{len(session.events)} events", help=help)
    for turn, run in zip(turns, runs, strict=True):
        ended = RunResult(run).status
        turn.expected_status = ended if ended in _EXPECTED else None
    made: dict[str, Any] = {"input": turns if len(turns) > 1 else turns[0]}
    if answers := _answers(session.events):
        made["answers"] = answers
    kept = kept_state(state)
    return made | ({"initial_state": kept} if kept else {})


def _answers(events: Iterable[Event]) -> dict[str, Any]:
    """What was answered to questions, by their names; of one that was asked again the last."""
    asked: dict[str, Pending] = {}
    given: dict[str, Any] = {}
    for event in events:
        asked |= {each.id: each for each in to_agent_event(event).pending}
        for response in event.get_function_responses() if event.author == _USER else ():
            if response.id in asked:
                given[response.id] = _answer(asked[response.id], response.response or {})
    named: dict[str, list[Any]] = {}
    for id, each in given.items():
        named.setdefault(asked[id].name or asked[id].kind, []).append(each)
    # a list has one answer for each question
    return {
        name: values if len(values) > 1 or isinstance(values[0], list) else values[0]
        for name, values in named.items()
    }


def _answer(question: Pending, response: dict[str, Any]) -> Any:
    """The answer as a person gives it, without the mapping that ADK needs around it."""
    key = "confirmed" if question.kind == "confirmation" else "result"
    return response[key] if response.keys() == {key} else response


def _said(event: Event) -> Content | None:
    """The texts and media of a user message."""
    if event.author != _USER or event.content is None:
        return None
    parts = [
        part
        for part in event.content.parts or ()
        if part.text or part.inline_data is not None or part.file_data is not None
    ]
    return Content(role=_USER, parts=parts) if parts else None


def _expect(turn: Turn, event: Event) -> None:
    """Add what an event says to the expectations of its turn."""
    if event.partial or event.author == _USER:
        return
    every = event.get_function_calls()
    calls = [each for each in every if each.name and not each.name.startswith(_REQUEST)]
    turn.expected_trajectory = [*(turn.expected_trajectory or ()), *tool_calls(calls)]
    if event.is_final_response() and (text := answer_text(event.content)):
        turn.reference_response = text


# --- contents ------------------------------------------------------------------------------------


def text_or_content(content: Content) -> str | Content:
    """Return the text of a Content that is one text and nothing else, or the Content."""
    parts = content.parts or []
    if len(parts) == 1 and parts[0].text:
        held = {name for name in parts[0].model_fields_set if getattr(parts[0], name) is not None}
        if held == {"text"}:
            return parts[0].text
    return content


def answer_text(content: Content | None) -> str:
    """Return the text of an answer, without thoughts."""
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def tool_calls(calls: Sequence[FunctionCall]) -> list[str | ToolCall]:
    """Return calls as a case expects them."""
    named = ((each.name or "", each.args) for each in calls)
    return [ToolCall(name, dict(args)) if args else name for name, args in named]
