from __future__ import annotations

import asyncio
import datetime as dt
import functools
import inspect
import types
from abc import ABC, abstractmethod
from typing import Any
from unittest.mock import AsyncMock

import pytest

from adk_fluent import protocol
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode
from adk_fluent.protocol import (
    HOOKS,
    AgentCall,
    AgentReply,
    Middleware,
    ModelCall,
    ModelReply,
    RemoteCall,
    RemoteReply,
    RunCall,
    ToolCall,
    check_middleware,
    fresh,
    hooks_of,
)

SPEC_HOOKS = {
    "on_user_message",
    "before_run",
    "after_run",
    "on_event",
    "before_agent",
    "after_agent",
    "before_model",
    "after_model",
    "on_model_error",
    "before_tool",
    "after_tool",
    "on_tool_error",
    "close",
}


class Conforming:
    pass


class HasBeforeModel:
    async def before_model(self, ctx: Any, request: Any) -> None:
        return None


class Retry(Middleware):
    def __init__(self, attempts: int) -> None:
        self.attempts = attempts

    def new(self) -> Retry:
        return Retry(self.attempts)

    async def wrap_tool_call(self, call: ToolCall, next: Any) -> Any:
        return await next(call)


class Answering:
    """A hook that only shows on instances."""

    def __init__(self) -> None:
        self.after_tool = AsyncMock()


class AdkPlugin:
    async def before_model_callback(self) -> None:
        return None

    async def close(self) -> None:
        return None


# --- the plan's own tests ------------------------------------------------------------------------


def test_middleware_is_runtime_checkable() -> None:
    assert isinstance(Conforming(), Middleware)
    assert isinstance(HasBeforeModel(), Middleware)


def test_middleware_protocol_has_expected_methods() -> None:
    members = {m for m in dir(Middleware) if not m.startswith("_")}
    assert members >= SPEC_HOOKS


# --- what is one and what is not -----------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        Middleware(),
        Retry(3),
        Conforming(),
        HasBeforeModel(),
        Answering(),
        AsyncMock(),
        types.SimpleNamespace(before_tool=AsyncMock()),
    ],
    ids=lambda v: type(v).__name__,
)
def test_these_are_middlewares(value: object) -> None:
    assert isinstance(value, Middleware)
    assert check_middleware(value) is value


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (42, "int"),
        (4.2, "float"),
        (True, "bool"),
        (b"x", "bytes"),
        (None, "None"),
        ({}, "dict"),
        (object(), "object"),
        (ValueError("x"), "ValueError"),
        (asyncio, "module asyncio"),
        (len, "builtin_function_or_method len"),
        (lambda: None, "function <lambda>"),
        (inspect.cleandoc, "function cleandoc"),
        (functools.partial(len), "partial"),
        (Conforming().__init__, "method-wrapper __init__"),
        (dt.date(2026, 1, 1), "date"),
        (types.SimpleNamespace(close=AsyncMock()), "SimpleNamespace"),
        (AgentNode("a"), "AgentNode"),
        (ModelCall(None), "ModelCall"),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_these_are_none(value: object, found: str) -> None:
    assert not isinstance(value, Middleware)
    with pytest.raises(UsageError) as caught:
        check_middleware(value)
    assert caught.value.found == found
    assert (
        caught.value.help
        == "pass an object with hooks such as before_model, after_tool or wrap_model_call"
    )


def test_a_name_is_none_and_the_fix_is_a_reference() -> None:
    with pytest.raises(
        UsageError, match=r"found: str\n  help: name one as MiddlewareRef\('retry'\)"
    ):
        check_middleware("retry")


@pytest.mark.parametrize("several", [[Conforming()], (), {Conforming()}, frozenset[Any]()])
def test_several_are_none_and_the_fix_is_a_star(several: Any) -> None:
    with pytest.raises(UsageError, match=r"help: unpack several with \*, as in \.middleware\(\*"):
        check_middleware(several)


@pytest.mark.parametrize("cls", [Conforming, HasBeforeModel, Retry, Middleware, int])
def test_a_class_is_none_and_the_fix_is_an_instance(cls: type) -> None:
    assert not isinstance(cls, Middleware)
    with pytest.raises(UsageError, match=rf"help: pass an instance: {cls.__name__}\(\.\.\.\)"):
        check_middleware(cls)


def test_an_adk_plugin_is_none_and_belongs_elsewhere() -> None:
    with pytest.raises(UsageError, match=r"to_app\(plugins="):
        check_middleware(AdkPlugin())


def test_an_object_may_be_both_a_plugin_and_a_middleware() -> None:
    class Both(AdkPlugin, HasBeforeModel):
        pass

    assert isinstance(Both(), Middleware)


def test_subclasses_check_as_usual() -> None:
    assert isinstance(Retry(1), Retry)
    assert not isinstance(HasBeforeModel(), Retry)
    assert not issubclass(HasBeforeModel, Middleware)


def test_a_subclass_may_be_abstract() -> None:
    class Base(Middleware, ABC):
        @abstractmethod
        def limit(self) -> int: ...

    with pytest.raises(TypeError, match="abstract"):
        Base()  # pyright: ignore[reportAbstractUsage]


# --- hooks ---------------------------------------------------------------------------------------


def test_the_list_of_hooks_is_whole() -> None:
    methods = {
        name
        for name, value in vars(Middleware).items()
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    }
    assert set(HOOKS) == methods
    assert len(HOOKS) == len(set(HOOKS))


def parameters(hook: Any) -> list[tuple[str, Any]]:
    """Names and types: a protocol leaves the names to who implements it, the class does not."""
    return [(name, each.annotation) for name, each in inspect.signature(hook).parameters.items()]


def test_hooks_of_the_class_can_be_called_by_keyword() -> None:
    async def ask() -> None:
        hooks = Middleware()
        assert await hooks.on_model_error(ctx=None, request=None, error=ValueError()) is None
        assert await hooks.after_tool(ctx=None, tool_name="t", args={}, result={}) is None

    asyncio.run(ask())


def test_each_hook_has_a_typing_protocol_of_the_same_parameters() -> None:
    for hook in set(HOOKS) - {"close"}:
        one: type = getattr(protocol, "".join(part.title() for part in hook.split("_")))
        assert parameters(getattr(one, hook)) == parameters(getattr(Middleware, hook))
        assert set(vars(one)).intersection(HOOKS) == {hook}


def test_inherited_hooks_do_not_count_as_implemented() -> None:
    assert hooks_of(Middleware()) == frozenset()
    assert hooks_of(Conforming()) == frozenset()
    assert hooks_of(Retry(1)) == {"wrap_tool_call"}
    assert hooks_of(HasBeforeModel()) == {"before_model"}
    assert hooks_of(Answering()) == {"after_tool"}
    assert hooks_of(AsyncMock()) == set(HOOKS)


def test_an_instance_with_a_hook_of_its_own_is_looked_at_though_its_class_is_known() -> None:
    assert check_middleware(HasBeforeModel())
    own: Any = HasBeforeModel()
    own.before_model = lambda: None
    with pytest.raises(UsageError, match="before_model of HasBeforeModel"):
        check_middleware(own)
    own = HasBeforeModel()
    own.new = 3
    with pytest.raises(UsageError, match="new of HasBeforeModel"):
        check_middleware(own)
    assert check_middleware(HasBeforeModel())


def test_a_hook_switched_off_does_not_count() -> None:
    class Off(HasBeforeModel):
        before_model = None  # pyright: ignore[reportAssignmentType]

    assert hooks_of(Off()) == frozenset()


def test_a_fresh_instance_per_run_where_there_is_new() -> None:
    retry, plain = Retry(3), Conforming()
    again = fresh(retry)
    assert (type(again), again.attempts) == (Retry, 3)
    assert again is not retry
    assert fresh(plain) is plain
    assert fresh(Middleware()).observer is False


async def test_the_base_does_nothing() -> None:
    base = Middleware()
    for hook in set(HOOKS) - {
        "close",
        "wrap_run",
        "wrap_agent",
        "wrap_model_call",
        "wrap_model_request",
        "wrap_tool_call",
        "wrap_remote_call",
    }:
        method = getattr(base, hook)
        arguments = [None] * len(inspect.signature(method).parameters)
        assert await method(*arguments) is None
    await base.close()


@pytest.mark.parametrize(
    ("hook", "call", "reply"),
    [
        ("wrap_run", RunCall(), AgentReply("hi")),
        ("wrap_agent", AgentCall("a"), AgentReply("hi")),
        ("wrap_model_call", ModelCall(None), ModelReply()),
        ("wrap_model_request", ModelCall(None), ModelReply()),
        ("wrap_tool_call", ToolCall("t"), {"r": 1}),
        ("wrap_remote_call", RemoteCall("a"), RemoteReply()),
    ],
)
async def test_the_base_hands_calls_on(hook: str, call: Any, reply: Any) -> None:
    seen: list[Any] = []

    async def inside(call: Any) -> Any:
        seen.append(call)
        return reply

    assert await getattr(Middleware(), hook)(call, inside) is reply
    assert seen == [call]
