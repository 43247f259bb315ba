"""Functions of tools that take bound state as a parameter, which the model does not see."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.state._errors import SchemaError
from adk_fluent.state._ref import type_name
from adk_fluent.state._schema import StateSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_CONTEXT: Final = "tool_context"
#: Classes of ADK's that a parameter for the context is annotated with.
_CONTEXTS: Final = frozenset({"Context", "ToolContext", "CallbackContext", "ReadonlyContext"})
#: Where a docstring in Google's style tells of arguments, and how it begins to tell of one.
_SECTIONS: Final = frozenset({"Args:", "Arguments:", "Parameters:", "Keyword Args:"})
_ENTRY: Final = re.compile(r"\s*(\w+)\s*(?:\(.*\))?\s*:")


def tool(function: F) -> F:
    """Let a tool's function take state by annotation: the model does not see that parameter.

    ::

        @tool
        def open_ticket(query: str, state: BillingState) -> str:
            \"\"\"Open a ticket.\"\"\"
            state.ticket_id = f"{state.intent}-1"
            return state.ticket_id

        agent = Agent("clerk").tool(open_ticket)

    ADK calls it with its context, as it does for a parameter ``tool_context``, which the function
    may have besides. Whoever calls it directly passes the state: ``open_ticket("q", state=...)``.
    Works for functions and methods, sync, async and streaming.

    Nor does it see what a section ``Args:`` of the docstring says of that parameter.

    Args:
        function: It has one parameter or more annotated with a `StateSchema`.

    Raises:
        SchemaError: It has none, or one that may be something else, too.
        UsageError: It is no function.
    """
    if not inspect.isroutine(function):
        raise UsageError("@tool stands above a function", found=describe(function))
    parameters = inspect.signature(function).parameters
    hints = _hints(function)
    schemas = {
        name: kind
        for name in parameters
        if (kind := _schema(function, name, hints.get(name))) is not None
    }
    if not schemas:
        unknown = [f"{each!r}" for each in hints.values() if isinstance(each, str)]
        raise SchemaError(
            f"no parameter of {function.__name__} is annotated with a StateSchema",
            found=f"{', '.join(unknown)}, not defined here" if unknown else None,
            help="write one as in `state: BillingState`; import it where it is there at run time, "
            "not under `if TYPE_CHECKING`",
        )
    own = next((name for name, each in parameters.items() if _is_context(each, hints)), None)
    given = _Given(function.__name__, tuple(parameters), schemas, own)
    made = _calling(function, given)
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(made, name, getattr(function, name))
    made.__doc__ = _without(schemas, function.__doc__)
    made.__dict__.update(vars(function))
    shown = [
        each.replace(annotation=hints.get(name, each.annotation))
        for name, each in parameters.items()
        if name not in schemas
    ]
    returns = hints.get("return", inspect.Signature.empty)
    made.__signature__ = inspect.Signature(_with_context(shown, own), return_annotation=returns)
    made.__annotations__ = {key: kind for key, kind in hints.items() if key not in schemas}
    made.__state_tool__ = function  # for checks that read its source
    return cast("F", made)


class _Given:
    """Completes the arguments of a call with bound state."""

    __slots__ = ("_context", "_name", "_parameters", "_schemas")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        schemas: Mapping[str, type[StateSchema]],
        context: str | None,
    ) -> None:
        self._name = name
        self._parameters = parameters
        self._schemas = schemas
        self._context = context

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of a call, with the state that was not given."""
        context = kwargs.get(self._context) if self._context else kwargs.pop(_CONTEXT, None)
        by_position = self._parameters[: len(args)]
        for name, schema in self._schemas.items():
            if name in kwargs or name in by_position:
                continue
            if context is None and self._context is not None and self._context in by_position:
                context = args[by_position.index(self._context)]
            if context is None:
                raise UsageError(
                    f"{self._name} was called without state",
                    help=f"a direct call passes it: {name}={schema.__name__}.bind({{}})",
                )
            kwargs[name] = schema.bind(context)
        return kwargs


def _calling(function: Callable[..., Any], given: _Given) -> Any:
    """What ADK calls, of the same kind as the function."""

    async def call_async(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **given(args, kwargs))

    async def call_stream(*args: Any, **kwargs: Any) -> Any:
        async for each in function(*args, **given(args, kwargs)):
            yield each

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **given(args, kwargs))

    if inspect.iscoroutinefunction(function):
        return call_async
    return call_stream if inspect.isasyncgenfunction(function) else call


def _with_context(shown: list[inspect.Parameter], own: str | None) -> list[inspect.Parameter]:
    """The parameters that ADK is to see: it gives the context to one called ``tool_context``."""
    if own is not None:
        return shown
    last = shown[-1:] if shown and shown[-1].kind is inspect.Parameter.VAR_KEYWORD else []
    added = inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY)
    return [*shown[: len(shown) - len(last)], added, *last]


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    if parameter.name == _CONTEXT:
        return True
    kind = hints.get(parameter.name)
    return (
        isinstance(kind, type)
        and kind.__name__ in _CONTEXTS
        and kind.__module__.startswith("google.adk.")
    )


def _schema(function: Any, name: str, annotation: Any) -> type[StateSchema] | None:
    """The schema that a parameter is annotated with.

    Raises:
        SchemaError: The schema is only a part of the annotation, as in ``Desk | None``.
    """
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if _is_schema(annotation):
        return annotation
    part = next(filter(_is_schema, get_args(annotation)), None)
    if part is not None:
        raise SchemaError(
            f"the parameter {name} of {function.__name__} may be something else than state",
            found=type_name(annotation),
            help=f"write `{name}: {part.__name__}`: a call by a model always has state",
        )
    return None


def _is_schema(annotation: Any) -> TypeGuard[type[StateSchema]]:
    return isinstance(annotation, type) and issubclass(annotation, StateSchema)


def _without(names: Collection[str], doc: str | None) -> str | None:
    """A docstring in Google's style without what its sections of arguments say of some names."""
    if doc is None:
        return None
    lines = doc.splitlines(keepends=True)
    kept: list[str] = []
    at = 0
    while at < len(lines):
        end = _end(lines, at) if lines[at].strip() in _SECTIONS else at + 1
        body = lines[at + 1 : end]
        if body and not (body := _without_entries(names, body)):  # of a section, which is empty now
            while kept and not kept[-1].strip():
                kept.pop()
        else:
            kept += [lines[at], *body]
        at = end
    return "".join(kept)


def _without_entries(names: Collection[str], lines: list[str]) -> list[str]:
    """The lines of a section of arguments without those about some names."""
    kept: list[str] = []
    at = 0
    while at < len(lines):
        end = _end(lines, at)
        entry = _ENTRY.match(lines[at])
        if entry is None or entry[1] not in names:
            kept += lines[at:end]
        else:  # with the empty lines below it
            while end < len(lines) and not lines[end].strip():
                end += 1
        at = end
    return kept


def _end(lines: list[str], start: int) -> int:
    """Where the lines end that are indented below one of them, without empty ones at last."""
    end = start + 1
    for at in range(end, len(lines) if lines[start].strip() else end):
        if lines[at].strip():
            if _indent(lines[at]) <= _indent(lines[start]):
                break
            end = at + 1
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types, with what is visible where the decorator stands.

    What cannot be resolved, as a return type for type checkers only, stays as it is.
    """
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    names = {} if frame is None else dict(frame.f_locals)
    inner: Any = inspect.unwrap(getattr(function, "__func__", function))
    found: dict[str, Any] = {}
    for name, annotation in inspect.get_annotations(inner).items():
        holder: Any = SimpleNamespace(__annotations__={name: annotation})
        try:
            found |= get_type_hints(holder, inner.__globals__, names, include_extras=True)
        except NameError:
            found[name] = annotation
    return found
