"""ADK's servers hold sessions to a state schema: a file beside the agents registers the service."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from adk_commands import texts

if TYPE_CHECKING:
    from adk_commands import Adk

pytestmark = pytest.mark.adk

AGENTS = Path(__file__).parents[2] / "packages" / "adk-fluent-state" / "examples" / "agents"


@pytest.mark.parametrize("command", ["api_server", pytest.param("web", marks=pytest.mark.full)])
def test_every_way_over_http(adk: Adk, tmp_path: Path, command: str) -> None:
    folder = tmp_path / "agents"
    shutil.copytree(AGENTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    uri = f"desk://{(tmp_path / 'sessions.db').as_posix()}"
    with adk.serve(command, folder, "--session_service_uri", uri) as server:
        started = server.request("POST", "/apps/clerk/users/u/sessions", {"state": {"inten": 1}})
        assert started.status_code in (400, 500)  # newer ones tell the client what is wrong
        told = started.text + server.log.read_text("utf-8")
        assert "writes 'inten', which DeskState does not declare" in told
        clerk = server.session("clerk", count=1)
        assert texts(clerk.send("well")) == [("clerk", "Noted.")]
        assert clerk.state == {"count": 1, "intent": "refund"}
        assert clerk.post("slip").status_code == 500
        changed = server.request("PATCH", clerk.path, {"stateDelta": {"count": "x"}})
        assert changed.status_code == 500
        assert clerk.state == {"count": 1, "intent": "refund"}
        changed = server.request("PATCH", clerk.path, {"stateDelta": {"count": 2}})
        assert changed.status_code == 200
        assert clerk.state == {"count": 2, "intent": "refund"}
