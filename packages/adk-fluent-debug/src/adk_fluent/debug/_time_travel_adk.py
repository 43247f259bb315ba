"""Time travel: the state of a session at an event, and a session that goes on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent import extend
from adk_fluent.debug._adk import edit_event
from adk_fluent.errors import SessionError, UsageError
from adk_fluent.extend import LOG, describe, storage_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session
    from google.genai import types

    from adk_fluent.debug._recorded_run import Data
    from adk_fluent.protocol import RunResult

_SHARED: Final = ("user:", "app:")
_TEMPORARY: Final = "temp:"
_JOURNAL: Final = "journal"
_BOOKKEEPING: Final = frozenset({_JOURNAL, "claim"})


class TimeTravel:
    """Looks at a session as it was at an event, and forks it there.

    ::

        travel = TimeTravel(session_service)
        fork = await travel.fork(result, at=result[2].id, edit={result[2].id: "Yes, refund it."})
        again = await pipeline.resume(session_id=fork.id, session_service=session_service)

    Nothing is executed by this class, and the session that is looked at stays as it is. Running or
    resuming a pipeline in a fork executes it: models are asked and tools run.

    Events are those of the session, which begin with what the user said and include what says
    where a run stands; the ids of events of a run are the same.

    Args:
        session_service: ADK's session service that keeps the sessions.

    Raises:
        UsageError: It is no session service.
    """

    def __init__(self, session_service: BaseSessionService) -> None:
        given: Any = session_service
        if isinstance(given, type) or not hasattr(given, "append_event"):
            raise UsageError(
                "TimeTravel takes a session service of ADK's",
                found=describe(given),
                help="such as SqliteSessionService('sessions.db')",
            )
        self._service: BaseSessionService = given

    async def state_at(self, session: Session | RunResult, at: int | str) -> dict[str, Any]:
        """Return the state of a session after an event.

        Keys that begin with ``user:`` or ``app:`` are shared with other sessions: their values are
        those of now. A value that the session was created with and that an agent not of a
        pipeline has written over is not known, and absent before that event.

        Args:
            session: The session, or the result of a run in it.
            at: The event: its index in the session, from the end where negative, or its id.

        Raises:
            UsageError: There is no such event.
            SessionError: There is no such session.
        """
        stored = await self._stored(session)
        return _state(stored, _place(stored, at) + 1)

    async def fork(
        self,
        session: Session | RunResult,
        at: int | str = -1,
        state: Mapping[str, Any] | None = None,
        edit: Mapping[int | str, str | types.Content] | None = None,
    ) -> Session:
        """Make a session that holds the events of another one up to one of them.

        State is what it was after that event; keys that begin with ``user:`` or ``app:`` are
        shared with other sessions, and stay as they are. Where the run kept its position
        (``ExecutionConfig(resumable=True)``, or it waits for an answer), ``pipeline.resume`` goes
        on in the fork behind the event; otherwise ``pipeline.run`` begins a new run there. Either
        executes what comes next, and nothing of what is kept, with two exceptions: a step of which
        the event is not the last, and a step in a branch, where one beside it was not done, are
        executed again; a warning says so. Artifacts are not copied.

        Args:
            session: The session, or the result of a run in it.
            at: The last event that is kept: its index in the session, from the end where negative,
                or its id.
            state: What is written to state then; None removes a key. Keys that begin with
                ``user:`` or ``app:`` are written for all sessions that share them.
            edit: What events say instead, by index or id: text, or a Content. Where an event has
                written its text to state, too, it writes the new one.

        Returns:
            The new session.

        Raises:
            UsageError: There is no such event, an edited one is not kept or has no content, or
                state cannot hold what is given.
            SessionError: There is no such session.
        """
        _check_state(state)
        stored = await self._stored(session)
        stop = _place(stored, at) + 1
        edits = _edits(stored, stop, edit)
        kept = extend.copy_events([*stored.events[:stop], *_position_after(stored.events, stop)])
        for place, said in edits.items():
            edit_event(kept[place], said)
        ids: Data = {"app_name": stored.app_name, "user_id": stored.user_id}
        made = await self._service.create_session(**ids, state=extend.initial_state(stored))
        ids["session_id"] = made.id
        try:
            for event in kept:
                event.actions.state_delta = _own(event.actions.state_delta)
                await self._service.append_event(session=made, event=event)
            if state:
                last = next((each for each in reversed(kept) if each.author != "user"), kept[-1])
                by = {"author": last.author, "invocation_id": kept[-1].invocation_id}
                await extend.write_state(self._service, made, state, **by)
            whole = await self._service.get_session(**ids)
        except BaseException:
            await self._service.delete_session(**ids)
            raise
        return made if whole is None else whole

    async def _stored(self, session: Any) -> Session:
        """The session as it is stored now, with all its events."""
        id = getattr(session, "session_id", None) or getattr(session, "id", None)
        app_name, user_id = (getattr(session, name, None) for name in ("app_name", "user_id"))
        if not (isinstance(id, str) and isinstance(app_name, str) and isinstance(user_id, str)):
            raise UsageError(
                "time travel takes a session, or the result of a run in it",
                found=describe(session),
            )
        found = await self._service.get_session(app_name=app_name, user_id=user_id, session_id=id)
        if found is None:
            raise SessionError(
                f"there is no session {id!r} of user {user_id!r} in app {app_name!r}",
                help="look at id, user and app, and take the session service of the run",
            )
        return found


def _place(session: Session, at: Any) -> int:
    """The index of an event in its session."""
    extend.must_be(int | str, at, "at= and edit= name events by index or id")
    ids = [each.id for each in session.events]
    if isinstance(at, str) and at in ids:
        return ids.index(at)
    if isinstance(at, int) and -len(ids) <= at < len(ids):
        return at % len(ids)
    which = f"of id {at!r}" if isinstance(at, str) else at
    raise UsageError(
        f"session {session.id!r} has no event {which}",
        found=f"it has {len(ids)} events",
        help="an index of session.events, or event.id of an event of a run",
    )


def _own(delta: Mapping[str, Any]) -> Data:
    """What is written to the session alone."""
    return {key: value for key, value in delta.items() if not key.startswith(_SHARED)}


def _state(session: Session, stop: int) -> Data:
    state = extend.initial_state(session)
    for event in session.events[:stop]:
        state.update(_own(event.actions.state_delta))
    shared = {key: each for key, each in session.state.items() if key.startswith(_SHARED)}
    return extend.kept_state({**state, **shared})


def _mapping(name: str, given: Any) -> Mapping[Any, Any]:
    extend.must_be(Mapping | None, given, f"{name}= takes a mapping")
    return cast("Mapping[Any, Any]", given or {})


def _check_state(state: Any) -> None:
    given = _mapping("state", state)
    for key in given:
        passes = str(key).startswith(_TEMPORARY)
        if not isinstance(key, str) or passes or extend.is_journal_key(key):
            raise UsageError(
                "state= takes keys that a session keeps",
                found=f"the key {key!r}",
                help="temp: keys last as long as a run" if passes else "a key of yours",
            )
    if fault := storage_fault(dict(given)):
        raise UsageError(f"state= cannot be kept: state{fault.path} {fault.says}", help=fault.help)


def _edits(session: Session, stop: int, edit: Any) -> dict[int, Any]:
    """What events are to say, by their indexes."""
    made: dict[int, Any] = {}
    for at, said in _mapping("edit", edit).items():
        place = _place(session, at)
        event = session.events[place]
        is_silent = event.content is None or not event.content.parts
        if place >= stop or is_silent:
            why = "comes after at=" if place >= stop else f"of {event.author!r} has no content"
            raise UsageError(
                "edit= takes events that are kept and say something",
                found=f"event {at!r}, which {why}",
                help="fork later, or change what it wrote by state={...}",
            )
        if not isinstance(said, str) and not hasattr(said, "parts"):
            raise UsageError("edit= takes text, or a Content", found=describe(said))
        made[place] = said
    return made


# --- where a run stands --------------------------------------------------------------------------


def _position_after(events: Sequence[Event], stop: int) -> list[Event]:
    """The events that say where the run stood after the last one that is kept, if there are any.

    A pipeline says so after each step, in an event of its own or with what the step wrote. Where
    an event of another branch comes between, it may tell of what is not kept, and is not taken.
    """
    last = extend.to_agent_event(events[stop - 1])
    found: list[Event] = []
    for event in events[stop:]:
        seen = extend.to_agent_event(event)
        why = None if seen.content is not None else seen.metadata.get("why")
        if why not in _BOOKKEEPING:
            break
        if why == _JOURNAL:
            found.append(event)
    # what an agent says with a position comes of a branch that was not over then
    cut = last.path and (last.content is not None or not _is_journal(events[stop - 1]))
    if not found and cut and any(map(_is_journal, events[:stop])):
        LOG.warning(
            "fork: step %r, or a branch beside it, had more to do after event %s; "
            "resuming the fork executes that step again",
            last.node or last.author,
            last.id,
        )
    return found


def _is_journal(event: Event) -> bool:
    return any(map(extend.is_journal_key, event.actions.state_delta))
