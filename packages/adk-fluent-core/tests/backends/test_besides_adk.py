"""What is said after an agent is said besides its answer, and feeds neither key nor schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.plugins.plugin_manager import PluginManager
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel

from adk_fluent import Agent, Pipeline, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import StateFieldRef
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult

pytestmark = pytest.mark.adk

VALID = '{"total": 3}'
NOTE = "checked"


class Invoice(BaseModel):
    total: int


def content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def note(callback_context: Any) -> types.Content:
    return content(NOTE)


class Noting(Middleware):
    async def after_agent(self, ctx: Any, agent_name: str) -> Any:
        """Say more after `a`."""
        return content(NOTE) if agent_name == "a" else None


class NotingPlugin(BasePlugin):
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        """Say more after `a`."""
        return content(NOTE) if agent.name == "a" else None


def by_callback(agent: Agent) -> Builder:
    return agent.after_agent(note)


def by_middleware(agent: Agent) -> Builder:
    return agent.middleware(Noting(), scope="agent")


WAYS: dict[str, Callable[[Agent], Builder]] = {
    "callback": by_callback,
    "middleware": by_middleware,
}
#: Agents with what they write to state.
AGENTS: dict[str, tuple[Callable[[], Agent], dict[str, Any]]] = {
    "text": (lambda: Agent("a").mock("the answer").writes("out"), {"out": "the answer"}),
    "schema": (lambda: Agent("a").mock(VALID) @ Invoice, {}),
    "typed": (lambda: Agent("a").mock(VALID).writes("out") @ Invoice, {"out": {"total": 3}}),
    "several": (
        lambda: (
            Agent("a")
            .mock('{"total": 3, "of": "May"}')
            .writes(StateFieldRef("total", int), StateFieldRef("of", str))
        ),
        {"total": 3, "of": "May"},
    ),
    "with tools": (
        lambda: Agent("a").mock([Call("look"), "the answer"]).tool(look).writes("out"),
        {"out": "the answer"},
    ),
}


def look() -> str:
    """Look."""
    return "seen"


def said(result: RunResult) -> list[str]:
    return [event.content for event in result if event.content and not event.is_partial]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("mode", ["none", "sse"])
async def test_it_is_said_and_not_written(
    mode: Literal["none", "sse"], kind: str, way: str
) -> None:
    made, state = AGENTS[kind]
    config = ExecutionConfig(streaming_mode=mode)
    result = await (WAYS[way](made()) >> Agent("b").mock("b")).run("hi", config=config)
    assert result.state == state
    assert said(result)[-2:] == [NOTE, "b"]
    alone = await WAYS[way](made()).run("hi", config=config)
    assert alone.text == said(alone)[-2] != NOTE


@pytest.mark.parametrize("kind", AGENTS)
async def test_a_plugin_says_more(kind: str) -> None:
    made, state = AGENTS[kind]
    app = (made() >> Agent("b").mock("b")).to_app(plugins=[NotingPlugin(name="noting")])
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="u")
    events = [
        event
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=content("hi")
        )
    ]
    after = await runner.session_service.get_session(
        app_name=app.name, user_id="u", session_id=session.id
    )
    assert after is not None
    assert dict(after.state) == state
    texts = [part.text for each in events if each.content for part in each.content.parts or ()]
    assert texts[-2:] == [NOTE, "b"]


async def test_somebody_elses_plugin_manager_keeps_its_ways() -> None:
    asked: list[str] = []

    class Own(PluginManager):
        async def run_after_agent_callback(self, **about: Any) -> Any:
            asked.append(about["agent"].name)
            return await super().run_after_agent_callback(**about)

        async def run_after_model_callback(self, **about: Any) -> Any:
            asked.append("its model")
            return await super().run_after_model_callback(**about)

    runner = InMemoryRunner(app=by_callback(Agent("a").mock("answer").writes("out")).to_app())
    runner.plugin_manager = Own(runner.plugin_manager.plugins)
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    running = runner.run_async(user_id="u", session_id=session.id, new_message=content("hi"))
    assert [each.actions.state_delta async for each in running][:1] == [{"out": "answer"}]
    assert asked[:2] == ["its model", "a"]


@pytest.mark.parametrize("way", WAYS)
async def test_an_item_of_a_map_is_what_was_answered(way: str) -> None:
    body = WAYS[way](Agent("a").mock(["one", "two"]))
    mapped = map_over("items", body, output_key="all", concurrency=1)
    result = await mapped.run("hi", state={"items": [1, 2]})
    assert result.state["all"] == ["one", "two"]


@pytest.mark.parametrize("way", WAYS)
async def test_the_next_step_works_on_the_answer(way: str) -> None:
    model = ScriptedModel("done")
    last = Agent("b", model).history("input")
    await (WAYS[way](Agent("a").mock("the answer")) >> last).run("hi")
    assert model.calls[-1].prompt == "the answer"


@pytest.mark.parametrize("way", WAYS)
async def test_a_delegate_says_more(way: str) -> None:
    inner = WAYS[way](Agent("a").instruct("Do it.").mock("the answer").writes("out"))
    boss = Agent("boss").mock(Call("transfer_to_agent", {"agent_name": "a"})).delegates(inner)
    result = await (boss >> Agent("b").mock("b")).run("hi")
    assert (result.state, said(result)) == ({"out": "the answer"}, ["the answer", NOTE, "b"])


async def test_the_words_of_a_whole_pipeline() -> None:
    class Whole(Middleware):
        async def after_agent(self, ctx: Any, agent_name: str) -> Any:
            """Say more after the pipeline."""
            return content(NOTE) if agent_name == "p" else None

    part = Pipeline("p", Agent("a").mock("x"), Agent("c").mock("y")).middleware(Whole())
    result = await map_over("items", part, output_key="all").run("hi", state={"items": [1]})
    assert result.state["all"] == ["y"]


async def test_an_agent_that_runs_again_answers_again() -> None:
    agent = Agent("a").mock(["one", "two", "three"]).writes("out").after_agent(note)
    result = await (agent * 3).run("hi")
    assert result.state == {"out": "three"}
    assert said(result) == ["one", NOTE, "two", NOTE, "three", NOTE]
