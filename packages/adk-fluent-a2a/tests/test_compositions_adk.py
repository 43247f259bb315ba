"""Remote agents in every composition, under middlewares, in schemas, and in native ADK objects."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.run_config import RunConfig
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import BaseModel
from remote_kit import (
    Peer,
    Request,
    Wire,
    artifact,
    message,
    peer,
    says,
    status,
    streaming,
    streams,
    task,
    text,
)

from adk_fluent import (
    Agent,
    FanOut,
    RemoteAgent,
    Route,
    S,
    expect,
    gate,
    map_over,
    race,
    tap,
    timeout,
    until,
)
from adk_fluent.errors import RemoteError, StateKeyError, StateTypeError, UnstorableValueError
from adk_fluent.ir import StateFieldRef
from adk_fluent.testing import Call, ScriptedModel, mock_backend, reply

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.adk


def counts() -> Any:
    """Answers with how often it was asked."""
    asked = 0

    def answer(_: Request, wire: Wire) -> None:
        nonlocal asked
        asked += 1
        wire.result(task("COMPLETED", text(str(asked))))

    return answer


def pay(far: Peer, name: str = "pay", **options: Any) -> RemoteAgent:
    return RemoteAgent(name, endpoint=far.url, outputs="n", **options)


def local() -> Agent:
    return Agent("local", ScriptedModel(default="mine")).writes("n")


COMPOSITIONS: dict[str, tuple[Callable[[Peer], Any], str | None]] = {
    "sequence": (lambda far: S.set(x=1) >> pay(far) >> tap(lambda s: None), "1"),
    "fan out": (lambda far: FanOut("both", pay(far), Agent("b", ScriptedModel(default="b"))), "1"),
    "race": (lambda far: race(pay(far), pay(far, "other")), None),
    "route": (lambda far: S.set(x="a") >> Route("x").eq("a", pay(far)).otherwise(local()), "1"),
    "loop": (lambda far: pay(far) * 3, "3"),
    "until": (lambda far: pay(far) * until(lambda s: s.get("n") == "2", max=5), "2"),
    "fallback": (lambda far: pay(far) // local(), "1"),
    "timeout": (lambda far: timeout(pay(far), 10), "1"),
    "expect": (lambda far: pay(far) >> expect(lambda s: s["n"] == "1"), "1"),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
async def test_it_stands_in_every_composition(name: str) -> None:
    make, expected = COMPOSITIONS[name]
    async with peer(counts()) as far:
        result = await make(far).run("Pay.")
    assert result.state["n"] == (expected or result.state["n"])
    assert result.state["n"] is not None


async def test_it_is_asked_for_each_item() -> None:
    def shout(request: Request, wire: Wire) -> None:
        wire.result(task("COMPLETED", text(request.data["item"].upper())))

    async with peer(shout) as far:
        remote = RemoteAgent("pay", endpoint=far.url, inputs="item", outputs="said", history="none")
        each = map_over("items", remote, item_key="item", output_key="all", concurrency=2)
        result = await (S.set(items=["a", "b", "c"]) >> each).run("Go.")
    assert result.state["all"] == ["A", "B", "C"]


async def test_a_gate_before_it_holds_it_back() -> None:
    async with peer(counts()) as far:
        pipeline = gate(lambda s: True, message="Pay?") >> pay(far)
        run = await pipeline.run("Pay.")
        assert (len(run.pending), far.requests) == (1, [])
        run = await pipeline.resume(run.pending[0].answer(True), session_id=run.session_id)
    assert run.state["n"] == "1"


async def test_a_failed_attempt_is_recorded_and_writes_nothing() -> None:
    async with peer(says(task("FAILED", said="no money"))) as far:
        result = await (pay(far, fallback=local()) >> tap(lambda s: None)).run("Pay.")
    assert result.state["n"] == "mine"
    assert [each.author for each in result if each.is_final] == ["local"]


async def test_the_last_error_has_that_of_the_remote_agent_as_context() -> None:
    async with peer(says(task("FAILED", said="no money"))) as far:
        broken = Agent("broken", ScriptedModel(default=reply(raises=ConnectionError("down"))))
        with pytest.raises(ConnectionError, match="down") as caught:
            await RemoteAgent("pay", endpoint=far.url, fallback=broken).run("Pay.")
    assert isinstance(caught.value.__context__, RemoteError)


async def test_a_middleware_stands_around_it_and_its_fallback() -> None:
    seen: list[str] = []

    class Watch:
        async def wrap_agent(self, call: Any, next: Any) -> Any:
            seen.append(call.name)
            return await next(call)

    async with peer(says(task("FAILED"))) as far:
        await pay(far, fallback=local()).middleware(Watch()).run("Pay.")
    assert {"pay", "local"} <= set(seen)


async def test_it_runs_on_adks_own_runner_and_in_a_copy() -> None:
    async with peer(counts()) as far:
        agent = pay(far).to_agent()
        for each in (agent, copy.copy(agent), pickle.loads(pickle.dumps(agent))):
            runner = InMemoryRunner(agent=each, app_name="a")
            session = await runner.session_service.create_session(app_name="a", user_id="u")
            message = types.Content(role="user", parts=[types.Part(text="Pay.")])
            events = [
                event
                async for event in runner.run_async(
                    user_id="u",
                    session_id=session.id,
                    new_message=message,
                    run_config=RunConfig(),
                )
            ]
            assert events[-1].content is not None or events[0].content is not None
            await runner.close()
    assert len(far.requests) == 3


def test_the_fallback_is_in_the_tree_of_agents() -> None:
    far = RemoteAgent("pay", endpoint="http://127.0.0.1:9", outputs="n", fallback=local())
    root = (far >> Agent("after", ScriptedModel())).to_agent()
    assert [each.name for each in root.sub_agents] == ["pay", "local", "after"]


async def test_an_agent_hands_over_to_it() -> None:
    async with peer(says(task("COMPLETED", text("R1")))) as far:
        hand_over = Call("transfer_to_agent", {"agent_name": "pay"})
        remote = RemoteAgent("pay", endpoint=far.url).description("Pays.")
        desk = Agent("desk", ScriptedModel(default=hand_over)).delegates(remote)
        result = await desk.run("Pay.")
    assert result.text == "R1"


async def test_the_mock_backend_runs_the_fallback() -> None:
    remote = RemoteAgent("pay", endpoint="https://pay.example.com", outputs="n", fallback=local())
    backend = mock_backend({"pay": reply(status=503), "local": "mine"})
    result = await remote.run("Pay.", backend=backend)
    assert result.state["n"] == "mine"


# --- what is sent ------------------------------------------------------------------------------


class Order(BaseModel):
    id: int
    note: str = "none"


async def test_the_fields_of_an_input_schema_are_sent() -> None:
    async with peer(counts()) as far:
        remote = pay(far, input_schema=Order)
        await remote.run("Pay.", state={"id": "7", "other": 1})
        assert far.requests[0].data == {"id": 7, "note": "none"}
        with pytest.raises(StateTypeError, match="does not fit its input schema"):
            await remote.run("Pay.", state={"id": "seven"})
    assert len(far.requests) == 1


@pytest.mark.parametrize(
    ("inputs", "state", "error"),
    [
        ("order", {}, StateKeyError),
        ("order", {"order": None}, StateKeyError),
        ("order", {"order": {"id": [2**53 + 1]}}, UnstorableValueError),
    ],
)
async def test_inputs_that_cannot_be_sent_are_refused_before_anything_is(
    inputs: str, state: dict[str, Any], error: type[Exception]
) -> None:
    async with peer(counts()) as far:
        with pytest.raises(error, match="pay"):
            await pay(far, inputs=inputs).run("Pay.", state=state)
        assert (far.requests, far.cards) == ([], [])


async def test_defaults_are_sent_and_whole_numbers_stay_whole() -> None:
    async with peer(says(task("COMPLETED", {"data": {"n": 12, "x": 1.5}}))) as far:
        size = StateFieldRef("size", int, default=3)
        remote = RemoteAgent("pay", endpoint=far.url, inputs=(size,), outputs=("n", "x"))
        result = await remote.run("Pay.")
    assert far.requests[0].data == {"size": 3}
    assert repr((result.state["n"], result.state["x"])) == "(12, 1.5)"


async def test_outputs_are_typed() -> None:
    total, flag = StateFieldRef("total", float), StateFieldRef("user:flag", bool)
    answer = {"data": {"total": "12", "flag": True, "more": 1}}
    async with peer(says(task("COMPLETED", answer))) as far:
        remote = RemoteAgent("pay", endpoint=far.url, outputs=(total, flag))
        result = await remote.run("Pay.")
    assert result.state["total"] == 12.0
    assert result.state["user:flag"] is True
    assert [e.output for e in result if e.content] == [{"total": 12.0, "flag": True}]
    assert result.output == {"total": 12.0, "flag": True}


async def test_an_output_schema_is_held() -> None:
    async with peer(says(task("COMPLETED", {"data": {"id": "7"}}))) as far:
        for outputs in ("order", ()):
            remote = RemoteAgent("pay", endpoint=far.url, output_schema=Order, outputs=outputs)
            result = await remote.run("Pay.")
            assert result.state == ({"order": {"id": 7, "note": "none"}} if outputs else {})
            assert [e.output for e in result if e.content] == [{"id": 7, "note": "none"}]
            assert result.output == Order(id=7)


async def test_the_typed_answers_of_a_map_are_its_output() -> None:
    async with peer(says(task("COMPLETED", {"data": {"id": "7"}}))) as far:
        remote = RemoteAgent("pay", endpoint=far.url, output_schema=Order)
        result = await map_over("items", remote).run("Pay.", state={"items": [1, 2]})
    assert result.output == [Order(id=7), Order(id=7)]
    assert result.state["results"] == [{"id": 7, "note": "none"}] * 2


async def test_what_outputs_without_a_type_hold_is_told_as_it_came() -> None:
    async with peer(says(task("COMPLETED", {"data": {"n": 12, "x": [1]}}))) as far:
        result = await RemoteAgent("pay", endpoint=far.url, outputs=("n", "x")).run("Pay.")
    assert result.output == {"n": 12, "x": [1]}


@pytest.mark.parametrize("value", [[1, {"a": "b"}], "R1", 12, None, False])
@pytest.mark.parametrize("told", ["answer", "stream"])
async def test_data_that_is_no_object_is_an_answer(value: Any, told: str) -> None:
    part = {"data": value}
    update = artifact(part, last=True)
    reply = {
        "answer": says({"message": message(part)}),
        "stream": streams(task("WORKING"), update, status("COMPLETED")),
    }[told]
    async with peer(reply) as far:
        if told == "stream":
            streaming(far)
        result = await RemoteAgent("pay", endpoint=far.url, outputs="value").run("Pay.")
    assert json.loads(result.text) == {"value": value}
    assert result.state["value"] == (value if value is not None else '{"value": null}')
