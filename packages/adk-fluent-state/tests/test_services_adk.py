"""Sessions of every kind give back what was written, on every version of ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.sessions.state import State
from state_values import CASES, alike

from adk_fluent.state import AppScoped, SessionScoped, StateSchema, UserScoped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = pytest.mark.adk

KINDS = ("memory", "sqlite", "database")
SCOPES: tuple[Any, ...] = (SessionScoped, UserScoped, AppScoped)
VALUES = {f"value_{at}": value for at, (_, value) in enumerate(CASES)}


def everything() -> Any:
    """A schema with a field for each case, in all scopes."""
    annotations = {
        f"value_{at}": SCOPES[at % len(SCOPES)][kind] for at, (kind, _) in enumerate(CASES)
    }
    body = {"__annotations__": annotations, "__module__": __name__}
    made: Any = type(StateSchema)
    return made("Everything", (StateSchema,), body)


@pytest.fixture(params=KINDS)
async def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[[], BaseSessionService]]:
    """Opens the same sessions anew, as another process would; in memory there is but one."""
    memory = InMemorySessionService()
    engines: list[Any] = []

    def open_() -> BaseSessionService:
        if request.param == "memory":
            return memory
        if request.param == "sqlite":
            return SqliteSessionService(str(tmp_path / "sessions.db"))
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'all.db'}")
        engines.append(service.db_engine)
        return service

    yield open_
    for engine in engines:
        await engine.dispose()


async def test_all_that_is_written_comes_back(opened: Callable[[], BaseSessionService]) -> None:
    schema = everything()
    service = opened()
    session = await service.create_session(app_name="shop", user_id="ann", session_id="1")
    delta: dict[str, Any] = {}
    bound = schema.bind(State(session.state, delta))
    for name, value in VALUES.items():
        setattr(bound, name, value)
    actions = EventActions(state_delta=delta)
    await service.append_event(session, Event(author="desk", actions=actions))
    await compare(schema, opened())


async def test_what_a_session_starts_with_comes_back(
    opened: Callable[[], BaseSessionService],
) -> None:
    schema = everything()
    initial = schema.initial(**VALUES)
    await opened().create_session(app_name="shop", user_id="ann", session_id="1", state=initial)
    await compare(schema, opened())


async def compare(schema: Any, service: BaseSessionService) -> None:
    session = await service.get_session(app_name="shop", user_id="ann", session_id="1")
    assert session is not None
    bound = schema.bind(session)
    wrong = {
        name: (value, getattr(bound, name))
        for name, value in VALUES.items()
        if not alike(getattr(bound, name), value)
    }
    assert wrong == {}
