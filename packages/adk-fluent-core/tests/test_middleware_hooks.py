"""What is refused where a middleware is given: wrong objects, and hooks that cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.protocol import HOOKS, check_middleware


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


class Misspelt:
    async def before_model(self, ctx: Any, request: Any) -> None: ...

    async def wrap_model_cal(self, call: Any, next: Any) -> Any:
        return await next(call)


class OnlyMisspelt:
    async def on_modle_error(self, ctx: Any, request: Any, error: Exception) -> None: ...


class Inherits(OnlyMisspelt):
    async def before_run(self, ctx: Any) -> None: ...


class Kept:
    def __init__(self, hook: Any) -> None:
        self.before_modl = hook


async def hook(ctx: Any, request: Any) -> None: ...


class AsyncSees:
    async def see_event(self, ctx: Any, event: Any) -> None: ...


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
    "async, and not awaited": (AsyncSees(), "see_event of AsyncSees is an", "def see_event(...)"),
    "async new": (AsyncNew(), "new of AsyncNew is no function", "def new(self) -> Self"),
    "new that takes": (NewTakes(), "new of NewTakes is no function", "def new(self) -> Self"),
    "misspelt": (Misspelt(), "wrap_model_cal of Misspelt is no hook", "mean 'wrap_model_call'?"),
    "nothing but misspelt": (
        OnlyMisspelt(),
        "on_modle_error of OnlyMisspelt is no hook",
        "did you mean 'on_model_error'? Otherwise call it _on_modle_error",
    ),
    "misspelt above": (Inherits(), "on_modle_error of Inherits", "did you mean 'on_model_error'?"),
    "misspelt attribute": (Kept(hook), "before_modl of Kept", "did you mean 'before_model'?"),
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


@pytest.mark.parametrize("name", [each for each in HOOKS if "_" in each])
def test_each_slip_in_the_name_of_a_hook_is_found(name: str) -> None:
    for i in range(name.index("_") + 1, len(name)):
        left_out = name[:i] + name[i + 1 :]
        doubled = name[:i] + name[i] + name[i:]
        swapped = name[:i] + name[i + 1 : i + 2] + name[i] + name[i + 2 :]
        for wrong in {left_out, doubled, swapped} - {*HOOKS}:
            given = type("Mistyped", (), {wrong: hook})()
            with pytest.raises(UsageError, match=f"did you mean '{name}'"):
                check_middleware(given)


class Helpers:
    """Names that begin like those of hooks, and data: none is meant to be a hook."""

    on_tool_errors = 0

    def __init__(self) -> None:
        self.on_events: list[str] = []

    def on_ready(self) -> None: ...

    def wrap_text(self, text: str) -> str:
        return text

    def wrap_tool(self, tool: Any) -> Any:
        return tool

    def before_each(self) -> None: ...

    def after_turn(self) -> None: ...

    def on_error(self, error: Exception) -> None: ...

    def on_close(self) -> None: ...

    def clos(self) -> None: ...

    def _before_modl(self) -> None: ...


def test_other_names_that_begin_like_hooks_are_taken() -> None:
    given = Helpers()
    assert check_middleware(given) is given


async def test_options_of_a_run_are_looked_at_too() -> None:
    wrong: Any = 3
    with pytest.raises(UsageError, match="middleware= takes a list of middlewares"):
        await Agent("a").run("hi", middleware=wrong)
    with pytest.raises(UsageError, match="cannot take what it is given"):
        await Agent("a").run("hi", config=ExecutionConfig(middlewares=(TooFew(),)))
