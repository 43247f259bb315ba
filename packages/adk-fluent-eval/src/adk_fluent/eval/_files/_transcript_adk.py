"""What happened in a run as ADK's invocations, events and session. Importing this imports ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.eval_case import Invocation, InvocationEvent, InvocationEvents
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.session import Session
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from adk_fluent.eval._files._eval_case_adk import conversation_of
from adk_fluent.eval._files._names import APP_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome, Step, ToolUse, TurnOutcome

_USER: Final = "user"
_MODEL: Final = "model"
_HAS_DURATION: Final = "duration" in Invocation.model_fields  # since google-adk 2


def invocations(outcome: CaseOutcome) -> list[Invocation]:
    """The turns of a run."""
    return [_invocation(turn, n) for n, turn in enumerate(outcome.turns, 1)]


def expected_invocations(case: FluentCase) -> Sequence[Invocation]:
    """The turns that a case expects; none where a user is played by a model."""
    return conversation_of(case)


def session_of(outcome: CaseOutcome, app_name: str, began: float) -> Session:
    """The session of a run, as far as a report keeps it.

    Args:
        outcome: The run.
        app_name: The app; empty where it is not known.
        began: When the suite was begun, in seconds since 1970; a report keeps no other time.
    """
    session_id = outcome.session_id or f"{outcome.id}-{outcome.run}"
    events = [event for n, turn in enumerate(outcome.turns, 1) for event in _events(turn, n)]
    for n, event in enumerate(events, 1):
        event.id, event.timestamp = f"{session_id}-{n}", began
    return Session(
        id=session_id,
        app_name=app_name or APP_NAME,
        user_id=outcome.user_id or _USER,
        state=outcome.state,
        events=events,
        last_update_time=began,
    )


def _invocation(turn: TurnOutcome, number: int) -> Invocation:
    fields: dict[str, Any] = {"duration": turn.duration_s} if _HAS_DURATION else {}
    return Invocation(
        invocation_id=turn.invocation_id or f"turn-{number}",
        user_content=_said(_USER, turn.input),
        final_response=_said(_MODEL, turn.response) if turn.response else None,
        intermediate_data=InvocationEvents(
            invocation_events=[
                InvocationEvent(author=author, content=content)
                for author, content in _contents(_before_answer(turn))
            ]
        ),
        **fields,
    )


def _own(turn: TurnOutcome) -> list[Step]:
    """The steps of the case's session: what is inside of tools, ADK keeps nowhere."""
    return [step for step in turn.steps if not step.inside]


def _before_answer(turn: TurnOutcome) -> list[Step]:
    """The steps of a turn without the one that is its answer, which ADK keeps by itself."""
    steps = _own(turn)
    for n in range(len(steps) - 1, -1, -1):
        if steps[n].text and steps[n].text == turn.response and not steps[n].thought:
            del steps[n]
            break
    return steps


def _events(turn: TurnOutcome, number: int) -> Iterator[Event]:
    """The events of a turn: what the user said, and what came of it."""
    name = turn.invocation_id or f"turn-{number}"
    yield Event(author=_USER, invocation_id=name, content=_said(_USER, turn.input))
    steps = _own(turn)
    for step in steps:
        for author, content in _contents([step]):
            yield Event(author=author, invocation_id=name, content=content)
        if step.state or step.error:
            code, _, message = step.error.partition(": ")
            yield Event(
                author=step.author,
                invocation_id=name,
                actions=EventActions(state_delta=step.state),
                error_code=code or None,
                error_message=message or None,
            )
    if turn.response and not any(step.text == turn.response for step in steps):
        author = steps[-1].author if steps else _MODEL
        yield Event(author=author, invocation_id=name, content=_said(_MODEL, turn.response))


def _contents(steps: Sequence[Step]) -> Iterator[tuple[str, Content]]:
    """What steps said and called, and what tools answered, each with its author."""
    for step in steps:
        if step.text:
            part = Part(text=step.text, thought=True) if step.thought else Part(text=step.text)
            yield step.author, Content(role=_MODEL, parts=[part])
        if step.tool is not None:
            yield from _tool_use(step.author, step.tool)


def _tool_use(author: str, use: ToolUse) -> Iterator[tuple[str, Content]]:
    call_id = use.call_id or None
    call = FunctionCall(id=call_id, name=use.name, args=use.args)
    yield author, Content(role=_MODEL, parts=[Part(function_call=call)])
    if use.error or use.response is not None:
        response = FunctionResponse(id=call_id, name=use.name, response=_answer(use))
        yield author, Content(role=_USER, parts=[Part(function_response=response)])


def _answer(use: ToolUse) -> dict[str, Any]:
    if use.error:
        return {"error": use.error}
    response: Any = use.response
    if isinstance(response, dict):
        return cast("dict[str, Any]", response)
    return {"result": response}  # as ADK wraps what is no mapping


def _said(role: str, text: str) -> Content:
    return Content(role=role, parts=[Part(text=text)])
