"""Confirmations of tools: the form in which ADK takes them, and which of them have been used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent.backends.adk._session._events import REQUEST_CONFIRMATION
from adk_fluent.protocol import asked_key
from adk_fluent.protocol._decision import Decision, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai import types


def confirmation(value: Any) -> Any:
    """An answer as ADK takes it for a confirmation, which refuses whatever else is in it.

    ADK has no field for why somebody refuses; the note goes with the payload.
    """
    found = decide(None, value)
    if not isinstance(found, Decision):
        return value
    made: dict[str, Any] = {"confirmed": found.approved}
    payload, note = found.value.get("payload"), found.value["note"]
    if note and not found.approved and (payload is None or isinstance(payload, dict)):
        payload = {**cast("dict[str, Any]", payload or {}), "note": note}
    if payload is not None or "payload" in found.value:
        made["payload"] = payload
    return made


def askers(session: Session, answer: types.Content) -> Iterator[tuple[str, str]]:
    """The tools whose confirmations are answered and which a middleware has asked about.

    Returns:
        The tool's name, and the middleware's.
    """
    ids = {
        part.function_response.id
        for part in answer.parts or ()
        if part.function_response is not None
        and part.function_response.name == REQUEST_CONFIRMATION
    }
    for event in session.events if ids else ():
        for call in event.get_function_calls():
            if call.name == REQUEST_CONFIRMATION and call.id in ids:
                asked: Any = (call.args or {}).get("originalFunctionCall") or {}
                by = session.state.get(asked_key(asked.get("id")))
                if by:
                    yield str(asked.get("name")), str(by)


class Used:
    """The confirmations after which a tool has run.

    It may have done so in a run that was cut off, or past its pipeline. ADK would run it once more
    if it saw another answer.

    Args:
        events: What happened in the session.

    Attributes:
        questions: Ids of the questions.
        repeats: Ids of the events of the user's that answer them again, and nothing else.
    """

    __slots__ = ("questions", "repeats")

    def __init__(self, events: Iterable[Event]) -> None:
        self.questions: set[str] = set()
        self.repeats: set[str] = set()
        tools: dict[str, str] = {}
        answered: set[str] = set()
        for event in events:
            for call in event.get_function_calls():
                if call.name == REQUEST_CONFIRMATION and call.id:
                    asked: Any = (call.args or {}).get("originalFunctionCall") or {}
                    tools[call.id] = asked.get("id") or ""
            given = {each.id for each in event.get_function_responses()} if tools else None
            if not given:
                continue
            if event.author != "user":
                self.questions.update(id for id in answered if tools[id] in given)
                continue
            if given <= self.questions:
                self.repeats.add(event.id)
            answered.update(id for id in tools if id in given)
