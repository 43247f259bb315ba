"""Those who are told of the events of a run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.protocol import AgentEvent, EventListener

_LOG: Final = logging.getLogger("adk_fluent")


class Listeners:
    """Tells every listener of every event; one that fails is told no more, and the run goes on.

    Args:
        listeners: Who is told, in order.
    """

    def __init__(self, listeners: Iterable[EventListener] | None) -> None:
        self._listeners = list(listeners or ())

    def tell(self, event: AgentEvent) -> None:
        """Tell of one event."""
        for each in tuple(self._listeners):
            try:
                each.on_event(event)
            except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
                self._listeners.remove(each)
                name = type(each).__name__
                _LOG.exception("listener %s failed and is not told of later events", name)
