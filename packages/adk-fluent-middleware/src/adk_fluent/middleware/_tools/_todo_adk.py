"""The tool of `todo_list`, and how requests get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.tools.base_tool import BaseTool
from google.genai import types

from adk_fluent.middleware._tools._machinery import TODO
from adk_fluent.middleware._tools._machinery_adk import agent_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.tool_context import ToolContext

#: What `Todos` takes, without references: not every provider follows them.
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "description": "All steps, in order; those that are done, too.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {
                        "type": "string",
                        "description": "What is to be done, in a few words.",
                    },
                    "status": {
                        "type": "string",
                        "enum": ["pending", "in_progress", "completed"],
                        "description": "pending is not begun, in_progress is worked on now.",
                    },
                },
                "required": ["content", "status"],
            },
        }
    },
    "required": ["todos"],
}


class TodoTool(BaseTool):
    """Writes the list.

    Args:
        write: Keeps the list that a model gives in state, or says what is wrong with it.
    """

    def __init__(self, write: Callable[[Any, dict[str, Any]], dict[str, Any]]) -> None:
        super().__init__(
            name=TODO, description="Write down what is to do. Replaces the whole list."
        )
        self._write = write

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=_SCHEMA,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Keep the list, if it is the last one of those that are written at once."""
        if not _is_last(tool_context):
            return {"error": "Of several lists that are written at once only the last one counts."}
        return self._write(tool_context.state, args)


def can_call(request: LlmRequest) -> bool:
    """Whether an agent can have the tool: it answers with no schema, and has none of that name."""
    config = request.config
    has_schema = config.response_schema is not None or config.response_json_schema is not None
    return not has_schema and TODO not in request.tools_dict


def show(request: LlmRequest, text: str) -> None:
    """Put the list where it changes nothing of what providers have cached.

    Right after it was written the model knows it.
    """
    last = request.contents[-1].parts or () if request.contents else ()
    if not any(part.function_response and part.function_response.name == TODO for part in last):
        request.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))


def _is_last(context: ToolContext) -> bool:
    for event in reversed(agent_run(context).session.events):
        ids = [call.id for call in event.get_function_calls() if call.name == TODO]
        if context.function_call_id in ids:
            return ids[-1] == context.function_call_id
    return True
