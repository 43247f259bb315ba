"""Middlewares by name: those that layers bring, and those that a program registers itself."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._registry import broken_note, known_names, offer_of, offers, require_provider
from adk_fluent._words import describe
from adk_fluent.errors import (
    AdkFluentError,
    LayerError,
    MissingLayerError,
    UnknownNameError,
    UsageError,
    add_place,
)
from adk_fluent.ir import MiddlewareRef, Ref
from adk_fluent.protocol import Middleware, MiddlewareDesc, check_middleware

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from adk_fluent.errors import Placed
    from adk_fluent.protocol import AnyMiddleware

_SLOT: Final = "middleware"
_LOCK: Final = Lock()
#: What is given a request before it is sent, or makes an object that may be.
_REACH_REQUESTS: Final = ("before_model", "wrap_model_call", "wrap_model_request", "new")
_registered: dict[str, MiddlewareDesc] = {}
_everywhere: Final[ContextVar[tuple[AnyMiddleware, ...]]] = ContextVar(
    "adk_fluent_middlewares_everywhere", default=()
)


@contextmanager
def middleware_everywhere(middleware: AnyMiddleware) -> Generator[None]:
    """Put a middleware around every pipeline that is compiled in a block, inside all others.

    Builders compile when they are run, so this reaches every run that is started there. Covers the
    current task and the tasks it starts.

    Args:
        middleware: The middleware.

    Raises:
        UsageError: It is none.
    """
    token = _everywhere.set((*_everywhere.get(), check_middleware(middleware)))
    try:
        yield
    finally:
        _everywhere.reset(token)


def middlewares_everywhere() -> tuple[AnyMiddleware, ...]:
    """The middlewares of the blocks of `middleware_everywhere`, outermost first."""
    return _everywhere.get()


def register_middleware(desc: MiddlewareDesc, *, replace: bool = False) -> MiddlewareDesc:
    """Register a middleware, so that a `MiddlewareRef` can choose it by name in this process.

    A wheel puts its own into the slot ``middleware`` of its layer instead.

    Args:
        desc: Its description.
        replace: It may take the place of another one of that name.

    Raises:
        UsageError: It is no description, or another middleware has the name.
    """
    if not isinstance(desc, MiddlewareDesc):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
        raise UsageError(
            "register_middleware takes a MiddlewareDesc",
            found=describe(desc),
            help="MiddlewareDesc('name', 'What it does.', factory)",
        )
    with _LOCK:
        if not replace and _known(desc.name) not in (None, desc):
            raise UsageError(
                f"there is a middleware called {desc.name!r} already",
                help="give it another name, or replace=True",
            )
        _registered[desc.name] = desc
    return desc


def unregister_middleware(name: str) -> None:
    """Remove a middleware that `register_middleware` added; does nothing if there is none.

    Args:
        name: Its name.
    """
    with _LOCK:
        _registered.pop(name, None)


def registered_middlewares() -> Mapping[str, MiddlewareDesc]:
    """Return every middleware that can be chosen by name, sorted by name.

    This imports all of them. What is broken is left out; `layer_errors` with ``"middleware"`` says
    what that is.
    """
    brought: dict[str, MiddlewareDesc] = {}
    for name in {offer.name for offer in offers(_SLOT)}:
        with suppress(LayerError, MissingLayerError):
            if (desc := _known(name)) is not None:
                brought[name] = desc
    return dict(sorted((brought | _registered).items()))


def find_middleware(name: str, node: Placed | None = None) -> MiddlewareDesc:
    """Return the description of a middleware.

    Args:
        name: Its name.
        node: The node that names it, for the error.

    Raises:
        MissingLayerError: It is one of a layer that is not installed.
        UnknownNameError: There is none.
        LayerError: Its layer is broken, or two layers have one of this name.
    """
    known = _known(name)
    if known is not None:
        return known
    require_provider(_SLOT, name, f"middleware {name!r}", node)
    raise UnknownNameError(
        f"there is no middleware called {name!r}",
        unknown=name,
        known={*_registered, *known_names(_SLOT)},
        found=broken_note(),
        node=node,
    )


def added_tools(value: Any) -> Sequence[str] | None:
    """Return the names of the tools that a middleware adds to requests; None if not known.

    Nothing is made to find that out.

    Args:
        value: What stands in a stack, or a class of middlewares.
    """
    if isinstance(value, Ref):
        value = value.value
    if isinstance(value, MiddlewareRef):
        with suppress(LayerError, MissingLayerError):
            desc = _known(value.name)
            if desc is not None and desc.adds_tools is not None:
                return desc.adds_tools
            return added_tools(desc.factory) if desc and isinstance(desc.factory, type) else None
        return None
    declared: Sequence[str] | None = getattr(value, "adds_tools", None)
    if declared is None and not any(_has_own(value, name) for name in _REACH_REQUESTS):
        return ()
    return declared


def _has_own(middleware: Any, name: str) -> bool:
    method = getattr(middleware, name, None)
    return method is not None and getattr(method, "__func__", method) is not getattr(
        Middleware, name
    )


def made_middleware(value: Any, node: Placed | None = None) -> Any:
    """What stands in a stack: the object itself, or what a reference names, made anew.

    Raises:
        UsageError: It is no middleware, or its settings are wrong.
        MissingLayerError: It is one of a layer that is not installed.
        UnknownNameError: There is none of that name.
    """
    if isinstance(value, Ref):
        value = value.value
    if not isinstance(value, MiddlewareRef):
        return check_middleware(value)
    desc = find_middleware(value.name, node)
    config = dict(value.config or {})
    try:
        return check_middleware(desc.factory(**config))
    except AdkFluentError as error:
        if node is not None:
            add_place(error, node)
        raise
    except TypeError as error:
        raise UsageError(
            f"middleware {value.name!r} does not take these settings",
            node=node,
            found=str(error),
            help=f"adk-fluent middleware show {value.name}",
        ) from error


def check_stacked(value: Any) -> None:
    """Refuse what can stand in no stack; a reference is looked up when the pipeline is compiled.

    Raises:
        UsageError: It is no middleware, or one of its hooks cannot be asked.
    """
    if isinstance(value, MiddlewareRef):
        if not isinstance(value.name, str) or not value.name:  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise UsageError("a MiddlewareRef has a name", found=describe(value.name))
        return
    check_middleware(value)


def _known(name: str) -> MiddlewareDesc | None:
    if name in _registered:
        return _registered[name]
    offer = offer_of(_SLOT, name)
    if offer is None:
        return None
    desc = offer.load()
    if isinstance(desc, MiddlewareDesc) and desc.name == name:
        return desc
    raise offer.source.error(
        f"{offer.entry.target} does not describe a middleware {name!r}",
        found=f"one called {desc.name!r}" if isinstance(desc, MiddlewareDesc) else describe(desc),
        help="give the entry the name of its MiddlewareDesc",
    )
