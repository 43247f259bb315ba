"""Finds the answer that an agent has committed before its process died, and its place was not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.extend import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event

#: What a journal says of who goes on with a run, and not of where the run stands.
_WHO: Final = ("owner", "revision", "saved")


def takes_over(event: Event) -> bool:
    """Whether an event says that somebody goes on with a run."""
    return _stamp(event).get("why") == "claim"


def unplaced(events: Sequence[Event]) -> int | None:
    """The index of the last answer of a step that the run's position does not know of.

    The step begins again, and answers again. None where the last step said nothing, is known to
    have ended, or has only called tools so far: their results are kept.
    """
    for at in reversed(range(len(events))):
        event, stamp = events[at], _stamp(events[at])
        why = stamp.get("why")
        if why == "claim" or (why == "journal" and _is_release(events, at)):
            continue
        said = event.content is not None and any(part.text for part in event.content.parts or ())
        answered = said and event.author != "user" and event.is_final_response()
        return at if answered and "run" in stamp and why is None else None
    return None


def _is_release(events: Sequence[Event], at: int) -> bool:
    """Whether a journal says that others may go on, and nothing about where."""
    here = _position(events[at])
    before = next((found for e in reversed(events[:at]) if (found := _position(e))), None)
    return here is not None and here == before


def _position(event: Event) -> dict[str, Any] | None:
    """Where the run stands, as an event writes it down."""
    for value in event.actions.state_delta.values():
        if isinstance(value, str) and value.startswith("{") and _stamp(event).get("why"):
            data: Any = json.loads(value)
            if "position" in data:
                return {name: each for name, each in data.items() if name not in _WHO}
    return None


def _stamp(event: Event) -> dict[str, Any]:
    return (event.custom_metadata or {}).get(METADATA_KEY) or {}
