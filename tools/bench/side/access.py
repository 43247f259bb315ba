"""What both sides share that read and write the state of a context: context, values, loops."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.session import Session
from google.adk.tools.tool_context import ToolContext
from pydantic import BaseModel

from bench.side.scripted import USER

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Level(Enum):
    """How urgent it is."""

    LOW = "low"
    HIGH = "high"


class Address(BaseModel):
    """Where it is."""

    street: str
    number: int


#: Field to a value of its type.
VALUES: Final[dict[str, Any]] = {
    "intent": "refund",
    "due": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    "level": Level.HIGH,
    "home": Address(street="Main St", number=3),
    "tags": [f"tag{i}" for i in range(10)],
}
#: Field to what is stored of it.
STORED: Final[dict[str, Any]] = {
    **VALUES,
    "due": VALUES["due"].isoformat(),
    "level": "high",
    "home": {"street": "Main St", "number": 3},
}


def looped(statement: str, size: int, **names: Any) -> Callable[[], int]:
    """A statement, so many times, with nothing around it but the loop, as `timeit` has it."""
    exec(  # noqa: S102  # statements of this folder
        f"def once():\n for _ in range({size}):\n  {statement}\n return {size}", names
    )
    return names["once"]


def context() -> Any:
    """A context of ADK's; all that is in `STORED` is in its state."""
    session = Session(id="1", app_name="bench", user_id=USER, state=dict(STORED))
    return ToolContext(InvocationContext.model_construct(session=session))


def keys(count: int) -> dict[str, Any]:
    """So many keys with texts and numbers, in turn."""
    return {f"k{i}": i if i % 2 else f"text {i}" for i in range(count)}


def appending(service: Any, count: int, size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Events that write so many keys, in a new session; gives how many keys it has in the end."""
    ids = {"app_name": "bench", "user_id": USER}

    async def once() -> int:
        session = await service.create_session(**ids)
        for at in range(size):
            actions = EventActions(state_delta=keys(count))
            event = Event(author="a", invocation_id=f"i{at}", actions=actions)
            await service.append_event(session, event)
        stored = await service.get_session(**ids, session_id=session.id)
        await service.delete_session(**ids, session_id=session.id)
        return len(stored.state)

    return once
