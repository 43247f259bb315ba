"""Remote agents with every other layer: state schemas, middlewares, evaluation."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from adk_fluent import Agent, RemoteAgent
from adk_fluent.contracts import check_all
from adk_fluent.debug import Recorder, Recording, ReplayerBackend
from adk_fluent.errors import RemoteError, StateTypeError, UnsupportedNodeError
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
async def test_a_recording_has_its_events_and_a_replay_asks_nobody(
    nested: bool, tmp_path: Path
) -> None:
    answers = (
        kit.says(kit.task("COMPLETED", kit.text("R1"))),
        kit.says(kit.task("COMPLETED", kit.text("R2"))),
    )
    async with kit.peer(*answers) as far:
        remote = RemoteAgent("pay", endpoint=far.url, outputs="receipt")
        by_hand = Agent("by_hand", ScriptedModel(default="by hand")).writes("receipt")
        first = remote // by_hand if nested else remote
        thank = Agent("after", ScriptedModel(default="thanks")).instruct("Thank for {receipt}.")
        pipeline = first >> thank
        with Recorder() as recorder:
            recorded = await pipeline.run("Pay.")
        recorder.save(tmp_path / "pay.json")
        recording = Recording.load(tmp_path / "pay.json")
        said = [(each.node, each.content) for each in recording.events if each.content]
        assert ("pay", "R1") in said
        assert recorded.state["receipt"] == "R1"
        for mode in ("error", "skip"):
            with pytest.raises(UnsupportedNodeError, match="pay cannot be replayed"):
                await pipeline.run("Pay.", backend=ReplayerBackend(recording, mode))
        assert len(far.requests) == 1
        live = await pipeline.run("Pay.", backend=ReplayerBackend(recording, "live"))
        assert (live.state["receipt"], len(far.requests)) == ("R2", 2)


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
