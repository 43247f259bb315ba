"""Functions that ADK calls, with the resources they name."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_type_hints

from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from adk_fluent.backends._resources import chosen, here, made_by, parameters
from adk_fluent.backends.adk._caps import find_context_parameter
from adk_fluent.backends.adk._hooks._chain import invocation_of
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.backends._resources import Injection, Table
    from adk_fluent.errors import Placed

F = TypeVar("F", bound="Callable[..., Any]")

#: Where a run keeps its resources: a key of its context's ``__dict__``, which ADK carries on into
#: every copy.
_KEY: Final = "_adk_fluent_resources"
_CONTEXT: Final = "tool_context"


def keep(ctx: InvocationContext, table: Table) -> None:
    """Let what runs in this context find the resources."""
    vars(ctx)[_KEY] = table


def table_of(ctx: Any) -> Table:
    """The resources of a context's run, or of the run whose tool runs that one."""
    table: Table | None = getattr(ctx, "__dict__", {}).get(_KEY)
    return here() if table is None else table


def handed(function: F, injection: Injection) -> F:
    """A callback, or a function that gives an instruction, with the resources it names."""
    names = injection.wanted(function)
    if not names:
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        context = kwargs.get("callback_context") or kwargs.get(_CONTEXT) or (*args, None)[0]
        table = table_of(invocation_of(context))
        return function(*args, **kwargs, **chosen(table, names))

    call.__name__ = getattr(function, "__name__", type(function).__name__)
    return cast("F", call)


def as_function_tool(
    function: Callable[..., Any],
    injection: Injection,
    require_confirmation: bool | Callable[..., bool] = False,
) -> FunctionTool:
    """A tool made of a function; the model does not see the parameters for resources."""
    names = injection.wanted(function)
    asks = _wanted_to_confirm(require_confirmation, injection)
    if names or asks:
        own = _context_parameter(function)
        function = _hiding(function, names, own)
        if callable(require_confirmation):
            require_confirmation = _asking(require_confirmation, asks, own)
    return FunctionTool(function, require_confirmation=require_confirmation)


def _wanted_to_confirm(require_confirmation: object, injection: Injection) -> tuple[str, ...]:
    return injection.wanted(require_confirmation) if callable(require_confirmation) else ()


def with_resources(tool: Any, injection: Injection, node: Placed | None) -> Any:
    """A tool of ADK's that was made of a function, with the resources the function names.

    Raises:
        UsageError: The kind of tool is not known, so that it cannot be made anew.
    """
    if not isinstance(tool, FunctionTool):
        return tool
    if type(tool) is FunctionTool:
        confirm = getattr(tool, "_require_confirmation", False)
        wanted = injection.wanted(tool.func) or _wanted_to_confirm(confirm, injection)
        return as_function_tool(tool.func, injection, confirm) if wanted else tool
    if not injection.wanted(tool.func):
        return tool
    if type(tool) is LongRunningFunctionTool:
        names = injection.wanted(tool.func)
        return LongRunningFunctionTool(_hiding(tool.func, names, _context_parameter(tool.func)))
    raise UsageError(
        f"resources cannot be injected into a {type(tool).__qualname__}",
        node=node,
        found=f"tool {tool.name!r}, whose function names a resource",
        help="give the function itself to .tool(...)",
    )


def _context_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter to which ADK gives the context, if the function has one."""
    found = None if find_context_parameter is None else find_context_parameter(function)
    return found or (_CONTEXT if _CONTEXT in parameters(function) else None)


def _hiding(
    function: Callable[..., Any], names: tuple[str, ...], own: str | None
) -> Callable[..., Any]:
    """The function as ADK is to see it: without these parameters, and with one for the context."""

    def given(kwargs: dict[str, Any]) -> dict[str, Any]:
        context = kwargs[own] if own else kwargs.pop(_CONTEXT)
        table = table_of(invocation_of(context))
        return {**kwargs, **chosen(table, names)}

    async def call_async(**kwargs: Any) -> Any:
        return await function(**given(kwargs))

    async def call_stream(**kwargs: Any) -> Any:
        async for each in function(**given(kwargs)):
            yield each

    def call(**kwargs: Any) -> Any:
        return function(**given(kwargs))

    made: Any = call
    if made_by(inspect.iscoroutinefunction, function):
        made = call_async
    elif made_by(inspect.isasyncgenfunction, function):
        made = call_stream
    hints = _hints(function, names)
    made.__signature__ = inspect.Signature(tuple(_shown(function, hints, names, own)))
    made.__annotations__ = hints
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        if (value := getattr(function, name, None)) is not None:
            setattr(made, name, value)
    return made


def _hints(function: Callable[..., Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The annotations that ADK is to see, as types: it would look up their names in this module.

    Those of resources may be for type checkers only.
    """
    inner: Any = inspect.unwrap(function)
    if not hasattr(inner, "__annotations__"):
        inner = type(inner).__call__
    bare: Any = SimpleNamespace()
    bare.__annotations__ = {k: v for k, v in inner.__annotations__.items() if k not in names}
    try:
        return get_type_hints(bare, inner.__globals__, include_extras=True)
    except NameError:
        return bare.__annotations__  # ADK says what it cannot resolve


def _shown(
    function: Callable[..., Any], hints: dict[str, Any], names: tuple[str, ...], own: str | None
) -> Iterator[inspect.Parameter]:
    """The parameters that ADK is to see."""
    every = parameters(function).values()
    rest = [
        each.replace(annotation=hints.get(each.name, each.annotation))
        for each in every
        if each.name not in names
    ]
    last = rest[-1:] if rest and rest[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    yield from rest[: len(rest) - len(last)]
    if own is None:
        yield inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY)
    yield from last


def _asking(
    confirm: Callable[..., Any], names: tuple[str, ...], own: str | None
) -> Callable[..., Any]:
    """Whether to ask, as ADK is to find out: it passes what it passes to the tool."""

    async def call(**kwargs: Any) -> Any:
        context = kwargs[own] if own else kwargs.pop(_CONTEXT)
        resources = chosen(table_of(invocation_of(context)), names) if names else {}
        answer = confirm(**kwargs, **resources)
        return await answer if inspect.isawaitable(answer) else answer

    return call
