"""Copying a session for another one, in which its runs go on by themselves."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, cast

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from adk_fluent.backends.adk._caps import merges_dicts
from adk_fluent.backends.adk._session._replacing import dicts_to_clear
from adk_fluent.backends.adk._session._stamps import is_journal_key, stamp_of
from adk_fluent.backends.adk._waiting._claim import dumped
from adk_fluent.backends.adk._waiting._rewind import Beginning, first_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session


def copy_events(events: Iterable[Event]) -> list[Event]:
    """Copy events of a session, to be appended to another one.

    Their runs get identities of their own and belong to nobody, so that the copy of a run can be
    resumed whatever becomes of the run that was copied. All else stays as it is.

    Args:
        events: The events, from the first of the session on.
    """
    runs: dict[str, str] = {}
    return [_copy(event, runs) for event in events]


def initial_state(session: Session) -> dict[str, Any]:
    """Return the state that a session was created with, as far as its events tell.

    A key that no event has written has its first value still; where a pipeline has written over
    one, the event says what was there. Where other agents have, it is not known.

    Args:
        session: The session, with all its events.
    """
    return {k: v for k, v in first_values(session).items() if not is_journal_key(k)}


async def write_state(
    service: BaseSessionService,
    session: Session,
    delta: Mapping[str, Any],
    *,
    author: str,
    invocation_id: str,
) -> None:
    """Write to the state of a session outside of a run, by an event that says nothing.

    A dict takes the place of the one that is stored, with services that merge dicts, too, and a
    rewind restores what the session was created with.

    Args:
        service: Where the session is kept.
        session: The session, as it is stored now.
        delta: What is written; None removes a key.
        author: Author of the event.
        invocation_id: The run that the event counts as a part of.
    """
    cleared = dicts_to_clear(delta, session.state) if merges_dicts(service) else None
    for each in (cleared, delta):
        if each:
            actions = EventActions(state_delta=dict(each))
            event = Event(author=author, invocation_id=invocation_id, actions=actions)
            Beginning(session).stamp(event)
            await service.append_event(session=session, event=event)


def _copy(event: Event, runs: dict[str, str]) -> Event:
    made = event.model_copy(deep=True)
    stamp = stamp_of(made)
    delta = made.actions.state_delta
    texts = {k: v for k, v in delta.items() if is_journal_key(k) and isinstance(v, str)}
    before = stamp.get("run", "") if stamp is not None else ""
    if stamp is not None and before:
        stamp["run"] = runs.setdefault(before, str(uuid.uuid4()))
    for key, text in texts.items():
        data: Any = json.loads(text)
        if isinstance(data, dict) and "owner" in data:
            before = str(cast("dict[str, Any]", data)["run"])
            text = dumped({**data, "owner": ""})  # noqa: PLW2901  # the same, of nobody
        if before:
            delta[key] = text.replace(before, runs.setdefault(before, str(uuid.uuid4())))
    return made
