"""A middleware made of one function."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final, overload

from adk_fluent._words import describe
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.protocol._middleware import HOOKS, check_middleware

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adk_fluent.protocol._calls import (
        AgentCall,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        NextRun,
        NextTool,
        RunCall,
        ToolCall,
    )
    from adk_fluent.protocol._hooks import WrapAgent, WrapModelCall, WrapRun, WrapToolCall
    from adk_fluent.protocol._middleware import AnyMiddleware

#: The hook of a function that does not have the name of one, by the type of its first parameter.
_BY_CALL: Final = {
    "ModelCall": "wrap_model_call",
    "ToolCall": "wrap_tool_call",
    "AgentCall": "wrap_agent",
    "RunCall": "wrap_run",
}


class _Wrapped:
    """A middleware with one hook."""

    def __init__(self, hook: str, function: Callable[..., Any]) -> None:
        setattr(self, hook, function)
        self.name: str = getattr(function, "__name__", hook)
        self._hook = hook
        self._function = function

    def __repr__(self) -> str:
        return f"wrap({self.name}, {self._hook!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, for code that calls it directly."""
        return self._function(*args, **kwargs)


@overload
def wrap(function: Callable[[ModelCall, NextModel], Awaitable[ModelReply]], /) -> WrapModelCall: ...
@overload
def wrap(function: Callable[[AgentCall, NextAgent], Awaitable[AgentReply]], /) -> WrapAgent: ...
@overload
def wrap(function: Callable[[RunCall, NextRun], Awaitable[AgentReply]], /) -> WrapRun: ...
@overload
def wrap(function: Callable[[ToolCall, NextTool], Awaitable[Any]], /) -> WrapToolCall: ...
@overload
def wrap(function: Callable[..., Awaitable[Any]], hook: str = "", /) -> AnyMiddleware: ...
def wrap(function: Any, hook: str = "", /) -> Any:
    """Make a middleware of one function; also as a decorator.

    ::

        @wrap
        async def timed(call: ModelCall, next: NextModel) -> ModelReply:
            began = time.monotonic()
            try:
                return await next(call)
            finally:
                print(call.agent, time.monotonic() - began)

        Agent("a").middleware(timed)

    Args:
        function: An async function that takes what the hook takes.
        hook: Which hook it is. Left out, it is the function's own name if a hook is called so, else
            it follows from the type of the first parameter: `ModelCall`, `ToolCall`, `AgentCall` or
            `RunCall`.

    Raises:
        UsageError: It is no function of that kind, or which hook it is cannot be told.
        UnknownNameError: There is no such hook.
    """
    if not callable(function) or isinstance(function, type):
        raise UsageError("wrap takes an async function", found=describe(function))
    if hook and hook not in HOOKS:
        raise UnknownNameError(f"there is no hook {hook!r}", unknown=hook, known=HOOKS)
    return check_middleware(_Wrapped(hook or _hook_of(function), function))


def _hook_of(function: Any) -> str:
    name: str = getattr(function, "__name__", "")
    if name in HOOKS:
        return name
    first = next(iter(signature(function).parameters.values()), None)
    said = getattr(first, "annotation", None)
    kind = said if isinstance(said, str) else getattr(said, "__name__", "")
    hook = _BY_CALL.get(str(kind).rpartition(".")[2])
    if hook is None:
        raise UsageError(
            "which hook this function is cannot be told",
            found=f"{name or 'it'}{signature(function)}",
            help="wrap(function, 'before_model'), or give its first parameter the type ModelCall, "
            "ToolCall, AgentCall or RunCall",
        )
    return hook
