"""A clerk with a tool that writes whatever key it is told to; the scripted model stands in."""

from __future__ import annotations

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK resolves it

from adk_fluent.testing import Call, ScriptedModel, reply, rule


def note(key: str, tool_context: ToolContext) -> str:
    """Note something."""
    tool_context.state[key] = "refund"
    return "noted"


model = ScriptedModel(
    rules=[
        rule("well", reply=reply(Call("note", {"key": "intent"})), times=1),
        rule("slip", reply=reply(Call("note", {"key": "inten"})), times=1),
    ],
    default="Noted.",
)
root_agent = LlmAgent(name="clerk", model=model, tools=[note])
