"""What a replay answers, for middlewares that would answer from what they keep."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.protocol import ModelCall

#: In a replay, tells of a model call whether its answer was recorded as the model's, so that the
#: model was asked; None where nothing is replayed.
REPLAYED: Final[ContextVar[Callable[[ModelCall], bool] | None]] = ContextVar(
    "adk_fluent_replayed", default=None
)
