"""Generic schemas: ``Page[int]`` is a schema with int where the fields of ``Page`` have T."""

from __future__ import annotations

from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ForwardRef,
    Generic,
    TypeVar,
    Union,
    get_args,
    get_origin,
)
from weakref import WeakKeyDictionary, WeakValueDictionary

from adk_fluent.state._errors import SchemaError
from adk_fluent.state._ref import is_scope, shown, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Under which name the body of such a class has what `typing` knows it as.
ALIAS: Final = "__alias__"

#: What was made of each generic schema, by its arguments.
_MADE: WeakKeyDictionary[Any, WeakValueDictionary[Any, Any]] = WeakKeyDictionary()


def with_arguments(cls: Any, arguments: Any, generic: Any) -> Any:
    """A generic schema with types for its type variables: a subclass, the same one each time.

    Args:
        cls: The schema.
        arguments: The types.
        generic: It as `typing` knows it, which checks how many there are.

    Raises:
        SchemaError: It is not generic, or they do not fit.
    """
    if not getattr(cls, "__parameters__", ()):
        raise SchemaError(
            f"{cls.__name__} has no type variable",
            found=f"{cls.__name__}[...]",
            help="class Name(StateSchema, Generic[T]) has one",
        )
    own = cls.__schema__.alias
    try:
        alias = generic.__class_getitem__(arguments) if own is None else own[arguments]
    except TypeError as error:
        raise SchemaError(f"{cls.__name__}[...] cannot be: {error}") from error
    origin, given = get_origin(alias), get_args(alias)
    _check(origin, given)
    try:
        hash(given)
    except TypeError:
        return _made(origin, alias)
    made = _MADE.setdefault(origin, WeakValueDictionary())
    return made.get(given) or made.setdefault(given, _made(origin, alias))


def _check(cls: Any, given: tuple[Any, ...]) -> None:
    for each in cls.__parameters__:
        if not isinstance(each, TypeVar):
            raise SchemaError(f"{cls.__name__} has a {type(each).__name__}", help="use TypeVars")
    for each in given:
        if isinstance(each, ForwardRef):
            raise SchemaError(
                f"{cls.__name__}[...] takes types, not text",
                found=shown(each.__forward_arg__),
                help="define the type before, and write it without quotes",
            )
        if is_scope(get_origin(each) or each):
            raise SchemaError(
                f"{cls.__name__}[...] takes types without a scope",
                found=type_name(each),
                help="the annotation in the schema says it: UserScoped[T]",
            )


def _made(cls: Any, alias: Any) -> Any:
    given = f"[{', '.join(map(type_name, get_args(alias)))}]"
    body = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__ + given,
        "__doc__": cls.__doc__,
        ALIAS: alias,
    }
    return type(cls)(cls.__name__ + given, (cls,), body)


def open_in(cls: Any, bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """The type variables of a schema that have no types yet.

    Args:
        cls: The schema.
        bases: What its class statement names.
    """
    if any(get_origin(each) is Generic for each in bases):
        return cls.__parameters__
    return tuple(
        dict.fromkeys(
            parameter
            for each in bases
            if get_origin(each) or (hasattr(each, "__schema__") and each.__schema__.alias)
            for parameter in each.__parameters__
        )
    )


def fill(type_: Any, given: Mapping[Any, Any]) -> Any:
    """A type with types for the type variables in it; itself if it has none of them."""
    if isinstance(type_, TypeVar):
        return given.get(type_, type_)
    generic: Any = getattr(type_, "__pydantic_generic_metadata__", None)
    args: tuple[Any, ...] = get_args(type_) if generic is None else generic["parameters"]
    filled = tuple(fill(each, given) for each in args)
    if all(new is old for new, old in zip(filled, args, strict=True)):
        return type_
    origin = type_ if generic is not None else get_origin(type_)
    if origin is Annotated:
        return Annotated[(filled[0], *type_.__metadata__)]
    if origin in (Union, UnionType):
        return Union[filled]  # noqa: UP007
    return origin[filled]
