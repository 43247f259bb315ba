"""Models that are asked in the place of an agent's own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Sequence


class Models:
    """What names of models and references to them stand for: in each event loop its own.

    Args:
        given: Names, references, or instances of ADK's BaseLlm.
    """

    def __init__(self, given: Sequence[Any]) -> None:
        self._given = tuple(given)
        self._made: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()

    def __getitem__(self, at: int) -> Any:
        """Return the model at a place.

        Raises:
            UsageError: There is none of such a name.
        """
        loop = asyncio.get_running_loop()  # clients belong to one
        made = self._made.setdefault(loop, {})
        if at not in made:
            from adk_fluent.backends.adk import resolve_model  # noqa: PLC0415  # imports ADK

            made[at] = resolve_model(self._given[at])
        return made[at]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Models, (self._given,))
