"""What a call is of: the model or the tool, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

    from adk_fluent.protocol import ModelCall, ToolCall


def model_name(call: ModelCall) -> str:
    """The name of the model that a call goes to."""
    model: Any = call.model
    return str(call.request.model or getattr(model, "model", "") or "")


def chosen(tools: bool | Container[str], name: str) -> bool:
    """Whether a tool is among those that are chosen: all, none, or those of these names."""
    return tools if isinstance(tools, bool) else name in tools


def is_agent(call: ToolCall) -> bool:
    """Whether the tool that is called is an agent."""
    from adk_fluent.middleware._tools._machinery_adk import is_agent  # noqa: PLC0415  # needs ADK

    return is_agent(call.tool)
