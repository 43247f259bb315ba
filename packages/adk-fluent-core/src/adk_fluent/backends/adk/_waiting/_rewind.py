"""Rewinding a session without losing what it was created with.

ADK works out from the events what state was before a run, so it knows nothing of the state that
`create_session` was given, and removes it. Here it is found again: a key that no event wrote has
its first value still, and the first event that writes over one carries it in its stamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import merges_dicts
from adk_fluent.backends.adk._session._replacing import dicts_to_clear
from adk_fluent.backends.adk._session._sessions import FOREIGN
from adk_fluent.backends.adk._session._stamps import stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.sessions.session import Session


class Beginning:
    """The values a session began with and nothing has written over yet.

    Args:
        session: The session, as it is before the next event.
    """

    def __init__(self, session: Session) -> None:
        self._values = _untouched(session)

    def stamp(self, event: Event) -> None:
        """Let an event that is about to be committed carry the first values it writes over."""
        if not self._values:
            return
        lost = {k: self._values.pop(k) for k in event.actions.state_delta if k in self._values}
        if lost:
            metadata = dict(event.custom_metadata or {})
            metadata[METADATA_KEY] = {**metadata.get(METADATA_KEY, {}), "initial": lost}
            event.custom_metadata = metadata


def _untouched(session: Session) -> dict[str, Any]:
    if not session.state:
        return {}
    touched = _written(session.events)
    return {
        key: value
        for key, value in session.state.items()
        if key not in touched and not key.startswith(FOREIGN)
    }


def _written(events: Iterable[Event]) -> set[str]:
    keys: set[str] = set()
    for event in events:
        keys.update(event.actions.state_delta)
    return keys


def first_values(session: Session) -> dict[str, Any]:
    """What the session began with, as far as it is known."""
    values = _untouched(session)
    seen: set[str] = set()
    for event in session.events:
        stamp = stamp_of(event)
        told = stamp.get("initial", {}) if stamp is not None else {}
        for key in event.actions.state_delta:
            if key not in seen and key in told:
                values[key] = told[key]
            seen.add(key)
    return values


class RewindingSessions(BaseSessionService):
    """A session service for ADK's rewind: the event that ADK appends is put right first."""

    def __init__(self, service: BaseSessionService) -> None:
        self._service = service

    async def create_session(self, **kwargs: Any) -> Session:
        """As the service does."""
        return await self._service.create_session(**kwargs)

    async def get_session(self, **kwargs: Any) -> Session | None:
        """As the service does."""
        return await self._service.get_session(**kwargs)

    async def list_sessions(self, **kwargs: Any) -> Any:
        """As the service does."""
        return await self._service.list_sessions(**kwargs)

    async def delete_session(self, **kwargs: Any) -> None:
        """As the service does."""
        await self._service.delete_session(**kwargs)

    async def append_event(self, session: Session, event: Event) -> Event:
        """As the service does, with the first values kept."""
        before = event.actions.rewind_before_invocation_id
        if before is not None:
            _keepfirst_values(session, event, before)
            if merges_dicts(self._service):
                await self._clear(session, event)
        return await self._service.append_event(session=session, event=event)

    async def _clear(self, session: Session, event: Event) -> None:
        cleared = dicts_to_clear(event.actions.state_delta, session.state)
        if cleared:
            actions = EventActions(state_delta=dict(cleared))
            id = event.invocation_id
            first = Event(author=event.author, invocation_id=id, actions=actions)
            await self._service.append_event(session=session, event=first)


def _keepfirst_values(session: Session, event: Event, before: str) -> None:
    delta = event.actions.state_delta
    ids = [each.invocation_id for each in session.events]
    earlier = _written(session.events[: ids.index(before)])
    for key, value in first_values(session).items():
        if key in earlier:
            continue
        if session.state.get(key) == value:
            delta.pop(key, None)
        else:
            delta[key] = value
