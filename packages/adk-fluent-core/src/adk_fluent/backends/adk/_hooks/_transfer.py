"""The tool that hands over, called when a person has confirmed it.

ADK 1.x adds it to what a model is told after it has called what was confirmed, and finds none then.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool

from adk_fluent.backends.adk._hooks._chain import invocation_of
from adk_fluent.backends.adk._hooks._sites import call_site
from adk_fluent.backends.adk._hooks._turns import turn_in

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME: Final = "transfer_to_agent"


def is_missing_transfer(tool: BaseTool, context: Any) -> bool:
    """Whether ADK has not found the tool, and has put a bare one in its place."""
    confirmed = type(tool) is BaseTool and tool.name == _NAME and context.tool_confirmation
    return bool(confirmed) and turn_in(invocation_of(context).__dict__) is not None


async def hand_over(context: Any, args: dict[str, Any]) -> dict[str, Any]:
    """Call the tool as ADK would have done: with the callbacks of its agent.

    Args:
        context: The tool's context.
        args: What the model has called it with.
    """
    agent: Any = invocation_of(context).agent
    tool = TransferToAgentTool([str(args.get("agent_name"))])
    call_site(tool)
    given = {"tool": tool, "args": args, "tool_context": context}
    result = await _first(agent.canonical_before_tool_callbacks, **given)
    if result is None:
        result = await tool.run_async(args=args, tool_context=context)
    changed = await _first(agent.canonical_after_tool_callbacks, **given, tool_response=result)
    result = result if changed is None else changed
    return cast("dict[str, Any]", result) if isinstance(result, dict) else {"result": result}


async def _first(callbacks: list[Callable[..., Any]], **given: Any) -> Any:
    """What the first callback says that says anything."""
    for callback in callbacks:
        said = callback(**given)
        if isawaitable(said):
            said = await said
        if said:
            return said
    return None
