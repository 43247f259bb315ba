from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent.backends.adk._caps import CAPS, merges_dicts

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = pytest.mark.adk


async def reloaded(service: BaseSessionService, *values: object) -> Any:
    session = await service.create_session(app_name="app", user_id="u", session_id="s")
    for value in values:
        actions = EventActions(state_delta={"d": value})
        await service.append_event(session, Event(author="x", invocation_id="i", actions=actions))
    again = await service.get_session(app_name="app", user_id="u", session_id="s")
    assert again is not None
    return again.state["d"]


async def test_whether_a_service_merges_dicts_is_what_it_does(tmp_path: Path) -> None:
    service = SqliteSessionService(str(tmp_path / "a.db"))
    got = await reloaded(service, {"a": 1, "b": 2}, {"b": 3})
    assert got == ({"a": 1, "b": 3} if merges_dicts(service) else {"b": 3})


async def test_writing_none_first_replaces_a_dict(tmp_path: Path) -> None:
    service = SqliteSessionService(str(tmp_path / "a.db"))
    assert await reloaded(service, {"a": 1, "b": 2}, None, {"b": 3}) == {"b": 3}


async def test_other_services_replace() -> None:
    service = InMemorySessionService()
    assert await reloaded(service, {"a": 1, "b": 2}, {"b": 3}) == {"b": 3}
    assert not merges_dicts(service)


def test_capabilities_are_those_of_the_objects() -> None:
    if CAPS.event_output:
        assert Event(author="x", output=1).output == 1
    else:
        assert not hasattr(Event(author="x"), "output")
    assert CAPS.workflow == CAPS.event_output
    if CAPS.context:
        from google.adk.agents.callback_context import CallbackContext
        from google.adk.tools.tool_context import ToolContext

        assert CallbackContext is ToolContext
