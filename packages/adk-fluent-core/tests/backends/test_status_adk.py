"""What became of real runs: status, reason and step of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it at run time

from adk_fluent import Agent, Loop, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import AgentHarness, Call, ScriptedModel, mock_backend, reply

if TYPE_CHECKING:
    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult

pytestmark = pytest.mark.adk


def agent(name: str, *replies: Any) -> Agent:
    return Agent(name, ScriptedModel(*replies, default=name.upper())).instruct("Answer.")


def give_up(tool_context: ToolContext) -> str:
    """Give up."""
    tool_context.actions.escalate = True
    return "ok"


def told(result: RunResult) -> tuple[str, str, str, str]:
    return result.status, result.reason, result.step, result.text


@pytest.mark.parametrize("backend", ["adk", "mock"])
async def test_a_gate(backend: str) -> None:
    shop = agent("clerk") >> gate(message="Pay?", name="pay") >> agent("bank")
    options: dict[str, Any] = {"session_id": "s"}
    if backend == "mock":
        options["backend"] = mock_backend({"clerk": ["CLERK"] * 2, "bank": ["BANK"]})
    asked = await shop.run("hi", **options)
    assert told(asked) == ("waiting", "pay: Pay?", "pay", "CLERK")
    held = await shop.run("go on", **options)
    assert (held.status, held.text) == ("waiting", "")
    assert held.reason.startswith("Nothing was run")
    no = await shop.resume(asked.pending[0].answer(False), **options)
    assert told(no) == ("rejected", "pay was refused. Nothing after it was run.", "pay", "")
    asked = await shop.run("hi", **options)
    yes = await shop.resume(asked.pending[0].answer(True), **options)
    assert told(yes) == ("completed", "", "", "BANK")


async def test_a_harness_tells_it_too() -> None:
    harness = AgentHarness(agent("clerk") >> gate(message="Pay?", name="pay"))
    result = await harness.send("hi")
    assert (result.status, result.step) == ("waiting", "pay")


@pytest.mark.parametrize("mode", ["none", "sse"])
async def test_an_answer_that_broke_off(mode: Any) -> None:
    cut = agent("a", reply("On Mon", finish_reason="MAX_TOKENS")) >> agent("b")
    result = await cut.run("hi", config=ExecutionConfig(streaming_mode=mode))
    assert (result.status, result.step, result.text) == ("truncated", "a", "B")
    assert result.reason.startswith("MAX_TOKENS")


async def test_an_error_that_an_agent_reports() -> None:
    result = await agent("a", reply(error_code="SAFETY", error_message="no")).run("hi")
    assert told(result) == ("failed", "SAFETY: no", "a", "")


def escalating() -> Builder:
    return agent("a", Call("give_up", {})).tool(give_up)


async def test_an_agent_that_escalates() -> None:
    """In a loop that ends the loop, and the run goes on to its end."""
    result = await escalating().run("hi")
    assert told(result) == ("escalated", "a escalated, and there was no loop to end", "a", "A")
    result = await (Loop(escalating(), max=3) >> agent("b")).run("hi")
    assert told(result) == ("completed", "", "", "B")
