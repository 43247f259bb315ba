"""Functions that have a parameter for bound state, which nobody fills."""

from __future__ import annotations

import builtins
import re
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Where the classes of annotations are that are made of others, as ``Desk | None``.
_COMPOUND: Final = frozenset({"types", "typing"})
_NAME: Final = re.compile(r"[^\W\d][\w.]*")
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")


def refuse_state_parameter(tool: Any) -> None:
    """A model cannot fill a parameter that is annotated with a state schema.

    No annotation is evaluated. What cannot be looked up is no schema here.

    Raises:
        UsageError: There is one, so ``@tool`` was forgotten.
    """
    if "__signature__" in getattr(tool, "__dict__", ()):
        return  # it says itself what its parameters are, as `@tool` does
    function = tool if hasattr(tool, "__code__") else type(tool).__call__
    try:
        annotations: dict[str, Any] = function.__annotations__
    except Exception:  # noqa: BLE001  # none; or made only now, from Python 3.14 on
        return
    for name, annotation in annotations.items():
        if name == "return":
            continue
        for schema in filter(_is_schema, _parts(function, annotation)):
            raise UsageError(
                f"a model cannot fill the parameter {name} of {describe(tool)}",
                found=f"{name}: {schema.__name__}, a state schema",
                help="put @tool of adk_fluent.state above the function, which then gets the state",
            )


def _is_schema(value: Any) -> bool:
    """Whether a value is a state schema; see `protocol.StateRules`. Makes none of its fields."""
    if not isinstance(value, type):
        return False
    classes = (*type.mro(value), *type.mro(type(value)))
    return any("__state_fields__" in vars(each) for each in classes)


def _parts(function: Any, annotation: Any) -> Iterable[Any]:
    """A type, or those in it; those that it names, if it is text."""
    if isinstance(annotation, str):
        return [_named(function, each) for each in _names(annotation)]
    if type(annotation).__module__ in _COMPOUND:
        return getattr(annotation, "__args__", ())
    return (annotation,)


@lru_cache(maxsize=1024)
def _names(annotation: str) -> tuple[str, ...]:
    """The names in an annotation that may be schemas."""
    text = annotation if annotation[:1] in "'\"" else _QUOTED.sub("", annotation)
    return tuple(each for each in _NAME.findall(text) if not hasattr(builtins, each))


def _named(function: Any, name: str) -> Any:
    """What a name means to a function, as ``Desk`` or ``states.Desk``; None if that is unknown."""
    function = getattr(function, "__wrapped__", function)
    first, *rest = name.split(".")
    value = getattr(function, "__globals__", {}).get(first)
    if (cells := getattr(function, "__closure__", None)) is not None:
        cell = dict(zip(function.__code__.co_freevars, cells, strict=False)).get(first)
        try:
            value = value if cell is None else cell.cell_contents
        except ValueError:  # not assigned yet
            return None
    for each in rest:
        value = vars(value).get(each) if isinstance(value, ModuleType | type) else None
    return value
