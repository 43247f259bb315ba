"""Questions that a middleware asks in the place of a model's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService

from adk_fluent import Agent, map_over
from adk_fluent.extend import answers_in_place, ask_in_place, refuse_in_place
from adk_fluent.flow import APPROVAL
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = pytest.mark.adk


class Asks:
    """Asks before each call of one agent."""

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        if call.agent != "b":
            return await next(call)
        answers = answers_in_place(call, "test")
        if not answers:
            return ask_in_place(call, "test", "May it?", {"model": call.request.model})
        if not answers[-1].approved:
            return refuse_in_place("REFUSED", "it may not")
        assert answers[-1].payload == {"model": "scripted"}
        return await next(call)


@pytest.mark.parametrize("tools", [False, True], ids=["plain", "with a tool"])
async def test_the_run_pauses_and_makes_the_call_anew(tools: bool) -> None:
    def look() -> str:
        """Look."""
        return ""

    model = ScriptedModel(default="ok")
    b = Agent("b", model).writes("said")
    pipeline = Agent("a", model) >> (b.tool(look) if tools else b) >> Agent("c", model)
    kept: Any = {"session_service": InMemorySessionService(), "session_id": "s"}
    pipeline = pipeline.middleware(Asks())
    first = await pipeline.run("hi", **kept)
    (asked,) = first.pending
    assert (first.status, asked.kind, asked.message) == ("waiting", "input", "May it?")
    assert asked.response_schema == APPROVAL
    second = await pipeline.run(asked.answer("yes"), **kept)
    assert (second.status, second.state["said"], len(model.calls)) == ("completed", "ok", 3)
    assert not any("May it?" in str(each) for each in model.calls)


async def test_a_refusal_ends_the_run_as_rejected() -> None:
    pipeline = Agent("b", ScriptedModel()).writes("said") >> Agent("c", ScriptedModel())
    kept: Any = {"session_service": InMemorySessionService(), "session_id": "s"}
    pipeline = pipeline.middleware(Asks())
    first = await pipeline.run("hi", **kept)
    second = await pipeline.run(first.pending[0].answer(False), **kept)
    assert (second.status, second.reason, second.step) == ("rejected", "it may not", "b")
    assert "said" not in second.state


async def test_a_refusal_in_a_map_ends_the_run_as_rejected_too() -> None:
    """Its event says which step and run it belongs to, as every other one."""
    each = map_over("items", Agent("b", ScriptedModel(default="ok")), output_key="out")
    kept: Any = {"session_service": InMemorySessionService(), "session_id": "s"}
    pipeline = each.middleware(Asks())
    first = await pipeline.run("hi", state={"items": ["x"]}, **kept)
    second = await pipeline.run(first.pending[0].answer(False), **kept)
    assert (second.status, second.step) == ("rejected", "b")
    (refused,) = [each for each in second if each.error is not None]
    assert (refused.run_id, refused.path) == (second[-1].run_id, "m0")
