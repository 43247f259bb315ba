"""What a call is of: the model or the tool, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

    from adk_fluent.protocol import ModelCall


def model_name(call: ModelCall) -> str:
    """The name of the model that a call goes to."""
    model: Any = call.model
    return str(call.request.model or getattr(model, "model", "") or "")


def chosen(tools: bool | Container[str], name: str) -> bool:
    """Whether a tool is among those that are chosen: all, none, or those of these names."""
    return tools if isinstance(tools, bool) else name in tools
