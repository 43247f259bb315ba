"""Tasks in a database: after a restart, and with several servers on one database."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest
from serve_kit import calling, name_of, serving

from adk_fluent import Agent, gate
from adk_fluent.errors import UsageError
from adk_fluent.serve import A2AServer, BearerAuth
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
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


async def test_a_store_that_cannot_be_read_leaves_the_port_alone(tmp_path: Path) -> None:
    (tmp_path / "tasks.db").write_text("no database" * 100)
    server = A2AServer(agent(), task_store=f"sqlite:///{tmp_path / 'tasks.db'}")
    with pytest.raises(Exception, match="file is not a database"):
        await server.start(port=0)
    assert server.url == ""
    await server.stop(grace=0)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(UsageError) as caught:
        A2AServer(agent(), task_store="postgresql://db/tasks")
    assert caught.value.help == "pip install 'adk-fluent-a2a[postgresql]'"
