"""A tool that escalates ends the loop at once: the model is not asked what it makes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent  # pyright: ignore[reportDeprecated]
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.tools import exit_loop
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it off our tools
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Loop, Pipeline, Route, map_over, timeout
from adk_fluent.config import ExecutionConfig
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

LEAVE = Call("leave")
AGAIN = "must not be asked"


class Verdict(BaseModel):
    good: bool


def leave(tool_context: ToolContext) -> str:
    """Leave the loop."""
    tool_context.actions.escalate = True
    return "left"


def look(tool_context: ToolContext) -> str:
    """Look."""
    tool_context.state["seen"] = True
    return "seen"


def leaving(model: ScriptedModel, name: str = "critic") -> Agent:
    return Agent(name, model).instruct("Judge.").tool(leave).tool(look)


def before(tool: Any, args: Any, tool_context: Any) -> Any:
    tool_context.actions.escalate = True
    return {"result": "left"}


class Watch(Middleware):
    """A middleware through which all calls go."""

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
        """Do nothing."""


#: The agent that leaves, in each of its forms, given its model.
FORMS: dict[str, Callable[[ScriptedModel], Builder]] = {
    "plain": leaving,
    "writes": lambda model: leaving(model).writes("verdict"),
    "typed": lambda model: leaving(model).writes("verdict") @ Verdict,
    "before_tool": lambda model: Agent("critic", model).tool(look).tool(leave).before_tool(before),
    "middleware": lambda model: leaving(model).middleware(Watch()),
    "delegate": lambda model: (
        Agent("boss")
        .instruct("Pass it on.")
        .mock(Call("transfer_to_agent", {"agent_name": "critic"}))
        .delegates(leaving(model))
    ),
}
#: Where it stands in the loop.
ARRANGED: dict[str, Callable[[Builder], Builder]] = {
    "alone": lambda critic: Loop("l", critic, max=4),
    "sequence": lambda critic: Loop("l", Agent("draft").mock(["d"] * 4) >> critic, max=4),
    "nested": lambda critic: Loop("l", Pipeline("p", Pipeline("q", critic)), max=4),
    "branch": lambda critic: Loop("l", FanOut(critic, Agent("other").mock(["o"] * 4)), max=4),
    "route": lambda critic: Loop("l", Route("k").eq("x", Agent("no")).otherwise(critic), max=4),
    "attempt": lambda critic: Loop("l", critic // Agent("no").mock("no"), max=4),
    "timeout": lambda critic: Loop("l", timeout(critic, 60), max=4),
    "item": lambda critic: Loop("l", map_over("items", critic, output_key="out"), max=4),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("arranged", ARRANGED)
async def test_the_loop_ends_at_the_event(form: str, arranged: str) -> None:
    model = ScriptedModel(LEAVE, *[AGAIN] * 8)
    loop = ARRANGED[arranged](FORMS[form](model))
    result = await (loop >> Agent("after").mock("went on")).run("go", state={"items": [1]})
    assert len(model.calls) == 1
    assert result.text == "went on"
    assert result.state.get("verdict") is None
    assert [event.author for event in result if event.escalate] == ["critic"]


@pytest.mark.parametrize("mode", ["none", "sse"])
async def test_what_else_the_turn_calls_is_done(mode: Literal["none", "sse"]) -> None:
    model = ScriptedModel(reply(LEAVE, Call("look")), AGAIN)
    result = await Loop("l", leaving(model), max=4).run(
        "go", config=ExecutionConfig(streaming_mode=mode)
    )
    assert (len(model.calls), result.state) == (1, {"seen": True})


async def test_after_agent_and_the_rest_of_the_agents_hooks_run() -> None:
    seen: list[str] = []

    class Around(Middleware):
        async def after_agent(self, ctx: Any, agent_name: str) -> None:
            """Note it."""
            seen.append(agent_name)

    def after(callback_context: Any) -> None:
        seen.append("callback")

    critic = leaving(ScriptedModel(LEAVE, AGAIN)).after_agent(after)
    await Loop("l", critic, max=4).middleware(Around()).run("go")
    assert seen == ["callback", "critic", "l"]


async def test_a_callback_of_the_model_lets_the_calls_of_its_turn_be_done() -> None:
    def after(callback_context: Any, llm_response: Any) -> None:
        context: Any = callback_context
        actions = getattr(context, "actions", None) or context._event_actions  # of 1.x
        actions.escalate = True

    model = ScriptedModel(Call("look"), AGAIN)
    result = await Loop("l", leaving(model).after_model(after), max=4).run("go")
    assert (len(model.calls), result.state) == (1, {"seen": True})


async def test_it_ends_the_nearest_loop_alone() -> None:
    model = ScriptedModel(LEAVE, LEAVE, AGAIN)
    inner = Loop("inner", leaving(model), max=4)
    result = await Loop("outer", inner >> Agent("b").mock(["b1", "b2"]), max=2).run("go")
    assert (len(model.calls), result.text) == (2, "b2")


async def test_outside_of_loops_it_changes_nothing() -> None:
    model = ScriptedModel(LEAVE, "said after it")
    result = await (leaving(model) >> Agent("b").mock("b")).run("go")
    assert (len(model.calls), result.text) == (2, "b")


async def test_a_pipeline_below_an_agent_of_a_loop() -> None:
    """Its agent is not asked again, and its own loop is its own matter."""
    model, later = ScriptedModel(LEAVE, AGAIN), ScriptedModel(Call("look"), "looked")
    inner = Loop("inner", leaving(model), max=4) >> leaving(later, "later")
    below = inner.named("below").description("Works.")
    boss = Agent("boss").mock([Call("transfer_to_agent", {"agent_name": "below"})] * 4)
    result = await Loop("l", boss.delegates(below), max=1).run("go")
    assert (len(model.calls), len(later.calls), result.text) == (1, 2, "looked")


@pytest.mark.parametrize("tools", [(exit_loop,), (leave,)], ids=["exit_loop", "escalate"])
async def test_an_agent_of_adks_keeps_its_own_ways(tools: Any) -> None:
    """In trees of ADK's own, what happens after it is for ADK."""
    model = ScriptedModel(Call(tools[0].__name__), "again", "again")
    kid = LlmAgent(name="kid", model=model, tools=list(tools))
    tree = SequentialAgent(  # pyright: ignore[reportDeprecated]
        name="tree",
        sub_agents=[
            LoopAgent(  # pyright: ignore[reportDeprecated]
                name="own", sub_agents=[kid], max_iterations=3
            ),
            LlmAgent(name="z", model=ScriptedModel("Z")),
        ],
    )
    result = await Loop("l", tree, max=1).run("go")
    assert (len(model.calls), result.text) == (1 if tools[0] is exit_loop else 2, "Z")
