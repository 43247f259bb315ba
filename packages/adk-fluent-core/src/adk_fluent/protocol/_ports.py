"""Small ports: time, identities, listeners and snapshots of state."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from adk_fluent.protocol._event import AgentEvent


@runtime_checkable
class Clock(Protocol):
    """Tells the time and waits; tests and replays bring their own."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without holding anything else up."""
        import asyncio  # noqa: PLC0415  # whoever waits has it; `import adk_fluent` does without

        await asyncio.sleep(seconds)


@runtime_checkable
class IdSource(Protocol):
    """Makes identities that are never made twice."""

    def new_id(self) -> str:
        """A new identity."""
        ...


class UuidIds:
    """Random identities (UUID version 4)."""

    def new_id(self) -> str:
        """A new identity."""
        import uuid  # noqa: PLC0415  # slow to import

        return str(uuid.uuid4())


@runtime_checkable
class EventListener(Protocol):
    """Is told of every event of a run, in order; it can change nothing and must not block."""

    def on_event(self, event: AgentEvent, /) -> None:
        """Take note of an event."""
        ...


@runtime_checkable
class NoticeListener(EventListener, Protocol):
    """A listener that is told, too, of what leaves no event in a run.

    A notice is an event that nobody stores and no result holds. With ``error``, the step at its
    ``path`` failed, or was cut off: that is a ``CancelledError``. With ``discarded``, nothing that
    was done in those scopes counts any more; an event of the run may say the same.
    """

    def on_notice(self, notice: AgentEvent, /) -> None:
        """Take note of a notice."""
        ...


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """Session state at one moment.

    Values are not copied: one that is changed in place changes here, too.

    Attributes:
        values: Every key with its scope prefix.
        event_id: The last event it holds; "" is before the first.
        timestamp: When it was taken, in seconds since 1970.
    """

    values: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    event_id: str = ""
    timestamp: float = 0.0

    @classmethod
    def of(cls, state: Mapping[str, Any], at: AgentEvent | None = None) -> Self:
        """A snapshot of `state` as it is after the event `at`; keys that are None are absent."""
        values = {key: value for key, value in state.items() if value is not None}
        return cls(values) if at is None else cls(values, at.id, at.timestamp)

    def after(self, event: AgentEvent) -> StateSnapshot:
        """The snapshot after one more event."""
        delta = {} if event.is_partial else event.state_delta
        return StateSnapshot.of({**self.values, **delta}, event)

    def delta_to(self, later: StateSnapshot) -> dict[str, Any]:
        """The writes that make `later` out of this one; None removes a key."""
        gone = {key: None for key in self.values if key not in later.values}
        new = {
            key: value
            for key, value in later.values.items()
            if key not in self.values or not _same(self.values[key], value)
        }
        return gone | new


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))
