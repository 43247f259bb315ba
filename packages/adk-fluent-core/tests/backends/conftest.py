"""What tests on ADK share: modules, importable by their names, and session services."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.adk.sessions.base_session_service import BaseSessionService

for _name in ("adk_programs", "adk_places", "adk_middlewares"):
    if _name not in sys.modules:
        _spec = spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
        assert _spec is not None
        assert _spec.loader is not None
        _module = sys.modules[_name] = module_from_spec(_spec)
        _spec.loader.exec_module(_module)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where `sqlite` and `database` keep their sessions."""
    return tmp_path / "sessions.db"


@pytest.fixture
def memory() -> BaseSessionService:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    return InMemorySessionService()


@pytest.fixture
def sqlite(path: Path) -> BaseSessionService:
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return SqliteSessionService(str(path))


@pytest.fixture
async def database(path: Path) -> AsyncIterator[BaseSessionService]:
    from google.adk.sessions.database_session_service import DatabaseSessionService

    service = DatabaseSessionService(f"sqlite+aiosqlite:///{path}")
    yield service
    await service.close()


@pytest.fixture(params=["sqlite", "database"])
def store(request: pytest.FixtureRequest) -> BaseSessionService:
    """Each of ADK's session services that keeps its sessions, in the file `path`."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["memory", "sqlite", "database"])
def service(request: pytest.FixtureRequest) -> BaseSessionService:
    """Each of ADK's session services that needs no cloud."""
    return request.getfixturevalue(request.param)
