"""Parameters of a tool's function that no model can be told of."""

from __future__ import annotations

import sys
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

#: Types that need no look: those of most parameters.
_PLAIN: Final = frozenset({"str", "int", "float", "bool", "bytes", "list", "dict", "Any"})
#: Of classes that say themselves how pydantic reads them.
_DESCRIBED: Final = (
    *("__get_pydantic_core_schema__", "__pydantic_core_schema__", "__get_validators__"),
    *("__dataclass_fields__", "__pydantic_serializer__"),
)
#: Whose classes ADK fills itself, or pydantic knows.
_KNOWN: Final = frozenset({"google", "adk_fluent", "pydantic", "pydantic_core"})
#: What ADK fills by name.
_FILLED: Final = frozenset({"tool_context", "input_stream", "return"})


def untellable(function: Any, hidden: Container[str]) -> Iterator[tuple[str, type[Any]]]:
    """Yield parameters whose class ADK cannot make a schema for, each with the class.

    A class counts if it is plain for sure: of the user's own, with nothing by which pydantic reads
    it. What cannot be looked up is left to ADK.

    Args:
        function: The function of a tool.
        hidden: Parameters that models are not told of, such as those for resources.
    """
    named = getattr(function, "__annotations__", None)
    if not named or "__signature__" in getattr(function, "__dict__", ()):
        return  # it says itself what its parameters are
    asked = [each for name, each in named.items() if name not in _FILLED]
    if all((each if isinstance(each, str) else _name_of(each)) in _PLAIN for each in asked):
        return
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001  # of a name for type checkers only, or whatever it evaluates
        return
    told = signature(function).parameters  # without the `self` of a bound method
    for name, hint in hints.items():
        if name in told and name not in _FILLED and name not in hidden:
            yield from ((name, each) for each in _classes(hint) if _is_own(each))


def _classes(hint: Any) -> Iterator[Any]:
    """The classes in a type; those that are annotated with more are described there."""
    if get_origin(hint) is Annotated:
        return
    inner = get_args(hint)
    if not inner:
        yield hint
    for each in inner:
        yield from _classes(each)


def _name_of(annotation: Any) -> str | None:
    """The name of a builtin type; None of all else."""
    built_in = type(annotation) is type and annotation.__module__ == "builtins"
    return annotation.__name__ if built_in else None


def _is_own(value: Any) -> bool:
    """Whether it is a class of the user's, made of such alone, that pydantic cannot read."""
    if not isinstance(value, type):
        return False
    kind = cast("type[Any]", value)
    origins = {each.__module__.partition(".")[0] for each in kind.__mro__[:-1]} - {"__main__"}
    if not origins.isdisjoint(_KNOWN) or not origins.isdisjoint(sys.stdlib_module_names):
        return False
    return bool(kind.__mro__[:-1]) and not any(hasattr(kind, each) for each in _DESCRIBED)
