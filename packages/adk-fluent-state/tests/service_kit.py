"""A schema, and the session services that tests hold to it; each opens the same sessions anew.

ADK is imported only where it is used: other tests here need none.
"""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from adk_fluent.state import AppScoped, SessionScoped, StateSchema, Temp, UserScoped

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.genai import types

KINDS = ("memory", "sqlite", "database")
IDS: dict[str, Any] = {"app_name": "shop", "user_id": "ann", "session_id": "1"}


def ids(session_id: str) -> dict[str, Any]:
    """Another session of the same user."""
    return {**IDS, "session_id": session_id}


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Address(BaseModel):
    street: str
    since: dt.date | None = None


class Desk(StateSchema):
    intent: SessionScoped[str]
    count: SessionScoped[int]
    when: SessionScoped[dt.datetime]
    level: SessionScoped[Level]
    price: SessionScoped[Decimal]
    id: SessionScoped[uuid.UUID]
    raw: SessionScoped[bytes]
    home: SessionScoped[Address]
    homes: SessionScoped[dict[str, list[Address]]]
    tier: UserScoped[str]
    seen: UserScoped[dt.date]
    rate: AppScoped[Decimal]
    scratch: Temp[int]


def values() -> dict[str, Any]:
    """A value for each stored field."""
    home = Address(street="Main", since=dt.date(2020, 1, 1))
    return {
        "intent": "refund",
        "count": 3,
        "when": dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC),
        "level": Level.HIGH,
        "price": Decimal("1.10"),
        "id": uuid.UUID(int=7),
        "raw": b"\x00\xff",
        "home": home,
        "homes": {"a": [home], "b": []},
        "tier": "gold",
        "seen": dt.date(2024, 1, 2),
        "rate": Decimal("0.07"),
    }


def by_key(values: dict[str, Any]) -> dict[str, Any]:
    """Values as somebody writes them who knows nothing of the schema: as they are, by full keys."""
    return {Desk.ref(name).key: value for name, value in values.items()}


def said(text: str = "hi") -> types.Content:
    from google.genai import types

    return types.Content(role="user", parts=[types.Part(text=text)])


@asynccontextmanager
async def opening(kind: str, path: Path) -> AsyncGenerator[Callable[[], BaseSessionService]]:
    """Opens the sessions of a folder, as another process would; in memory there is but one."""
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.adk.sessions.in_memory_session_service import InMemorySessionService
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    memory = InMemorySessionService()
    engines: list[Any] = []

    def open_() -> BaseSessionService:
        if kind == "memory":
            return memory
        if kind == "sqlite":
            return SqliteSessionService(str(path / "sessions.db"))
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{path / 'all.db'}")
        engines.append(service.db_engine)
        return service

    yield open_
    for engine in engines:
        await engine.dispose()
