"""Middlewares of your own, by name: what the built-in ones have, made of any class or object."""

from __future__ import annotations

import copy
from dataclasses import is_dataclass, replace
from inspect import Parameter, cleandoc, signature
from typing import TYPE_CHECKING, Any, get_type_hints

from adk_fluent.errors import UsageError
from adk_fluent.extend import added_tools, register_middleware
from adk_fluent.extend import describe as described
from adk_fluent.middleware._builtin import (
    BuiltIn,
    arguments,
    checked,
    live_options,
    options_of,
    schema_of,
    settings,
    summary,
)
from adk_fluent.protocol import MiddlewareDesc, check_middleware, fresh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel


def define_middleware(
    middleware: Any, *, name: str = "", description: str = "", replace: bool = False
) -> MiddlewareDesc:
    """Let a middleware be chosen by name: in pipelines that are files, and by ``MiddlewareRef``.

    Its settings are the annotated parameters of its constructor that JSON can hold, checked before
    they are used. A prototype, that is an object instead of a class, keeps what it was given
    besides (connections, clients): settings are put on a fresh one made by its ``new``.

    ::

        class Tracing:
            def __init__(self, sample_rate: float = 1.0, exporter: Exporter | None = None): ...

        define_middleware(Tracing(exporter=exporter), name="tracing", description="Traces calls.")
        Agent("a").middleware(MiddlewareRef("tracing", {"sample_rate": 0.1}))

    A wheel puts the description into the slot ``middleware`` of its layer instead; see
    `describe_middleware`.

    Args:
        middleware: A class, or a prototype.
        name: What it is called; without it, its `name`.
        description: What it does, in one sentence; without it, the first one of its docstring.
        replace: It may take the place of another one of that name.

    Raises:
        UsageError: It is no middleware, has no name, needs something that no file can hold, or
            another one has its name.
    """
    desc = describe_middleware(middleware, name=name, description=description)
    return register_middleware(desc, replace=replace)


def describe_middleware(
    middleware: Any, *, name: str = "", description: str = ""
) -> MiddlewareDesc:
    """The description that `define_middleware` registers.

    Raises:
        UsageError: See there.
    """
    is_class = isinstance(middleware, type)
    kind: Any = middleware if is_class else type(middleware)
    if not is_class:
        check_middleware(middleware)
    called = name or getattr(middleware, "name", "")
    if not isinstance(called, str) or not called:
        raise UsageError(
            f"{kind.__qualname__} has no name", help="define_middleware(..., name='my_middleware')"
        )
    doc = cleandoc(kind.__doc__ or "")
    says = description or summary(doc)
    if is_class and issubclass(kind, BuiltIn):
        options, live = options_of(kind), live_options(kind)
    else:
        options, live = _options(kind, None if is_class else middleware)
    schema = schema_of(
        options, {**arguments(doc), **arguments(cleandoc(kind.__init__.__doc__ or ""))}
    )
    factory = _Factory(called, options, middleware, live)
    return MiddlewareDesc(called, says, factory, schema, added_tools(middleware))


class _Factory:
    """Makes one from settings, of a class or of a prototype."""

    def __init__(
        self, name: str, options: type[BaseModel], middleware: Any, live: Sequence[str]
    ) -> None:
        #: The parameters that no file can hold.
        self.live = tuple(live)
        self._name = name
        self._options = options
        self._middleware = middleware

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Factory) and self._middleware is other._middleware

    def __hash__(self) -> int:
        return id(self._middleware)

    def __call__(self, **config: Any) -> Any:
        given = checked(self._name, self._options, config)
        middleware = self._middleware
        if isinstance(middleware, type):
            return middleware(**given)
        made = fresh(middleware)
        if not given:
            return made
        if is_dataclass(made) and not isinstance(made, type):
            return replace(made, **given)
        made = copy.copy(made) if made is middleware else made
        for option, value in given.items():
            setattr(made, option, value)
        return made


def _options(kind: Any, prototype: Any) -> tuple[type[BaseModel], list[str]]:
    """The settings of somebody's class, those of a prototype with its values as defaults.

    And the names of all parameters that are none.
    """
    try:
        hints = get_type_hints(kind.__init__, include_extras=True)
        parameters = signature(kind).parameters
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(
            f"the settings of {kind.__qualname__} cannot be told",
            found=str(error),
            help="annotate its constructor with types that are imported when it runs",
        ) from error
    fields: dict[str, tuple[Any, Any]] = {}
    for each in parameters.values():
        if each.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        default = getattr(prototype, each.name, each.default)
        fields[each.name] = (hints.get(each.name, Any), default)
    options, rest = settings(kind.__name__, fields)
    needed = [name for name in rest if fields[name][1] is Parameter.empty]
    if needed and prototype is None:
        raise UsageError(
            f"{kind.__qualname__} needs what no file can hold: {', '.join(needed)}",
            found=described(kind),
            help=f"define a prototype: define_middleware({kind.__name__}({needed[0]}=...), ...)",
        )
    return options, rest
