"""What was seen of a run, as lines that are compared with those expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.ir import is_reserved_key
from adk_fluent.protocol import kept_events
from adk_fluent.testing.conformance._program import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adk_fluent.protocol import AgentEvent
    from adk_fluent.testing.conformance._program import Raised


def own(state: Mapping[str, Any]) -> dict[str, Any]:
    """State of the program's own, without what is as good as absent."""
    return {key: value for key, value in state.items() if value is not None and _lasts(key)}


def _lasts(key: str) -> bool:
    """Temporary keys are no part of a session, and backends may leave them out of events."""
    return not key.startswith("temp:") and not is_reserved_key(key)


def lines(events: Iterable[AgentEvent]) -> list[str]:
    """Each event as a line; one of an attempt that was discarded begins with ``~``.

    Events that only tell of bookkeeping, and say and write nothing, are left out.
    """
    every = list(events)
    kept = {id(event) for event in kept_events(every)}
    return [
        f"{'' if id(event) in kept or event.discarded else '~'}{line}"
        for event in every
        if (line := _line(event)) is not None
    ]


def _line(event: AgentEvent) -> str | None:
    told = list(_told(event))
    if not told:
        return None
    step = event.node or event.author
    who = step if step == event.author else f"{step}@{event.author}"
    return " ".join((event.path or ".", who, *told))


def _told(event: AgentEvent) -> Iterator[str]:
    if event.content is not None:
        yield f"{'+' * event.is_partial}{event.content!r}"
    delta = {key: value for key, value in event.state_delta.items() if _lasts(key)}
    if delta and not event.is_partial:
        yield shown(delta)
    for call in event.tool_calls:
        yield f"calls {call.tool_name}({dict(call.args)})"
    for response in event.tool_responses:
        yield f"result of {response.tool_name}"
    if event.transfer_to is not None:
        yield f"->{event.transfer_to}"
    if event.escalate:
        yield "escalates"
    if event.error is not None:
        yield f"!{event.error}"
    for pending in event.pending:
        yield f"asks {pending.kind} {pending.name}"


def error_differs(wanted: Raised | None, error: BaseException | None) -> str | None:
    """What is wrong with an error, or None."""
    if wanted is None or error is None:
        return None if wanted is error else f"is {error!r}, should be {wanted}"
    given = getattr(error, "code", None) if wanted.code is not None else None
    notes: list[str] = getattr(error, "__notes__", [])
    places = [getattr(error, "node", None) or "", *notes]
    wrong = [
        wanted.type not in {"", type(error).__name__},
        given != wanted.code,
        wanted.text not in str(error),
        wanted.node is not None and not any(_names(place, wanted.node) for place in places),
    ]
    if any(wrong):
        return f"is {error!r} (code {given}, at {places}), should be {wanted}"
    return None if wanted.before is None else _earlier(wanted.before, error.__context__)


def _earlier(wanted: Raised, error: BaseException | None) -> str | None:
    """Look for an error among those before another one."""
    met: list[BaseException] = []
    while error is not None and all(error is not each for each in met):
        if error_differs(wanted, error) is None:
            return None
        met.append(error)
        error = error.__context__
    return f"comes after {met}, should come after {wanted}"


def _names(place: str, node: str) -> bool:
    return place == node or f"node {node!r}" in place
