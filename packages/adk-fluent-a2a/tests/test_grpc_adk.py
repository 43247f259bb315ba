"""The third transport: the same handler, gate and limits over gRPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc.aio
import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.types import (
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    a2a_pb2_grpc,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from serve_kit import calling, serving

from adk_fluent import Agent, RemoteAgent, gate
from adk_fluent.errors import UsageError
from adk_fluent.serve import A2AServer, ApiKeyAuth, BearerAuth, Limits
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk


def agent(answer: str = "done") -> Agent:
    return Agent("desk", ScriptedModel(default=answer))


def asks() -> Any:
    return gate(message="Pay it?", name="ok") >> agent("paid")


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_pipeline_is_served_over_grpc_and_its_gate_answered(streaming: bool) -> None:
    async with (
        serving(asks(), grpc_port=0) as server,
        calling(server, "GRPC", streaming=streaming) as caller,
    ):
        told = await caller.send("Pay.")
        assert told.state == "input_required"
        done = await caller.send("yes", task=told.task.id)
        assert (done.state, done.text) == ("completed", "paid")
        other = await caller.send("Pay.")
        assert [each.id for each in await caller.list()] == [other.task.id, told.task.id]
        if streaming:
            watching = aiter(caller.subscribe(other.task.id))
            assert (await anext(watching)).task.id == other.task.id
        await caller.cancel(other.task.id)
        with pytest.raises(TaskNotFoundError):
            await caller.get("nothing")


async def test_the_card_of_1_0_lists_it_and_that_of_0_3_does_not() -> None:
    async with serving(agent(), grpc_port=0) as server, httpx.AsyncClient() as http:
        card = (await http.get(server.card_url, headers={"a2a-version": "1.0"})).json()
        older = (await http.get(f"{server.url}/.well-known/agent.json")).text
        ours = await RemoteAgent("far", endpoint=server.url).run("Hi.")  # over JSON-RPC
        assert ours.text == "done"
    assert card["supportedInterfaces"][-1] == {
        "url": server.grpc_url,
        "protocolBinding": "GRPC",
        "protocolVersion": "1.0",
    }
    assert "GRPC" not in older


async def test_an_agent_that_offers_grpc_alone_is_a_clear_error() -> None:
    card = agent().to_agent_card(
        endpoint="https://a.example", grpc_endpoint="https://grpc.a.example"
    )
    del card.supported_interfaces[:2]
    with pytest.raises(UsageError, match="no interface for JSONRPC or HTTP\\+JSON, only GRPC"):
        RemoteAgent("far", card=card)


def test_a_card_has_to_say_where_grpc_is_and_grpcio_to_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = agent().to_agent_card(endpoint="https://a.example")
    server = A2AServer(agent(), card=card)
    with pytest.raises(UsageError, match="does not say where clients come in for gRPC"):
        asyncio.run(server.start(port=0, grpc_port=0))
    with pytest.raises(UsageError, match="grpc_endpoint= takes the URL"):
        agent().to_agent_card(endpoint="https://a.example", grpc_endpoint="a:1")

    def absent(_name: str) -> None:
        return None

    monkeypatch.setattr("adk_fluent.serve._server_adk.find_spec", absent)
    with pytest.raises(UsageError, match="needs grpcio") as caught:
        asyncio.run(A2AServer(agent()).start(port=0, grpc_port=0))
    assert caught.value.help == "pip install 'adk-fluent-a2a[grpc]'"


async def test_each_principal_has_its_own_tasks_over_grpc_too() -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    async with (
        serving(asks(), auth=auth, grpc_port=0) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, "GRPC", authorization="Bearer b") as bob,
        calling(server, "GRPC", authorization="Bearer a") as same,
        calling(server, "GRPC") as nobody,
    ):
        told = await ann.send("Pay.")
        assert (await same.get(told.task.id)).id == told.task.id
        assert await bob.list() == []
        for reach in (bob.get(told.task.id), bob.cancel(told.task.id)):
            with pytest.raises(TaskNotFoundError):
                await reach
        with pytest.raises(TaskNotFoundError):
            await bob.send("yes", task=told.task.id)
        with pytest.raises(A2AClientError, match="UNAUTHENTICATED"):
            await nobody.list()


async def test_keys_and_failing_authenticators_work_as_over_http() -> None:
    async with (
        serving(agent(), auth=ApiKeyAuth({"k": "ann"}, header="xkey"), grpc_port=0) as server,
        calling(server, "GRPC", xkey="k") as caller,
    ):
        assert (await caller.send("Hi.")).state == "completed"

    async def fails(_: object) -> str:
        raise ValueError("hunter2")

    async with (
        serving(agent(), auth=fails, grpc_port=0) as server,
        calling(server, "GRPC") as caller,
    ):
        with pytest.raises(A2AClientError, match=r"INTERNAL: Internal error$"):
            await caller.list()


def _deep(levels: int) -> Part:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return Part(data=ParseDict(value, Value()))


async def test_bad_calls_are_protocol_errors(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(depth=10, body_bytes=100_000)
    async with (
        serving(agent(), limits=limits, grpc_port=0) as server,
        calling(server, "GRPC") as caller,
        grpc.aio.insecure_channel(server.grpc_url.partition("//")[2]) as channel,
    ):
        with pytest.raises(InvalidParamsError, match="at most 100 parts"):
            await caller.send(*["x"] * 101)
        with pytest.raises(A2AClientError, match=r"INVALID_ARGUMENT: .*more than 10 levels"):
            await caller.send(_deep(11))
        with pytest.raises(A2AClientError, match="RESOURCE_EXHAUSTED"):
            await caller.send("x" * 200_000)
        with pytest.raises(TaskNotFoundError):
            await caller.send("x", task="nothing")
        with pytest.raises(InvalidParamsError):
            await caller.client.get_task(
                GetTaskRequest(id="x", history_length=-1), context=caller.context
            )
        stub: Any = a2a_pb2_grpc.A2AServiceStub(channel)
        for version in ((), (("a2a-version", "9.9"),)):
            with pytest.raises(grpc.aio.AioRpcError, match=r"speaks A2A-Version 1\.0"):
                await stub.ListTasks(ListTasksRequest(), metadata=version)
        calls: Any = channel
        raw = calls.unary_unary("/lf.a2a.v1.A2AService/ListTasks")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await raw(b"\xff\xff\xff", metadata=(("a2a-version", "1.0"),))
        assert "Traceback" not in (caught.value.details() or "")
        missing = calls.unary_unary("/lf.a2a.v1.A2AService/Nothing")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await missing(b"")
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert (await caller.send("Hi.")).text == "done"  # nobody else is disturbed
    assert "failed" not in " ".join(r.message for r in caplog.records if r.name == "adk_fluent")


async def test_a_failure_says_nothing_of_its_reason() -> None:
    async def breaks(state: State) -> Mapping[str, Any]:
        raise ValueError("hunter2")

    async with (
        serving(breaks >> agent(), grpc_port=0) as server,
        calling(server, "GRPC") as caller,
    ):
        told = await caller.send("Go.")
        assert (told.state, told.said) == ("failed", "The agent failed.")


async def test_rates_and_busy_servers_are_refused_with_a_status_to_retry() -> None:
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        entered.set()
        await go.wait()
        return {}

    limits = Limits(concurrency=1, requests_per_second=0.001, burst=5)
    async with (
        serving(wait >> agent(), limits=limits, grpc_port=0) as server,
        calling(server, "GRPC") as caller,
    ):
        first = asyncio.ensure_future(caller.send("Go."))
        await entered.wait()
        with pytest.raises(A2AClientError, match=r"RESOURCE_EXHAUSTED: .*busy"):
            await caller.send("Go.")
        go.set()
        assert (await first).state == "completed"
        many = asyncio.gather(*(caller.list() for _ in range(4)))
        with pytest.raises(A2AClientError, match="RESOURCE_EXHAUSTED: Too many requests"):
            await many


async def test_what_runs_at_a_stop_ends_as_failed_and_calls_end() -> None:
    entered = asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        entered.set()
        await asyncio.Event().wait()
        return {}

    message = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text="Go.")])

    async def follow(events: AsyncIterator[Any]) -> list[Any]:
        return [each async for each in events]

    async with serving(wait >> agent(), grpc_port=0) as server, calling(server, "GRPC") as caller:
        request = SendMessageRequest(message=message)
        sending = asyncio.ensure_future(
            follow(caller.client.send_message(request, context=caller.context))
        )
        await entered.wait()
        await server.stop(grace=0)
        events = await sending
    assert events[-1].status_update.status.message.parts[0].text == "The server was stopped."
