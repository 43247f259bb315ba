"""Boundaries with an A2A server behind them: that part of the pipeline runs over there."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, RemoteAgent, Route, gate
from adk_fluent.a2a._exchange_adk import Exchange
from adk_fluent.contracts import check_all
from adk_fluent.distributed import (
    BoundaryError,
    DbosEngine,
    EngineError,
    InlineEngine,
    TransportConfig,
    split,
)
from adk_fluent.extend import DURABLE_RUN, DurableRun
from adk_fluent.ir import AuthConfig
from adk_fluent.serve import A2AServer, BearerAuth
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]
TOKEN = "a-long-random-token-of-the-tests"


def price(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"amount": 250 * state["count"], "aside": "stays there"}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """The model of the part that runs at the peer."""
    monkeypatch.setenv("HEAVY_TOKEN", TOKEN)
    return ScriptedModel(default="It is broken.")


@asynccontextmanager
async def peer(part: Pipeline, **options: Any) -> AsyncGenerator[str]:
    """A server of the part; its address."""
    server = A2AServer(
        part,
        auth=BearerAuth({TOKEN: "desk"}),
        inputs=["order", "count"],
        outputs=["amount"],
        **options,
    )
    await server.start(port=0)
    try:
        yield server.url
    finally:
        await server.stop(grace=0)


def far(part: Pipeline, url: str, **transport: Any) -> Pipeline:
    transport.setdefault("auth", AuthConfig("bearer", "HEAVY_TOKEN"))
    return part.contract(inputs=["order", "count"], outputs=["amount"]).execution_boundary(
        transport=TransportConfig("http", url, **transport)
    )


async def test_a_part_runs_at_a_peer(told: ScriptedModel) -> None:
    part = Pipeline("heavy", Agent("look", told).instruct("Look at {order}."), price)
    after = ScriptedModel(default="Paid.")
    async with peer(part) as url:
        pipeline = (
            Agent("plan").mock("Plan.")
            >> far(part, url)
            >> Agent("pay", after).instruct("Pay {amount}.")
        )
        assert split(pipeline).names == ("pipeline",)
        result = await InlineEngine().run(
            pipeline, "Refund it.", run_id="r", state={"order": "A1", "count": 2, "secret": 1}
        )
    assert (result.text, result.state["amount"]) == ("Paid.", 500)
    assert "aside" not in result.state
    (asked,) = told.calls
    said = str(asked.turns)
    assert "Refund it." in said
    assert "[plan] Plan." in said
    assert "It is broken." in str(after.calls[0].turns)


async def test_a_step_that_failed_at_a_peer_is_asked_for_again(
    told: ScriptedModel, tmp_path: Path
) -> None:
    gone = {"lost"}

    def find(state: Mapping[str, Any]) -> dict[str, Any]:
        if state["order"] in gone:
            raise ValueError("no such order")
        return {"amount": 7}

    part, store = Pipeline("heavy", Agent("look", told), find), tmp_path / "tasks.db"
    async with peer(part, task_store=f"sqlite:///{store}") as url:
        pipeline = Agent("plan").mock("Plan.") >> far(part, url)
        state = {"order": "lost", "count": 1}
        engine = InlineEngine()
        stands = await engine.submit(pipeline, "Go.", run_id="r", state=state)
        assert stands.status == "failed"
        assert stands.error is not None
        assert (stands.error["node"], stands.error["type"]) == ("heavy", "RemoteError")
        assert "failed in its task" in stands.error["message"]
        assert "no such order" not in str(stands.error)  # of the peer, which tells nobody
        gone.clear()
        assert (await engine.answer("r")).state["amount"] == 7
    with closing(sqlite3.connect(store)) as db:
        ids = [
            json.loads(text)[0]["messageId"] for (text,) in db.execute("select history from tasks")
        ]
    assert sorted(ids) == ["r:pipeline:s1/heavy#0", "r:pipeline:s1/heavy#1"]


async def test_a_peer_does_once_what_two_processes_wait_for(
    told: ScriptedModel, tmp_path: Path
) -> None:
    """The engine is closed while the peer is at work; another one goes on with the run."""
    began, may_end, calls = threading.Event(), threading.Event(), list[str]()

    async def slow(state: Mapping[str, Any]) -> dict[str, Any]:
        calls.append(state["order"])
        began.set()
        while not may_end.is_set():  # noqa: ASYNC110  # engines have threads of their own
            await asyncio.sleep(0.01)
        return {"amount": 7}

    url, state = f"sqlite:///{tmp_path / 'runs.sqlite'}", {"order": "A1", "count": 1}
    async with peer(Pipeline("heavy", Agent("look", told), slow)) as address, asyncio.timeout(60):
        pipeline = Agent("plan").mock("Plan.") >> far(Pipeline("heavy", Agent("x")), address)
        async with DbosEngine(url) as engine:
            waits = asyncio.create_task(engine.run(pipeline, "Go.", run_id="r", state=state))
            await asyncio.to_thread(began.wait)
        with pytest.raises(EngineError, match="was closed while run 'r' went on"):
            await waits
        may_end.set()
        async with DbosEngine(url) as engine:
            result = await engine.run(pipeline, "Go.", run_id="r", state=state)
    assert (result.state["amount"], calls, len(told.calls)) == (7, ["A1"], 1)


@pytest.mark.parametrize("is_left", [True, False])
async def test_a_task_is_cancelled_unless_its_run_goes_on(
    is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, known, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    take = Exchange._take

    def taken(self: Exchange, item: Any) -> None:
        take(self, item)
        known.set()

    async def slow(state: Mapping[str, Any]) -> None:
        began.set()
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            over.set_result("cancelled")
            raise
        over.set_result("done")

    monkeypatch.setattr(Exchange, "_take", taken)
    server = A2AServer(Pipeline("heavy", slow))
    await server.start(port=0)
    here = DURABLE_RUN.set(DurableRun("r", "pipeline", 0, lambda: is_left))
    asked = asyncio.create_task(RemoteAgent("heavy", endpoint=server.url).run("Go."))
    DURABLE_RUN.reset(here)
    async with asyncio.timeout(60):
        await asyncio.gather(began.wait(), known.wait())
        asked.cancel()
        await asyncio.wait([asked])
        if is_left:
            may_end.set()
        assert await over == ("done" if is_left else "cancelled")
    await server.stop(grace=0)


async def test_a_gate_at_a_peer_is_answered_here(told: ScriptedModel) -> None:
    part = Agent("look", told) >> gate(message="Pay it?", name="ok") >> price
    async with peer(part) as url:
        pipeline, engine = (
            far(part.named("heavy"), url) >> Agent("pay").mock("Paid."),
            InlineEngine(),
        )
        state = {"order": "A1", "count": 1}
        (question,) = (await engine.submit(pipeline, "Go.", run_id="r", state=state)).pending
        assert (question.name, question.message) == ("ok", "Pay it?")
        stands = await engine.answer("r", question.answer(True))
    assert (stands.status, stands.answer, stands.state["amount"]) == ("completed", "Paid.", 250)


async def test_a_peer_wherever_a_step_may_stand(told: ScriptedModel) -> None:
    """In the branch of a route, and in the items of a map, beside other segments."""
    part = Pipeline("heavy", Agent("look", told), price)
    async with peer(part) as url:
        step = far(part, url)
        route = Route("order").eq("A1", step).otherwise(Agent("no").mock("No."))
        pipeline = Agent("plan").mock("P").execution_boundary() >> route >> step
        assert split(pipeline).names == ("pipeline", "plan")
        result = await InlineEngine().run(pipeline, "Go.", state={"order": "A1", "count": 3})
    assert (result.state["amount"], len(told.calls)) == (750, 2)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"endpoint": "http://heavy.example"}, "http://heavy.example"),
        ({"endpoint": None}, "no endpoint"),
        ({"endpoint": "https://ann:pa55@heavy.example"}, "without credentials"),
        ({"contract": {}}, "not said which state crosses"),
        ({"contract": {"inputs": ["temp:x"], "outputs": []}}, "'temp:x'"),
        ({"contract": {"inputs": ["a", "user:a"], "outputs": []}}, "are called 'a'"),
        ({"isolation": "process"}, "isolation='process'"),
        ({"inner": True}, "at 'inner'"),
        ({"layers": {}}, "the layer a2a is not installed"),
    ],
)
def test_what_no_peer_runs(
    change: dict[str, Any], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Agent("inner").execution_boundary() if "inner" in change else Agent("inner")
    part = Pipeline("heavy", step).contract(
        **change.get("contract", {"inputs": ["order"], "outputs": ["amount"]})
    )
    endpoint = change.get("endpoint", "https://heavy.example")
    pipeline = Agent("a").mock("A") >> part.execution_boundary(
        transport=TransportConfig("http", endpoint),
        isolation=change.get("isolation", "none"),
    )
    if "layers" in change:
        monkeypatch.setattr("adk_fluent._registry.found", dict)
    with pytest.raises(BoundaryError, match="no A2A server can run 'heavy'") as raised:
        split(pipeline)
    assert found in str(raised.value)
    assert "pa55" not in str(raised.value)
    if "layers" in change:
        assert "pip install adk-fluent-a2a" in str(raised.value)
        return
    (diagnostic,) = [each for each in check_all(pipeline) if each.code == "DST004"]
    assert found in diagnostic.message
