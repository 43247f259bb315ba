"""Replacing tools and models for a block, below every middleware, callback and plugin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

if TYPE_CHECKING:
    from collections.abc import Generator

ToolStandIn = Callable[[ToolCall, NextTool], Awaitable[Any]]
ModelStandIn = Callable[[ModelCall, NextModel], Awaitable[ModelReply]]

_STAND_IN: ContextVar[ToolStandIn | None] = ContextVar("adk_fluent_tool_stand_in", default=None)
_MODEL: ContextVar[ModelStandIn | None] = ContextVar("adk_fluent_model_stand_in", default=None)


@contextmanager
def replace_tools(stand_in: ToolStandIn) -> Generator[None]:
    """Call a function in place of every tool.

    Covers the current task and the tasks it starts. Each call of a call site (`call_site`, and
    every tool of a pipeline with middlewares) reaches the function last, so that retries, callbacks
    and plugins treat its result or its exception as the tool's own. An inner block replaces an
    outer one.

    Args:
        stand_in: ``async (call, next)``; ``await next(call)`` calls the tool itself.
    """
    token = _STAND_IN.set(stand_in)
    try:
        yield
    finally:
        _STAND_IN.reset(token)


def tools_are_replaced() -> bool:
    """Whether `replace_tools` is active."""
    return _STAND_IN.get() is not None


async def call_replaced(tool: NextTool, call: ToolCall) -> Any:
    """Call the active stand-in, or the tool if there is none."""
    stand_in = _STAND_IN.get()
    return await (tool(call) if stand_in is None else stand_in(call, tool))


@contextmanager
def replace_models(stand_in: ModelStandIn) -> Generator[None]:
    """Call a function in place of every model.

    Covers the current task and the tasks it starts. Each call of a call site (`call_site`, and
    every model of a pipeline with middlewares) reaches the function last, so that retries,
    callbacks and plugins treat its reply or its exception as the model's own. An inner block
    replaces an outer one.

    Args:
        stand_in: ``async (call, next)``; ``await next(call)`` calls ``call.model``.
    """
    token = _MODEL.set(stand_in)
    try:
        yield
    finally:
        _MODEL.reset(token)


def models_are_replaced() -> bool:
    """Whether `replace_models` is active."""
    return _MODEL.get() is not None


def call_replaced_model(model: NextModel, call: ModelCall) -> Awaitable[ModelReply]:
    """Call the active stand-in, or the model if there is none."""
    stand_in = _MODEL.get()
    return model(call) if stand_in is None else stand_in(call, model)
