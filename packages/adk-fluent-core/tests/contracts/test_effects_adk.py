"""What is known of ADK's own tools and contexts, on the ADK that is installed."""

from __future__ import annotations

from typing import Any

import pytest
from effects_cases import told
from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext  # noqa: TC002  # ADK looks at annotations
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool, google_search
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # the same
from google.adk.tools.transfer_to_agent_tool import transfer_to_agent

from adk_fluent import Agent
from adk_fluent.contracts._effects import effects_of_callback, effects_of_tool
from adk_fluent.ir import ExecutionConfig, Ref
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk


def note(text: str, tool_context: ToolContext) -> str:
    """Note a text."""
    tool_context.state["note"] = f"{text}: {tool_context.state['topic']}"
    return text


def other(text: str, here: ToolContext | None = None) -> str:
    """Note a text."""
    if here:
        here.state["note"] = text + "!"
    return text


def greet(callback_context: CallbackContext) -> None:
    """Greet once."""
    if "greeted" not in callback_context.state:
        callback_context.state["greeted"] = True


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (exit_loop, {"also": "escalates"}),
        (transfer_to_agent, {"also": "transfers"}),
        (note, {"reads": "topic", "writes": "note"}),
        (FunctionTool(note), {"reads": "topic", "writes": "note"}),
        (LongRunningFunctionTool(note), {"reads": "topic", "writes": "note"}),
        (FunctionTool(other), {"may_write": "note"}),
        (google_search, {"opaque": "it is ADK's GoogleSearchTool"}),
        (AgentTool(LlmAgent(name="a")), {"opaque": "it is ADK's AgentTool"}),
    ],
)
def test_tools(tool: Any, expected: dict[str, str]) -> None:
    assert told(effects_of_tool(Ref.to(tool))) == expected


def test_a_callback() -> None:
    expected = {"reads": "greeted?", "may_write": "greeted"}
    assert told(effects_of_callback(Ref.to(greet))) == expected


def in_the_session(callback_context: CallbackContext) -> None:
    """Write where no event tells of it."""
    callback_context.session.state["greeted"] = True


async def test_what_is_written_to_the_session_itself_is_found_and_not_kept() -> None:
    found: list[Any] = []

    def look(callback_context: CallbackContext) -> None:
        found.append(callback_context.state.get("greeted"))

    pipeline = Agent("a").before_agent(in_the_session) >> Agent("b").before_agent(look)
    service = InMemorySessionService()
    config = ExecutionConfig(default_model=Ref.to(ScriptedModel("x", "y")))
    ran = await pipeline.run("hi", config=config, session_service=service)
    assert found == [True]
    assert "greeted" not in ran.state
    [stored] = (await service.list_sessions(app_name=config.app_name)).sessions
    assert "greeted" not in stored.state
    why = effects_of_callback(Ref.to(in_the_session)).opaque or ""
    assert why.startswith("it writes to `callback_context.session.state`, which no session keeps,")


def test_a_function_tool_that_asks_first() -> None:
    def ask(text: str, tool_context: ToolContext) -> bool:
        tool_context.state["asked"] = 1
        return bool(text)

    found = effects_of_tool(Ref.to(FunctionTool(note, require_confirmation=ask)))
    assert told(found) == {"reads": "topic", "may_write": "note asked"}
    always = effects_of_tool(Ref.to(FunctionTool(note, require_confirmation=True)))
    assert told(always) == {"reads": "topic", "may_write": "note"}
