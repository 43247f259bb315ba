"""Remote agents with every other layer: state schemas, middlewares, evaluation."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent import Agent, RemoteAgent, gate
from adk_fluent.contracts import check_all
from adk_fluent.cost import CostReport, TrafficAssumptions, cost_attribution, cost_of
from adk_fluent.debug import (
    Recorder,
    Recording,
    ReplayerBackend,
    ReplayMismatchError,
    replay_async,
)
from adk_fluent.errors import RemoteError, StateTypeError, UsageError
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.ir import RetryConfig
from adk_fluent.middleware import circuit_breaker, retry, structured_log, timeout
from adk_fluent.state import SessionScoped, StateSchema, field
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk
A2AServer: Any = pytest.importorskip("adk_fluent.serve").A2AServer  # it needs google-adk 2.13
KIT = Path(__file__).parent.parent / "packages/adk-fluent-a2a/tests/remote_kit.py"
if "remote_kit" not in sys.modules:
    spec = spec_from_file_location("remote_kit", KIT)
    assert spec is not None
    assert spec.loader is not None
    sys.modules["remote_kit"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["remote_kit"])
kit: Any = sys.modules["remote_kit"]


class Billing(StateSchema):
    order: SessionScoped[str]
    total: SessionScoped[int] = field(default=0)


async def test_a_state_schema_is_the_list_of_inputs_and_holds_the_outputs() -> None:
    answers = (
        kit.says(kit.task("COMPLETED", {"data": {"total": 12, "more": 1}})),
        kit.says(kit.task("COMPLETED", {"data": {"total": "much"}})),
    )
    async with kit.peer(*answers) as far:
        remote = RemoteAgent("pay", endpoint=far.url, inputs=Billing, outputs=Billing.total)
        pipeline = remote.state(Billing)
        assert check_all(pipeline, schema=Billing, inputs={"order"}).ok
        result = await pipeline.run("Pay.", state={"order": "A7", "secret": "pa55"})
        assert far.requests[0].data == {"order": "A7", "total": 0}
        assert Billing.bind(result.state).total == 12
        with pytest.raises((StateTypeError, ValueError), match="total"):
            await pipeline.run("Pay.", state={"order": "A7"})


async def test_middlewares_stand_around_the_whole_task() -> None:
    async with kit.peer(kit.says(kit.task("COMPLETED", kit.text("R1")))) as far:
        stack: list[Any] = [structured_log(), timeout(model=30), retry(), circuit_breaker()]
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        after = Agent("after", ScriptedModel(default="thanks")).instruct("Thank for {receipt}.")
        result = await (pipeline >> after).run("Pay.", middleware=stack)
    assert (result.state["receipt"], result.text) == ("R1", "thanks")


async def test_what_a_remote_agent_costs_is_said_to_be_unknown() -> None:
    report = CostReport()
    stack = [cost_attribution(), cost_attribution(on_record=report.add)]
    async with kit.peer(kit.says(kit.task("COMPLETED", kit.text("R1")))) as far:
        pipeline = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        result = await pipeline.run("Pay.", middleware=stack)
    told = [each._replace(at=0) for each in report.records]  # each goes by a clock of its own
    assert [each._replace(at=0) for each in cost_of(result).records] == told
    assert cost_of(result).unpriced == {"remote agent": 1}
    async with kit.peer(kit.says(kit.task("FAILED", kit.text("no")))) as far:
        either = RemoteAgent("pay", endpoint=far.url) // Agent("b", ScriptedModel(default="b"))
        failed = await either.run("Pay.", middleware=[cost_attribution(), cost_attribution()])
    assert cost_of(failed).unpriced == {"remote agent": 1}
    with pytest.raises(UsageError, match="results with model calls"):
        TrafficAssumptions.from_results([result])


async def test_a_suite_judges_what_a_fallback_recovers_from() -> None:
    def busy(_: Any, wire: Any) -> None:
        wire.respond(503)

    async with kit.peer(busy) as far:
        by_hand = Agent("by_hand", ScriptedModel(default="by hand")).writes("receipt")
        pipeline = RemoteAgent(
            "pay",
            endpoint=far.url,
            outputs="receipt",
            retry=RetryConfig(max_attempts=2, initial_delay=0),
            fallback=by_hand,
        )
        case = FluentCase("Pay.", state_assertions={"receipt": "by hand"}, id="outage")
        report = await FluentEvalSuite("pay", pipeline, [case]).run()
        assert report.ok, str(report)
        assert len(far.requests) == 2
        broken = RemoteAgent("pay", endpoint=far.url)
        report = await FluentEvalSuite(
            "pay", broken, [FluentCase("Pay.", expected_response_contains="R", id="x")]
        ).run()
        assert not report.ok
        assert RemoteError.__name__ in str(report.outcomes[0])


@pytest.mark.parametrize("nested", [False, True])
async def test_a_replay_reaches_no_network(nested: bool, tmp_path: Path) -> None:
    served = gate(message="Pay?") >> Agent("desk", ScriptedModel(default="R1"))
    server = A2AServer(served)
    await server.start(port=0)
    remote = RemoteAgent("pay", endpoint=server.url, outputs="receipt")
    by_hand = Agent("by_hand", ScriptedModel(default="by hand")).writes("receipt")
    first = remote // by_hand if nested else remote
    thank = Agent("after", ScriptedModel(default="thanks")).instruct("Thank for {receipt}.")
    pipeline = first >> thank
    service = InMemorySessionService()
    try:
        with Recorder() as recorder:
            asked = await pipeline.run("Pay.", session_service=service)
            done = await pipeline.resume(
                asked.pending[0].answer(True), session_id=asked.session_id, session_service=service
            )
    finally:
        await server.stop(grace=0)
    assert (asked.pending[0].message, done.state["receipt"], done.text) == ("Pay?", "R1", "thanks")
    recorder.save(tmp_path / "pay.json")
    recording = Recording.load(tmp_path / "pay.json")
    calls = recording.remote_interactions
    assert [(each.agent_name, each.error, len(each.responses)) for each in calls] == [
        ("pay", None, 1),
        ("pay", None, 1),
    ]
    assert calls[1].asked["task_id"] == calls[0].responses[0]["custom_metadata"]["a2a"]["task_id"]
    for _ in range(2):
        report = await replay_async(pipeline, recording)
        assert report.ok, report.summary
    other = ReplayerBackend(recording)
    with pytest.raises(ReplayMismatchError, match=r"'pay', remote call #1.* at \.parts\[0\]\.text"):
        await pipeline.run("Pay twice.", backend=other)
    assert (await first.run("Pay twice.", backend=ReplayerBackend(recording, "skip"))).text == ""
    assert [str(each.agent_name) for each in other.unused] == ["pay", "pay", "after"]


async def test_a_replay_fails_as_the_remote_agent_did_and_goes_on_live_where_it_may(
    tmp_path: Path,
) -> None:
    def busy(_: Any, wire: Any) -> None:
        wire.respond(503)

    paid = kit.says(kit.task("COMPLETED", kit.text("R2")))
    async with kit.peer(busy, paid) as far:
        remote = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        with Recorder() as recorder, pytest.raises(RemoteError) as caught:
            await remote.run("Pay.")
        [call] = recorder.recording.remote_interactions
        assert call.error is not None
        assert call.error["type"].endswith(":RemoteError")
        with pytest.raises(RemoteError) as again:
            await remote.run("Pay.", backend=ReplayerBackend(recorder.recording))
        assert (str(again.value), len(far.requests)) == (str(caught.value), 1)
        live = ReplayerBackend(recorder.recording, "live_then_record")
        result = await remote.run("Pay A2.", backend=live)
        assert (result.state["receipt"], len(far.requests), live.missed) == ("R2", 2, 1)
    report = await replay_async(remote, live.recorded)
    assert report.ok, report.summary


async def test_what_a_remote_agent_is_told_and_says_holds_no_credential(tmp_path: Path) -> None:
    canary = "canary-4711-x"
    answer = kit.says(kit.task("COMPLETED", {"data": {"password": canary, "receipt": "R1"}}))
    async with kit.peer(answer) as far:
        remote = RemoteAgent(
            "pay", endpoint=far.url, inputs=["api_key", "order"], outputs="receipt"
        )
        with Recorder(stream=tmp_path / "pay.jsonl") as recorder:
            await remote.run("Pay.", state={"api_key": f"{canary}-2", "order": "A7"})
    recorder.save(tmp_path / "pay.json")
    for name in ("pay.json", "pay.jsonl"):
        assert "canary" not in (tmp_path / name).read_text()
        backend = ReplayerBackend(tmp_path / name)
        state = {"api_key": "another", "order": "A7"}
        assert (await remote.run("Pay.", state=state, backend=backend)).state["receipt"] == "R1"


async def test_a_served_pipeline_keeps_its_schema_and_its_middlewares() -> None:
    seen: list[str] = []

    class Notes:
        async def before_model(self, ctx: Any, request: Any) -> None:
            seen.append(ctx.state["order"])

    def add_up(state: Any) -> dict[str, Any]:
        return {"total": 12, "secret": "pa55"}

    desk = Agent("desk", ScriptedModel(default="paid")).instruct("Pay {order}.")
    served = (add_up >> desk).state(Billing, extra="allow").middleware(Notes())
    server = A2AServer(served, inputs=Billing, outputs=Billing.total)
    await server.start(port=0)
    try:
        far = RemoteAgent("far", endpoint=server.url, inputs=Billing, outputs=Billing.total)
        result = await far.state(Billing).run("Pay.", state={"order": "A7"})
    finally:
        await server.stop(grace=0)
    assert (Billing.bind(result.state).total, result.text) == (12, "paid")
    assert seen == ["A7"]
    assert "secret" not in result.state
