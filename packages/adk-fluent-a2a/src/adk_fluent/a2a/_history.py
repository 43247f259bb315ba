"""What a session says to a remote agent: the conversation, its context there, its questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.extend import METADATA_KEY
from adk_fluent.protocol import compose_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.genai import types

#: The key of an event's ``custom_metadata`` that has the ids of the task it comes from.
KEY: Final = "a2a"
_USER: Final = "user"


class Asked(NamedTuple):
    """An answer to what a remote agent asked, and the task that waits for it.

    Attributes:
        task: The task's id.
        context: That of its context.
        value: What was answered.
        calls: ADK's calls over there that wait for it: ``id`` and ``name``.
    """

    task: str
    context: str
    value: Any
    calls: Sequence[Mapping[str, str]] = ()


def asked_in(ctx: InvocationContext, name: str) -> Asked | None:
    """The answer with which an agent is resumed; None if it begins."""
    events = ctx.session.events
    if not events or events[-1].author != _USER:
        return None
    given = {each.id: each.response for each in events[-1].get_function_responses()}
    for event in reversed(events) if given else ():
        told = _told(event, name)
        if told is not None and told.get("question") in given:
            response = given[told["question"]] or {}
            value = response["result"] if set(response) == {"result"} else response
            return Asked(told["task_id"], told["context_id"], value, told.get("calls") or ())
    return None


def context_of(ctx: InvocationContext, name: str) -> str | None:
    """The context in which the agent knows this conversation; None if it does not yet."""
    for event in reversed(ctx.session.events):
        told = _told(event, name)
        if told is not None and event.branch == ctx.branch:
            return told.get("context_id") or None
    return None


def spoken(ctx: InvocationContext, name: str, history: str) -> list[types.Part]:
    """The part of the conversation that is sent.

    Args:
        ctx: The agent's context.
        name: The agent's name.
        history: As in `RemoteAgentNode`.
    """
    events = [each for each in ctx.session.events if _shown(each)]
    if history == "none":
        return []
    if history == "transcript":
        last = max((at for at, each in enumerate(events) if each.author == name), default=-1)
        return [part for each in events[last + 1 :] for part in _attributed(each)]
    turn = max((at for at, each in enumerate(events) if each.author == _USER), default=-1)
    said = [
        (_path(each), str(at))
        for at, each in enumerate(events)
        if at > turn and each.author != name and each.is_final_response()
    ]
    if said:
        chosen = compose_answer(said).split("\n\n")
        return [part for at in chosen for part in _shown(events[int(at)])]
    return _shown(events[turn]) if turn >= 0 else []


def _told(event: Event, name: str) -> dict[str, Any] | None:
    """What an event of the agent says of its task."""
    if event.author != name or not event.custom_metadata:
        return None
    told = cast("dict[str, Any] | None", event.custom_metadata.get(KEY))
    return told if isinstance(told, dict) and "task_id" in told else None


def _path(event: Event) -> str:
    stamp = cast("dict[str, Any] | None", (event.custom_metadata or {}).get(METADATA_KEY))
    return stamp.get("path", "") if isinstance(stamp, dict) else ""


def _shown(event: Event) -> list[types.Part]:
    """The parts that are meant for whoever reads the conversation; thoughts and calls are not."""
    content = event.content
    if content is None or not content.role:
        return []
    parts: Sequence[types.Part] = content.parts or ()
    return [
        part
        for part in parts
        if not part.thought and (part.text or part.inline_data or part.file_data)
    ]


def _attributed(event: Event) -> list[types.Part]:
    """The parts of an event, the text of agents with who says it."""
    parts = _shown(event)
    if event.author == _USER:
        return parts
    return [
        part.model_copy(update={"text": f"[{event.author}] {part.text}"}) if part.text else part
        for part in parts
    ]
