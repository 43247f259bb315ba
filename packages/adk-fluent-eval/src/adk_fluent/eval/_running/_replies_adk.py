"""Answers to what a run asks: gates, tools to be confirmed, and long-running tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.eval._running._mocks import answers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._running._recorder_adk import Recorder
    from adk_fluent.protocol import Pending


class Replies:
    """The answers of a case in one run, by the names of questions."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self._asked: dict[str, list[str]] = {}

    def to(self, recorder: Recorder) -> Event | None:
        """Return an event that answers what is open, as far as there are answers; None: none is.

        A question is answered once, for it stays open if its answer is refused.
        """
        given = [
            (each, value)
            for each in recorder.pending
            if (name := each.name or each.kind) in self._answers
            for value in self._next(each, self._asked.setdefault(name, []), self._answers[name])
        ]
        if not given:
            return None
        names = {
            call.id: call.name for event in recorder.events for call in event.get_function_calls()
        }
        responses = [
            types.FunctionResponse(
                id=each.id, name=names.get(each.id, each.name), response=_response(each, value)
            )
            for each, value in given
        ]
        parts = [types.Part(function_response=each) for each in responses]
        event = Event(author="user", content=types.Content(role="user", parts=parts))
        recorder.add_reply(event, [(each.name or each.kind, value) for each, value in given])
        return event

    def _next(self, question: Pending, asked: list[str], given: Any) -> Sequence[Any]:
        """The answer to a question, if there is one left."""
        if question.id in asked:
            return ()
        asked.append(question.id)
        if not isinstance(given, list | tuple):
            return (given,)
        return answers_of(given)[len(asked) - 1 : len(asked)]


def _response(question: Pending, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return {"confirmed" if question.kind == "confirmation" else "result": value}
