"""What was said and done, in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._run import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._lanes import Span
    from adk_fluent.debug._run import RecordedRun
    from adk_fluent.protocol import AgentEvent

Data = dict[str, Any]

#: Characters of a value.
SHOWN: Final = 72


def event_lines(event: AgentEvent, span: Span, limit: int = SHOWN) -> Iterator[str]:
    """What an event says and does, in a few words each; a limit of 0 cuts nothing off."""
    if event.content and not (event.is_partial and event.tool_calls):
        yield f"{'says part' if event.is_partial else 'says'} {cut(event.content, limit)}"
    if span.error:
        yield f"error {shown(span.error, limit)}"
    if event.transfer_to:
        yield f"transfers to {event.transfer_to}"
    if event.escalate:
        yield "escalates"
    for each in event.pending:
        yield f"asks {each.name}: {cut(each.message, limit)}"
    for key, value in event.state_delta.items():
        yield f"removes {key}" if value is None else f"writes {key} = {cut(value, limit)}"


def said(run: RecordedRun) -> str:
    """What the user said, in one line."""
    parts: list[Data] = (run.message or {}).get("parts") or []
    return " ".join(each.get("text") or "[no text]" for each in parts)


def arguments(args: Data, limit: int = SHOWN) -> str:
    """Arguments as a call has them; a limit of 0 cuts nothing off."""
    return ", ".join(f"{key}={cut(value, limit)}" for key, value in args.items())


def cut(value: Any, limit: int = SHOWN) -> str:
    """A value as Python writes it, in which no control character does anything."""
    if value == LEFT_OUT:
        return LEFT_OUT
    return _shorter(repr(value), limit)


def shown(text: str, limit: int) -> str:
    """A text without quotes, in which no control character does anything."""
    plain = "".join(
        each if each.isprintable() and each != "\\" else repr(each)[1:-1] for each in text
    )
    return _shorter(plain, limit)


def _shorter(text: str, limit: int) -> str:
    return text if not limit or len(text) <= limit else f"{text[:limit]}..."
