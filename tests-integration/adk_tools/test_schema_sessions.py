"""ADK's servers hold sessions to a state schema: a file beside the agents registers the service."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from adk_commands import texts

if TYPE_CHECKING:
    from pathlib import Path

    from adk_commands import Adk

pytestmark = pytest.mark.adk

SERVICES = """
    from google.adk.cli.service_registry import get_service_registry
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    from adk_fluent.state import SchemaSessionService, SessionScoped, StateSchema


    class Desk(StateSchema):
        intent: SessionScoped[str]
        count: SessionScoped[int]


    def desk(uri: str, **kwargs) -> SchemaSessionService:
        return SchemaSessionService(SqliteSessionService(uri.removeprefix("desk://")), Desk)


    get_service_registry().register_session_service("desk", desk)
"""
AGENT = """
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.tools.tool_context import ToolContext

    from adk_fluent.testing import Call, ScriptedModel, reply, rule


    def write(key: str, tool_context: ToolContext) -> str:
        "Write something."
        tool_context.state[key] = "so"
        return "written"


    model = ScriptedModel(
        rules=[
            rule("slip", reply=reply(Call("write", {"key": "inten"})), times=1),
            rule("well", reply=reply(Call("write", {"key": "intent"})), times=1),
        ],
        default="done",
    )
    root_agent = LlmAgent(name="clerk", model=model, tools=[write])
"""


@pytest.mark.parametrize("command", ["api_server", "web"])
def test_every_way_over_http(adk: Adk, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "agents"
    (folder / "clerk").mkdir(parents=True)
    (folder / "services.py").write_text(dedent(SERVICES), "utf-8")
    (folder / "clerk" / "__init__.py").write_text("from . import agent\n", "utf-8")
    (folder / "clerk" / "agent.py").write_text(dedent(AGENT), "utf-8")
    uri = f"desk://{tmp_path / 'sessions.db'}"
    with adk.serve(command, folder, "--session_service_uri", uri) as server:
        started = server.request("POST", "/apps/clerk/users/u/sessions", {"state": {"inten": 1}})
        assert started.status_code in (400, 500)  # newer ones tell the client what is wrong
        told = started.text + server.log.read_text("utf-8")
        assert "writes 'inten', which Desk does not declare" in told
        clerk = server.session("clerk", count=1)
        assert texts(clerk.send("well")) == [("clerk", "done")]
        assert clerk.state == {"count": 1, "intent": "so"}
        assert clerk.post("slip").status_code == 500
        changed = server.request("PATCH", clerk.path, {"stateDelta": {"count": "x"}})
        assert changed.status_code == 500
        assert clerk.state == {"count": 1, "intent": "so"}
        changed = server.request("PATCH", clerk.path, {"stateDelta": {"count": 2}})
        assert changed.status_code == 200
        assert clerk.state == {"count": 2, "intent": "so"}
