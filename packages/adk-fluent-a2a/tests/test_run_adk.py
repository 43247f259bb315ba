"""Remote agents in pipelines, against a real A2A server of ADK's on loopback."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.genai import types
from remote_kit import peer, says, served, task, text

from adk_fluent import Agent, RemoteAgent, S
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext

pytestmark = pytest.mark.adk


class Echo(BaseAgent):
    """Says what it is told."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        assert ctx.user_content is not None
        said = "".join(part.text or "" for part in ctx.user_content.parts or ())
        content = types.Content(role="model", parts=[types.Part(text=f"echo: {said}")])
        yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)


def echo(port: int) -> Any:
    return to_a2a(Echo(name="echo", description="Echoes."), host="127.0.0.1", port=port)


async def test_a_remote_agent_runs_as_a_step() -> None:
    async with served(echo) as url:
        remote = RemoteAgent("far", endpoint=url, outputs="said")
        near = Agent("near", ScriptedModel(default="done")).instruct("Sum up {said}.")
        result = await (remote >> near).run("Hello.")
    assert result.state["said"] == "echo: Hello."
    assert [each.author for each in result if each.is_final] == ["far", "near"]
    assert result.text == "done"


async def test_only_declared_inputs_leave_and_only_declared_outputs_come_back() -> None:
    answer = {"data": {"receipt": "R7", "total": 12, "secret": "theirs"}}
    async with peer(says(task("COMPLETED", answer))) as far:
        remote = RemoteAgent(
            "pay", endpoint=far.url, inputs=("order", "user:tier"), outputs=("receipt", "total")
        )
        pipeline = S.set(order={"id": 7}, secret="pa55") >> remote
        result = await pipeline.run("Pay.", state={"user:tier": "gold"})
    (sent,) = far.requests
    assert sent.data == {"order": {"id": 7}, "tier": "gold"}
    assert sent.texts == ["Pay."]
    assert "pa55" not in str(sent.body)
    assert (result.state["receipt"], result.state["total"]) == ("R7", 12)
    assert "theirs" not in str(result.state)


async def test_a_text_fills_a_single_output() -> None:
    async with peer(says(task("COMPLETED", text("R8")))) as far:
        result = await RemoteAgent("pay", endpoint=far.url, outputs="receipt").run("Pay.")
    assert result.state["receipt"] == "R8"
    assert result.text == "R8"


async def test_a_cancelled_run_cancels_the_agent_over_there() -> None:
    working, cancelled = asyncio.Event(), asyncio.Event()

    class Slow(BaseAgent):
        async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
            content = types.Content(role="model", parts=[types.Part(text="on it")])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, content=content)
            working.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

    def slow(port: int) -> Any:
        return to_a2a(Slow(name="slow", description="Slow."), host="127.0.0.1", port=port)

    async def watch(url: str, seen: asyncio.Event) -> None:
        async for _ in RemoteAgent("far", endpoint=url).stream("Go."):
            seen.set()

    async with served(slow) as url:
        seen = asyncio.Event()
        run = asyncio.create_task(watch(url, seen))
        await working.wait()
        await seen.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await asyncio.wait_for(cancelled.wait(), 10)
