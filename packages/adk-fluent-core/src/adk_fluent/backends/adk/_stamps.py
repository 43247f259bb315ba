"""What the flow root stamped on events, read back to tell which of them still count."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from adk_fluent.backends._config import STAMP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.events.event import Event

    from adk_fluent.backends.adk._events import Stamp

#: Run id to the scopes that were discarded in it.
Discarded = dict[str, set[str]]


def stamp_of(event: Event) -> Stamp | None:
    """The stamp of an event; None on a user's event, or one of somebody else's agent."""
    metadata = event.custom_metadata
    stamp = metadata.get(STAMP) if metadata else None
    return cast("Stamp", stamp) if isinstance(stamp, dict) else None


def discarded_in(events: Iterable[Event]) -> Discarded:
    """The scopes that these events discard."""
    gone: Discarded = {}
    for event in events:
        stamp = stamp_of(event) if event.custom_metadata else None
        if stamp is not None and (ids := stamp.get("discarded")):
            gone.setdefault(stamp.get("run", ""), set()).update(ids)
    return gone


def is_discarded(event: Event, gone: Discarded) -> bool:
    """Whether an event belongs to a discarded scope."""
    stamp = stamp_of(event)
    if stamp is None or (attempt := stamp.get("attempt")) is None:
        return False
    scopes = gone.get(stamp.get("run", ""))
    return scopes is not None and not scopes.isdisjoint(attempt.split("."))
