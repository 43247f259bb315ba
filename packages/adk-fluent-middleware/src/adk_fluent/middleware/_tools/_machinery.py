"""Which tools are machinery, and whether arguments are what a tool takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import UsageError
from adk_fluent.extend import schema_misfit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The tool of `todo_list`.
TODO: Final = "write_todos"
#: Tools by which a model steers ADK, or plans: they do nothing outside of the run, which cannot do
#: without them.
FRAMEWORK: Final = frozenset(
    {
        TODO,
        "adk_handle_model_error",
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
        "exit_loop",
        "finish_task",
        "set_model_response",
        "transfer_to_agent",
    }
)


def check_tools(middleware: str, tools: bool | Sequence[str]) -> None:
    """See that an option names no machinery.

    Raises:
        UsageError: It does.
    """
    for name in () if isinstance(tools, bool) else tools:
        if name in FRAMEWORK:
            raise UsageError(
                f"{middleware}(tools=...) cannot have {name!r}",
                help="the run itself works by this tool; leave it out",
            )


def wrong_arguments(tool: Any, args: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments of a call; None if they are what the tool declares.

    Args:
        tool: ADK's BaseTool.
        args: The arguments.
    """
    from adk_fluent.middleware._tools._machinery_adk import parameters  # noqa: PLC0415  # needs genai

    schema = parameters(tool)
    if schema is None:
        return None
    unknown = sorted(args.keys() - schema.get("properties", {}).keys())
    if unknown and not schema.get("additionalProperties"):
        return f"there is no argument {unknown[0]!r}"
    try:
        return schema_misfit(json.dumps(schema), dict(args))
    except ValueError:  # a schema that nothing can be checked by
        return None
