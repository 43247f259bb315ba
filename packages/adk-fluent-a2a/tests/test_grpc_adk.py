"""The third transport: the same handler, gate and limits over gRPC."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client.errors import A2AClientError
from a2a.types import (
    AgentCard,
    Message,
    Part,
    Role,
    SendMessageRequest,
)
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import MessageToDict
from remote_kit import Request, Wire, peer
from serve_kit import calling, serving

from adk_fluent import Agent, RemoteAgent, gate
from adk_fluent.a2a import AuthConfig, RetryConfig
from adk_fluent.errors import RemoteError, UsageError
from adk_fluent.serve import A2AServer, ApiKeyAuth, BearerAuth, Limits
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

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


async def test_a_start_that_fails_may_be_tried_again(tmp_path: Path) -> None:
    """Such as where another program has the port; the card says where it listens in the end."""
    server = A2AServer(agent(), task_store=f"sqlite:///{tmp_path / 'tasks.db'}")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="gRPC cannot listen"),
    ):
        await server.start(port=0, grpc_port=taken.getsockname()[1])
    assert (server.url, server.grpc_url) == ("", "")
    await server.start(port=0, grpc_port=0)
    try:
        async with calling(server, "GRPC") as caller, httpx.AsyncClient() as http:
            assert (await caller.send("Hi.")).text == "done"
            card = (await http.get(server.card_url, headers={"a2a-version": "1.0"})).json()
        urls = {each["url"] for each in card["supportedInterfaces"]}
        assert urls == {server.url, server.grpc_url}
    finally:
        await server.stop(grace=0)


# --- called -------------------------------------------------------------------------------------


def grpc_card(*urls: str) -> AgentCard:
    """A card with interfaces for gRPC alone."""
    card = agent().to_agent_card(endpoint="https://a.example", grpc_endpoint=urls[0])
    del card.supported_interfaces[:2]
    for url in urls[1:]:
        card.supported_interfaces.add(url=url, protocol_binding="GRPC", protocol_version="1.0")
    return card


def calls(server: A2AServer, **options: Any) -> RemoteAgent:
    return RemoteAgent("far", card=grpc_card(server.grpc_url), outputs="receipt", **options)


async def test_an_agent_that_offers_grpc_alone_is_called_and_answered_over_it() -> None:
    async with serving(asks(), grpc_port=0, auth=BearerAuth({"s3cret": "ann"})) as server:
        far = calls(server, auth=AuthConfig("bearer", "FAR_TOKEN"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FAR_TOKEN", "s3cret")
            first = await far.run("Pay.")
            (asked,) = first.pending
            assert asked.name == "ok"
            done = await far.resume(asked.answer(True), session_id=first.session_id)
            assert done.state["receipt"] == "paid"
            patch.setenv("FAR_TOKEN", "other")
            with pytest.raises(RemoteError, match="UNAUTHENTICATED") as caught:
                await far.run("Pay.")
    assert (caught.value.error_code, caught.value.status) == ("A2A_HTTP", 401)


async def test_a_deadline_over_grpc_cancels_the_task() -> None:
    held, over = asyncio.Event(), asyncio.Event()

    async def waits(state: State) -> Mapping[str, Any]:
        try:
            await held.wait()
        finally:
            over.set()
        return {}

    async with serving(agent() >> waits, grpc_port=0) as server:
        with pytest.raises(RemoteError) as caught:
            await calls(server, timeout=0.5).run("Pay.")
        assert caught.value.error_code == "A2A_DEADLINE"
        await over.wait()


async def test_a_failed_task_over_grpc_and_nobody_there_start_the_fallback() -> None:
    def fails(state: State) -> Mapping[str, Any]:
        raise RuntimeError

    async with serving(agent() >> fails, grpc_port=0) as server:
        far = calls(server, retry=RetryConfig(max_attempts=2, initial_delay=0))
        with pytest.raises(RemoteError) as caught:
            await far.run("Pay.")
        assert caught.value.error_code == "A2A_FAILED"
    with pytest.raises(RemoteError) as caught:
        await far.run("Pay.")
    assert (caught.value.error_code, caught.value.retriable) == ("A2A_CONNECT", True)
    by_hand = agent("by hand").writes("receipt")
    result = await calls(server, fallback=by_hand).run("Pay.")
    assert result.state["receipt"] == "by hand"


async def test_an_answer_over_grpc_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_fluent.a2a._http.LARGEST", 50_000)
    monkeypatch.setattr("adk_fluent.a2a._grpc.LARGEST", 80_000)
    for size, says in ((60_000, "more than 50000 bytes"), (90_000, "too large")):
        async with serving(agent("x" * size), grpc_port=0) as server:
            with pytest.raises(RemoteError, match=says) as caught:
                await calls(server).run("Pay.")
            assert caught.value.error_code == "A2A_PROTOCOL"


@pytest.mark.parametrize(
    ("urls", "says"),
    [
        (["http://a.example:50051"], "can be read by others"),
        (["https://a.example:1", "https://evil.example:2"], "not to the host of https://a.example"),
    ],
)
def test_addresses_of_grpc_are_checked(urls: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        RemoteAgent("far", card=grpc_card(*urls))


async def test_a_fetched_card_sends_no_calls_of_grpc_to_another_host() -> None:
    def reply(_: Request, wire: Wire) -> None:
        wire.respond(200, MessageToDict(grpc_card("https://evil.example:50051")))

    async with peer(card=reply) as far:
        with pytest.raises(RemoteError, match="not to the host of http://127") as caught:
            await RemoteAgent("far", endpoint=far.url).run("Pay.")
    assert caught.value.error_code == "A2A_CARD"


def test_without_grpcio_an_agent_that_offers_grpc_alone_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adk_fluent.a2a._cards_adk.has_grpc", lambda: False)
    with pytest.raises(UsageError, match=r"only GRPC, which needs adk-fluent-a2a\[grpc\]"):
        RemoteAgent("far", card=grpc_card("https://a.example"))


# --- served -------------------------------------------------------------------------------------


def test_a_card_has_to_say_where_grpc_is_and_grpcio_to_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = agent().to_agent_card(endpoint="https://a.example")
    server = A2AServer(agent(), card=card)
    with pytest.raises(UsageError, match="does not say where clients come in for gRPC"):
        asyncio.run(server.start(port=0, grpc_port=0))
    with pytest.raises(UsageError, match="grpc_endpoint= takes the URL"):
        agent().to_agent_card(endpoint="https://a.example", grpc_endpoint="a:1")

    monkeypatch.setattr("adk_fluent.serve._server_adk.has_grpc", lambda: False)
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
