"""What a hook has changed in an event, put into ADK's event."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.errors import UsageError
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event

    from adk_fluent.backends._stack import Stack
    from adk_fluent.protocol import ErrorInfo


#: How middlewares have to do with events.
OF_EVENTS: Final = ("on_event", "see_event")


async def pass_event(stack: Stack, ctx: InvocationContext, event: Event) -> bool:
    """Let middlewares change an event, and show it to those who only look.

    Args:
        stack: The middlewares.
        ctx: What they are given with it.
        event: ADK's event; changed in place.

    Returns:
        Whether anybody has put something in its place.

    Raises:
        UsageError: One returned what an event cannot be changed to.
    """
    said: Any = None
    if stack.has("on_event"):
        said = await stack.after("on_event", ctx, to_agent_event(event))
        if said is not None:
            patch(event, said)
    stack.show(ctx, event)
    return said is not None


def patch(event: Event, changed: Any) -> None:
    """Change an event of ADK's as a copy of ours says; what the copy leaves as it is stays.

    Args:
        event: ADK's event; changed in place.
        changed: What `on_event` returned.

    Raises:
        UsageError: It is no event, or a field was changed that cannot be.
    """
    if not isinstance(changed, AgentEvent):
        raise UsageError(
            "on_event returns an AgentEvent or None",
            found=type(changed).__name__,
            help="return dataclasses.replace(event, content=...)",
        )
    made = to_agent_event(event)  # not what the hook was given: it may have changed that
    for field in fields(AgentEvent):
        name = field.name
        value = getattr(changed, name)
        if name == "raw" or value == getattr(made, name):
            continue
        put = _FIELDS.get(name)
        if put is None:
            raise UsageError(
                f"on_event cannot change {name!r} of an event",
                found=f"{value!r:.80}",
                help=f"it can change {', '.join(sorted(_FIELDS))}",
            )
        put(event, value, getattr(made, name))


def _content(event: Event, value: str | None, was: str | None) -> None:
    """One text in the place of all; everything else that is said stays."""
    content = event.content or types.Content(role="model", parts=[])
    parts = [each for each in content.parts or () if each.text is None or each.thought]
    if value is not None:
        at = next((i for i, each in enumerate(parts) if not each.thought), len(parts))
        parts.insert(at, types.Part(text=value))
    event.content = content.model_copy(update={"parts": parts})


def _state(event: Event, value: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    _change(event.actions.state_delta, value, was)


def _artifacts(event: Event, value: Mapping[str, int], was: Mapping[str, int]) -> None:
    _change(event.actions.artifact_delta, value, was)


def _metadata(event: Event, value: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    if METADATA_KEY in value:
        raise UsageError(
            f"on_event cannot set custom_metadata[{METADATA_KEY!r}]", help="use another key"
        )
    metadata = dict(event.custom_metadata or {})
    _change(metadata, value, was)
    event.custom_metadata = metadata


def _change(holder: dict[str, Any], value: Mapping[str, Any], was: Mapping[str, Any]) -> None:
    """Change what was told of a mapping; it may hold more."""
    for key in was.keys() - value.keys():
        del holder[key]
    holder.update(value)


def _escalate(event: Event, value: bool, was: bool) -> None:
    event.actions.escalate = value or None


def _transfer(event: Event, value: str | None, was: str | None) -> None:
    event.actions.transfer_to_agent = value


def _error(event: Event, value: ErrorInfo | None, was: ErrorInfo | None) -> None:
    event.error_code = value and value.code
    event.error_message = value and (value.message or None)


_FIELDS: Final[Mapping[str, Callable[[Event, Any, Any], None]]] = {
    "artifact_delta": _artifacts,
    "content": _content,
    "custom_metadata": _metadata,
    "error": _error,
    "escalate": _escalate,
    "state_delta": _state,
    "transfer_to": _transfer,
}
