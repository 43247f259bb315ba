"""What the flow root leaves in a session: stamps on events, and the key of its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.backends._config import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.adk.events.event import Event

    from adk_fluent.backends.adk._session._events import Stamp

_JOURNAL: Final = "_adk_fluent_flow:"
_PART: Final = "@#"
#: Run id to the scopes that were discarded in it.
Discarded = dict[str, set[str]]


def stamp_of(event: Event) -> Stamp | None:
    """The stamp of an event; None on a user's event, or one of somebody else's agent."""
    metadata = event.custom_metadata
    stamp = metadata.get(METADATA_KEY) if metadata else None
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


def journal_key(name: str) -> str:
    """The state key under which the journal of a root stands."""
    return _JOURNAL + name


def part_key(name: str, number: int) -> str:
    """The state key of a part of a journal that is too large to be written as one."""
    return f"{_JOURNAL}{name}{_PART}{number}"


def parts_in(state: Mapping[str, Any], name: str) -> dict[int, str]:
    """The parts of a journal, by number."""
    start = f"{_JOURNAL}{name}{_PART}"
    return {
        int(number): text
        for key, text in state.items()
        if text is not None and key.startswith(start)
        if (number := key.removeprefix(start)).isdecimal()
    }


def is_journal_key(key: str) -> bool:
    """Tell whether a state key holds the journal of a run rather than the user's state.

    Args:
        key: The state key.
    """
    return key.startswith(_JOURNAL)
