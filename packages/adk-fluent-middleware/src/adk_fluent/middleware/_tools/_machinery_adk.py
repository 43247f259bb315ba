"""What middlewares ask of ADK's tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from google.adk.tools._forwarding_artifact_service import ForwardingArtifactService
from google.adk.tools.agent_tool import AgentTool

if TYPE_CHECKING:
    from google.genai import types


def is_agent(tool: object) -> bool:
    """Whether a tool is an agent, which runs in a session of its own."""
    return isinstance(tool, AgentTool)


def agent_run(context: Any) -> Any:
    """ADK's InvocationContext: it stays the same while an agent runs once, with its tools."""
    return getattr(context, "_invocation_context", context)


def agent_tool_of(context: Any) -> str | None:
    """The agent that is a tool, if a context is one within it: that runs in a session of its own.

    Of all that ADK runs, only an agent that is a tool has its artifacts from the one that calls it.
    """
    run = agent_run(context)
    is_tool = isinstance(run.artifact_service, ForwardingArtifactService)
    return run.agent.root_agent.name if is_tool else None


def model_of(context: Any) -> Any:
    """The model of the agent that calls a tool."""
    return agent_run(context).agent.canonical_model


def declaration(tool: Any) -> types.FunctionDeclaration | None:
    """How a tool is declared to models; None for those that models bring along."""
    return tool._get_declaration()  # noqa: SLF001  # what every tool of ADK overrides


def parameters(tool: Any) -> dict[str, Any] | None:
    """The JSON Schema of a tool's arguments; None if it has none."""
    declared = declaration(tool)
    return None if declared is None else schema_of(declared)


def schema_of(declared: types.FunctionDeclaration) -> dict[str, Any] | None:
    """The JSON Schema of what a declaration says of the arguments."""
    if declared.parameters_json_schema is not None:
        return cast("dict[str, Any]", declared.parameters_json_schema)
    if declared.parameters is None:
        return None
    made = declared.parameters.json_schema
    return made.model_dump(mode="json", exclude_none=True, by_alias=True)


def declared(tool: Any) -> dict[str, Any]:
    """How a tool is declared, as plain data."""
    made = declaration(tool)
    if made is None:
        return {"name": tool.name, "description": tool.description}
    return made.model_dump(mode="json", exclude_none=True)
