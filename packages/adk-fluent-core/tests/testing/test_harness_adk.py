"""The harness on ADK, with scripted models."""

from __future__ import annotations

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent import Agent
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import AgentHarness, Call, ScriptedModel, reply

pytestmark = pytest.mark.adk


def order(number: int) -> str:
    """Look up an order."""
    return f"order {number} is on its way"


async def test_a_conversation_on_adk() -> None:
    model = ScriptedModel(Call("order", {"number": 7}), "It is on its way.", "You said 7.")
    clerk = Agent("clerk", model).tool(order).writes("answer")
    harness = AgentHarness(clerk, state={"user:tier": "gold"})
    first = await harness.send("Where is order 7?")
    assert first.final_text == "It is on its way."
    assert [call.tool_name for call in first.tool_calls] == ["order"]
    assert first.state == {"user:tier": "gold", "answer": "It is on its way."}
    await harness.send("Which one?")
    assert harness.state["answer"] == "You said 7."
    assert "Where is order 7?" in "".join(turn.text for turn in model.calls[-1].turns)


async def test_harnesses_of_one_pipeline_share_nothing() -> None:
    agent = Agent("a", ScriptedModel(default="x")).writes("user:k")
    one, other = AgentHarness(agent), AgentHarness(agent)
    await one.send("Hi.")
    result = await other.send("Hi.")
    assert len([event for event in result if event.author == "a"]) == 1
    third = AgentHarness(Agent("b", ScriptedModel(default="y")))
    assert "user:k" not in (await third.send("Hi.")).state


async def test_sessions_may_be_kept_elsewhere() -> None:
    service = InMemorySessionService()
    harness = AgentHarness(
        Agent("a", ScriptedModel(default="x")),
        backend=ADKBackend(session_service=service),
        config=ExecutionConfig(app_name="desk"),
        session_id="s1",
    )
    await harness.send("Hi.")
    session = await service.get_session(app_name="desk", user_id="user", session_id="s1")
    assert session is not None
    assert len(session.events) == 2


async def test_after_an_error_the_session_goes_on() -> None:
    model = ScriptedModel(reply(status=503), "fine")
    harness = AgentHarness(Agent("a", model))
    with pytest.raises(Exception, match="503"):
        await harness.send("1")
    assert (await harness.send("2")).text == "fine"


def test_a_test_that_is_not_async() -> None:
    harness = AgentHarness(Agent("a", ScriptedModel("x", "y")))
    assert [harness.send_sync(text).final_text for text in ("1", "2")] == ["x", "y"]
