"""Session services for ADK's servers, which run this file in the folder of the agents."""

from __future__ import annotations

from typing import Any

from google.adk.cli.service_registry import get_service_registry
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent.state import SchemaSessionService, SessionScoped, StateSchema


class DeskState(StateSchema):
    intent: SessionScoped[str]
    count: SessionScoped[int]


def desk(uri: str, **kwargs: Any) -> SchemaSessionService:
    """What `desk://sessions.db` stands for."""
    return SchemaSessionService(SqliteSessionService(uri.removeprefix("desk://")), DeskState)


get_service_registry().register_session_service("desk", desk)
