"""What the flow root leaves in a session: stamps on events, and the key of its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from adk_fluent.backends._config import METADATA_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.adk.events.event import Event

_JOURNAL: Final = "_adk_fluent_flow:"
_PART: Final = "@#"
_TEMPORARY: Final = "temp:"
#: Run id to the scopes that were discarded in it.
Discarded = dict[str, set[str]]


class Stamp(TypedDict, total=False):
    """What the flow root writes on an event; all of it JSON.

    Attributes:
        path: Position of the step.
        node: Name of the step.
        attempt: Dotted ids of the scopes it works in.
        discarded: Ids of the scopes this event discards.
        run: Identity of the run; a resumed run keeps it.
        why: Why the engine itself wrote the event.
        pending: Questions, as fields of `Pending`: those a call of this event asks (only what the
            call does not tell itself: ``kind`` and ``name`` of a gate) and those it repeats.
        claim: Root, run, revision and owner, where somebody goes on with a run.
        held: Id of the event of the user's on which nothing was run.
        settled: Ids of calls that were refused, or answered without their tool: no result of theirs
            comes later.
        output: The validated data of an answer.
        retried: What was wrong with an answer, if its agent was asked again.
        besides: Whether the step says it besides its answer, when it is done.
        initial: Values that the session was created with and this event is the first to write
            over.
    """

    path: str
    node: str
    attempt: str
    discarded: list[str]
    run: str
    why: str
    pending: list[dict[str, Any]]
    claim: list[Any]
    held: str
    settled: list[str]
    output: Any
    retried: str
    besides: bool
    initial: dict[str, Any]


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


def kept_state(state: Mapping[str, Any], *, keep_none: bool = False) -> dict[str, Any]:
    """Return what of a state is of interest to whoever asked for a run.

    Keys that ADK drops at the end of an invocation, those of the engine's journal, and those whose
    value is None are not.

    Args:
        state: The state of a session.
        keep_none: Whether keys whose value is None are of interest, too: where it is written that a
            value is gone, and in ADK's instructions, in which such a key is empty and an absent one
            an error.
    """
    return {
        key: value
        for key, value in state.items()
        if (keep_none or value is not None)
        and not key.startswith(_TEMPORARY)
        and not is_journal_key(key)
    }


def is_journal_key(key: str) -> bool:
    """Tell whether a state key holds the journal of a run rather than the user's state.

    Args:
        key: The state key.
    """
    return key.startswith(_JOURNAL)
