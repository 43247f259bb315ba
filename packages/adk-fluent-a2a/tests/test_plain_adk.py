"""What the table beside plain ADK says of it (docs/beside-adk.md), measured; run with `--full`.

A test that fails here has found that ADK has changed: correct the page.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.client.card_resolver import parse_agent_card
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.agents.sequential_agent import (
    SequentialAgent,  # pyright: ignore[reportDeprecated]
)
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import InMemoryRunner
from google.genai import types
from remote_kit import (
    WELL_KNOWN,
    Request,
    Wire,
    artifact,
    card,
    peer,
    says,
    served,
    status,
    streaming,
    streams,
    task,
    text,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext

pytestmark = [
    pytest.mark.adk,
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning"),
]


class Step(BaseAgent):
    """Says what it is told to, or fails with it."""

    says: str
    fails: bool = False

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        if self.fails:
            raise RuntimeError(self.says)
        content = types.Content(role="model", parts=[types.Part(text=self.says)])
        actions = EventActions(state_delta={"secret": "canary"})
        yield Event(author=self.name, content=content, actions=actions)


async def run(agent: BaseAgent, **state: Any) -> list[Event]:
    """The events of one run of an agent on ADK's own runner."""
    runner = InMemoryRunner(agent, app_name="app")
    session = await runner.session_service.create_session(
        app_name="app", user_id="u", state=state or None
    )
    message = types.Content(role="user", parts=[types.Part(text="Pay.")])
    return [
        event
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
    ]


def in_order(*agents: BaseAgent) -> BaseAgent:
    return SequentialAgent(name="all", sub_agents=[*agents])  # pyright: ignore[reportDeprecated]


def remote(url: str, **options: Any) -> RemoteA2aAgent:
    return RemoteA2aAgent(name="pay", agent_card=url + WELL_KNOWN, **options)


# --- RemoteA2aAgent ------------------------------------------------------------------------------


async def test_a_failed_task_looks_like_an_answer_and_the_next_step_runs() -> None:
    async with peer(says(task("FAILED", said="no money"))) as far:
        first, then = await run(in_order(remote(far.url), Step(name="then", says="ok")))
    assert first.content is not None
    assert [part.text for part in first.content.parts or ()] == ["no money"]
    assert (first.error_code, first.error_message) == (None, None)
    assert then.author == "then"


async def test_a_status_of_http_is_an_event_after_one_try_and_the_next_step_runs() -> None:
    def busy(_: Request, wire: Wire) -> None:
        wire.respond(503, {})

    async with peer(busy) as far:
        first, then = await run(in_order(remote(far.url), Step(name="then", says="ok")))
        assert len(far.requests) == 1
    assert first.error_code is None
    assert "503" in (first.error_message or "")
    assert then.author == "then"


async def test_the_timeout_is_for_each_read() -> None:
    async def drips(_: Request, wire: Wire) -> None:
        wire.stream()
        for _tick in range(20):
            await wire.send(status("WORKING", "still at it"))
            await asyncio.sleep(0.05)
        await wire.send(artifact(text("R1")))
        await wire.send(status("COMPLETED"))

    async with peer(drips) as far:
        streaming(far)
        begun = asyncio.get_running_loop().time()
        events = await run(remote(far.url, timeout=0.3))
        assert asyncio.get_running_loop().time() - begun > 0.9
    assert not any(event.error_message for event in events)


async def test_cancelled_here_goes_on_there() -> None:
    async def works(_: Request, wire: Wire) -> None:
        wire.stream()
        await wire.send(task("WORKING"))
        begun.set()
        await asyncio.Event().wait()

    begun = asyncio.Event()
    async with peer(works) as far:
        streaming(far)
        running = asyncio.create_task(run(remote(far.url)))
        await begun.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert far.cancelled == []


async def test_a_card_that_is_given_may_send_anywhere() -> None:
    async with peer(says(task("COMPLETED", text("mine")))) as evil:
        given = card("https://bank.example.com")
        other = card(evil.url)["supportedInterfaces"]
        given["supportedInterfaces"] = [*other, *given["supportedInterfaces"]]
        await run(RemoteA2aAgent(name="pay", agent_card=parse_agent_card(given)))
        assert len(evil.requests) == 1


async def test_state_is_neither_sent_nor_written() -> None:
    async with peer(streams(task("COMPLETED", {"data": {"receipt": "R1"}}))) as far:
        streaming(far)
        events = await run(remote(far.url), order="A7")
        assert "A7" not in json.dumps(far.requests[0].body)
    assert not any(event.actions.state_delta for event in events)


# --- to_a2a --------------------------------------------------------------------------------------


async def ask(url: str, method: str, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx.AsyncClient(timeout=20) as http:
        answer = await http.post(url, json=body, headers={"a2a-version": "1.0"})
    return answer.json()


def said(words: str) -> dict[str, Any]:
    return {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": words}]}


def app(**options: Any) -> Any:
    agent = Step(name="desk", says="boom at /etc/secret", **options)

    def make(port: int) -> Any:
        return to_a2a(agent, host="127.0.0.1", port=port)

    return make


async def test_everybody_lists_the_tasks_of_everybody_with_state_and_session_ids() -> None:
    async with served(app()) as url:
        await ask(url, "SendMessage", message=said("Pay."))
        listed = await ask(url, "ListTasks", includeArtifacts=True)
    (one,) = listed["result"]["tasks"]
    assert "adk_session_id" in json.dumps(one)
    assert "canary" in json.dumps(one)


async def test_the_text_of_an_exception_is_sent() -> None:
    async with served(app(fails=True)) as url:
        answer = await ask(url, "SendMessage", message=said("Pay."))
    assert "/etc/secret" in json.dumps(answer)


async def test_a_body_may_have_any_size() -> None:
    async with served(app()) as url:
        answer = await ask(url, "SendMessage", message=said("x" * 8_000_000))
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_json_rpc_is_the_only_transport_and_push_is_not_there() -> None:
    async with served(app()) as url, httpx.AsyncClient() as http:
        shown = (await http.get(url + WELL_KNOWN)).json()
    assert [each["protocolBinding"] for each in shown["supportedInterfaces"]] == ["JSONRPC"]
    assert not shown["capabilities"].get("pushNotifications")
