"""The pipeline of the example `refunds` as a bare agent, which a new process has no plugin for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.tools import ToolContext  # noqa: TC002  # ADK looks at the types of tools

from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from adk_fluent.testing import Asked


def refund(order: str, tool_context: ToolContext) -> str:
    """Pay an order back.

    Args:
        order: Its number.
        tool_context: ADK's.
    """
    tool_context.state["paid"] = [*tool_context.state.get("paid", []), order]
    return f"{order} is paid back"


def knows_of_it(asked: Asked) -> bool:
    """Whether it was paid since the last message."""
    turns = [turn.text for turn in asked.turns]
    return any("is paid back" in text for text in turns[_last(turns, "Refund A1.") :])


def _last(texts: list[str], text: str) -> int:
    return max(at for at, each in enumerate(texts) if each == text)


model = ScriptedModel(
    rules=[
        rule(agent="farewell", reply="Anything else?"),
        rule(knows_of_it, reply="Done."),
        rule(agent="clerk", reply=Call("refund", {"order": "A1"})),
    ]
)
clerk = Agent("clerk").tool(refund, require_confirmation=True)

root_agent = (clerk >> Agent("farewell")).named("bare").model(model).to_agent()
