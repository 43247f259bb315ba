"""Limits of model calls, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from kit import SSE, TWO_TOOLS, Time, clerk, until

from adk_fluent import Agent, FanOut, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import (
    CallLimitError,
    ModelCallLimitMiddleware,
    model_call_limit,
    retry,
)
from adk_fluent.protocol import Middleware, Usage, classify
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

#: A model that never comes to an end.
AGAIN = Call("search", {"word": "x"})


def texts(result: Any) -> list[str]:
    return [each.content for each in result if each.content and not each.is_partial]


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    with GeminiEmulator(*[AGAIN] * 5, default="done") as gemini:
        with pytest.raises(CallLimitError, match="calls of this run are used up") as caught:
            await clerk(gemini, model_call_limit(per_run=3)).run("hi")
        assert len(gemini.requests) == 3
    assert caught.value.limit == 3
    assert caught.value.node == "clerk"
    assert "3 of 3 calls made" in str(caught.value)
    assert classify(caught.value) == "permanent"
    assert metrics("adk_fluent.limit.denials", adk_fluent__limit="model_call_limit") == 1


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE])
async def test_streamed(config: Any) -> None:
    """A run that ends well says so after the results of its tools; Gemini takes the history."""
    limit = model_call_limit(per_run=1, on_exceeded="stop", message="That is all.")
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService(), "config": config}
    with GeminiEmulator(TWO_TOOLS[0], reply(chunks=["Hello ", "again."])) as gemini:
        result = await clerk(gemini, limit).run("hi", **job)
        assert result.text == "That is all."
        (last,) = [each for each in result if each.content == "That is all."]
        assert last.custom_metadata == {"adk_fluent_stopped": "model_call_limit"}
        assert last.usage == Usage()
        again = await clerk(gemini, limit).run("And now?", **job)
        assert again.text == "Hello again."
        assert [each.content for each in again if each.is_partial][:2] == (
            ["Hello ", "again."] if config is SSE else []
        )


async def test_parallel_tools() -> None:
    """Agents in tools call models of the same run, and exactly as many as are left."""
    expert = Agent("expert", inner := ScriptedModel(default=reply("An answer.", latency=0.02)))
    four = reply(*(Call("expert", {"request": str(n)}) for n in range(4)))
    limit = model_call_limit(per_run=4, on_exceeded="stop", message="No more.")
    model = ScriptedModel(four, "done")
    result = await Agent("a", model).agent_tool(expert).middleware(limit).run("hi")
    assert result.text == "No more."
    answers = [str(each.result) for event in result for each in event.tool_responses]
    assert len(answers) == 4
    assert (len(inner.calls), len(model.calls)) == (3, 1)
    assert sum("No more." in each for each in answers) == 1


async def test_cancelled() -> None:
    """A call that was cut off was made; what was counted before it, state keeps."""
    limit = model_call_limit(per_session=3)
    model = ScriptedModel("A", default=reply("never", latency=60))
    pipeline = (Agent("a", model) >> Agent("b", model)).middleware(limit)
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    for made in (2, 3):
        running = asyncio.ensure_future(pipeline.run("hi", **job))
        await until(lambda made=made: len(model.calls) == made)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        stored = await job["session_service"].get_session(
            app_name=ExecutionConfig().app_name, user_id="user", session_id="s1"
        )
        assert stored.state["adk_fluent_model_calls"] == {"a": 1}
    with pytest.raises(CallLimitError, match="of this session"):
        await asyncio.wait_for(pipeline.run("hi", **job), 10)


async def test_error_after_the_first_partial() -> None:
    """A call that failed was made, and its error is raised as it is."""
    limit = model_call_limit(per_session=1)
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(half, "whole") as gemini:
        with pytest.raises(Exception) as caught:  # noqa: PT011  # clients of different ages call it differently
            await clerk(gemini, limit).run("hi", session_id="s1", config=SSE)
        assert not isinstance(caught.value, CallLimitError)
        with pytest.raises(CallLimitError):
            await clerk(gemini, limit).run("hi", session_id="s1", config=SSE)
        assert len(gemini.requests) == 1


async def test_concurrent() -> None:
    """Branches share what a run may; runs at the same time have it each for themselves."""
    model = ScriptedModel(default=reply("ok", latency=0.02))
    limit = model_call_limit(per_run=3, on_exceeded="stop", message="No.")
    branches: Builder = Agent("b0", model)
    for number in range(1, 5):
        branches = branches | Agent(f"b{number}", model)
    pipeline = branches.middleware(limit)
    results = await asyncio.gather(*(pipeline.run("hi") for _ in range(3)))
    assert [sorted(texts(each))[:5] for each in results] == [["No.", "No.", "ok", "ok", "ok"]] * 3
    assert len(model.calls) == 9


# --- whose calls are counted together ------------------------------------------------------------


async def test_each_run_begins_anew() -> None:
    pipeline = Agent("a", ScriptedModel(default="ok")).middleware(model_call_limit(per_run=1))
    for _ in range(3):
        result = await pipeline.run("hi", session_id="s1")
        assert (result.text, result.state) == ("ok", {})


async def test_a_run_that_waited_for_an_answer_goes_on_counting() -> None:
    sessions = InMemorySessionService()

    def pipeline() -> Builder:  # another process has all of it anew, but for the session
        model = ScriptedModel(default="ok")
        made = Agent("a", model) >> gate(message="Go on?", name="go") >> Agent("b", model)
        return (made >> Agent("c", model)).named("desk").middleware(model_call_limit(per_run=2))

    job: Any = {"session_id": "s1", "session_service": sessions}
    asked = await pipeline().run("hi", **job)
    kept = {key: value for key, value in asked.state.items() if "model_calls" in key}
    assert list(kept.values()) == [{"a": 1}]
    with pytest.raises(CallLimitError, match="2 of 2 calls made"):
        await pipeline().resume(asked.pending[0].answer(True), **job)


async def test_a_session_is_counted_on_by_another_process() -> None:
    sessions = InMemorySessionService()
    job: Any = {"session_id": "s1", "session_service": sessions}
    for n in (1, 2, 3):
        pipeline = Agent("a", ScriptedModel(default="ok")).middleware(
            model_call_limit(per_session=3)
        )
        result = await pipeline.run("hi", **job)
        assert result.state["adk_fluent_model_calls"] == {"a": n}
    pipeline = Agent("b", ScriptedModel()).middleware(model_call_limit(per_session=3))
    with pytest.raises(CallLimitError, match="of this session"):
        await pipeline.run("hi", **job)
    assert (
        await Agent("a", ScriptedModel("ok"))
        .middleware(model_call_limit(per_session=3))
        .run("hi", session_id="s2", session_service=sessions)
    ).text == "ok"


@pytest.mark.parametrize(
    ("per_agent", "a", "b"), [(1, 1, 1), ({"b": 1}, 2, 1), ({"a": 0, "b": 2}, 0, 2)]
)
async def test_each_agent_may_have_its_own(per_agent: Any, a: int, b: int) -> None:
    one, two = ScriptedModel(default="ok"), ScriptedModel(default="ok")
    limit = model_call_limit(per_agent=per_agent, on_exceeded="stop")
    await ((Agent("a", one) >> Agent("b", two)) * 2).middleware(limit).run("hi")
    assert (len(one.calls), len(two.calls)) == (a, b)
    strict = model_call_limit(per_agent=per_agent)
    with pytest.raises(CallLimitError, match=r"of [ab] in this run"):
        await ((Agent("a", one) >> Agent("b", two)) * 2).middleware(strict).run("hi")


async def test_pipelines_in_pipelines_call_models_of_the_run() -> None:
    model = ScriptedModel(default="ok")
    inner = (Agent("x", model) >> Agent("y", model)).named("inner")
    whole = Agent("a", model) >> inner.to_agent()
    with pytest.raises(CallLimitError):
        await whole.middleware(model_call_limit(per_run=2)).run("hi")
    assert len(model.calls) == 2


async def test_every_limit_has_to_let_a_call_through() -> None:
    limit = model_call_limit(per_run=2, per_session=3)
    model = ScriptedModel(default="ok")
    pipeline = (Agent("a", model) >> Agent("b", model)).middleware(limit)
    await pipeline.run("hi", session_id="s1")
    with pytest.raises(CallLimitError, match="this session") as caught:
        await pipeline.run("hi", session_id="s1")
    assert caught.value.limit == 3
    assert len(model.calls) == 3


# --- beside other limits -------------------------------------------------------------------------


async def test_attempts_count_where_the_limit_is_inside_of_retries() -> None:
    failing = [ConnectionError("reset")] * 2
    again = retry(clock=Time())
    one = ScriptedModel(*failing, "ok")
    outside = Agent("a", one).middleware(model_call_limit(per_run=1)).middleware(again)
    assert (await outside.run("hi")).text == "ok"
    two = ScriptedModel(*failing, "ok")
    inside = Agent("a", two).middleware(again).middleware(model_call_limit(per_run=1))
    with pytest.raises(CallLimitError):
        await inside.run("hi")
    assert len(two.calls) == 1


async def test_adks_own_limit_stands_as_well() -> None:
    """It counts each run of a Runner: not the agents in tools, and anew after a pause."""
    with GeminiEmulator(default=AGAIN) as gemini:
        with pytest.raises(Exception, match="Max number of llm calls") as caught:
            await clerk(gemini, model_call_limit(per_run=5)).run(
                "hi", config=ExecutionConfig(max_llm_calls=2)
            )
        assert type(caught.value).__name__ == "LlmCallsLimitExceededError"
        assert len(gemini.requests) == 2


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    made = ModelCallLimitMiddleware(per_run=5)
    assert isinstance(made, Middleware)
    assert (made.per_run, made.per_session, made.on_exceeded) == (5, None, "error")
    schema: Any = ModelCallLimitMiddleware.DESC.config_schema
    assert "a number for all" in schema["properties"]["per_agent"]["description"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"per_run": -1}, "per_run"),
        ({"per_run": "3"}, "per_run"),
        ({"per_session": -1}, "per_session"),
        ({"per_agent": {"a": -1}}, "per_agent"),
        ({"per_run": 1, "on_exceeded": "end"}, "on_exceeded"),
        ({"per_run": 1, "state_key": ""}, "state_key"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"model_call_limit\({option}=\.\.\.\)") as caught:
        ModelCallLimitMiddleware(**options)
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("options", [{}, {"per_agent": {}}])
def test_no_limit_at_all_is_refused(options: Any) -> None:
    with pytest.raises(UsageError, match="no limit"):
        model_call_limit(**options)


# --- around a part -------------------------------------------------------------------------------


async def test_a_part_is_counted_over_the_runs_of_a_session() -> None:
    model = ScriptedModel(default="ok")
    part = Agent("a", model).middleware(model_call_limit(per_session=2), scope="agent")
    pipeline = part >> Agent("b").mock("B")
    for _ in range(2):
        await pipeline.run("hi", session_id="s1")
    with pytest.raises(CallLimitError, match="of this session"):
        await pipeline.run("hi", session_id="s1")
    await pipeline.run("hi", session_id="s2")
    assert len(model.calls) == 3


async def test_a_part_that_waits_goes_on_counting_and_others_do_not_with_it() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}

    def pipeline() -> Builder:  # another process has all of it anew, but for the session
        model = ScriptedModel(default="ok")
        part = Agent("a", model) >> gate(message="Go on?", name="go") >> Agent("b", model)
        limited = part.named("part").middleware(model_call_limit(per_run=2), scope="agent")
        alone = Agent("c", model).middleware(model_call_limit(per_run=1), scope="agent")
        end = Agent("d").mock("D")
        return (limited >> alone >> end).named("desk").middleware(model_call_limit(per_run=4))

    asked = await pipeline().run("hi", **job)
    run = asked[0].metadata["run"]
    assert asked.state["adk_fluent_model_calls/part/runs"] == {run: {"a": 1}}
    done = await pipeline().resume(asked.pending[0].answer(True), **job)
    assert done.text == "D"
    assert done.state["adk_fluent_model_calls/part/runs"] == {run: {"a": 1, "b": 1}}

    def tighter() -> Builder:
        model = ScriptedModel(default="ok")
        part = Agent("a", model) >> gate(message="Go on?", name="go") >> Agent("b", model)
        part = part.named("part").middleware(model_call_limit(per_run=1), scope="agent")
        return (part >> Agent("d").mock("D")).named("desk")

    asked = await tighter().run("hi", **job)
    with pytest.raises(CallLimitError, match="1 of 1 calls made"):
        await tighter().resume(asked.pending[0].answer(True), **job)


async def test_a_session_keeps_the_counts_of_the_last_runs_of_a_part() -> None:
    model = ScriptedModel(default="ok")
    part = Agent("a", model).middleware(model_call_limit(per_run=1), scope="agent")
    pipeline = part >> Agent("b").mock("B")
    for _ in range(21):
        await pipeline.run("hi", session_id="s1")
    result = await pipeline.run("hi", session_id="s1")
    kept = result.state["adk_fluent_model_calls/a/runs"]
    assert len(kept) == 20
    assert list(kept)[-1] == result[0].metadata["run"]


async def test_branches_of_a_part_are_counted_together() -> None:
    model = ScriptedModel(default="ok")
    branches = FanOut(*(Agent(name, model) for name in "abcd")).named("all")
    limit = model_call_limit(per_run=2, on_exceeded="stop")
    await (branches.middleware(limit, scope="agent") >> Agent("z").mock("Z")).run("hi")
    assert len(model.calls) == 2
