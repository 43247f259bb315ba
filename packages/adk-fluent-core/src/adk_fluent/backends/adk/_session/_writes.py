"""What every write to state goes through on its way to the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import merges_dicts
from adk_fluent.backends.adk._session._replacing import dicts_to_clear
from adk_fluent.backends.adk._waiting._rewind import Beginning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.adk.agents.invocation_context import InvocationContext

_TEMP: Final = "temp:"


class Writes:
    """Makes writes mean the same on every version of ADK and in every session service.

    Args:
        ctx: The root's context.
        state: Session state, as the engine knows it.
        author: Who authors events of the root's own.
    """

    def __init__(self, ctx: InvocationContext, state: dict[str, Any], author: str) -> None:
        self._session = ctx.session
        self._state = state
        self._author = author
        self._beginning = Beginning(ctx.session)
        self._merging = merges_dicts(ctx.session_service)

    def before(self, event: Event) -> tuple[Event | None, dict[str, Any]]:
        """What must be committed before an event, and the keys of it that ADK 1.x would drop."""
        delta = event.actions.state_delta
        cleared = dicts_to_clear(delta, self._state) if self._merging else None
        self._beginning.stamp(event)
        temporary = {key: delta[key] for key in delta if key.startswith(_TEMP)}
        return (_clearing(event, self._author, cleared) if cleared else None), temporary

    def after(self, temporary: Mapping[str, Any]) -> None:
        """Bring state up to date once an event is committed."""
        state, session = self._state, self._session
        if temporary:
            state.update(temporary)
        if session.state is not state:  # ADK 1.x reads it anew when another run wrote meanwhile
            stored = session.state | {k: state[k] for k in state if k.startswith(_TEMP)}
            state.clear()
            state.update(stored)
            session.state = state


def _clearing(event: Event, author: str, delta: dict[str, None]) -> Event:
    metadata = dict(event.custom_metadata or {})
    metadata[METADATA_KEY] = {**metadata.get(METADATA_KEY, {}), "why": "cleared"}
    return Event(
        author=author,
        invocation_id=event.invocation_id,
        branch=event.branch,
        actions=EventActions(state_delta=dict(delta)),
        custom_metadata=metadata,
    )
