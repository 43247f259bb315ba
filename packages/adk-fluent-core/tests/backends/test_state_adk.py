"""What reaches session state: only what was committed, and the same on every version of ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads annotations
from google.genai import types

from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.protocol import RunResult

pytestmark = pytest.mark.adk

APP = "adk_fluent_app"


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    if request.param == "memory":
        return InMemorySessionService()
    return SqliteSessionService(str(tmp_path / "sessions.db"))


async def stored(service: BaseSessionService, ran: RunResult) -> dict[str, Any]:
    session = await service.get_session(
        app_name=APP, user_id=ran.user_id, session_id=ran.session_id or ""
    )
    assert session is not None
    return {key: value for key, value in session.state.items() if value is not None}


def spoil(tool_context: ToolContext) -> str:
    """Writes, then fails."""
    tool_context.state["k"] = "dirty"
    raise ValueError("no")


def look(state: Any) -> dict[str, Any]:
    return {"saw": state.get("k")}


def put_dict(state: Any) -> dict[str, Any]:
    return {"d": {"b": 1}}


async def test_what_a_failed_attempt_set_without_an_event_is_not_seen_later(
    sessions: BaseSessionService,
) -> None:
    a = Agent("a", ScriptedModel(default=Call("spoil"))).tool(spoil)
    ran = await ((a // Agent("b", ScriptedModel("B"))) >> look).run("go", session_service=sessions)
    assert ran.text == "B"
    assert ran.state == {}
    assert await stored(sessions, ran) == {}


async def test_what_a_callback_set_in_a_failed_attempt_is_not_seen_later(
    sessions: BaseSessionService,
) -> None:
    def note(callback_context: Any, llm_request: Any) -> None:
        callback_context.state["k"] = "dirty"

    a = Agent("a", ScriptedModel(reply(status=503))).before_model(note)
    ran = await ((a // Agent("b", ScriptedModel("B"))) >> look).run("go", session_service=sessions)
    assert await stored(sessions, ran) == {}


async def test_a_step_of_an_attempt_sees_its_own_writes_and_those_before_it(
    sessions: BaseSessionService,
) -> None:
    def put(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state["k"] = 1
        return "ok"

    def get(tool_context: ToolContext) -> str:
        """Reads."""
        return f"{tool_context.state['before']}{tool_context.state['k']}"

    model = ScriptedModel(Call("put"), Call("get"), lambda asked: asked.turns[-1].text)
    a = Agent("a", model).tool(put).tool(get).writes("answer")
    ran = await (a // Agent("b", ScriptedModel("B"))).run(
        "go", session_service=sessions, state={"before": 0}
    )
    assert "01" in ran.text
    assert (await stored(sessions, ran))["k"] == 1


@pytest.mark.parametrize("where", ["tool", "callback", "function"])
async def test_a_dict_is_replaced_whoever_writes_it(
    sessions: BaseSessionService, where: str
) -> None:
    def put(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state["d"] = {"b": 1}
        return "ok"

    def after(callback_context: Any) -> None:
        callback_context.state["d"] = {"b": 1}

    step: Any = {
        "tool": Agent("a", ScriptedModel(Call("put"), "done")).tool(put),
        "callback": Agent("a", ScriptedModel("done")).after_agent(after),
        "function": Agent("a", ScriptedModel("done")) >> put_dict,
    }[where]
    ran = await step.run("go", session_service=sessions, state={"d": {"a": 1}})
    assert ran.state["d"] == {"b": 1}
    assert (await stored(sessions, ran))["d"] == {"b": 1}


async def test_the_output_is_the_final_text(sessions: BaseSessionService) -> None:
    def search() -> str:
        """Searches."""
        return "found"

    model = ScriptedModel(reply("Let me look. ", Call("search")), "Final.")
    ran = await Agent("a", model).tool(search).writes("k").run("go", session_service=sessions)
    assert (ran.text, ran.state["k"]) == ("Final.", "Final.")
    assert await stored(sessions, ran) == {"k": "Final."}


async def test_the_output_is_what_a_callback_answered_in_place_of_the_agent() -> None:
    def skip(callback_context: Any) -> types.Content:
        return types.Content(role="model", parts=[types.Part(text="skipped")])

    ran = await Agent("a", ScriptedModel("never")).before_agent(skip).writes("k").run("go")
    assert (ran.text, ran.state["k"]) == ("skipped", "skipped")


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")
@pytest.mark.parametrize("kind", ["confirmation", "long running"])
async def test_the_output_stays_while_a_call_waits(sessions: Any, kind: str) -> None:
    def refund(order: str) -> str | None:
        """Pay back."""
        return None

    tool: Any = refund if kind == "confirmation" else LongRunningFunctionTool(refund)
    model = ScriptedModel(Call("refund", {"order": "1"}))
    asks = Agent("a", model).tool(tool, require_confirmation=kind == "confirmation").writes("k")
    ran = await asks.run("go", session_service=sessions, state={"k": "first"})
    assert ran.pending
    assert [event.state_delta for event in ran if "k" in event.state_delta] == []
    assert (await stored(sessions, ran))["k"] == "first"


async def test_an_empty_answer_is_no_error_on_any_version() -> None:
    ran = await (Agent("a", ScriptedModel("")) >> Agent("b", ScriptedModel("B"))).run("go")
    assert (ran.text, ran.errors) == ("B", [])


async def test_the_output_stays_when_a_tool_ends_the_loop() -> None:
    a = Agent("a", ScriptedModel("1", Call("exit_loop"))).tool(exit_loop).writes("k")
    ran = await (a * 5).run("go")
    assert ran.state["k"] == "1"
