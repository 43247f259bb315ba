"""A tool that raises `ModelRetry` tells its model why, in every arrangement, and not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from adk_fluent import Agent, ModelRetry, Pipeline, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import RunError, UnknownNameError, UsageError
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import RunResult

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

WHY = "no order 1: ids begin with A"
TOLD = {"error": WHY, "retry": True}
ONCE = [Call("look_up", {"id": "1"}), Call("look_up", {"id": "A1"}), "sent"]
ALWAYS = Call("look_up", {"id": "1"})


def look_up(id: str) -> str:
    """Look an order up."""
    if not id.startswith("A"):
        raise ModelRetry(f"no order {id}: ids begin with A")
    return "on its way"


async def look_up_async(id: str) -> str:
    """Look an order up."""
    return look_up(id)


look_up_async.__name__ = "look_up"


class Lookup(BaseTool):
    def __init__(self) -> None:
        super().__init__(name="look_up", description="Look an order up.")

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Look an order up."""
        return look_up(**args)


class Watching(Middleware):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def after_tool(self, ctx: Any, tool_name: str, args: Any, result: Any) -> None:
        """See what tools return."""
        self.seen.append(result)

    async def on_tool_error(self, ctx: Any, tool_name: str, args: Any, error: Exception) -> None:
        """See what tools raise."""
        self.seen.append(error)


def model(*script: Any) -> ScriptedModel:
    return ScriptedModel(*script) if script else ScriptedModel(default=ALWAYS)


def clerk(*script: Any, tool: Any = look_up) -> Agent:
    return Agent("clerk", model(*script)).tool(tool)


def below(*script: Any) -> Builder:
    called = clerk(*script).description("looks orders up")
    return Agent("desk", ScriptedModel(Call("clerk", {"request": "1"}), "done")).agent_tool(called)


def handed_over(*script: Any) -> Builder:
    host = ScriptedModel(Call("transfer_to_agent", {"agent_name": "clerk"}))
    return Agent("desk", host).delegates(clerk(*script))


def by_hand(*script: Any) -> Builder:
    return Pipeline(LlmAgent(name="clerk", model=model(*script), tools=[look_up]))


def below_by_hand(*script: Any) -> Builder:
    inner = LlmAgent(name="clerk", model=model(*script), tools=[look_up])
    host = ScriptedModel(Call("transfer_to_agent", {"agent_name": "clerk"}))
    return Pipeline(LlmAgent(name="desk", model=host, sub_agents=[inner]))


PLACES: dict[str, Callable[..., Builder]] = {
    "step": clerk,
    "async": lambda *script: clerk(*script, tool=look_up_async),
    "tool of ADK": lambda *script: clerk(*script, tool=Lookup()),
    "agent as tool": below,
    "transfer": handed_over,
    "map": lambda *script: Pipeline(lambda _: {"ids": ["1"]}) >> map_over("ids", clerk(*script)),
    "branch": lambda *script: clerk(*script) | Agent("other").mock("x"),
    "agent of ADK": by_hand,
    "below one": below_by_hand,
}


def results(run: RunResult) -> list[Any]:
    return [
        each.result for event in run for each in event.tool_responses if each.tool_name == "look_up"
    ]


@pytest.mark.parametrize(
    ("streaming", "watched"),
    [
        ("none", False),
        ("sse", True),
        pytest.param("none", True, marks=pytest.mark.full),
        pytest.param("sse", False, marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("place", PLACES)
async def test_the_model_is_told_and_tries_again(place: str, streaming: Any, watched: bool) -> None:
    pipeline, watching = PLACES[place](*ONCE), Watching()
    config = ExecutionConfig(streaming_mode=streaming)
    run = await pipeline.run("x", config=config, middleware=[watching] if watched else [])
    if place != "agent as tool":  # that one has a session of its own
        assert results(run) == [TOLD, {"result": "on its way"}]
        assert "sent" in run.text
    if watched:
        assert [each for each in watching.seen if each is not None][:2] == [TOLD, "on its way"]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("place", PLACES)
async def test_it_ends_the_run_after_three_in_a_row(place: str, watched: bool) -> None:
    middleware = [Watching()] if watched else []
    with pytest.raises(RunError, match=r"called look_up 4 times in a row .*: no order 1") as raised:
        await PLACES[place]().run("x", middleware=middleware)
    assert isinstance(raised.value.__cause__, ModelRetry)
    assert raised.value.node == "clerk"


async def test_a_result_between_begins_a_new_row() -> None:
    good, bad = Call("look_up", {"id": "A1"}), ALWAYS
    run = await clerk(bad, bad, bad, good, bad, bad, bad, "done").run("x")
    assert results(run).count(TOLD) == 6
    assert run.text == "done"


async def test_each_round_of_a_loop_begins_a_new_row() -> None:
    run = await (clerk(*[ALWAYS, ALWAYS, "not found"] * 5) * 5).run("x")
    assert results(run).count(TOLD) == 10
    assert run.text == "not found"


@pytest.mark.parametrize("concurrency", [1, None])
async def test_each_item_of_a_map_has_a_row_of_its_own(concurrency: int | None) -> None:
    pipeline = map_over("ids", clerk(), concurrency=concurrency, on_error="collect")
    run = await pipeline.run("x", state={"ids": [1, 2]})
    said = [each["message"] for each in run.state["results_errors"]]
    assert ["called look_up 4 times in a row" in each for each in said] == [True, True]


def test_misspelt_and_wrong_arguments_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'at_most'") as raised:
        ModelRetry(WHY, atmost=1)  # pyright: ignore[reportCallIssue]
    assert raised.value.what == "ModelRetry takes no 'atmost'"
    wrong: tuple[Any, ...] = (-1, "3", 1.5, True, None)
    for each in wrong:
        with pytest.raises(UsageError, match="int of 0 or more"):
            ModelRetry(WHY, at_most=each)


async def test_calls_of_one_turn_count_once_and_how_often_can_be_said() -> None:
    def never(id: str) -> str:
        """Refuse."""
        raise ModelRetry(WHY, at_most=1)

    never.__name__ = "look_up"
    twice = [Call("look_up", {"id": "1"}, "c1"), Call("look_up", {"id": "2"}, "c2")]
    assert results(await clerk(reply(*twice), "done", tool=never).run("x")) == [TOLD, TOLD]
    with pytest.raises(RunError, match="2 times in a row"):
        await clerk(tool=never).run("x")


async def test_other_errors_are_no_answers() -> None:
    def broken(id: str) -> str:
        """Fail."""
        raise ValueError(id)

    broken.__name__ = "look_up"
    with pytest.raises(ValueError, match="1"):
        await clerk(*ONCE, tool=broken).run("x")


async def test_callbacks_for_errors_of_tools_see_the_others_only() -> None:
    seen: list[Exception] = []

    def on_error(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, Any]:
        seen.append(error)
        return {"result": "made good"}

    def picky(id: str) -> str:
        """Look an order up."""
        if id == "A1":
            raise ValueError(id)
        return look_up(id)

    picky.__name__ = "look_up"
    run = await clerk(*ONCE, tool=picky).on_tool_error(on_error).run("x")
    assert results(run) == [TOLD, {"result": "made good"}]
    assert [type(each) for each in seen] == [ValueError]


@pytest.mark.parametrize("watched", [False, True])
async def test_a_long_running_tool_that_says_so_is_not_waited_for(watched: bool) -> None:
    pipeline = clerk(ALWAYS, "which one?", tool=LongRunningFunctionTool(look_up))
    run = await pipeline.run("x", middleware=[Watching()] if watched else [])
    assert (run.status, run.text) == ("completed", "which one?")


async def test_after_an_approval() -> None:
    script = [ALWAYS, Call("look_up", {"id": "A1"}, "c2"), "sent"]
    pipeline = Agent("clerk", model(*script)).tool(look_up, require_confirmation=True)
    first = await pipeline.run("x")
    second = await pipeline.resume(first.pending[0].answer(value=True), session_id=first.session_id)
    assert results(second)[0] == TOLD
    assert [each.name for each in second.pending] == ["look_up"]
