"""Functions in place of every tool and every model, below all that stands around the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from adk_fluent import Agent, Middleware
from adk_fluent.backends.adk import call_site, replace_models, replace_tools
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

pytestmark = pytest.mark.adk


def look_up(order: str) -> str:
    """Look up an order."""
    return f"real {order}"


def model() -> ScriptedModel:
    return ScriptedModel(Call("look_up", {"order": "A1"}), default=lambda asked: asked.prompt)


class Sites(BasePlugin):
    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        call_site(tool)


async def answer(call: ToolCall, next: NextTool) -> Any:
    assert (call.name, call.args, call.agent) == ("look_up", {"order": "A1"}, "desk")
    return {"status": f"{(await next(call))} replaced"}


async def replies(agent: LlmAgent) -> str:
    runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=[Sites("sites")]))
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="order")])
    said = [
        str(part.function_response.response)
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
        for part in (event.content.parts if event.content else None) or ()
        if part.function_response
    ]
    return said[0]


async def test_a_function_answers_for_tools_of_adks_agents_within_the_block() -> None:
    agent = LlmAgent(name="desk", model=model(), tools=[look_up])
    with replace_tools(answer):
        assert await replies(agent) == "{'status': 'real A1 replaced'}"
    agent = LlmAgent(name="desk", model=model(), tools=[look_up])
    assert await replies(agent) == "{'result': 'real A1'}"


async def test_it_is_below_middlewares() -> None:
    seen: list[Any] = []

    class Around(Middleware):
        async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
            try:
                return await next(call)
            except TimeoutError as error:
                seen.append(str(error))
                return await next(call)

    calls = iter([TimeoutError("slow"), "again"])

    async def flaky(call: ToolCall, next: NextTool) -> Any:
        made = next_of(calls)
        if isinstance(made, Exception):
            raise made
        return made

    agent = Agent("desk", model()).tool(look_up).middleware(Around())
    with replace_tools(flaky):
        assert "again" in await agent.ask_async("order")
    assert seen == ["slow"]


def next_of(values: Any) -> Any:
    return next(values)


def test_a_call_site_stays_what_it_is() -> None:
    tool = FunctionTool(look_up)
    call_site(tool)
    call_site(tool)
    assert isinstance(tool, FunctionTool)
    assert type(tool).__name__ == "FunctionTool"


class ModelSites(BasePlugin):
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        if isinstance(agent, LlmAgent):
            call_site(agent)


async def said_by(agent: LlmAgent) -> list[str]:
    runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=[ModelSites("sites")]))
    session = await runner.session_service.create_session(app_name="shop", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    return [
        part.text
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
        for part in (event.content.parts if event.content else None) or ()
        if part.text
    ]


async def shout(call: ModelCall, next: NextModel) -> ModelReply:
    reply = await next(call)
    for part in reply.final.content.parts:
        part.text = part.text.upper()
    return reply


async def test_a_function_answers_for_models_of_adks_agents_within_the_block() -> None:
    inner = LlmAgent(name="inner")  # has the model of the agent above
    desk = LlmAgent(name="desk", model=ScriptedModel(default="hello"), sub_agents=[inner])
    with replace_models(shout):
        assert await said_by(desk) == ["HELLO"]
    assert await said_by(desk) == ["hello"]
    assert type(desk.model).__name__ == "ScriptedModel"
    call_site(inner)
    assert inner.model == ""


async def test_another_model_answers_below_middlewares() -> None:
    async def other(call: ModelCall, next: NextModel) -> ModelReply:
        call.model = ScriptedModel(default="other")
        return await next(call)

    class Around(Middleware):
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            return await shout(call, next)

    agent = Agent("desk", ScriptedModel(default="own")).middleware(Around())
    with replace_models(other):
        assert await agent.ask_async("hi") == "OTHER"
    assert await agent.ask_async("hi") == "OWN"
