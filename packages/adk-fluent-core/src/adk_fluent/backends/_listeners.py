"""Those who are told of the events of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from adk_fluent._logs import LOG
from adk_fluent.protocol import AgentEvent, ErrorInfo, EventListener, NoticeListener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node


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
            self._tell(each, each.on_event, event)

    def notify(self, notice: AgentEvent) -> None:
        """Tell those who want to know of what leaves no event."""
        for each in tuple(self._listeners):
            if isinstance(each, NoticeListener):
                self._tell(each, each.on_notice, notice)

    @property
    def want_notices(self) -> bool:
        """Whether there is anybody to notify."""
        return any(isinstance(each, NoticeListener) for each in self._listeners)

    def _tell(
        self, listener: EventListener, hook: Callable[[AgentEvent], None], event: AgentEvent
    ) -> None:
        try:
            hook(event)
        except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
            self._listeners.remove(listener)
            name = type(listener).__name__
            LOG.exception("listener %s failed and is not told of later events", name)


class Notices:
    """What a flow's watch is told, as notices for listeners.

    Args:
        listeners: Who is notified.
        at: Makes an event of a step, with its place in the pipeline.
    """

    def __init__(self, listeners: Listeners, at: Callable[..., AgentEvent]) -> None:
        self._listeners = listeners
        self._at = at

    def failed(self, node: Node, strand: Strand, error: BaseException) -> None:
        """A step has failed, or it is cut off."""
        self._notify(node, strand, error=_info(error))

    def discarded(self, node: Node, strand: Strand, scopes: Sequence[str]) -> None:
        """Nothing that was done in these scopes counts any more."""
        self._notify(node, strand, discarded=tuple(scopes))

    def _notify(self, node: Node, strand: Strand, **fields: Any) -> None:
        self._listeners.notify(self._at(node, strand, **fields))


def _info(error: BaseException) -> ErrorInfo:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return ErrorInfo("CancelledError", "cut off before its end")
    return ErrorInfo(type(error).__name__, str(error).partition("\n")[0])
