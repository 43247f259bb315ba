"""What goes wrong in a session store during a run: said so, and told from other errors."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from contextlib import aclosing, closing
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import agent, fn, seq, writer
from google.adk.sessions import database_session_service
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.errors import SessionError, SessionStoreError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.protocol import AgentEvent

pytestmark = pytest.mark.adk

#: What ADK 1.25's service for all databases does with a session that another run wrote to; later
#: versions refuse to write, as the service for SQLite alone always has.
READS_ANEW = not hasattr(database_session_service, "_STALE_SESSION_ERROR_MESSAGE")
PROGRAM = seq(agent("a"), agent("b"), agent("c"))


def stream(service: BaseSessionService, **options: Any) -> AsyncGenerator[AgentEvent, None]:
    backend = ADKBackend(session_service=service)
    return backend.stream(backend.compile(PROGRAM), "hi", session_id="s", **options)


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ("sqlite", "earlier than the update_time"),
        pytest.param(
            "database",
            "modified in storage since it was loaded",
            marks=pytest.mark.skipif(READS_ANEW, reason="this ADK reads the session anew instead"),
        ),
    ],
    indirect=["store"],
)
async def test_two_runs_of_one_session_at_the_same_time(
    store: BaseSessionService, why: str
) -> None:
    async with aclosing(stream(store)) as events:
        await anext(events)
        backend = ADKBackend(session_service=store)
        await backend.run(backend.compile(PROGRAM), "between", session_id="s")
        with pytest.raises(SessionError, match="another run wrote to session 's'") as caught:
            _ = [event async for event in events]
    assert isinstance(caught.value.__cause__, ValueError)
    assert why in (caught.value.found or "")
    assert "one after the other" in (caught.value.help or "")


@pytest.mark.skipif(not READS_ANEW, reason="this ADK refuses to write instead")
async def test_a_run_goes_on_with_a_session_that_is_read_anew(database: BaseSessionService) -> None:
    def look(state: Any) -> dict[str, Any]:
        return {"saw": [state.get(key) for key in ("mine", "theirs", "temp:mine")]}

    backend = ADKBackend(session_service=database)
    mine = seq(writer("w", **{"mine": 1, "temp:mine": 2}), agent("a"), fn("look", look), agent("b"))
    running = backend.stream(backend.compile(mine), "hi", session_id="s")
    async with aclosing(running) as events:
        await anext(events)
        other = seq(writer("o", theirs=3), agent("c"))
        await backend.run(backend.compile(other), "between", session_id="s")
        _ = [event async for event in events]
    app, user = "adk_fluent_app", "user"
    session = await database.get_session(app_name=app, user_id=user, session_id="s")
    assert session is not None
    assert session.state == {"mine": 1, "theirs": 3, "saw": [1, 3, 2]}
    said = [event.author for event in session.events if event.content]
    assert said == ["user", "user", "c", "a", "b"]


async def test_a_cancelled_run_leaves_the_database_unlocked(database: Any) -> None:
    """SQLAlchemy keeps the cancelled statement, and with it SQLite's lock, in a reference cycle."""
    from sqlalchemy import event

    backend = ADKBackend(session_service=database)
    compiled = backend.compile(PROGRAM)
    await backend.run(compiled, "first", session_id="s")
    left = 0

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            running.cancel()

    event.listen(database.db_engine.sync_engine, "before_cursor_execute", count)
    gc.disable()
    try:
        for statement in range(1, 30):
            left = statement
            running = asyncio.ensure_future(backend.run(compiled, "hi", session_id=f"s{statement}"))
            with pytest.raises(asyncio.CancelledError):
                await running
            result = await backend.run(compiled, "again", session_id="s")
            assert result.text == "c"
    finally:
        gc.enable()


STALE = (
    "The session has been modified in storage since it was loaded. "
    "Please reload the session before appending more events."
)


class Failing(InMemorySessionService):
    """Fails when the second event of an agent is committed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def append_event(self, session: Session, event: Event) -> Event:
        if event.author == "b":
            raise self.error
        return await super().append_event(session, event)


async def test_a_stale_session_of_adks_database_service() -> None:
    with pytest.raises(SessionError, match="another run wrote to session 's'") as caught:
        _ = [event async for event in stream(Failing(ValueError(STALE)))]
    assert str(caught.value.__cause__) == STALE


async def test_other_errors_of_a_service_stay_as_they_are() -> None:
    error = ValueError("no such app")
    with pytest.raises(ValueError, match="no such app") as caught:
        _ = [event async for event in stream(Failing(error))]
    assert caught.value is error


async def test_a_store_of_somebody_elses_that_fails() -> None:
    with pytest.raises(SessionStoreError, match="cannot be read or written") as caught:
        _ = [event async for event in stream(Failing(OSError("disk gone")))]
    assert caught.value.found == "OSError: disk gone"


async def test_a_store_that_fails_during_a_run(store: BaseSessionService, path: Path) -> None:
    _ = [event async for event in stream(store)]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    backend = ADKBackend(session_service=store)
    with pytest.raises(SessionStoreError, match="cannot be read or written") as caught:
        await backend.run(backend.compile(PROGRAM), "hi", session_id="s")
    assert "full" in (caught.value.found or "")


@pytest.mark.parametrize(
    "error", [sqlite3.OperationalError("mine"), OSError("mine"), ValueError(STALE)]
)
async def test_errors_of_steps_stay_as_they_are(
    error: Exception, store: BaseSessionService
) -> None:
    def fail(state: Any) -> None:
        raise error

    backend = ADKBackend(session_service=store)
    with pytest.raises(type(error)) as caught:
        await backend.run(backend.compile(seq(agent("a"), fn("f", fail))), "hi")
    assert caught.value is error


async def test_a_step_that_uses_the_same_store_keeps_its_errors(sqlite: Any, path: Path) -> None:
    async def look(state: Any) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("ALTER TABLE sessions RENAME TO gone")
        try:
            await sqlite.get_session(app_name="x", user_id="u", session_id="other")
        finally:
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("ALTER TABLE gone RENAME TO sessions")

    backend = ADKBackend(session_service=sqlite)
    with pytest.raises(sqlite3.OperationalError):
        await backend.run(backend.compile(seq(agent("a"), fn("look", look))), "hi")
