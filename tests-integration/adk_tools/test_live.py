"""Live runs over the WebSocket that `adk web` and `adk api_server` open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from adk_commands import PATIENCE, USER, Adk, texts
from websockets.sync.client import connect

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

AGENT: Final = '''\
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel


def look(word: str) -> str:
    """Look something up."""
    return f"found {word}"


class Guard:
    """Notes the tools, and answers one message itself."""

    async def before_model(self, ctx, request):
        said = request.contents[-1].parts[0].text if request.contents else ""
        if said == "forbidden":
            return LlmResponse(content=types.Content(parts=[types.Part(text="Not that.")]))

    async def after_tool(self, ctx, tool_name, args, result):
        ctx.state[tool_name] = result


model = ScriptedModel(Call("look", {"word": "x"}), "It is there.", Call("task_completed"))
clerk = Agent("clerk").instruct("Find out.").model(model).tool(look).writes("said")
writer = Agent("writer").instruct("Write.").model(ScriptedModel("Dear customer."))
root_agent = (clerk >> writer).named("desk").middleware(Guard()).to_agent()
'''


@pytest.mark.parametrize("command", ["api_server", pytest.param("web", marks=pytest.mark.full)])
def test_a_page_can_talk_with_a_pipeline(tmp_path: Path, command: str) -> None:
    agents = tmp_path / "agents"
    (agents / "desk").mkdir(parents=True)
    (agents / "desk" / "__init__.py").write_text("", "utf-8")
    (agents / "desk" / "agent.py").write_text(AGENT, "utf-8")
    with Adk(tmp_path / "home").serve(command, agents) as server:
        session = server.session("desk")
        address = server.url.replace("http://", "ws://")
        where = f"app_name=desk&user_id={USER}&session_id={session.id}&modalities=TEXT"
        events: list[dict[str, Any]] = []
        with connect(f"{address}/run_live?{where}", open_timeout=PATIENCE) as line:

            def say(text: str) -> None:
                content = {"role": "user", "parts": [{"text": text}]}
                line.send(json.dumps({"content": content}))

            def listen(turns: int) -> None:
                while turns:
                    events.append(json.loads(line.recv(timeout=PATIENCE)))
                    turns -= bool(events[-1].get("turnComplete"))

            say("Where is x?")
            listen(1)
            say("forbidden")
            listen(1)
            say("Thanks.")
            listen(1)
        assert texts(events) == [
            *(("clerk", "It is there."), ("clerk", "Not that."), ("writer", "Dear customer.")),
        ]
        assert session.state["look"] == "found x"
        assert session.state["said"] == "Not that."
