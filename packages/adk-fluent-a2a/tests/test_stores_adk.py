"""Tasks in a database: after a restart, and with several servers on one database."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.database_session_service import DatabaseSessionService
from serve_kit import calling, name_of, serving

from adk_fluent import Agent, gate
from adk_fluent.errors import SessionStoreError, UsageError
from adk_fluent.serve import A2AServer, BearerAuth
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk


def agent() -> Agent:
    return Agent("desk", ScriptedModel(default="done"))


def asks() -> Any:
    return gate(message="Pay it?", name="ok") >> agent()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tasks.db'}"


async def test_a_question_is_answered_after_a_restart(url: str) -> None:
    async with serving(asks(), task_store=url) as server, calling(server) as caller:
        told = await caller.send("Pay.")
        assert told.state == "input_required"
    async with serving(asks(), task_store=url) as server, calling(server) as caller:
        assert [each.id for each in await caller.list()] == [told.task.id]
        done = await caller.send("yes", task=told.task.id)
        assert (done.state, done.text) == ("completed", "done")


async def test_a_question_is_answered_at_another_server(url: str) -> None:
    async with (
        serving(asks(), task_store=url) as first,
        serving(asks(), task_store=url) as second,
        calling(first) as one,
        calling(second) as other,
    ):
        told = await one.send("Pay.")
        done = await other.send("yes", task=told.task.id)
        assert (done.state, done.text) == ("completed", "done")
        assert name_of((await one.get(told.task.id)).status.state) == "completed"


async def test_a_task_that_waits_is_cancelled_at_another_server(url: str) -> None:
    async with (
        serving(asks(), task_store=url) as first,
        serving(asks(), task_store=url) as second,
        calling(first) as one,
        calling(second) as other,
    ):
        told = await one.send("Pay.")
        assert name_of((await other.cancel(told.task.id)).status.state) == "canceled"
        again = await one.send("Pay.", context=told.task.context_id)
        assert again.state == "input_required"


async def test_a_task_is_watched_at_another_server(url: str) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        entered.set()
        await go.wait()
        return {}

    pipeline = wait >> agent()
    async with (
        serving(pipeline, task_store=url) as first,
        serving(pipeline, task_store=url) as second,
        calling(first) as one,
        calling(second) as other,
    ):
        sending = asyncio.ensure_future(one.send("Go."))
        await entered.wait()
        (task,) = await other.list()
        watching = aiter(other.subscribe(task.id))
        assert (await anext(watching)).task.id == task.id
        go.set()
        rest = [each async for each in watching]
        assert [p.text for e in rest for p in e.artifact_update.artifact.parts] == ["done"]
        assert (await sending).state == "completed"


async def test_a_database_keeps_principals_apart(url: str) -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    async with (
        serving(asks(), task_store=url, auth=auth) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, authorization="Bearer b") as bob,
    ):
        told = await ann.send("Pay.")
        assert await bob.list() == []
        for reach in (bob.get(told.task.id), bob.cancel(told.task.id)):
            with pytest.raises(Exception, match="not found"):
                await reach
        with pytest.raises(Exception, match="not found"):
            await bob.send("yes", task=told.task.id)
        other = await bob.send("Pay.", context=told.task.context_id)
        assert other.state == "input_required"
        assert (await ann.send("yes", task=told.task.id)).state == "completed"
        assert (await bob.send("yes", task=other.task.id)).state == "completed"


def test_a_database_in_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a directory that is there"):
        A2AServer(agent(), task_store=f"sqlite:///{tmp_path / 'nowhere' / 'tasks.db'}")


def no_database(path: Path) -> str:
    path.write_text("no database" * 100)
    return "DatabaseError: file is not a database"


def another_s(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table tasks (x int)")
    return "OperationalError: no such column: tasks.id"


@pytest.mark.parametrize("make", [no_database, another_s])
async def test_a_store_that_cannot_be_used_is_told_and_leaves_the_port_alone(
    tmp_path: Path, make: Callable[[Path], str]
) -> None:
    path = tmp_path / "tasks.db"
    found = make(path)
    server = A2AServer(agent(), task_store=f"sqlite:///{path}")
    with pytest.raises(SessionStoreError) as caught:
        await server.start(port=0)
    assert caught.value.what == f"the database {path} cannot be used"
    assert caught.value.found == found
    assert caught.value.help is not None
    assert server.url == ""
    await server.stop(grace=0)


async def test_sessions_that_cannot_be_read_are_told_at_the_start(tmp_path: Path) -> None:
    no_database(tmp_path / "sessions.db")
    kept = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'sessions.db'}")
    server = A2AServer(agent(), session_service=kept)
    with pytest.raises(SessionStoreError, match="the sessions of session_service=") as caught:
        await server.start(port=0)
    assert caught.value.found == "DatabaseError: file is not a database"
    await server.stop(grace=0)
    await kept.close()


def test_an_address_of_a_database_that_cannot_be_read_is_told_without_its_password() -> None:
    with pytest.raises(UsageError) as caught:
        A2AServer(agent(), task_store="postgresql://ann:hunter2@db:nope/tasks")
    assert caught.value.found is not None
    assert caught.value.found.endswith("://db:nope/tasks, which cannot be read")
    assert "hunter2" not in str(caught.value)


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a database in a file"):
        A2AServer(agent(), task_store=f"sqlite:///{tmp_path}")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(UsageError) as caught:
        A2AServer(agent(), task_store="postgresql://db/tasks")
    assert caught.value.help == "pip install 'adk-fluent-a2a[postgresql]'"
