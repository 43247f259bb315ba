"""Builders over google.adk: its objects as operands, and runs of what was built."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Content, Part

from adk_fluent import Agent, Pipeline, Route
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import AdkAgentNode, AgentNode, Ref
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

pytestmark = pytest.mark.adk


def search(query: str) -> str:
    """Search."""
    return query


class Toolset(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [FunctionTool(search)]

    async def close(self) -> None:
        """Nothing to close."""


def test_a_built_agent_is_a_step_on_either_side() -> None:
    built = LlmAgent(name="built", model="m")
    node = AdkAgentNode("built", Ref(built, "built"))
    assert (Agent("a") >> built).build().children[1] == node
    assert (built >> Agent("a")).build().children[0] == node
    assert (built | Agent("a")).build().children[0] == node
    assert (Agent("a") // built).build().children[1] == node
    assert Route("k").eq("x", built).build().children == (node,)
    agent = Agent("a").delegates(built).agent_tool(LlmAgent(name="other")).build()
    assert [child.name for child in agent.children] == ["other", "built"]


def test_adk_models_tools_and_toolsets() -> None:
    model, tool, toolset = ScriptedModel("x"), FunctionTool(search), Toolset()
    node = Agent("a", model).tool(tool).tool(toolset).tool(Toolset()).build()
    assert isinstance(node, AgentNode)
    assert node.model == Ref(model)
    assert isinstance(node.model, Ref)
    assert node.model.name == model.model
    assert [spec.tool.value for spec in node.tools[:2]] == [tool, toolset]
    assert node.tools[0].name == "search"


def test_tools_of_one_name_and_one_toolset_twice_are_refused() -> None:
    toolset = Toolset()
    agent = Agent("a").tool(FunctionTool(search)).tool(toolset)
    with pytest.raises(BuildError, match="agent 'a' has a tool called 'search' already"):
        agent.tool(search)
    with pytest.raises(BuildError, match="agent 'a' has this very Toolset already"):
        agent.tool(toolset)
    with pytest.raises(UsageError, match=r"require_confirmation=\.\.\.\) is for functions"):
        agent.tool(AgentTool(LlmAgent(name="inner")), require_confirmation=True)


def test_an_adk_agent_is_no_tool() -> None:
    tool: Any = LlmAgent(name="inner")
    with pytest.raises(UsageError, match=r"goes to \.agent_tool"):
        Agent("a").tool(tool)


def line() -> Pipeline:
    return (
        Agent("first").mock("one").writes("x")
        >> (lambda state: {"y": state["x"] + "!"})  # pyright: ignore[reportUnknownLambdaType]
        >> Agent("second").mock(lambda prompt: f"got {prompt}").history("input").instruct("{y}")
    )


def test_ask_twice_in_one_thread() -> None:
    pipeline = Agent("a").mock(["one", "two"])
    assert [pipeline.ask("hi"), pipeline.ask("hi")] == ["one", "two"]


async def test_run_stream_and_state() -> None:
    pipeline = Agent("a").mock("hello").writes("answer")
    result = await pipeline.run("hi", state={"n": 1}, user_id="me")
    assert (result.text, result.state, result.user_id) == (
        "hello",
        {"n": 1, "answer": "hello"},
        "me",
    )
    events = [event async for event in pipeline.stream("hi")]
    assert [event.content for event in events] == ["hello"]


@pytest.mark.parametrize("service", [None, InMemorySessionService()])
def test_a_program_that_breaks_off_a_stream_ends_quietly(
    service: Any, caplog: pytest.LogCaptureFixture
) -> None:
    one, other, last = (Agent(name, ScriptedModel(default=name)) for name in "abc")

    async def main() -> None:
        async for _ in ((one | other) >> last).stream("hi", session_service=service):
            break

    asyncio.run(main())
    assert not caplog.records


@pytest.mark.parametrize(
    "message",
    ["hi", Part(text="hi"), Content(role="user", parts=[Part(text="hi")]), ["h", Part(text="i")]],
)
async def test_what_a_message_may_be(message: Any) -> None:
    assert await Agent("a").mock("yes").ask_async(message) == "yes"


async def test_a_session_in_memory_lasts_as_long_as_the_builder() -> None:
    pipeline = Agent("a").mock("x").writes("answer")
    first = await pipeline.run("one", state={"n": 1})
    again = await pipeline.run("two", session_id=first.session_id)
    assert again.session_id == first.session_id
    assert again.state == {"n": 1, "answer": "x"}
    other = await pipeline.run("three")
    assert other.session_id != first.session_id
    pipeline.instruct("changed")
    assert (await pipeline.run("four", session_id=first.session_id)).state["n"] == 1


async def test_ask_keeps_no_session_unless_one_is_named() -> None:
    pipeline = Agent("a").mock("x")
    sessions = pipeline._kept().adk.session_service

    async def kept() -> list[str]:
        found = await sessions.list_sessions(app_name="adk_fluent_app", user_id="user")
        return [session.id for session in found.sessions]

    await pipeline.ask_async("hi")
    await pipeline.map_async(["hi"])
    assert await kept() == []
    await pipeline.ask_async("hi", session_id="s")
    assert await kept() == ["s"]
    assert pipeline.clone()._kept() is not pipeline._kept()


async def test_rewind_takes_runs_back() -> None:
    pipeline = Agent("a").mock(["one", "two"]).writes("answer")
    first = await pipeline.run("x", state={"n": 1})
    second = await pipeline.run("y", session_id=first.session_id)
    assert second.state["answer"] == "two"
    await pipeline.rewind(session_id=first.session_id, before_invocation_id=second.invocation_id)
    sessions = pipeline._kept().adk.session_service
    session = await sessions.get_session(
        app_name=first.app_name, user_id="user", session_id=first.session_id
    )
    assert session is not None
    assert {k: v for k, v in session.state.items() if v is not None} == {"n": 1, "answer": "one"}


async def test_sessions_of_ones_own() -> None:
    sessions = InMemorySessionService()
    result = await Agent("a").mock("x").run("hi", session_service=sessions, session_id="s")
    assert result.session_id == "s"
    kept = await sessions.list_sessions(app_name=result.app_name, user_id="user")
    assert [session.id for session in kept.sessions] == ["s"]


async def test_map_runs_at_the_same_time() -> None:
    async def answer(prompt: str) -> str:
        await asyncio.sleep(0.01)
        return prompt.upper()

    prompts = [f"p{n}" for n in range(20)]
    answers = await Agent("a").mock(answer).map_async(prompts, concurrency=5)
    assert answers == [prompt.upper() for prompt in prompts]


def test_native_objects() -> None:
    pipeline = Agent("a").mock("x") >> Agent("b").mock("y")
    assert isinstance(pipeline.to_agent(), BaseAgent)
    assert isinstance(pipeline.to_app(), App)
    assert isinstance(pipeline.to_runner(), Runner)
    assert pipeline.to_app() is not pipeline.to_app()


def test_models_are_told_what_pipelines_are_for() -> None:
    refund = (Agent("find") >> Agent("pay")).named("refund").description("Pays an order back.")
    talk = (Agent("hear") | Agent("say")).named("talk").description("Small talk.")
    model = ScriptedModel("Done.")
    assert Agent("boss", model).agent_tool(refund).delegates(talk).ask("Hi.") == "Done."
    [asked] = model.calls
    declared = [each for tool in asked.config.tools for each in tool.function_declarations]
    [tool] = [each for each in declared if each.name == "refund"]
    assert tool.description == "Pays an order back."
    assert "Small talk." in asked.system
    assert refund.to_agent().description == "Pays an order back."
    assert (refund >> Agent("next")).to_agent().description == ""


_FORKED = '''
import asyncio, os, sys
from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel

async def slow(word: str) -> str:
    """Look something up."""
    return await asyncio.to_thread(word.upper)

def ask():
    model = ScriptedModel(Call("slow", {"word": "x"}), "done")
    return Agent("a").model(model).tool(slow).ask("hi")

assert ask() == "done"
child = os.fork()
if child == 0:
    print(ask(), flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0
assert ask() == "done"
'''


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_runs_on_a_loop_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_nothing_is_printed_where_no_logging_is_set_up() -> None:
    code = """
from adk_fluent import Agent

class Failing:
    observer = True
    async def before_model(self, ctx, request):
        raise OSError("of an onlooker")

assert Agent("a").mock("x").middleware(Failing()).ask("hi") == "x"
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert "onlooker" not in done.stderr
