"""A message that is sent again is run once: on each transport, and with servers on one database."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import aclosing, closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.types import Message, Part, Role, SendMessageRequest
from a2a.utils.errors import InternalError
from serve_kit import ALL, Told, calling, name_of, serving

from adk_fluent import Agent, gate
from adk_fluent.serve import BearerAuth, _handler
from adk_fluent.serve._executor_adk import PipelineExecutor
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from serve_kit import Caller

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk


def message(text: str = "Pay.", **more: Any) -> Message:
    """A message of an id that its client uses again."""
    return Message(message_id="again", role=Role.ROLE_USER, parts=[Part(text=text)], **more)


class Desk:
    """A pipeline that counts its runs and can be held."""

    def __init__(self) -> None:
        self.runs = 0
        self.entered, self.go = asyncio.Event(), asyncio.Event()
        self.settled = asyncio.Event()  # it is known whether there is a second run

    async def pay(self, state: State) -> Mapping[str, Any]:
        self.runs += 1
        if self.runs > 1:
            self.settled.set()
        self.entered.set()
        await self.go.wait()
        return {}

    def pipeline(self) -> Any:
        return self.pay >> Agent("desk", ScriptedModel(default="Paid."))


async def told(caller: Caller, sent: Message) -> tuple[str, str]:
    """Send a message and follow it to its end; gives the id of its task, and its state."""
    id = ""
    request = SendMessageRequest(message=sent)
    async for each in caller.client.send_message(request, context=caller.context):
        update = getattr(each, each.WhichOneof("payload"))
        id = update.id if each.HasField("task") else update.task_id
    task = await caller.get(id)
    assert [part.text for made in task.artifacts for part in made.parts] == ["Paid."]
    return id, name_of(task.status.state)


async def seen(caller: Caller, sent: Message) -> Told:
    """The task of a message that is sent and not followed."""
    request = SendMessageRequest(message=sent)
    request.configuration.return_immediately = True
    events: Any = caller.client.send_message(request, context=caller.context)
    async with aclosing(events):
        each = await anext(events)
    id = each.task.id if each.HasField("task") else each.status_update.task_id
    return Told(await caller.get(id))


@pytest.mark.parametrize("binding", ALL)
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_message_that_is_sent_again_is_run_once(binding: str, streaming: bool) -> None:
    """It gets the task that it has: while that runs, and when it is over."""
    desk = Desk()
    async with (
        serving(desk.pipeline(), grpc_port=0 if binding == "GRPC" else None) as server,
        calling(server, binding, streaming=streaming) as caller,
    ):
        first = asyncio.ensure_future(told(caller, message()))
        await desk.entered.wait()
        assert (running := await seen(caller, message())).state == "working"
        second = asyncio.ensure_future(told(caller, message()))
        desk.go.set()
        ids = {await first, await second, await told(caller, message())}
        assert ids == {(running.task.id, "completed")}
        assert desk.runs == 1
        other = await told(caller, message("Pay more."))  # no client that counts from 1 is misled
        assert other not in ids


async def test_an_answer_that_is_sent_again_counts_once() -> None:
    model = ScriptedModel(default="Paid.")
    asks = gate(message="Pay it?", name="pay") >> gate(message="Sure?", name="sure")
    async with serving(asks >> Agent("desk", model)) as server, calling(server) as caller:
        waits = await caller.send("Pay.")
        yes = message("yes", task_id=waits.task.id)
        for _ in range(2):
            async for _ in caller.client.send_message(
                SendMessageRequest(message=yes), context=caller.context
            ):
                pass
            assert Told(await caller.get(waits.task.id)).said == "Sure?"
        assert (await caller.send("yes", task=waits.task.id)).state == "completed"
        assert (await seen(caller, yes)).state == "completed"


async def test_a_message_id_is_its_principal_s_and_its_context_s() -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    desk = Desk()
    desk.go.set()
    async with (
        serving(desk.pipeline(), auth=auth) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, authorization="Bearer b") as bob,
    ):
        ids = {await told(who, message()) for who in (ann, bob, ann, bob)}
        ids |= {await told(who, message(context_id="c")) for who in (ann, bob, ann)}
    assert (len(ids), desk.runs) == (4, 4)


async def test_servers_on_one_database_run_a_message_once(tmp_path: Path) -> None:
    url, desk = f"sqlite:///{tmp_path / 'tasks.db'}", Desk()
    async with (
        serving(desk.pipeline(), task_store=url) as one,
        serving(desk.pipeline(), task_store=url) as two,
        calling(one) as here,
        calling(two) as there,
    ):
        at_once = [asyncio.ensure_future(told(each, message())) for each in (here, there, here)]
        await desk.entered.wait()
        assert (await seen(there, message())).state == "working"
        desk.go.set()
        assert len(set(await asyncio.gather(*at_once))) == 1
    async with serving(desk.pipeline(), task_store=url) as server, calling(server) as caller:
        assert await told(caller, message()) == await at_once[0]  # after a restart, too
    assert desk.runs == 1
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as kept:  # who follows locks nobody out
        assert kept.execute("pragma journal_mode").fetchone() == ("wal",)


async def test_what_a_server_took_and_left_is_run_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, desk = f"sqlite:///{tmp_path / 'tasks.db'}", Desk()
    desk.go.set()

    async def dies(*_: object) -> None:
        raise RuntimeError

    async with (
        serving(desk.pipeline(), task_store=url) as server,
        calling(server, streaming=False) as caller,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(DefaultRequestHandler, "on_message_send", dies)
            with pytest.raises(InternalError):
                await told(caller, message())
        (left,) = await caller.list()
        assert name_of(left.status.state) == "submitted"
        monkeypatch.setattr(_handler, "_TAKEN", timedelta(0))
        assert await told(caller, message()) == (left.id, "completed")
    assert desk.runs == 1


@pytest.mark.parametrize("streaming", [True, pytest.param(False, marks=pytest.mark.full)])
async def test_a_server_that_is_slow_to_begin_leaves_its_task_to_who_took_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, streaming: bool
) -> None:
    """Its client is told of the run that there is, and nothing is run twice."""
    url, desk = f"sqlite:///{tmp_path / 'tasks.db'}", Desk()
    held, go = asyncio.Event(), asyncio.Event()
    execute = PipelineExecutor.execute
    waits = [True]

    async def slow(self: PipelineExecutor, *args: Any) -> None:
        if not waits:
            await execute(self, *args)
            return
        waits.clear()
        held.set()
        await go.wait()
        try:
            await execute(self, *args)
        finally:
            desk.settled.set()

    monkeypatch.setattr(PipelineExecutor, "execute", slow)
    monkeypatch.setattr(_handler, "_TAKEN", timedelta(0))
    async with (
        serving(desk.pipeline(), task_store=url) as one,
        serving(desk.pipeline(), task_store=url) as two,
        calling(one, streaming=streaming) as here,
        calling(two, streaming=streaming) as there,
    ):
        first = asyncio.ensure_future(told(here, message()))
        await held.wait()
        assert (await seen(here, message())).state == "submitted"  # it is at it, however long
        second = asyncio.ensure_future(told(there, message()))
        await desk.entered.wait()
        go.set()
        await desk.settled.wait()
        desk.go.set()
        assert await first == await second
        assert (await here.list())[0].id == (await first)[0]
    assert desk.runs == 1
