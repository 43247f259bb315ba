"""User code that type checkers accept without a word: running, ADK's own objects, middleware."""
# ruff: noqa: TC002  # users import as they please

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.apps import App
from google.adk.models import BaseLlm, Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, Part

from adk_fluent import Agent, Pipeline, Route, tap
from adk_fluent.config import ExecutionConfig, TelemetryConfig
from adk_fluent.contracts import ContractReport
from adk_fluent.ir import AuthConfig, ContentSpec, Modality
from adk_fluent.protocol import AgentEvent, RunResult
from adk_fluent.testing import Call, Script, reply

if TYPE_CHECKING:
    from collections.abc import Sequence


def search(query: str) -> str:
    return query


def before(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
    print(callback_context.agent_name, len(llm_request.contents))
    return None


async def after(callback_context: CallbackContext, llm_response: LlmResponse) -> None:
    print(callback_context.agent_name, llm_response.partial)


def before_tool(
    tool: BaseTool, args: dict[str, Any], tool_context: ToolContext
) -> dict[str, Any] | None:
    return {"skipped": tool.name} if args.get("dry") else None


class Toolset(BaseToolset):
    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [FunctionTool(search)]


class Watch:
    async def before_model(self, ctx: Any, request: Any) -> Any:
        print(request)


def build(llm: BaseLlm, tools: Sequence[BaseTool]) -> Agent:
    agent = (
        Agent("native", llm)
        .model(Gemini(model="gemini-2.5-flash"))
        .tool(FunctionTool(search))
        .tool(Toolset())
        .tool(AgentTool(LlmAgent(name="inner")))
        .before_model(before)
        .after_model([after])
        .before_tool([before_tool, before_tool])
        .middleware(Watch())
    )
    for tool in tools:
        agent.tool(tool)
    return agent


built = LlmAgent(name="built")
pipeline = Agent("a") >> built >> Route("x").eq("y", built) >> Pipeline("p", built)
assert_type(pipeline, Pipeline)
assert_type(built >> Agent("b"), Pipeline)
Agent("c").delegates(built).agent_tool(built)

config = ExecutionConfig(max_llm_calls=3)
ExecutionConfig(middlewares=[Watch()], telemetry=TelemetryConfig(custom_exporters=[object()]))
ContentSpec({Modality.TEXT}, output_modalities=[Modality.TEXT, Modality.PDF])
AuthConfig("oauth2", scopes=["read"])
assert_type(pipeline.to_agent(), BaseAgent)
assert_type(pipeline.to_app(config), App)
assert_type(pipeline.to_runner(session_service=InMemorySessionService()), Runner)
assert_type(pipeline.check(), ContractReport)
assert_type(pipeline.validate(), Pipeline)
assert_type(pipeline.ask("hello"), str)
assert_type(pipeline.ask([Part(text="look"), "at this"], state={"n": 1}), str)
assert_type(pipeline.map(["a", "b"], concurrency=2, user_id="u"), list[str])


async def main() -> str:
    result = await pipeline.run("hi", config=config, session_id="s", user_id="u")
    assert_type(result, RunResult)
    assert_type(result.text, str)
    again = await pipeline.run(Content(parts=[Part(text="more")]), session_id=result.session_id)
    async for event in pipeline.stream("hi", state={"tier": "gold"}):
        assert_type(event, AgentEvent)
    await pipeline.rewind(session_id=again.session_id, before_invocation_id="i")
    answers = await (pipeline >> tap(print)).map_async(["a"])
    return answers[0] + await pipeline.ask_async("bye")


def mocked() -> None:
    agent = Agent("m").mock("text").mock(["a", "b"]).mock(lambda prompt: prompt.upper())
    agent.mock(reply("slow", latency=1)).mock([Call("search"), "done", ValueError("x")])
    agent.mock(Script(default="x"))
