"""Errors of attempts and branches that failed, kept while something else is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import AgentReportedError
from adk_fluent.flow._failures import chained
from adk_fluent.flow._position import new_id

if TYPE_CHECKING:
    from adk_fluent.flow._position import Position
    from adk_fluent.flow._strand import Frame


class Remembered:
    """The errors of one run. Its position holds their texts.

    Args:
        position: Where the run stands.
    """

    def __init__(self, position: Position) -> None:
        self._position = position
        self._errors: dict[str, Exception] = {}

    def remember(self, frame: Frame, error: Exception) -> None:
        """Keep an error of an attempt or branch; after a restart only its text is known."""
        key = new_id(self._position)
        frame.setdefault("errors", []).append([key, f"{type(error).__name__}: {error}"])
        self._errors[key] = error

    def forget(self, frame: Frame) -> list[Exception]:
        """The errors remembered in a frame; it has none from here on."""
        errors: list[Exception] = []
        for key, text in frame.pop("errors", ()):
            error = self._errors.pop(key, None)
            errors.append(error or AgentReportedError(text, error_code="RESTARTED"))
        return errors

    def recall(self, frame: Frame) -> Exception:
        """The last remembered error, those before it chained as its context."""
        return chained(self.forget(frame))
