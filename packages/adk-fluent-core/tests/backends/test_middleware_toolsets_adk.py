"""All hooks around tools of toolsets with a prefix, and around models that fall back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import SSE, OwnError, made_of, noting, ping, says
from google.adk import models
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.genai.errors import APIError

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentEvent

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:.*\[EXPERIMENTAL\].*:UserWarning"),  # ADK says so
]


# --- tools of toolsets ---------------------------------------------------------------------------


def breaks(word: str) -> str:
    """Fails."""
    raise OwnError(word)


class Box(BaseToolset):
    """Tools that are made anew whenever an agent asks for them."""

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [FunctionTool(ping), FunctionTool(breaks)]

    async def close(self) -> None: ...


def boxed(tool: str = "box_ping") -> Builder:
    model = ScriptedModel(Call(tool, {"word": "hi"}), "done")
    return Agent("a", model).tool(Box(tool_name_prefix="box"))


def results_of(result: Any) -> list[Any]:
    return [each.result for event in result for each in event.tool_responses]


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_every_hook_knows_the_tool_by_its_whole_name(mode: ExecutionConfig) -> None:
    log: list[str] = []
    result = await boxed().middleware(noting(log, state=True)).run("hi", config=mode)
    tools = [each for each in log if "tool" in each]
    assert tools == [
        *("before_tool box_ping", "wrap_tool_call box_ping", "after_tool box_ping"),
    ]
    assert log.count("on_event") >= 3  # the call, its result, the answer
    assert {"before_tool", "after_tool", "before_model", "after_model"} <= result.state.keys()
    assert results_of(result) == [{"result": "hi!"}]


async def test_arguments_and_results_are_changed() -> None:
    async def before_tool(ctx: Any, name: str, args: dict[str, Any]) -> None:
        assert (ctx.agent_name, name) == ("a", "box_ping")
        args["word"] = "ho"

    async def after_tool(ctx: Any, name: str, args: dict[str, Any], result: Any) -> Any:
        assert (name, args) == ("box_ping", {"word": "ho"})
        return {"result": f"<{result}>"}

    stack = made_of(before_tool=before_tool, after_tool=after_tool)
    assert results_of(await boxed().middleware(stack).run("hi")) == [{"result": "<ho!>"}]


async def test_a_tool_is_answered_for() -> None:
    async def before_tool(ctx: Any, name: str, args: dict[str, Any]) -> Any:
        return {"instead": name}

    result = await boxed("box_breaks").middleware(made_of(before_tool=before_tool)).run("hi")
    assert results_of(result) == [{"instead": "box_breaks"}]


@pytest.mark.parametrize("mends", [True, False])
async def test_an_error_of_a_tool_is_told_of_and_made_good(mends: bool) -> None:
    told: list[Any] = []

    async def on_tool_error(ctx: Any, name: str, args: Any, error: Exception) -> Any:
        told.append((name, args, type(error)))
        return {"sorry": True} if mends else None

    running = boxed("box_breaks").middleware(made_of(on_tool_error=on_tool_error)).run("hi")
    if mends:
        assert results_of(await running) == [{"sorry": True}]
    else:
        with pytest.raises(OwnError, match="hi"):
            await running
    assert told == [("box_breaks", {"word": "hi"}, OwnError)]


async def test_events_of_such_a_tool_are_seen_and_changed() -> None:
    called: list[str] = []

    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        called.extend(each.tool_name for each in (*event.tool_calls, *event.tool_responses))
        return replace(event, content=f"{event.content}!") if event.content else None

    assert (await boxed().middleware(made_of(on_event=on_event)).run("hi")).text == "done!"
    assert called == ["box_ping", "box_ping"]


# --- models that fall back -----------------------------------------------------------------------

FALLS_BACK: Any = getattr(models, "FallbackModel", None)
since_fallback = pytest.mark.skipif(FALLS_BACK is None, reason="ADK 1.x has no FallbackModel")


def overloaded() -> APIError:
    return APIError(503, {"error": {"code": 503, "message": "overloaded"}})


def falling_back(*scripted: ScriptedModel) -> Builder:
    return Agent("a", FALLS_BACK(models=list(scripted)))


@since_fallback
@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_hooks_stand_around_all_that_it_tries(mode: ExecutionConfig) -> None:
    log: list[str] = []
    first, second = ScriptedModel(overloaded()), ScriptedModel(reply(chunks=("ba", "ckup")))
    pipeline = falling_back(first, second).middleware(noting(log, state=True))
    result = await pipeline.run("hi", config=mode)
    assert result.text == "backup"
    assert (len(first.calls), len(second.calls)) == (1, 1)
    calls = [each for each in log if "model" in each]
    fragments = 2 if mode is SSE else 0
    assert calls == [
        *("before_model", "wrap_model_call a", "wrap_model_request a"),
        *["after_model"] * (1 + fragments),
    ]
    assert {"before_model", "after_model"} <= result.state.keys()
    assert log.count("on_event") >= 1 + fragments


@since_fallback
async def test_what_is_changed_before_it_the_backup_is_told_too() -> None:
    async def before_model(ctx: Any, request: Any) -> None:
        request.config.system_instruction = "changed"

    async def after_model(ctx: Any, response: Any) -> Any:
        return says("after all")

    first, second = ScriptedModel(overloaded()), ScriptedModel("backup")
    stack = made_of(before_model=before_model, after_model=after_model)
    result = await falling_back(first, second).middleware(stack).run("hi")
    assert [each.calls[0].system for each in (first, second)] == ["changed", "changed"]
    assert result.text == "after all"


@since_fallback
async def test_it_is_answered_for_and_nobody_is_asked() -> None:
    async def before_model(ctx: Any, request: Any) -> Any:
        return says("instead")

    first, second = ScriptedModel(default="1"), ScriptedModel(default="2")
    pipeline = falling_back(first, second).middleware(made_of(before_model=before_model))
    assert (await pipeline.run("hi")).text == "instead"
    assert (first.calls, second.calls) == ((), ())


@since_fallback
@pytest.mark.parametrize("mends", [True, False])
async def test_an_error_is_told_of_when_all_have_failed(mends: bool) -> None:
    told: list[Any] = []

    async def on_model_error(ctx: Any, request: Any, error: Exception) -> Any:
        told.append(type(error))
        return says("sorry") if mends else None

    first, second = ScriptedModel(overloaded()), ScriptedModel(OwnError("down"))
    running = falling_back(first, second).middleware(made_of(on_model_error=on_model_error))
    if mends:
        assert (await running.run("hi")).text == "sorry"
    else:
        with pytest.raises(OwnError, match="down"):
            await running.run("hi")
    assert told == [OwnError]


@since_fallback
async def test_what_the_backup_says_is_seen_and_changed() -> None:
    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        return replace(event, content=f"{event.content}!") if event.content else None

    pipeline = falling_back(ScriptedModel(overloaded()), ScriptedModel("backup"))
    assert (await pipeline.middleware(made_of(on_event=on_event)).run("hi")).text == "backup!"
