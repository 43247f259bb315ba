"""Tasks of raw ADK that use state: as it is stored, and turned into what a program has by hand."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.in_memory_session_service import InMemorySessionService

from bench.side.access import STORED, VALUES, Address, Level, appending, context, looped

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

#: Field to how its value is made of what is stored, and the other way round.
DECODED: Final = {
    "intent": "state['intent']",
    "due": "datetime.fromisoformat(state['due'])",
    "level": "Level(state['level'])",
    "home": "Address.model_validate(state['home'])",
    "tags": "list(state['tags'])",
}
ENCODED: Final = {
    "intent": "value",
    "due": "value.isoformat()",
    "level": "value.value",
    "home": "value.model_dump(mode='json')",
    "tags": "list(value)",
}


def read(name: str, size: int) -> Callable[[], int]:
    """Read what is stored."""
    return looped(f"state[{name!r}]", size, state=context().state)


def decode(name: str, size: int) -> Callable[[], int]:
    """Read a value."""
    names: dict[str, Any] = {"datetime": datetime, "Level": Level, "Address": Address}
    return looped(DECODED[name], size, state=context().state, **names)


def bind_read(size: int) -> Callable[[], int]:
    """Read a text from the state of a context."""
    return looped("ctx.state['intent']", size, ctx=context())


def write(name: str, size: int) -> Callable[[], int]:
    """Write what is to be stored."""
    return looped(f"state[{name!r}] = stored", size, state=context().state, stored=STORED[name])


def encode(name: str, size: int) -> Callable[[], int]:
    """Write a value."""
    statement = f"state[{name!r}] = {ENCODED[name]}"
    return looped(statement, size, state=context().state, value=VALUES[name])


def append(count: int, size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """Events that write so many keys to ADK's service."""
    return appending(InMemorySessionService(), count, size)


TASKS: dict[str, Task] = {
    "state-bind-read": bind_read,
    **{f"state-read-{name}": partial(read, name) for name in VALUES},
    **{f"state-decode-{name}": partial(decode, name) for name in VALUES},
    **{f"state-write-{name}": partial(write, name) for name in VALUES},
    **{f"state-encode-{name}": partial(encode, name) for name in VALUES},
    **{f"append-{count}": partial(append, count) for count in (1, 20)},
}
