"""Recording and replaying with every other layer: retries, caches, typed state."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from adk_fluent import Agent, Pipeline, gate
from adk_fluent.cost import Budget, cost_attribution, cost_of
from adk_fluent.debug import (
    Recorder,
    Recording,
    ReplayerBackend,
    diff_events,
    recorder,
    replay_async,
)
from adk_fluent.distributed import DbosEngine, InlineEngine
from adk_fluent.errors import UsageError
from adk_fluent.extend import request_model
from adk_fluent.ir import ModelCandidate
from adk_fluent.middleware import (
    DiskStore,
    cache,
    production,
    retry,
    tool_approval,
    tool_call_limit,
)
from adk_fluent.protocol import Middleware, ModelCall, ModelReply, NextModel, Usage
from adk_fluent.state import SessionScoped, StateSchema
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")]


class Desk(StateSchema):
    """What the pipeline knows."""

    intent: SessionScoped[str]


def desk(*said: str | Exception) -> Pipeline:
    triage = Agent("triage", ScriptedModel(*said)).writes(Desk.intent)
    clerk = Agent("clerk", ScriptedModel(*said[-1:])).instruct("Handle {intent}.")
    return (triage >> clerk).state(Desk).middleware(retry(max_attempts=2, backoff_base=0.0))


async def test_retries_and_typed_state_are_replayed(caplog: pytest.LogCaptureFixture) -> None:
    with Recorder() as kept:
        result = await desk(ConnectionError("down"), "refund").run("hello")
    assert result.state == {"intent": "refund"}
    assert [bool(each.error) for each in kept.recording.llm_interactions] == [True, False, False]
    caplog.clear()
    backend = ReplayerBackend(kept.recording)
    again = await desk().run("hello", backend=backend)
    assert not diff_events(kept.recording.events, again)
    assert again.state == result.state
    assert backend.unused == []
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


async def test_what_a_cache_answers_is_no_call() -> None:
    agent = Agent("a", ScriptedModel("once")).middleware(cache())
    kept = recorder()
    for _ in range(2):
        assert (await agent.run("hello", middleware=[kept])).text == "once"
    assert len(kept.recording.llm_interactions) == 1
    fresh = Agent("a", ScriptedModel()).middleware(cache())
    backend = ReplayerBackend(kept.recording)
    for _ in range(2):
        assert (await fresh.run("hello", backend=backend)).text == "once"
    assert backend.unused == []


async def test_replays_neither_use_nor_change_what_a_cache_on_the_disk_has_of_them(
    tmp_path: Path,
) -> None:
    def pipeline(file: str, *says: str) -> Agent:
        kept = cache(store=DiskStore(tmp_path / file))
        return Agent("a", ScriptedModel(*says)).middleware(kept)

    with Recorder() as recorded:
        agent = pipeline("full", "once")
        for _ in range(2):  # the second is answered by the cache
            assert await agent.ask_async("hello") == "once"
    for file in ("full", "full", "empty", "empty"):
        report = await replay_async(pipeline(file), recorded.recording)
        assert report.ok, report.summary
    assert await pipeline("full").ask_async("hello") == "once"
    assert await pipeline("empty", "another").ask_async("hello") == "another"


async def test_the_costs_of_a_run_are_no_difference_in_its_replay() -> None:
    model = ScriptedModel(reply("hi", usage=Usage(prompt=9, output=1)), model="gemini-2.5-flash")
    agent = Agent("a", model).middleware(cost_attribution())
    with Recorder() as kept:
        assert cost_of(await agent.run("hello")).total.usd > 0
    report = await replay_async(agent, kept.recording)
    assert report.ok, report.summary


def budget(limit: float) -> Budget:
    return Budget(limit, budget_key="left", prices={"scripted": {"input": 1, "output": 1}})


async def test_what_a_budget_refuses_is_no_model_call() -> None:
    agent = Agent("a", ScriptedModel(default="too much"))
    with Recorder() as kept:
        result = await agent.run("hello", middleware=[budget(1e-9)])
    assert kept.recording.llm_interactions == []
    assert "0 model calls" in repr(kept.recording)
    backend = ReplayerBackend(kept.recording)
    again = await agent.run("hello", backend=backend, middleware=[budget(1e-9)])
    assert not diff_events(kept.recording.events, again)
    assert (again.text, backend.unused) == (result.text, [])


async def test_what_a_budget_says_is_left_is_the_same_in_a_replay() -> None:
    model = ScriptedModel(default=reply("hi", usage=Usage(prompt=9, output=1)))
    pipeline = Agent("a", model) >> Agent("b", model)
    with Recorder() as kept:
        result = await pipeline.run("hello", middleware=[budget(1.0)])
    assert 0 < result.state["left"] < 1
    spent = budget(1.0)
    backend = ReplayerBackend(kept.recording)
    again = await pipeline.run("hello", backend=backend, middleware=[spent])
    assert again.state == result.state
    assert spent.balance(again).spent.usd == 0


def refund(order: str) -> str:
    """Pay an order back."""
    return f"{order} is paid back"


def is_sure(answer: ModelReply) -> bool:
    return answer.text != "Not sure."


async def test_an_approval_and_what_is_left_of_a_budget_are_replayed() -> None:
    flash = ScriptedModel(Call("refund", {"order": "A1"}), "Paid.", model="gemini-2.5-flash")
    lite = ScriptedModel("Not sure.", model="gemini-2.5-flash-lite")
    pro = ScriptedModel("Dear Ann, ...", model="gemini-2.5-pro")
    letter = Agent("letter").model_select(
        strategy="adaptive",
        candidates=[ModelCandidate(lite, quality_tier=1), ModelCandidate(pro, quality_tier=2)],
        judge=is_sure,
        budget_key="left",
    )
    pipeline = Agent("clerk", flash).tool(refund).middleware(tool_approval()) >> letter.middleware(
        Budget(0.50)
    )
    with Recorder() as recorder:
        asked = await pipeline.run("Refund A1", session_id="s")
        done = await pipeline.resume(asked.pending[0].answer(True), session_id="s")
    assert 0 < done.state["left"] < 0.50
    recording = Recording.from_json(recorder.recording.to_json())
    report = await replay_async(pipeline, recording)  # of the scripts nothing is left
    assert report.ok, report.summary
    last = report.results[-1]
    assert last is not None
    assert last.state["left"] == done.state["left"]


async def test_what_a_budget_asks_is_asked_again_in_a_replay() -> None:
    said = reply("ok", usage=Usage(output=1000))
    rows = {"house-9": {"input": 0, "output": 1000}}
    spent = Budget(0.5, on_exceed="ask", prices=rows, reserve_output=1000)
    clerk = Agent("clerk", ScriptedModel(said, model="house-9")).middleware(spent)
    with Recorder() as kept:
        asked = await clerk.run("hi", session_id="s")
        done = await clerk.resume(asked.pending[0].answer(True), session_id="s")
    report = await replay_async(clerk, Recording.from_json(kept.recording.to_json()))
    assert report.ok, report.summary
    assert [each.status for each in report.results if each] == ["waiting", "completed"]
    assert spent.balance(done).spent.usd == 1


async def test_a_run_that_waits_is_replayed_under_a_schema_and_limits() -> None:
    clerk = Agent("clerk", ScriptedModel(Call("refund", {"order": "A1"}), "Paid."))
    clerk.tool(refund).writes(Desk.intent).middleware(tool_call_limit(per_run=3), scope="agent")
    limited = (clerk >> gate(message="Is that all?")).state(Desk)
    limited = limited.middleware(*production(max_tokens=10_000))
    with Recorder() as recorder:
        asked = await limited.run("Refund A1", session_id="s")
        [run] = asked.state["adk_fluent_tool_calls/clerk/runs"]
        assert f"adk_fluent_tool_calls/{run}" in asked.state
        await limited.resume(asked.pending[0].answer(True), session_id="s")
    report = await replay_async(limited, Recording.from_json(recorder.recording.to_json()))
    assert report.ok, report.summary


async def test_what_a_middleware_asks_a_model_is_recorded_and_replayed() -> None:
    judge = ScriptedModel(default="fine")

    class Judged(Middleware):
        async def wrap_model_call(self, call: ModelCall, next: NextModel, /) -> ModelReply:
            asked = call.request.model_copy(update={"model": judge.model})
            verdict = await request_model(replace(call, request=asked, model=judge, stream=False))
            assert verdict.responses[0].content.parts[0].text == "fine"
            return await next(call)

    def pipeline() -> Agent:
        return Agent("a", ScriptedModel(default="hi")).middleware(Judged())

    with Recorder() as kept:
        await pipeline().run("hello")
    assert len(kept.recording.llm_interactions) == 2
    asked = len(judge.calls)
    backend = ReplayerBackend(kept.recording)
    assert not diff_events(kept.recording.events, await pipeline().run("hello", backend=backend))
    assert (len(judge.calls), backend.unused) == (asked, [])


def in_segments() -> Pipeline:
    heavy = Agent("heavy", ScriptedModel(default="H")).execution_boundary()
    return Agent("a", ScriptedModel(default="A")) >> heavy >> Agent("b", ScriptedModel(default="B"))


async def test_segments_of_one_process_are_recorded_and_replayed() -> None:
    with Recorder() as kept:
        result = await InlineEngine().run(in_segments(), "Go.")
    assert [run.status for run in kept.recording.runs] == ["waiting", "waiting", "completed"]
    with ReplayerBackend(kept.recording) as backend:
        again = await InlineEngine().run(in_segments(), "Go.")
    assert (again.text, backend.unused) == (result.text, [])


async def test_that_runs_of_another_thread_are_not_recorded_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as engine:
        with Recorder() as kept:
            await engine.run(in_segments(), "Go.", run_id="one")
        assert kept.recording.runs == []
        assert "no run was recorded in this block" in caplog.text
        with pytest.raises(UsageError, match=r"pipeline.middleware\(recorder\)"):
            kept.save(tmp_path / "x.json")
    inside = Recorder()
    async with DbosEngine(f"sqlite:///{tmp_path / 'more.sqlite'}") as engine:
        await engine.run(in_segments().middleware(inside), "Go.", run_id="two")
    assert len(inside.recording.llm_interactions) == 3


async def test_a_page_shows_what_calls_cost_and_no_secrets(tmp_path: Path) -> None:
    rows = {"house-9": {"input": 1, "output": 1}}
    charged = cost_attribution(prices=rows)
    agents = Agent("a", ScriptedModel(default="one", model="house-9")) | Agent("b").mock("two")
    with Recorder() as kept:
        result = await agents.run("hello", middleware=[charged], state={"password": "canary-0815"})
    page = kept.recording.to_html(tmp_path / "r.html").read_text("utf-8")
    assert f'"cost": {{"usd": "{cost_of(result).total}", "unknown": ""}}' in page
    assert '"noted": true' in page
    assert "canary-0815" not in page
    with Recorder() as later:  # nobody notes the costs
        await agents.run("hello")
    unpriced = later.recording.to_html(tmp_path / "s.html").read_text("utf-8")
    assert '"cost": {"usd": "$0.00", "unknown": "' in unpriced
    assert '"noted": false' in unpriced
