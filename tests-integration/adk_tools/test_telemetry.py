"""What `adk web` shows of the spans of a run: which pipeline, step and agent they belong to."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pytest
from adk_commands import Adk

if TYPE_CHECKING:
    from pathlib import Path

    from adk_commands import Server

pytestmark = pytest.mark.adk

AGENT: Final = '''\
from adk_fluent import Agent
from adk_fluent.middleware import otel_enrichment
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, ScriptedModel, reply, rule


def search(word: str) -> str:
    """Look something up."""
    return f"found {word}"


usage = Usage(prompt=40, output=2)
model = ScriptedModel(
    rules=[
        rule("found", agent="clerk", reply=reply("It is there.", usage=usage)),
        rule(agent="clerk", reply=reply(Call("search", {"word": "x"}), usage=usage)),
        rule(agent="writer", reply=reply("Dear customer.", usage=usage)),
    ]
)
desk = (Agent("clerk").tool(search) >> Agent("writer")).named("desk").model(model)
root_agent = desk.middleware(otel_enrichment(pipeline_name="shop")).to_agent()
'''

#: ADK 2.x has two forms of its spans, 1.x one.
SCHEMAS: Final = ["", "1"] if find_spec("google.adk.telemetry._schema_version") else [""]


def path_of_traces(server: Server) -> str:
    """Where this version tells what it has recorded of an event."""
    paths = server.get("/openapi.json")["paths"]
    return next(path for path in paths if path.endswith("/debug/trace/{event_id}"))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_traces_of_events_say_where_they_belong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str
) -> None:
    monkeypatch.setenv("ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN", schema)
    agents = tmp_path / "agents"
    (agents / "desk").mkdir(parents=True)
    (agents / "desk" / "__init__.py").write_text("", "utf-8")
    (agents / "desk" / "agent.py").write_text(AGENT, "utf-8")
    with Adk(tmp_path / "home").serve("web", agents) as server:
        path = path_of_traces(server)
        events = server.session("desk").send("Where is x?")
        traces = [
            server.get(path.format(app_name="desk", event_id=event["id"]))
            for event in events
            if event.get("content")
        ]
    found: list[dict[str, Any]] = [
        {name[11:]: said for name, said in trace.items() if name.startswith("adk_fluent.")}
        for trace in traces
    ]
    call, tool, answer, letter = found
    for each in found:
        assert each["pipeline"] == "shop"
        assert each["node_type"] == "agent"
        assert len(each["structure_hash"]) == len(each["content_hash"]) == 64
    assert len({each["run_id"] for each in found}) == 1
    assert [each["agent_name"] for each in found] == ["clerk", "clerk", "clerk", "writer"]
    assert [each["step_path"] for each in found] == ["s0", "s0", "s0", "s1"]
    for each in (call, answer, letter):
        assert (each["actual_input_tokens"], each["actual_output_tokens"]) == (40, 2)
    assert tool["tool_agent"] == "clerk"
