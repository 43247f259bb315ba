"""Middlewares made of one function."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.protocol import (
    AgentCall,
    AgentReply,
    ModelCall,
    ModelReply,
    NextAgent,
    NextModel,
    NextTool,
    ToolCall,
    hooks_of,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Callable


async def by_type(call: ModelCall, next: NextModel) -> ModelReply:
    return await next(call)


async def around_tools(call: ToolCall, next: NextTool) -> Any:
    return await next(call)


async def around_steps(call: AgentCall, next: NextAgent) -> AgentReply:
    return await next(call)


async def before_model(ctx: Any, request: Any) -> None: ...


async def anything(ctx: Any, request: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "hook"),
    [
        (by_type, "wrap_model_call"),
        (around_tools, "wrap_tool_call"),
        (around_steps, "wrap_agent"),
        (before_model, "before_model"),
    ],
)
def test_the_hook_follows_from_the_function(function: Callable[..., Any], hook: str) -> None:
    made: Any = wrap(function)
    assert hooks_of(made) == {hook}
    assert made.name == function.__name__


def test_the_hook_may_be_said() -> None:
    made: Any = wrap(anything, "before_model")
    assert hooks_of(made) == {"before_model"}
    assert repr(made) == "wrap(anything, 'before_model')"


def test_it_is_named_after_the_function_in_diagrams() -> None:
    assert "middleware by_type" in Agent("a").middleware(wrap(by_type)).explain()


def test_it_can_be_sent_to_another_process() -> None:
    made: Any = wrap(by_type)
    assert hooks_of(pickle.loads(pickle.dumps(made))) == {"wrap_model_call"}


async def not_told(one: Any, two: Any) -> None: ...


def plain(call: ModelCall, next: NextModel) -> None: ...


async def too_many(call: ModelCall, next: NextModel, more: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "hook", "says"),
    [
        (not_told, "", "cannot be told"),
        (plain, "before_model", "no async function"),
        (too_many, "", "cannot take what it is given"),
        (Agent, "", "takes an async function"),
        (42, "", "takes an async function"),
    ],
)
def test_what_is_no_hook_is_refused(function: Any, hook: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        wrap(function, hook)
    assert __file__ in str(caught.value)


def test_a_misspelt_hook_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="before_modle") as caught:
        wrap(anything, "before_modle")
    assert "before_model" in str(caught.value)


@pytest.mark.adk
async def test_a_run_passes_through_it() -> None:
    agents: list[str] = []

    @wrap
    async def noted(call: ModelCall, next: NextModel) -> ModelReply:
        agents.append(call.agent)
        return await next(call)

    pipeline = Agent("a").mock("A") >> Agent("b").mock("B")
    await pipeline.middleware(noted).run("hi")
    assert agents == ["a", "b"]
