"""Answers to calls as agents are told them: an event for each event that asks.

ADK pairs whole events. Of a message that answers several agents it would tell each of them
everything, or nothing, where an answer to a gate or to a confirmation is among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.backends.adk._hooks._plugin import flow_above
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.backends.adk._waiting._confirmations import Used
from adk_fluent.backends.adk._waiting._inbox import asking, results

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext

_USER: Final = "user"


def taken_apart(events: Sequence[Event]) -> dict[str, list[Event]]:
    """What stands for the messages that answer several events, by the message's id.

    Whatever else the user said in such a message is said with each of its answers.
    """
    messages = [
        each for each in events if each.author == _USER and len(each.get_function_responses()) > 1
    ]
    if not messages:
        return {}
    asks = {call.id: each.id for each in events for call in each.get_function_calls()}
    apart: dict[str, list[Event]] = {}
    for message in messages:
        by: dict[str | None, list[str | None]] = {}
        for answer in message.get_function_responses():
            by.setdefault(asks.get(answer.id), []).append(answer.id)
        if len(by) > 1:
            apart[message.id] = [_part_of(message, *each) for each in enumerate(by.values())]
    return apart


def _part_of(message: Event, number: int, answers: Container[str | None]) -> Event:
    """A message with only some of its answers."""
    assert message.content is not None  # noqa: S101  # it has answers
    parts = [
        part
        for part in message.content.parts or ()
        if part.function_response is None or part.function_response.id in answers
    ]
    content = message.content.model_copy(update={"parts": parts})
    return message.model_copy(update={"id": f"{message.id}/{number}", "content": content})


def without_strangers(events: Iterable[Event]) -> list[Event]:
    """The events without answers of the user's to calls that are not among them."""
    calls: set[str | None] = set()
    kept: list[Event] = []
    for event in events:
        calls.update(call.id for call in event.get_function_calls())
        answers = event.get_function_responses() if event.author == _USER else ()
        if all(each.id in calls for each in answers):
            kept.append(event)
    return kept


def told(
    agent: BaseAgent,
    ctx: InvocationContext,
    seen: list[Event] | None,
    answers: Mapping[str, Any],
) -> tuple[BaseAgent, InvocationContext, list[Event]]:
    """Who goes on when answers come, and the context with them as the last thing that was said.

    However many messages they came in, and with whatever answers to others.

    Args:
        agent: The agent of the step.
        ctx: Its context.
        seen: The events that it sees, if those are not simply the session's.
        answers: The answers, by the ids of the calls.
    """
    events = ctx.session.events if seen is None else seen
    asked = asking(events, next(iter(answers)))
    if asked is not None:  # it may have handed over before it asked, also to a flow
        asking_agent = agent.find_agent(asked.author)
        agent = flow_above(asking_agent, agent) or asking_agent or agent
    said = [each for each in events if not _answers_only(each, answers)]
    used = Used(ctx.session.events).questions
    new = {id: value for id, value in answers.items() if id not in used}
    is_flow = flow_above(agent, agent) is not None  # it looks for all its answers in one message
    aside = set[str]() if is_flow else _aside(events, new)
    for role in (None, _USER):
        given = {id: value for id, value in new.items() if (id in aside) == (role is None)}
        if not given:
            continue
        message = Event(
            author=_USER,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            content=types.Content(role=role, parts=results(ctx.session, given)),
        )
        said.append(message)
        if not is_flow:
            apart = taken_apart(said).get(message.id)
            if apart is not None:
                said[-1:] = apart
    session = copied(ctx.session, {"events": said})
    return agent, copied(ctx, {"session": session}), said


def _aside(events: Iterable[Event], answers: Container[str]) -> set[str]:
    """The answers to what a middleware has asked in a model's place.

    Content of no role is shown to people, and left out of prompts by every version of ADK: so is
    the question, and without it 1.x fails on the answer.
    """
    return {
        call.id
        for event in events
        if event.content is not None and not event.content.role
        for call in event.get_function_calls()
        if call.id and call.id in answers
    }


def _answers_only(event: Event, answers: Container[str | None]) -> bool:
    """Whether an event of the user's holds nothing but some of these answers."""
    parts = event.content.parts if event.content is not None else None
    return event.author == _USER and all(
        part.function_response is not None and part.function_response.id in answers
        for part in parts or ()
    )
