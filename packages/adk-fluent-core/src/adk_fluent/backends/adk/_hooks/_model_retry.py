"""Tools that raise `ModelRetry`: their model is told why, a few times in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from pydantic import ValidationError

from adk_fluent.backends.adk._hooks._chain import invocation_of
from adk_fluent.backends.adk._hooks._turns import turn_in
from adk_fluent.backends.adk._running._retrying import reading_of
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.errors import ModelRetry, RunError

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.tools.base_tool import BaseTool

_KEYS: Final = frozenset({"error", "retry"})
_CALLBACK: Final = "on_tool_error_callback"
_ANSWER: Final = "set_model_response"  # ADK's tool that takes the answer beside tools
_USER: Final = "user"


def told_model(tool: BaseTool, context: Any, error: ModelRetry) -> dict[str, Any]:
    """What a model is told in the place of a tool's result.

    Args:
        tool: The tool that has raised.
        context: ADK's context of the call.
        error: What it has raised.

    Raises:
        RunError: The model was told as often in a row as it may be.
    """
    invocation = invocation_of(context)
    told = _in_a_row(invocation.session.events, context.agent_name, tool.name)
    if told >= error.at_most:
        raise RunError(
            f"{context.agent_name}'s model called {tool.name} {told + 1} times in a row with what "
            f"it refuses: {error.what}",
            node=context.agent_name,
            help="say in the tool's docstring what it takes; or ModelRetry(..., at_most=...)",
        ) from error
    turn = turn_in(invocation.__dict__)
    if turn is not None and tool.is_long_running:  # no result comes later
        turn.answer(context.function_call_id)
    return {"error": error.what, "retry": True}


async def on_tool_error(
    *, tool: BaseTool, tool_context: Any, error: Exception, **_: Any
) -> dict[str, Any] | None:
    """Tell the model; ADK's callback ``on_tool_error_callback``."""
    if isinstance(error, ValidationError) and tool.name == _ANSWER:
        error = ModelRetry(str(error), at_most=_retries(tool_context))
        if not error.at_most:
            return None
    return told_model(tool, tool_context, error) if isinstance(error, ModelRetry) else None


def tells_models(root: BaseAgent) -> None:
    """Let an agent, and those below it that ADK runs, tell their models what tools raise."""
    todo = [root]
    while todo:
        agent = todo.pop()
        todo.extend(agent.sub_agents)
        if isinstance(agent, LlmAgent) and agent.__dict__["tools"]:
            own = agent.canonical_on_tool_error_callbacks
            setattr(
                agent,
                _CALLBACK,
                [on_tool_error, *(each for each in own if each is not on_tool_error)],
            )


def _retries(context: Any) -> int:
    """How often an agent is asked again whose answer, given by a tool of ADK's, does not fit."""
    reading = reading_of(invocation_of(context).agent)
    return 0 if reading is None else reading.retries


def _in_a_row(events: list[Any], agent: str, tool: str) -> int:
    """How often a tool was the last to tell its model so, since the step began.

    The same agent in another round of a loop, or with another item of a map, has another position.
    """
    count = 0
    here: str | None = None
    for event in reversed(events):
        responses = event.get_function_responses()
        if event.author == _USER and not responses:
            break
        if event.author != agent:
            continue
        path = (stamp_of(event) or {}).get("path", "")
        here = path if here is None else here
        if path != here:
            continue
        for each in responses:
            if each.name == tool:
                if dict(each.response or {}).keys() != _KEYS:
                    return count
                count += 1
                break
    return count
