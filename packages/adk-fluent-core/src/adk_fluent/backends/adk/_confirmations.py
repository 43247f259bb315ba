"""Confirmations of tools: the form in which ADK takes them, and which of them have been used up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent.backends.adk._events import REQUEST_CONFIRMATION
from adk_fluent.protocol._decision import Decision, decide

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event


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
