"""Gates and confirmations in a pipeline that stands below an agent of ours, or is a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from adk_places import AFTER, BEFORE, PAID, Boss, Place, knows, with_a_confirmation, with_a_gate
from google.adk import runners
from google.adk.agents.llm_agent import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import LongRunningFunctionTool
from google.genai.types import UserContent

from adk_fluent import Agent
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._running import _routing
from adk_fluent.errors import UsageError
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.builders import Builder

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

EVERYWHERE = pytest.mark.parametrize(
    ("above", "first", "last"),
    [
        ("bare", [], []),
        ("of_ours", [], []),
        ("in_a_pipeline", [("first", "1")], [("last", "9")]),
        ("nobody", [("first", "1")], [("last", "9")]),
    ],
)


@EVERYWHERE
async def test_a_gate_goes_on_where_it_stands(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_gate, above)
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    ((_, held),) = await place.say(UserContent("yes, go on"))
    assert held.endswith("Answer it first.\n- good: Good?")
    assert await place.answer(approved=True) == [*AFTER, *last]
    assert place.asked == 0
    ((_, late),) = await place.answer(approved=True)
    assert "is not open any more" in late


@EVERYWHERE
async def test_what_is_no_answer_passes_no_gate(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_gate, above)
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    ((_, held),) = await place.answer(approved="perhaps")
    assert "is no answer to gate 'good'" in held
    assert await place.answer(approved=True) == [*AFTER, *last]


async def test_what_is_no_answer_to_a_gate_in_a_step_is_an_error() -> None:
    pipeline = Agent("first").mock("1") >> with_a_gate().to_agent() >> Agent("last").mock("9")
    sessions = InMemorySessionService()
    asked = await pipeline.run("hi", session_id="s", session_service=sessions)
    with pytest.raises(UsageError, match="is no answer to gate 'good'"):
        await pipeline.resume(
            asked.pending[0].answer("perhaps"), session_id="s", session_service=sessions
        )
    done = await pipeline.resume(
        asked.pending[0].answer(True), session_id="s", session_service=sessions
    )
    assert done.text == "9"


@EVERYWHERE
async def test_a_refusal_ends_all_of_it(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_gate, above)
    await place.say(UserContent("hi"))
    said = await place.answer(approved=False, note="too long")
    assert said == [("pipe", "good was refused: too long. Nothing after it was run.")]


@EVERYWHERE
async def test_what_follows_a_confirmed_tool_is_run(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_confirmation, above)
    assert await place.say(UserContent("hi")) == [*first, *BEFORE]
    ((_, held),) = await place.answer(confirmed="perhaps")
    assert "'perhaps'" in held
    # ADK itself would refuse the note, here and in every agent after it
    said = await place.answer(confirmed=True, note="fine")
    assert said == [("clerk", "done"), *AFTER, *last]
    assert place.asked == 0


@EVERYWHERE
async def test_what_follows_a_refused_tool_is_run(
    path: Path, above: str, first: list[Any], last: list[Any]
) -> None:
    place = Place(path, with_a_confirmation, above)
    await place.say(UserContent("hi"))
    assert await place.answer(approved=False) == [("clerk", "not done"), *AFTER, *last]


@pytest.mark.skipif(
    CAPS.workflow and not hasattr(runners, "_session_for_routing"),
    reason="ADK 2.0 to 2.11 hand no answer past a pipeline",
)
async def test_a_tool_that_ran_past_its_pipeline_does_not_run_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(path, with_a_confirmation, "bare")
    await place.say(UserContent("hi"))
    PAID.clear()
    with monkeypatch.context() as patch:  # a Runner that is not known
        patch.setattr(_routing, "_RUNNERS", ())
        assert await place.answer(confirmed=True) == [("clerk", "done")]
    assert PAID == ["A1"]
    other = Place(path, with_a_confirmation, "bare_with_our_plugin")
    other.question = place.question
    assert await other.answer(confirmed=True) == [("clerk", "done"), *AFTER]
    assert PAID == ["A1"]


def delivered() -> None:
    """Wait for a delivery."""


async def test_a_bare_root_takes_the_result_of_a_long_running_tool(path: Path) -> None:
    def waits() -> Builder:
        rules = [rule(knows("delivered"), reply="it is here")]
        clerk = Agent("clerk", ScriptedModel(rules=rules, default=Call("delivered", {})))
        clerk.tool(LongRunningFunctionTool(delivered))
        return (clerk >> Agent("publish").mock("published")).named("pipe")

    place = Place(path, waits, "bare")
    await place.say(UserContent("hi"))
    assert place.question.name == "delivered"
    assert await place.answer(status="delivered") == [("clerk", "it is here"), *AFTER]


def test_others_find_the_agents_below_a_flow() -> None:
    root = with_a_gate().to_agent()
    clerk = root.find_agent("draft")
    assert clerk is root.sub_agents[0]
    assert LlmAgent(name="boss", sub_agents=[root]).find_agent("draft") is clerk
    assert (root.find_agent("pipe"), root.find_agent("nobody")) == (root, None)


async def test_a_bare_root_has_the_plugin_from_its_first_run_on(path: Path) -> None:
    app = Boss().bare(with_a_confirmation())
    runner = Runner(app=app, session_service=SqliteSessionService(str(path)))
    place = Place(path, with_a_confirmation, "bare")
    assert await place.say(UserContent("hi"), runner) == BEFORE
    assert await place.answer(runner, confirmed=True) == [("clerk", "done"), *AFTER]
