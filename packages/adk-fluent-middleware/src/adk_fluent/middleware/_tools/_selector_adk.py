"""The tools in a request, and how some of them are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.models.llm_request import LlmRequest


def offered(request: LlmRequest) -> dict[str, str]:
    """Names and descriptions of the functions that a request declares and that may be left out.

    Those that run long stay: a call of them may wait for its result. So do those that the request
    allows by name.
    """
    forced = _forced(request)
    return {
        each.name: each.description or ""
        for tool in _tools(request)
        for each in tool.function_declarations or ()
        if each.name
        and each.name not in forced
        and not getattr(request.tools_dict.get(each.name), "is_long_running", False)
    }


def show(request: LlmRequest, is_shown: Callable[[str], bool]) -> None:
    """Leave declarations out of a request; the objects in it may be other people's, too."""
    tools: list[Any] = []
    for tool in request.config.tools or ():
        declared = tool.function_declarations if isinstance(tool, types.Tool) else None
        if not isinstance(tool, types.Tool) or not declared:
            tools.append(tool)
            continue
        kept = [each for each in declared if is_shown(each.name or "")]
        made = tool.model_copy(update={"function_declarations": kept or None})
        if made.model_dump(exclude_none=True):
            tools.append(made)
    request.config.tools = tools or None


def _tools(request: LlmRequest) -> list[types.Tool]:
    return [each for each in request.config.tools or () if isinstance(each, types.Tool)]


def _forced(request: LlmRequest) -> list[str]:
    config = cast("Any", request.config.tool_config)
    calling = getattr(config, "function_calling_config", None)
    return getattr(calling, "allowed_function_names", None) or []
