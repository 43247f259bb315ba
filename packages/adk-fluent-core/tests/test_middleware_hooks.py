"""What is refused where a middleware is given: wrong objects, and hooks that cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.protocol import check_middleware


class TooFew:
    async def before_model(self, ctx: Any) -> None: ...


class TooMany:
    async def after_tool(self, ctx: Any, name: str, args: Any, result: Any, more: Any) -> None: ...


class Plain:
    def before_agent(self, ctx: Any, agent_name: str) -> None: ...


class Yields:
    async def wrap_model_call(self, call: Any, next: Any) -> Any:
        yield await next(call)


class NoMethod:
    before_run = "text"


class Keywords:
    async def on_event(self, *, ctx: Any, event: Any) -> None: ...


class AsyncNew:
    async def new(self) -> Any: ...

    async def before_run(self, ctx: Any) -> None: ...


class NewTakes:
    def new(self, more: int) -> Any: ...

    async def before_run(self, ctx: Any) -> None: ...


REFUSED: dict[str, tuple[Any, str, str]] = {
    "too few": (TooFew(), "cannot take what it is given", "async def before_model(self, ctx, req"),
    "too many": (TooMany(), "cannot take what it is given", "tool_name, args, result)"),
    "plain": (Plain(), "is no async function", "async def before_agent(self, ctx, agent_name)"),
    "generator": (Yields(), "is no async function", "async def wrap_model_call(self, call, next)"),
    "no method": (NoMethod(), "is a method", "'text'"),
    "keywords": (
        Keywords(),
        "cannot take what it is given",
        "async def on_event(self, ctx, event)",
    ),
    "async new": (AsyncNew(), "new of AsyncNew is no function", "def new(self) -> Self"),
    "new that takes": (NewTakes(), "new of NewTakes is no function", "def new(self) -> Self"),
    "builder": (Agent("b"), "this is no middleware", "make it a step"),
    "class": (TooFew, "this is no middleware", "pass an instance: TooFew(...)"),
    "function": (print, "this is no middleware", "pass an object with hooks"),
    "number": (3, "this is no middleware", "pass an object with hooks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_where_it_is_given(name: str) -> None:
    wrong, says, shows = REFUSED[name]
    with pytest.raises(UsageError, match=says) as caught:
        Agent("a").middleware(wrong)
    text = str(caught.value)
    assert shows in text
    assert f"{__file__}:" in text  # the line of the call


class Loose:
    async def before_model(self, *args: Any) -> None: ...

    def wrap_tool_call(self, call: Any, next: Any) -> Any:
        return next(call)

    async def after_run(self, ctx: Any, more: int = 1) -> None: ...


def test_what_takes_it_is_taken() -> None:
    given = Loose()
    assert check_middleware(given) is given


async def test_options_of_a_run_are_looked_at_too() -> None:
    wrong: Any = 3
    with pytest.raises(UsageError, match="middleware= takes a list of middlewares"):
        await Agent("a").run("hi", middleware=wrong)
    with pytest.raises(UsageError, match="cannot take what it is given"):
        await Agent("a").run("hi", config=ExecutionConfig(middlewares=(TooFew(),)))
