"""Middlewares around every pipeline that is compiled in a block."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from adk_fluent.protocol import check_middleware

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.protocol import AnyMiddleware

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
