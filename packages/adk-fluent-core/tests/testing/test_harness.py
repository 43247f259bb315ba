from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent, Route, expect
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ExpectationError, UsageError
from adk_fluent.ir import ExecutionConfig as Config
from adk_fluent.testing import AgentHarness, Call, mock_backend, reply


def desk() -> Any:
    classify = Agent("classify").writes("topic")
    return classify >> Route("topic").eq("billing", Agent("billing")).otherwise(Agent("general"))


async def test_messages_go_to_one_session() -> None:
    backend = mock_backend(
        {"classify": ["billing", "other"], "billing": "Refund.", "general": "Hi."}
    )
    harness = AgentHarness(desk(), backend=backend, state={"user:tier": "gold"})
    assert harness.state == {"user:tier": "gold"}
    first = await harness.send("My invoice is wrong.")
    assert (first.final_text, first.text, first.errors) == ("Refund.", "Refund.", [])
    assert first.state == harness.state == {"user:tier": "gold", "topic": "billing"}
    assert first.message == "My invoice is wrong."
    assert [event.author for event in first.events] == ["classify", "billing"]
    second = await harness.send("Hello.")
    assert second.final_text == "Hi."
    assert harness.state["topic"] == "other"
    assert harness.results == (first, second)
    assert {first.session_id, second.session_id} == {harness.session_id}
    assert first.user_id == harness.user_id == "user"
    assert "My invoice is wrong." in "".join(turn.text for turn in backend.calls[-1].turns)


async def test_each_harness_has_a_session_of_its_own() -> None:
    backend = mock_backend({"a": "x"})
    one, other = (AgentHarness(Agent("a"), backend=backend) for _ in range(2))
    assert one.session_id != other.session_id
    named = AgentHarness(Agent("a"), backend=backend, session_id="s1", user_id="ann")
    result = await named.send("Hi.")
    assert (result.session_id, result.user_id) == ("s1", "ann")


def test_a_test_that_is_not_async() -> None:
    harness = AgentHarness(Agent("a"), backend=mock_backend({"a": ["x", "y"]}))
    assert [harness.send_sync(text).final_text for text in ("1", "2")] == ["x", "y"]


async def test_inside_a_loop_it_says_what_to_write() -> None:
    harness = AgentHarness(Agent("a"), backend=mock_backend({"a": "x"}))
    with pytest.raises(UsageError, match=r"write: await send\("):
        harness.send_sync("Hi.")


async def test_what_a_step_raises_is_raised_and_the_session_goes_on() -> None:
    def short(state: Any) -> bool:
        return len(state["text"]) < 4

    pipeline = Agent("a").writes("text") >> expect(short, "too long")
    harness = AgentHarness(pipeline, backend=mock_backend({"a": ["much too long", "ok"]}))
    with pytest.raises(ExpectationError, match="too long"):
        await harness.send("1")
    assert harness.results == ()
    assert (await harness.send("2")).state == {"text": "ok"}


async def test_errors_that_agents_report() -> None:
    harness = AgentHarness(
        Agent("a"), backend=mock_backend({"a": [reply(error_code="SAFETY"), "fine"]})
    )
    assert [error.code for error in (await harness.send("1")).errors] == ["SAFETY"]
    assert (await harness.send("2")).errors == []


async def test_tools_that_were_called_and_partial_events() -> None:
    calls = reply(Call("exit_loop", {"why": "done"}), chunks=["by", "e"])
    harness = AgentHarness(
        Agent("a") * 2, backend=mock_backend({"a": calls}), config=Config(streaming_mode="sse")
    )
    result = await harness.send("1")
    assert [(call.tool_name, call.args) for call in result.tool_calls] == [
        ("exit_loop", {"why": "done"})
    ]
    assert any(event.is_partial for event in result)
    assert not any(event.is_partial for event in result.events)


async def test_ir_and_a_builder_that_changes() -> None:
    backend = mock_backend({"a": "x", "b": "y"})
    agent = Agent("a")
    assert (await AgentHarness(agent.to_ir(), backend=backend).send("1")).text == "x"
    pipeline = Agent("a") >> Agent("b")
    harness = AgentHarness(pipeline, backend=backend, config=ExecutionConfig(app_name="desk"))
    result = await harness.send("1")
    assert (result.text, result.app_name) == ("y", "desk")
    pipeline.named("renamed")
    assert (await harness.send("2")).text == "y"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"pipeline": 42}, "42 is no pipeline"),
        ({"pipeline": None}, "None is no pipeline"),
        ({"backend": "mock"}, "backend= takes"),
        ({"config": {}}, "config= takes"),
        ({"session_id": ""}, "session_id= takes"),
        ({"user_id": 3}, "user_id= takes"),
    ],
)
def test_what_it_cannot_work_with(options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"pipeline": Agent("a"), **options}
    with pytest.raises(UsageError, match=says):
        AgentHarness(**given)
