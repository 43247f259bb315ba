"""Calls that somebody answers who is not in the stack: a plugin of others, or an agent's callback.

ADK asks them before it makes a call, or when one has failed, and then no call site is reached. What
they answer passes the hooks after the call all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event_actions import EventActions

from adk_fluent._words import describe
from adk_fluent.backends.adk._hooks._chain import attached, invocation_of, keep_writes
from adk_fluent.backends.adk._hooks._turns import turn_in
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.backends.adk._hooks._chain import LastCall

_SETTLED: Final = "_adk_fluent_settled"
_RAN: Final = "_adk_fluent_ran"
_METADATA: Final = "custom_metadata"


async def settle(call: LastCall, event: Event) -> None:
    """Let an event pass the hooks after a model call that has not been made for it."""
    if not _is_answer(event):  # fragments have passed theirs
        return
    call.settled = True
    actions = EventActions()
    context = CallbackContext(invocation_of(call.call.ctx), event_actions=actions)
    try:
        said = await call.chain.stack.after("after_model", context, event)
    except Exception:
        keep_writes(context)
        raise
    if said is not None and said is not event:
        _put(said, event)
    event.actions.state_delta.update(actions.state_delta)
    event.actions.artifact_delta.update(actions.artifact_delta)


def notes_of(call: LastCall, event: Event) -> dict[str, Any]:
    """Return what middlewares keep on the event of a model's answer.

    Raises:
        UsageError: One returned something else than a mapping.
    """
    kept: dict[str, Any] = {}
    if call.chain.notes and _is_answer(event):
        for each in call.chain.notes:
            noted = each.note_answer(call.call)
            if isinstance(noted, Mapping):
                kept.update(cast("Mapping[str, Any]", noted))
            elif noted is not None:
                what = f"note_answer of {type(each).__qualname__} returns a mapping or None"
                raise UsageError(what, found=describe(noted))
    return kept


def _is_answer(event: Event) -> bool:
    if event.partial or event.get_function_responses():
        return False
    return bool(event.content or event.error_code)


def _put(said: LlmResponse, event: Event) -> None:
    for name in said.model_fields_set:
        value = getattr(said, name)
        if name == _METADATA and value is not None:
            value = {**(event.custom_metadata or {}), **value}
        if name in type(event).model_fields:
            setattr(event, name, value)


def tool_is_settled(context: Any) -> None:
    """Note that what a tool returns has passed its hooks."""
    context.__dict__[_SETTLED] = True


def tool_has_run(context: Any) -> None:
    """Note that the tool itself has returned something."""
    context.__dict__[_RAN] = True


def tool_was_answered(context: Any, tool: BaseTool) -> None:
    """Note that somebody has answered a long-running call in the place of its tool."""
    turn = turn_in(invocation_of(context).__dict__)
    if turn is None or not tool.is_long_running or context.__dict__.get(_RAN, False):
        return
    if context.function_call_id not in context.actions.requested_tool_confirmations:
        turn.answer(context.function_call_id)


async def settle_tool(context: Any, tool: BaseTool, args: dict[str, Any], result: Any) -> Any:
    """Let a result pass the hooks after a tool call, if nobody has called the tool for it.

    Returns:
        What stands in its place, or None.
    """
    invocation = invocation_of(context)
    chain = attached(invocation)
    if chain is None or context.__dict__.pop(_SETTLED, False):
        return None
    if isasyncgenfunction(getattr(tool, "func", None)):  # in a live run, before it has begun
        return None
    if context.function_call_id in context.actions.requested_tool_confirmations:
        return None  # there is no result yet: a person is asked
    stack = chain.of(context.agent_name).stack
    return await stack.after("after_tool", context, tool.name, args, result)
