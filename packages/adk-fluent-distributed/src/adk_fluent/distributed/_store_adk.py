# ruff: noqa: S608  # the statements are ours
"""ADK's sessions in the tables of an engine's database.

An event is written only if nobody else has written to its session since that was read. What a
process has read therefore stays true until its next write: a segment reads its session once.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, ListSessionsResponse
from google.adk.sessions.session import Session
from pydantic_core import to_jsonable_python
from sqlalchemy import text

from adk_fluent.distributed._bytes_adk import keep_bytes, kept_bytes, put_back, take_out
from adk_fluent.distributed._codecs import MARK, names_in, pack, state_fault, unpack, unpacked
from adk_fluent.distributed._unplaced_adk import takes_over, unplaced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from google.adk.sessions.base_session_service import GetSessionConfig
    from google.genai import types
    from sqlalchemy import Connection

    from adk_fluent.distributed._codecs import Codec
    from adk_fluent.distributed._database import Database
    from adk_fluent.extend import StorageFault

T = TypeVar("T")
Key = tuple[str, str, str]

_REMEMBERED: Final = 256  # sessions
_WHERE: Final = "where app = :app and owner = :owner and session = :session"
_FIND: Final = text(f"select made, updated, state from adk_fluent_sessions {_WHERE}")
_READ: Final = text(
    f"select data, bytes from adk_fluent_events {_WHERE} and number >= :number order by number"
)
_MAKE: Final = text(
    "insert into adk_fluent_sessions values (:app, :owner, :session, :state, :now, :now, 0)"
    " on conflict do nothing"
)
_MOVE: Final = text(
    "update adk_fluent_sessions set state = :state, updated = :now, events = events + 1"
    f" {_WHERE} and updated = :updated"
)
_ADD: Final = text(
    "insert into adk_fluent_events values (:app, :owner, :session, :number, :id, :data, :bytes)"
)
_DROP: Final = text(  # another `made`, so that nobody takes what was dropped for known
    "update adk_fluent_sessions set made = :now, updated = :now, events = :events"
    f" {_WHERE} and updated = :updated"
)
_CUT: Final = text(f"delete from adk_fluent_events {_WHERE} and number >= :events")
_SHARED: Final = text(
    "select owner, key, value from adk_fluent_states where app = :app and owner in ('', :owner)"
)
_SHARE: Final = text(
    "insert into adk_fluent_states values (:app, :owner, :key, :value)"
    " on conflict (app, owner, key) do update set value = excluded.value"
)


class StaleSessionError(ValueError):
    """Somebody else has written to a session since it was read; ADK 2.x calls it so, too."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A session as it was read or written last.

    Attributes:
        made: When it was made; another one of the same id has another time.
        updated: When it was written to last; each write has a time of its own.
        state: The session's own keys, as JSON.
        shared: Those of the app and of the user, with their prefixes, as JSON data.
        events: What has happened.
        kept: Large bytes of the state, by name.
    """

    made: float
    updated: float
    state: str
    shared: dict[str, Any] = field(default_factory=dict[str, Any])
    events: tuple[Event, ...] = ()
    kept: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def session(self, key: Key, config: GetSessionConfig | None = None) -> Session:
        """The session, of which whoever has it may change everything but contents."""
        events = self.events
        if config is not None and config.after_timestamp:
            events = tuple(each for each in events if each.timestamp >= config.after_timestamp)
        if config is not None and config.num_recent_events is not None:
            events = events[max(len(events) - config.num_recent_events, 0) :]
        return Session(
            app_name=key[0],
            user_id=key[1],
            id=key[2],
            state={
                **unpacked(json.dumps(self.shared), self.kept.__getitem__),
                **unpacked(self.state, self.kept.__getitem__),
            },
            events=[each.model_copy() for each in events],
            last_update_time=self.updated,
        )


class RunSessions(BaseSessionService):
    """ADK's sessions in the tables of an engine's database.

    Args:
        database: The database.

    Attributes:
        codecs: What carries state that JSON cannot hold.
    """

    def __init__(self, database: Database) -> None:
        self.codecs: Sequence[Codec] = ()
        self._database = database
        self._read: dict[Key, _Read] = {}
        self._at_work: Counter[Key] = Counter()
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="adk-fluent-sessions")

    def __state_fault__(self, value: object) -> StorageFault | None:
        """Why a value cannot be kept in state, for core; None where it can."""
        return state_fault(value, self.codecs)

    @asynccontextmanager
    async def at_work(self, app_name: str, user_id: str, session_id: str) -> AsyncGenerator[None]:
        """While a call of a segment works on a session: it is read once, and remembered."""
        key = (app_name, user_id, session_id)
        await self._look(key)
        self._at_work[key] += 1
        try:
            yield
        finally:
            self._at_work[key] -= 1
            if not self._at_work[key]:
                del self._at_work[key]

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session.

        Raises:
            AlreadyExistsError: There is one of this id.
        """
        key = (app_name, user_id, session_id or uuid.uuid4().hex)
        own, shared = _split(state or {})
        found = dict[str, bytes]()
        own, shared = pack(own, self.codecs, found), pack(shared, self.codecs)

        def make(db: Connection) -> _Read:
            now = time.time()
            if not db.execute(_MAKE, {**_named(key), "state": _json(own), "now": now}).rowcount:
                raise AlreadyExistsError(f"Session with id {key[2]} already exists.")
            keep_bytes(db, _named(key), found)
            _share(db, key, shared)
            return _Read(now, now, _json(own), _shared(db, key), kept=found)

        return self._remember(key, await self._do(make)).session(key)

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session; None where there is none of this id."""
        key = (app_name, user_id, session_id)
        read = self._read.get(key) if self._at_work[key] else None
        read = read or await self._look(key)
        return None if read is None else read.session(key, config)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions of an app, or of one user of it, without their events."""
        where = "where app = :app" + ("" if user_id is None else " and owner = :owner")
        columns = "owner, session, made, updated, state"
        query = f"select {columns} from adk_fluent_sessions {where} order by updated, session"

        def find(db: Connection) -> list[Session]:
            found: list[Session] = []
            rows = db.execute(text(query), {"app": app_name, "owner": user_id})
            for owner, id, made, updated, state in rows:
                key = (app_name, owner, id)
                kept = _kept(db, key, state, {})
                read = _Read(made, updated, state, _shared(db, key), kept=kept)
                found.append(read.session(key))
            return found

        return ListSessionsResponse(sessions=await self._do(find))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove a session, with its events and artifacts."""
        key = (app_name, user_id, session_id)

        def remove(db: Connection) -> None:
            for table in ("sessions", "events", "artifacts"):
                db.execute(text(f"delete from adk_fluent_{table} {_WHERE}"), _named(key))

        await self._do(remove)
        self._read.pop(key, None)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """What the sessions of a user share, without the prefix ``user:``."""
        stored = await self._do(lambda db: _shared(db, (app_name, user_id, "")))
        shared = unpacked(json.dumps(stored))
        return {k.removeprefix("user:"): v for k, v in shared.items() if k.startswith("user:")}

    async def append_event(self, session: Session, event: Event) -> Event:
        """Write an event, if the session is as it was read.

        Raises:
            StaleSessionError: Somebody else has written to it.
            ValueError: It is gone.
        """
        if event.partial:
            return event
        key = (session.app_name, session.user_id, session.id)
        known = self._read.get(key)
        if known is None or known.updated != session.last_update_time:
            known = await self._look(key)
        if known is None:
            raise ValueError(f"Session {session.id} not found.")
        if known.updated != session.last_update_time:
            raise _stale(session.id)
        before, kept = known, _without_temporary(event)
        again = unplaced(known.events) if takes_over(event) else None

        def write(db: Connection) -> _Read:
            if again is None:
                return _written(db, key, before, kept, self.codecs)
            left = replace(before, events=before.events[:again])
            return _rewritten(db, key, left, (*before.events[again + 1 :], kept), self.codecs)

        try:
            written = await self._do(write)
        except BaseException:
            self._read.pop(key, None)  # whether it was written, the next look will tell
            raise
        self._remember(key, written)
        session.last_update_time = written.updated
        if again is not None:
            gone = before.events[again].id
            session.events[:] = [each for each in session.events if each.id != gone]
        return await super().append_event(session=session, event=event)

    async def drop_unheard(self, key: Key) -> None:
        """Remove what the user has said last and nobody has acted on, unless somebody writes.

        The call in which it was said says it again.
        """
        known = (self._read.get(key) if self._at_work[key] else None) or await self._look(key)
        heard = [] if known is None else list(known.events)
        while heard and heard[-1].author == "user":
            heard.pop()
        if known is None or len(heard) == len(known.events):
            return
        row = {**_named(key), "updated": known.updated, "events": len(heard)}
        row["now"] = max(time.time(), known.updated + 1e-6)

        def remove(db: Connection) -> None:
            if db.execute(_DROP, row).rowcount:
                db.execute(_CUT, row)

        self._read.pop(key, None)
        await self._do(remove)
        await self._look(key)

    async def put_content(
        self, key: Key, content: types.Content
    ) -> tuple[types.Content, dict[str, str]]:
        """Keep large bytes beside a session; the content without them, and their names."""
        small, names, found = take_out(content)
        if found:
            await self._do(lambda db: keep_bytes(db, _named(key), found))
        return small, names

    async def content(
        self, key: Key, small: types.Content, names: Mapping[str, str]
    ) -> types.Content:
        """The content that `put_content` was given."""
        named = _named(key)
        return await self._do(
            lambda db: put_back(small, names, lambda name: kept_bytes(db, named, name))
        )

    async def _look(self, key: Key) -> _Read | None:
        known = self._read.get(key)
        read = await self._do(lambda db: _found(db, key, known))
        if read is None:
            self._read.pop(key, None)
            return None
        return self._remember(key, read)

    def _remember(self, key: Key, read: _Read) -> _Read:
        self._read.pop(key, None)
        self._read[key] = read
        if len(self._read) > _REMEMBERED:
            del self._read[next(iter(self._read))]
        return read

    async def _do(self, work: Callable[[Connection], T]) -> T:
        def transaction() -> T:
            with self._database.begin() as db:
                return work(db)

        return await asyncio.get_running_loop().run_in_executor(self._threads, transaction)


def _found(db: Connection, key: Key, known: _Read | None) -> _Read | None:
    """A session as it is stored; of one that is known, only what is new is read."""
    row = db.execute(_FIND, _named(key)).first()
    if row is None:
        return None
    made, updated, state = row
    shared = _shared(db, key)
    events = () if known is None or known.made != made else known.events
    if known is None or known.updated != updated or known.made != made:
        rows = db.execute(_READ, {**_named(key), "number": len(events)})
        events = (*events, *(_event(db, key, *each) for each in rows))
    kept = _kept(db, key, state, {} if known is None else known.kept)
    return _Read(made, updated, state, shared, events, kept)


def _kept(db: Connection, key: Key, state: str, known: Mapping[str, bytes]) -> dict[str, bytes]:
    """The large bytes of a state."""
    return {name: known.get(name) or kept_bytes(db, _named(key), name) for name in names_in(state)}


def _event(db: Connection, key: Key, data: str, digests: str | None) -> Event:
    event = Event.model_validate_json(data)
    if digests is not None and event.content is not None:
        kept = json.loads(digests)
        event.content = put_back(event.content, kept, lambda d: kept_bytes(db, _named(key), d))
    if MARK in data:
        event.actions.state_delta = _unpacked(db, key, event.actions.state_delta)
        if event.custom_metadata:  # has the state that a run begins with
            event.custom_metadata = _unpacked(db, key, event.custom_metadata)
    return event


def _unpacked(db: Connection, key: Key, packed: Mapping[str, Any]) -> dict[str, Any]:
    def kept(name: str) -> bytes:
        return kept_bytes(db, _named(key), name)

    return {name: unpack(value, kept) for name, value in packed.items()}


def _written(db: Connection, key: Key, read: _Read, event: Event, codecs: Sequence[Codec]) -> _Read:
    """The session after an event was written.

    Raises:
        StaleSessionError: It is not as it was read.
    """
    large = dict[str, bytes]()
    own, shared = _split(event.actions.state_delta)
    own, shared = pack(own, codecs, large), pack(shared, codecs)
    state = _json({**json.loads(read.state), **own}) if own else read.state
    now = max(time.time(), read.updated + 1e-6)
    actions = event.actions.model_copy(update={"state_delta": {**own, **shared}})
    small, digests = event.model_copy(update={"actions": actions}), dict[str, str]()
    if event.custom_metadata:
        small.custom_metadata = pack(event.custom_metadata, codecs, large)
    if event.content is not None:
        small.content, digests, found = take_out(event.content)
        large |= found
    row: dict[str, Any] = {
        **_named(key),
        "state": state,
        "now": now,
        "updated": read.updated,
        "number": len(read.events),
        "id": event.id,
        "data": small.model_dump_json(exclude_none=True),
        "bytes": _json(digests) if digests else None,
    }
    if not db.execute(_MOVE, row).rowcount:
        raise _stale(key[2])
    db.execute(_ADD, row)
    keep_bytes(db, _named(key), large)
    _share(db, key, shared)
    shared = {**read.shared, **shared} if shared else read.shared
    known = {**read.kept, **large}
    kept = {name: known[name] for name in names_in(state)} if known else known
    events = (*read.events, event)
    return replace(read, updated=now, state=state, shared=shared, events=events, kept=kept)


def _rewritten(
    db: Connection, key: Key, read: _Read, events: Sequence[Event], codecs: Sequence[Codec]
) -> _Read:
    """The session after its last events were replaced.

    Args:
        db: The transaction.
        key: Which session.
        read: As it was read, without the events that are replaced.
        events: What comes in their place.
        codecs: What carries state that JSON cannot hold.

    Raises:
        StaleSessionError: It is not as it was read.
    """
    now = max(time.time(), read.updated + 1e-6)
    row = {**_named(key), "updated": read.updated, "events": len(read.events), "now": now}
    if not db.execute(_DROP, row).rowcount:
        raise _stale(key[2])
    db.execute(_CUT, row)
    read = replace(read, made=now, updated=now)
    for each in events:
        read = _written(db, key, read, each, codecs)
    return read


def _named(key: Key) -> dict[str, Any]:
    return {"app": key[0], "owner": key[1], "session": key[2]}


def _shared(db: Connection, key: Key) -> dict[str, Any]:
    rows = db.execute(_SHARED, _named(key))
    return {
        f"{'user' if owner else 'app'}:{name}": json.loads(value) for owner, name, value in rows
    }


def _share(db: Connection, key: Key, shared: Mapping[str, Any]) -> None:
    for name, value in shared.items():
        scope, _, short = name.partition(":")
        owner = key[1] if scope == "user" else ""
        db.execute(_SHARE, {"app": key[0], "owner": owner, "key": short, "value": _json(value)})


def _split(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A session's own keys, and those that it shares; what ends with the run is neither."""
    own, shared = dict[str, Any](), dict[str, Any]()
    for name, value in state.items():
        if not name.startswith("temp:"):
            (shared if name.startswith(("app:", "user:")) else own)[name] = value
    return own, shared


def _without_temporary(event: Event) -> Event:
    delta = event.actions.state_delta
    kept = {name: value for name, value in delta.items() if not name.startswith("temp:")}
    if len(kept) == len(delta):
        return event.model_copy()
    actions = event.actions.model_copy(update={"state_delta": kept})
    return event.model_copy(update={"actions": actions})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=to_jsonable_python)


def _stale(session_id: str) -> StaleSessionError:
    return StaleSessionError(f"session {session_id} was written to since it was read")
