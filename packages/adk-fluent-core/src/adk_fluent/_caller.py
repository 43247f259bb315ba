"""The user's line that called into adk_fluent."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

#: Besides our own, what calls us for the user; the import system calls itself by two names.
_OURS: Final = frozenset(
    {
        *("adk_fluent", "asyncio", "contextlib", "dataclasses"),
        *("importlib", "_frozen_importlib"),
    }
)
_OTHERS: Final = frozenset({"click", "google"})  # the command line or ADK calls: no user's line
_ENGINE: Final = "adk_fluent.flow"  # what it calls belongs to a step, not to whoever runs it


def caller(skip: int = 0) -> tuple[str, int] | None:
    """Return the file and line of the user's code that called into adk_fluent.

    Args:
        skip: Number of innermost frames known to be adk_fluent's, which are not looked at; the
            function that calls this one is the first.

    Returns:
        None where no user's code called: ADK, the command line, or a step of a running pipeline.
    """
    # inspect.currentframe is the same, and its import is expensive
    frame = sys._getframe(skip + 1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        # by module, not by file: other wheels add subpackages that lie elsewhere
        is_users = _is_users(str(frame.f_globals.get("__name__")))
        if is_users is not None:
            return (frame.f_code.co_filename, frame.f_lineno) if is_users else None
        frame = frame.f_back
    return None


@lru_cache(maxsize=1024)
def _is_users(module: str) -> bool | None:
    """Whether a module is the user's; None for one of ours, which the user may have called."""
    package = module.partition(".")[0]
    if package not in _OURS:
        return package not in _OTHERS
    return False if module.startswith(_ENGINE) else None
