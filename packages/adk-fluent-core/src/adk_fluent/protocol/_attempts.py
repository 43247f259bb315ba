"""Which events still count after attempts were discarded (lost races, failed fallbacks)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.protocol._event import AgentEvent


def kept_events(events: Iterable[AgentEvent]) -> list[AgentEvent]:
    """The events of attempts that were not discarded, in the same order.

    An event works inside the scopes that its ``attempt`` lists (``"3.7"``: scope 7 inside
    scope 3). It is discarded when an event of the same run lists one of them in ``discarded``,
    before or after.
    """
    every = list(events)
    gone: defaultdict[str, set[str]] = defaultdict(set)
    for event in every:
        if event.discarded:
            gone[event.run_id].update(event.discarded)
    if not gone:
        return every
    return [
        event
        for event in every
        if event.attempt is None or gone[event.run_id].isdisjoint(event.attempt.split("."))
    ]
