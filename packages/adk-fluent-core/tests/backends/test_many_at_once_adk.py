"""Many runs at once on one store: what is refused, what is kept, and what counts right."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import aiosqlite
import pytest
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent import Agent
from adk_fluent.builders import RunOptions, State
from adk_fluent.errors import SessionStoreError
from adk_fluent.testing import Call, reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService


pytestmark = pytest.mark.adk


@pytest.mark.parametrize("count", [8, pytest.param(200, marks=pytest.mark.full)])
async def test_many_runs_at_once_on_one_file_are_all_done(path: Path, count: int) -> None:
    patient = {"timeout": 60 if count < 100 else 600}  # a busy machine is slow, not wrong
    service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}", connect_args=patient)
    agent = Agent("a").mock("Hello.").writes("said")
    await agent.run("first", session_service=service)  # on ADK 1.x, many would clash over tables
    results = await asyncio.gather(
        *(agent.run(str(n), session_service=service, state={"n": n}) for n in range(count))
    )
    assert [each.state for each in results] == [{"n": n, "said": "Hello."} for n in range(count)]
    await service.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM sessions").fetchone() == (count + 1,)
        assert db.execute("SELECT count(*) FROM events").fetchone() == (2 * count + 2,)


def impatient_sqlite(path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseSessionService:
    monkeypatch.setattr(aiosqlite, "connect", partial(aiosqlite.connect, timeout=0))
    return SqliteSessionService(str(path))


def impatient_database(path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseSessionService:
    return DatabaseSessionService(f"sqlite+aiosqlite:///{path}", connect_args={"timeout": 0})


@pytest.mark.parametrize("make", [impatient_sqlite, impatient_database])
async def test_who_gets_no_turn_has_written_nothing_and_is_told_what_helps(
    path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Any]
) -> None:
    service = make(path, monkeypatch)
    before = RunOptions(session_service=service, session_id="s")
    await Agent("a").mock("One.").run("Hello.", **before)
    other = sqlite3.connect(path, isolation_level=None)

    def takes_its_turn(state: State) -> dict[str, int]:
        other.execute("BEGIN IMMEDIATE")
        return {"n": 1}

    with closing(other):
        with pytest.raises(SessionStoreError) as caught:
            await (Agent("a").mock("Two.") >> takes_its_turn).run("Hello.", **before)
        other.execute("ROLLBACK")
    assert "database is locked" in str(caught.value)
    assert "SQLite lets one write at a time" in str(caught.value)
    assert "DatabaseSessionService" in str(caught.value)
    session = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    said = [part.text for event in session.events for part in event.content.parts]
    assert (said, session.state) == (["Hello.", "One.", "Hello.", "Two."], {})
    again = await Agent("a").mock("Three.").run("Hello.", **before)  # nothing holds the file
    assert again.text == "Three."
    if isinstance(service, DatabaseSessionService):
        await service.close()


ONE_MORE = "INSERT INTO counted VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1"


@pytest.fixture
def store() -> sqlite3.Connection:
    store = sqlite3.connect(":memory:", isolation_level=None)
    store.execute("CREATE TABLE counted (key TEXT PRIMARY KEY, n INTEGER)")
    return store


def counted(store: sqlite3.Connection) -> dict[str, int]:
    return dict(store.execute("SELECT key, n FROM counted"))


async def test_a_store_counts_what_sessions_at_once_do(
    service: BaseSessionService, store: sqlite3.Connection
) -> None:
    def visit(state: State) -> dict[str, bool]:
        store.execute(ONE_MORE, ["visits"])
        return {"user:seen": True}

    agent = Agent("a").mock("Hello.") >> visit
    await agent.run("first", session_service=service)
    await asyncio.gather(*(agent.run("Hello.", session_service=service) for _ in range(8)))
    assert counted(store) == {"visits": 9}
    store.close()


async def test_a_store_counts_what_the_tools_of_one_turn_do(store: sqlite3.Connection) -> None:
    async def take(item: str, turns: int) -> str:
        """Take an item."""
        for _ in range(turns):
            await asyncio.sleep(0)
        store.execute(ONE_MORE, [item])
        return "taken"

    calls = [Call("take", {"item": "lamp", "turns": turns}) for turns in (9, 5, 1)]
    await Agent("a").tool(take).mock([reply(*calls), "Done."]).run("Take.")
    assert counted(store) == {"lamp": 3}
    store.close()


async def test_tools_of_one_turn_that_write_keys_of_their_own_lose_nothing() -> None:
    async def take(item: str, turns: int, tool_context: Any) -> str:
        """Take an item."""
        for _ in range(turns):
            await asyncio.sleep(0)
        tool_context.state[f"taken:{item}"] = 1
        return "taken"

    def add_up(state: State) -> dict[str, int]:
        return {"n": sum(value for key, value in state.items() if key.startswith("taken:"))}

    calls = [Call("take", {"item": f"lamp {turns}", "turns": turns}) for turns in (9, 5, 1)]
    agent = Agent("a").tool(take).mock([reply(*calls), "Done."])
    assert (await (agent >> add_up).run("Take.")).state["n"] == 3
