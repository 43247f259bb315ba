"""Tasks of ours that use state by a schema."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  # the schema resolves it
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.state import SchemaSessionService, SessionScoped, StateSchema
from bench.side.access import VALUES, Address, Level, appending, context, keys, looped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

#: How many keys the schema has to which events are held.
KEYS: Final = 20


class Desk(StateSchema):
    """A field of each kind."""

    intent: SessionScoped[str]
    due: SessionScoped[datetime]
    level: SessionScoped[Level]
    home: SessionScoped[Address]
    tags: SessionScoped[list[str]]


def bind_read(size: int) -> Callable[[], int]:
    """Bind a context, and read a text."""
    return looped("Desk.bind(ctx).intent", size, Desk=Desk, ctx=context())


def read(name: str, size: int) -> Callable[[], int]:
    """Read a field of bound state."""
    desk = Desk.bind(context())
    if getattr(desk, name) != VALUES[name]:
        raise RuntimeError(f"{name} is {getattr(desk, name)!r}")
    return looped(f"desk.{name}", size, desk=desk)


def write(name: str, size: int) -> Callable[[], int]:
    """Write a field of bound state."""
    return looped(f"desk.{name} = value", size, desk=Desk.bind(context()), value=VALUES[name])


def append(count: int, size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Events that write so many keys to a service that holds them to a schema."""
    hints: dict[str, Any] = {key: type(value) for key, value in keys(KEYS).items()}
    made: Any = type(StateSchema)
    schema = made("Keys", (StateSchema,), {"__annotations__": hints})
    return appending(SchemaSessionService(InMemorySessionService(), schema), count, size)


TASKS: dict[str, Task] = {
    "state-bind-read": bind_read,
    **{f"state-read-{name}": partial(read, name) for name in VALUES},
    **{f"state-write-{name}": partial(write, name) for name in VALUES},
    **{f"append-{count}": partial(append, count) for count in (1, KEYS)},
}
