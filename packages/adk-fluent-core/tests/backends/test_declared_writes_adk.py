"""What an agent declares to write, on ADK: written by its answer, a tool, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from adk_programs import agent, by_runner, fallback, loop, run, seq
from google.adk.tools.exit_loop_tool import exit_loop
from google.genai import types

from adk_fluent import Agent
from adk_fluent.errors import OutputMissingError
from adk_fluent.ir import ExecutionConfig, Ref, StateFieldRef
from adk_fluent.testing import Call, ScriptedModel, reply

pytestmark = pytest.mark.adk


def keep(tool_context: Any) -> str:
    """Keep a value."""
    tool_context.state["t"] = "kept"
    return "kept"


@pytest.mark.parametrize("streaming", ["none", "sse"])
async def test_an_agent_without_an_answer(streaming: Any) -> None:
    config = ExecutionConfig(streaming_mode=streaming)
    with pytest.raises(OutputMissingError, match="a did not write 'k'") as caught:
        await run(seq(agent("a", reply(), writes="k"), agent("b")), config=config)
    assert (caught.value.node, caught.value.keys) == ("a", ("k",))


async def test_an_agent_that_reports_an_error() -> None:
    blocked = agent("a", reply(error_code="SAFETY", error_message="no"), writes="k")
    with pytest.raises(OutputMissingError) as caught:
        await run(blocked)
    assert caught.value.found == "it reported SAFETY: no"
    result = await run(fallback(blocked, agent("b", "yes", writes="k")))
    assert result.state == {"k": "yes"}


async def test_a_key_that_a_tool_writes() -> None:
    declared = (StateFieldRef("t"),)
    calls = agent("a", Call("keep"), "done", tools=[keep], tool_writes=declared)
    assert (await run(calls)).state == {"t": "kept"}
    with pytest.raises(OutputMissingError, match="'t'"):
        await run(agent("b", "done", tools=[keep], tool_writes=declared))


def drop(tool_context: Any) -> str:
    """Take it away again."""
    tool_context.state["t"] = None
    return "gone"


@pytest.mark.parametrize("calls", [["drop"], ["keep", "drop"]])
async def test_none_is_not_what_a_tool_has_to_write(calls: list[str]) -> None:
    says = [*map(Call, calls), "done"]
    tools = [keep, drop]
    with pytest.raises(OutputMissingError, match="'t'"):
        await run(agent("a", *says, tools=tools, tool_writes=(StateFieldRef("t"),)))
    again = agent("a", Call("drop"), Call("keep"), "done", tools=tools)
    assert (await run(again.replace(tool_writes=(StateFieldRef("t"),)))).state == {"t": "kept"}


async def test_a_temporary_key_and_an_empty_text_are_written() -> None:
    result = await run(seq(agent("a", "x", writes="temp:k"), agent("b", "", writes="l")))
    assert result.state == {"l": ""}


async def test_what_a_callback_answers_is_written() -> None:
    def answers(callback_context: Any) -> types.Content:
        return types.Content(role="model", parts=[types.Part(text="called back")])

    before = (("before_agent", (Ref.to(answers),)),)
    assert (await run(agent("a", writes="k", callbacks=before))).state == {"k": "called back"}


async def test_who_hands_over_or_leaves_the_loop_owes_nothing() -> None:
    helper = agent("helper", "I did it")
    boss = agent("boss", Call("transfer_to_agent", {"agent_name": "helper"}), writes="k")
    result = await run(boss.replace(delegates=(helper,)))
    assert result.text == "I did it"
    leaves = agent("leaves", Call("exit_loop"), tools=[exit_loop], writes="k")
    assert (await run(loop(leaves, 3))).state.get("k") is None


async def test_adks_own_runner_tells_it_too() -> None:
    with pytest.raises(OutputMissingError):
        await by_runner(Agent("a", ScriptedModel(reply())).writes("k").to_app())
