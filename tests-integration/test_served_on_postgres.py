"""Servers whose tasks and sessions are in a Postgres: what they do on SQLite, with ``--full``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from a2a.types import Message, Part, Role, SendMessageRequest
from a2a.utils.errors import InternalError

from adk_fluent import Agent, gate
from adk_fluent.errors import SessionStoreError
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.adk, pytest.mark.full]
serve: Any = pytest.importorskip("adk_fluent.serve")  # it needs google-adk 2.13
PACKAGES = Path(__file__).parent.parent / "packages"


def _provided(wheel: str, name: str) -> Any:
    if name not in sys.modules:
        spec = spec_from_file_location(name, PACKAGES / wheel / "tests" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


kit = _provided("adk-fluent-a2a", "serve_kit")
server_of = _provided("adk-fluent-distributed", "postgres_server")


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    folder = server_of.binaries()
    if folder is None:
        pytest.skip(server_of.MISSING)
    with server_of.started(folder) as made:
        yield made


@pytest.fixture
def url(server: Any) -> str:
    return f"{server.address}/postgres"


def asks() -> Any:
    return gate(message="Pay it?", name="ok") >> Agent("desk", ScriptedModel(default="done"))


async def test_a_question_is_answered_at_another_server_and_after_a_restart(url: str) -> None:
    async with (
        kit.serving(asks(), task_store=url) as first,
        kit.serving(asks(), task_store=url) as second,
        kit.calling(first) as one,
        kit.calling(second) as other,
    ):
        told = await one.send("Pay.")
        done = await other.send("yes", task=told.task.id)
        assert (told.state, done.state, done.text) == ("input_required", "completed", "done")
        waits = await one.send("Pay again.")
        assert kit.name_of((await other.cancel(waits.task.id)).status.state) == "canceled"
        left = await one.send("Pay once more.", context=waits.task.context_id)
    async with kit.serving(asks(), task_store=url) as server, kit.calling(server) as caller:
        assert {each.id for each in await caller.list()} == {
            told.task.id,
            waits.task.id,
            left.task.id,
        }
        done = await caller.send("yes", task=left.task.id)
        assert (done.state, done.text) == ("completed", "done")


async def test_a_message_is_run_once_and_watched_at_another_server(url: str) -> None:
    entered, go = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    async def pay(state: Any) -> dict[str, Any]:
        runs.append("run")
        entered.set()
        await go.wait()
        return {}

    pipeline = pay >> Agent("desk", ScriptedModel(default="Paid."))
    said = Message(message_id="again", role=Role.ROLE_USER, parts=[Part(text="Pay.")])

    async def told(caller: Any) -> tuple[str, str]:
        events = caller.client.send_message(
            SendMessageRequest(message=said), context=caller.context
        )
        id = ""
        async with aclosing(events):
            async for each in events:
                update = getattr(each, each.WhichOneof("payload"))
                id = update.id if each.HasField("task") else update.task_id
        task = await caller.get(id)
        return id, kit.Told(task).text

    async with (
        kit.serving(pipeline, task_store=url) as first,
        kit.serving(pipeline, task_store=url) as second,
        kit.calling(first) as here,
        kit.calling(second) as there,
    ):
        sent = [asyncio.ensure_future(told(each)) for each in (here, there, here)]
        await entered.wait()
        go.set()
        found = set(await asyncio.gather(*sent))
        assert {text for _, text in found} == {"Paid."}
        assert (len(found), runs) == (1, ["run"])


async def test_principals_are_kept_apart(url: str) -> None:
    auth = serve.BearerAuth({"a": "ann", "b": "bob"})
    async with (
        kit.serving(asks(), task_store=url, auth=auth) as server,
        kit.calling(server, authorization="Bearer a") as ann,
        kit.calling(server, authorization="Bearer b") as bob,
    ):
        told = await ann.send("Pay.")
        assert told.task.id not in {each.id for each in await bob.list()}
        with pytest.raises(Exception, match="not found"):
            await bob.send("yes", task=told.task.id)
        assert (await ann.send("yes", task=told.task.id)).state == "completed"


async def test_a_database_that_is_started_anew_in_the_middle_of_a_task(server: Any) -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def pay(state: Any) -> dict[str, Any]:
        entered.set()
        await go.wait()
        return {}

    pipeline = pay >> Agent("desk", ScriptedModel(default="Paid."))
    url = f"{server.address}/postgres"
    async with kit.serving(pipeline, task_store=url) as served, kit.calling(served) as caller:
        sent = asyncio.ensure_future(caller.send("Pay."))
        await entered.wait()
        await asyncio.to_thread(server.stop)
        with pytest.raises(InternalError):
            await caller.list()
        assert await asyncio.to_thread(server.start)
        go.set()
        assert ((await sent).state, (await sent).text) == ("completed", "Paid.")
        assert (await caller.send("Pay again.")).state == "completed"


@pytest.mark.parametrize("name", ["nowhere", "postgres"])
async def test_a_database_that_cannot_be_used_is_told(url: str, name: str) -> None:
    address = f"{url.rpartition('/')[0]}/{name}"
    if name == "postgres":
        address = "postgresql://tests:hunter2@127.0.0.1:9/postgres"  # where nobody listens
    server = serve.A2AServer(asks(), task_store=address)
    with pytest.raises(SessionStoreError) as caught:
        await server.start(port=0)
    assert "hunter2" not in str(caught.value)
    assert caught.value.help is not None
    assert "postgresql" in caught.value.what
    await server.stop(grace=0)
