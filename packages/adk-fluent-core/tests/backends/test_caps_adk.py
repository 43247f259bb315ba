from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.tool_context import ToolContext

from adk_fluent import Agent
from adk_fluent.backends.adk import _caps
from adk_fluent.backends.adk._caps import CAPS, merges_dicts
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

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


def one_file(folder: Path) -> BaseSessionService:
    return SqliteSessionService(str(folder / "a.db"))


def one_for_each_agent(folder: Path) -> BaseSessionService:
    """What ``adk web`` and the other tools of ADK keep sessions in."""
    from google.adk.cli.utils.local_storage import PerAgentDatabaseSessionService

    (folder / "app").mkdir()
    return PerAgentDatabaseSessionService(agents_root=folder)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of what ADK's tools import
@pytest.mark.parametrize("make", [one_file, one_for_each_agent])
async def test_whether_a_service_merges_dicts_is_what_it_does(
    tmp_path: Path, make: Callable[[Path], BaseSessionService]
) -> None:
    service = make(tmp_path)
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

        assert CallbackContext is ToolContext


async def test_a_function_gets_the_context_as_the_capability_says() -> None:
    def tell(it: ToolContext) -> str:
        """Tell whose it is."""
        return it.agent_name

    asked = ScriptedModel(Call("tell"), "done")
    run = Agent("a", asked).tool(tell).run("hi")
    if CAPS.context_by_type:
        assert [each.result for e in await run for each in e.tool_responses] == [{"result": "a"}]
    else:
        with pytest.raises(ValueError, match="Failed to parse the parameter it"):
            await run


MODULES = sorted(Path(_caps.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_what_versions_of_adk_can_do_is_found_out_in_one_place(module: Path) -> None:
    looks = re.compile(r"find_spec|except ImportError|hasattr\([A-Z]|in type\(ctx\)\.model_fields")
    assert (module.stem == "_caps") == bool(looks.search(module.read_text("utf-8")))
