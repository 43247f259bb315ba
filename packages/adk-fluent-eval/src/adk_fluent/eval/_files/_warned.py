"""What people should know of a file that was read all the same."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._files._place import field_name

if TYPE_CHECKING:
    from adk_fluent.eval._files._place import At, Source

_OURS: Final = "adk_fluent.eval"


class EvalFileWarning(UserWarning):
    """A file was read, and something that it says is not taken over."""


def warn(source: Source, at: At, text: str) -> None:
    """Warn of what stands at a place of a file, for the caller who is not of this package."""
    from inspect import currentframe  # noqa: PLC0415  # slow to import, and seldom wanted

    level, frame = 1, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    place = f"{source.path}:{line}" if (line := source.line_of(at)) else source.path
    field = f" ({field_name(at)})" if at else ""
    warnings.warn(f"{place}{field}: {text}", EvalFileWarning, stacklevel=level)


EvalFileWarning.__module__ = "adk_fluent.eval"  # where it is public
