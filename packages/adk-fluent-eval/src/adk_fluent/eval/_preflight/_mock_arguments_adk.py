"""The arguments of functions that are mocks, held against those of the tools."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool

from adk_fluent.errors import nearest_name
from adk_fluent.eval._running._instead import answers_of, needed_by
from adk_fluent.eval._running._pipeline_adk import tool_name, tools_of, tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._target_adk import Target

_BY_NAME: Final = "take what the tool takes, by name, or args= for all of it as a dict"


def check_mock_arguments(case: FluentCase, target: Target) -> None:
    """Look whether functions that are mocks ask for arguments that their tools have.

    Raises:
        EvalError: One asks for another, so that no call could reach it.
    """
    mocks = case.mock_tool_outputs or {}
    if not mocks or target.open:
        return
    tools = [tool for agent in tree(target.app.root_agent) for tool in tools_of(agent)]
    for name, mock in mocks.items():
        needed = {need for each in answers_of(mock) if callable(each) for need in needed_by(each)}
        known = [_arguments(tool) for tool in tools if tool_name(tool) == name] if needed else []
        if not known or None in known:
            continue
        arguments = sorted({each for names in known for each in names or ()})
        for need in sorted(needed.difference(arguments)):
            near = nearest_name(need, arguments)
            raise case.error(
                f"the mock of tool {name!r} asks for {need!r}, which the tool does not take",
                found=f"the tool takes {', '.join(arguments) or 'nothing'}",
                help=f"did you mean {near!r}?" if near else _BY_NAME,
            )


def _arguments(tool: Any) -> Iterable[str] | None:
    """The names of the arguments of a tool; None where nobody can tell."""
    if not isinstance(tool, BaseTool):
        tool = FunctionTool(tool)
    if isinstance(tool, FunctionTool) and _takes_more(tool.func):
        return None
    try:
        declared = tool._get_declaration()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # as ADK asks it
    except Exception:  # noqa: BLE001  # whatever is wrong with the tool is told when it is used
        return None
    if declared is None:
        return None
    if declared.parameters_json_schema is not None:
        return tuple(declared.parameters_json_schema.get("properties") or ())
    return tuple((declared.parameters and declared.parameters.properties) or ())


def _takes_more(function: Any) -> bool:
    """Whether a function takes arguments that it does not name, or nobody can tell."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(each.kind is each.VAR_KEYWORD for each in parameters)
