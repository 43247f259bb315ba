"""Runs in segments, in one process: what crosses, what is refused, and what runs once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider, sampling

from adk_fluent import Agent, FanOut, Route, gate, map_over
from adk_fluent.builders import Pipeline, State, until
from adk_fluent.distributed import (
    BoundaryError,
    DistributedRunError,
    InlineEngine,
    SegmentEngine,
    TransportConfig,
    idempotency_key,
    split,
)
from adk_fluent.errors import StepTimeoutError, UnstorableValueError, UsageError
from adk_fluent.ir import ExecutionConfig

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x
]


def bounded(name: str, answer: str) -> Agent:
    return Agent(name).mock(answer).writes(name).execution_boundary()


def keyed(name: str) -> Callable[[State], dict[str, object]]:
    def step(state: State) -> dict[str, object]:
        return {name: idempotency_key()}

    step.__name__ = name
    return step


async def test_state_and_transcript_cross_both_ways() -> None:
    pipeline = (
        Agent("a").mock("1").writes("one")
        >> bounded("heavy", "2").instruct("One is {one}.")
        >> Agent("z").mock("3").instruct("Heavy is {heavy}.")
    )
    result = await InlineEngine().run(pipeline, "Go.", run_id="r", state={"given": [1.5, None]})
    assert result.text == "3"
    assert [event.node for event in result] == ["a", "heavy", "z"]
    assert result.state == {"given": [1.5, None], "one": "1", "heavy": "2"}
    alone = await pipeline.run("Go.", state={"given": [1.5, None]})
    assert [each.content for each in alone] == [each.content for each in result]


def upper(state: State) -> dict[str, object]:
    return {"heavy": str(state.get("item") or state.get("heavy") or "").upper()}


def is_long(state: State) -> bool:
    return len(state.get("heavy") or "") > 0


def not_q(state: State) -> None:
    if state["item"] == "q":
        raise ValueError("q")


WHEREVER = {
    "route": Agent("a").mock("x").writes("k")
    >> Route("k").eq("x", bounded("heavy", "h")).otherwise(Agent("o").mock("o")),
    "loop": (bounded("heavy", "h") >> Agent("b").mock("b")) * until(is_long, max=3),
    "parallel": FanOut(bounded("heavy", "h"), bounded("light", "l"), Agent("c").mock("c")),
    "map": map_over("items", bounded("heavy", "h") >> upper, item_key="item", output_key="all"),
    "map that collects": map_over(
        "items", bounded("heavy", "h") >> not_q >> upper, item_key="item", on_error="collect"
    ),
    "map that skips in a boundary": map_over(
        "items", Pipeline(not_q, upper), item_key="item", result_key="heavy", on_error="skip"
    ).execution_boundary(),
    "fallback": bounded("heavy", "h").mock(RuntimeError("down")) // Agent("b").mock("b"),
}


@pytest.mark.parametrize("where", WHEREVER)
async def test_a_boundary_changes_nothing_wherever_it_stands(where: str) -> None:
    pipeline, state = WHEREVER[where], {"items": ["p", "q"]}
    alone = await pipeline.run("Go.", state=state)
    split_up = await InlineEngine().run(pipeline, "Go.", state=state)
    assert (split_up.text, split_up.state) == (alone.text, alone.state)
    assert sorted(str(e.content) for e in split_up) == sorted(str(e.content) for e in alone)


async def test_every_effect_has_a_key_of_its_own() -> None:
    body = Pipeline("heavy", keyed("first"), keyed("second")).execution_boundary()
    pipeline = Pipeline(keyed("main")) >> (body * 2)
    seen: list[str] = []

    def effect(state: State) -> None:
        seen.extend([idempotency_key("mail"), idempotency_key("page")])

    pipeline = pipeline >> effect
    result = await InlineEngine().run(pipeline, "Go.", run_id="r")
    assert result.state["main"] == "r:pipeline:s0/main"
    assert result.state["second"] == "r:heavy:s1.l1.s1/second"
    assert seen == ["r:pipeline:s2/effect:mail", "r:pipeline:s2/effect:page"]


async def test_a_tool_has_the_key_of_its_step() -> None:
    from adk_fluent.testing import Call, ScriptedModel  # imports ADK

    seen: list[str] = []

    def pay(amount: int) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        seen.append(idempotency_key())
        return "paid"

    model = ScriptedModel(Call("pay", {"amount": 3}), "Done.")
    pipeline = Agent("a").mock("A") >> Agent("payer", model).tool(pay).execution_boundary()
    await InlineEngine().run(pipeline, "Go.", run_id="r")
    assert seen == ["r:payer:s1/payer"]


async def test_a_gate_in_a_segment_pauses_the_run() -> None:
    inner = (gate(message="Sure?", name="sure") >> Agent("b").mock("B")).named("heavy")
    pipeline = Agent("a").mock("A") >> inner.execution_boundary() >> Agent("c").mock("C")
    engine = InlineEngine()
    stands = await engine.submit(pipeline, "Go.", run_id="r")
    assert (stands.status, stands.segment) == ("waiting", "heavy")
    assert [each.name for each in stands.pending] == ["sure"]
    assert (await engine.run(pipeline, "Go.", run_id="r")).pending == list(stands.pending)
    stands = await engine.answer("r", stands.pending[0].answer(True))
    assert (stands.status, stands.answer, stands.pending) == ("completed", "C", ())


async def test_an_answer_of_no_use_leaves_the_question_open() -> None:
    engine, pipeline = InlineEngine(), gate(message="Sure?", name="sure") >> Agent("b").mock("B")
    asked = await engine.submit(pipeline, "Go.", run_id="r")
    with pytest.raises(UsageError, match="is no answer to gate 'sure'"):
        await engine.answer("r", asked.pending[0].answer("perhaps"))
    with pytest.raises(UsageError, match="more than JSON can hold"):
        await engine.answer("r", asked.pending[0].answer(object()))
    stands = await engine.status("r")
    assert (stands.status, stands.pending, stands.error) == ("waiting", asked.pending, None)
    stands = await engine.answer("r", stands.pending[0].answer(True))
    assert (stands.status, stands.answer, stands.error) == ("completed", "B", None)


async def test_gates_of_two_segments_that_wait_together() -> None:
    one = (gate(message="1?", name="g1") >> Agent("b").mock("B")).named("one")
    two = (gate(message="2?", name="g2") >> Agent("c").mock("C")).named("two")
    engine = InlineEngine()
    stands = await engine.submit(
        FanOut(one.execution_boundary(), two.execution_boundary()), "Go.", run_id="r"
    )
    assert sorted(each.name for each in stands.pending) == ["g1", "g2"]
    second = next(each for each in stands.pending if each.name == "g2")
    stands = await engine.answer("r", second.answer(True))
    assert [each.name for each in stands.pending] == ["g1"]
    stands = await engine.answer("r", stands.pending[0].answer(True))
    assert stands.status == "completed"
    assert {"g1", "g2"} <= stands.state.keys()


async def test_a_refused_gate_rejects_the_run() -> None:
    ran: list[str] = []

    def after(state: State) -> None:
        ran.append("after")

    pipeline = gate(message="Sure?", name="sure") >> after
    engine = InlineEngine()
    asked = await engine.submit(pipeline, "Go.", run_id="r")
    stands = await engine.answer("r", asked.pending[0].answer(False))
    assert (stands.status, stands.state["sure"]["approved"], ran) == ("rejected", False, [])
    assert stands.error is None


async def test_a_failed_run_keeps_its_place() -> None:
    calls: list[str] = []

    def first(state: State) -> None:
        calls.append("first")

    def flaky(state: State) -> dict[str, object]:
        calls.append("flaky")
        if calls.count("flaky") == 1:
            raise ConnectionError("no network")
        return {"done": True}

    heavy = (Agent("b").mock("B") >> flaky).named("heavy").execution_boundary()
    pipeline, engine = first >> heavy, InlineEngine()
    with pytest.raises(DistributedRunError, match="run 'r' failed in segment 'heavy'") as raised:
        await engine.run(pipeline, "Go.", run_id="r")
    assert "ConnectionError: no network" in str(raised.value)
    assert "where: node 'flaky' at " in str(raised.value)
    stands = await engine.status("r")
    assert stands.error is not None
    error = dict(stands.error)
    assert Path(error.pop("location").rpartition(":")[0]) == Path(__file__)
    told = {"message": "no network", "node": "flaky", "code": "", "help": ""}
    assert (stands.status, error) == ("failed", {"type": "ConnectionError", **told})
    stands = await engine.answer("r")
    assert (stands.status, stands.state["done"]) == ("completed", True)
    assert calls == ["first", "flaky", "flaky"]


async def test_a_result_that_does_not_serialise_keeps_the_place() -> None:
    given: list[object] = [object(), 1]

    def give(state: State) -> dict[str, object]:
        return {"n": given.pop(0)}

    engine = InlineEngine()
    pipeline = Agent("a").mock("A") >> Pipeline("far", give).execution_boundary()
    stands = await engine.submit(pipeline, "Go.", run_id="r")
    error = stands.error or {}
    assert (stands.status, error["type"], error["node"]) == (
        "failed",
        "UnstorableValueError",
        "give",
    )
    assert error["code"] == UnstorableValueError.code
    stands = await engine.answer("r")
    assert (stands.status, stands.state) == ("completed", {"n": 1})


async def test_a_step_that_exits_fails_its_run() -> None:
    def leave(state: State) -> None:
        raise SystemExit(3)

    stands = await InlineEngine().submit(Agent("a").mock("A") >> leave, "Go.", run_id="r")
    assert stands.error is not None
    assert (stands.status, stands.error["type"]) == ("failed", "SystemExit")


async def test_a_run_is_begun_once() -> None:
    calls: list[int] = []

    def note(state: State) -> None:
        calls.append(1)

    pipeline, engine = Agent("a").mock("A") >> note, InlineEngine()
    assert isinstance(engine, SegmentEngine)
    for _ in range(2):
        assert (await engine.submit(pipeline, "Go.", run_id="r")).status == "completed"
    assert calls == [1]
    with pytest.raises(DistributedRunError, match="of another pipeline"):
        await engine.submit(Agent("b").mock("B"), "Go.", run_id="r")


async def test_a_call_that_was_done_before_does_nothing() -> None:
    """As after a crash between the last write of a segment and the engine's own note of it."""
    from google.adk.sessions import InMemorySessionService

    from adk_fluent.distributed import SegmentCall
    from adk_fluent.distributed._station_adk import Station

    calls: list[str] = []

    def note(state: State) -> None:
        calls.append(idempotency_key())

    heavy = (Agent("b").mock("B") >> note).named("heavy").execution_boundary()
    station = Station(Agent("a").mock("A") >> note >> heavy, None, InMemorySessionService())
    fingerprint = station.plan.fingerprint
    message, _ = await station.message_of("Go.", "r", "user")
    first = SegmentCall("r", "pipeline", 0, fingerprint, "user", message)
    results = [await station.advance(each) for each in (first, first)]
    assert [(each.status, each.next) for each in results] == [("running", "heavy")] * 2
    second = first.next("heavy")
    results = [await station.advance(each) for each in (second, second, first)]
    assert [(each.status, each.next, each.answer) for each in results] == [
        ("completed", None, "B")
    ] * 3
    assert calls == ["r:pipeline:s1/note", "r:heavy:s2.s1/note"]


async def test_temporary_keys_never_cross() -> None:
    seen: list[Any] = []

    def write(state: State) -> dict[str, object]:
        return {"temp:token": "x", "kept": 1}

    def read(state: State) -> None:
        seen.append((state.get("temp:token"), state.get("kept")))

    pipeline = (
        Pipeline(write, read) >> (Agent("b").mock("B") >> read).named("heavy").execution_boundary()
    )
    await InlineEngine().run(pipeline, "Go.")
    assert seen == [("x", 1), (None, 1)]
    with pytest.raises(UsageError, match="'temp:t' cannot cross"):
        await InlineEngine().submit(Agent("b").mock("B"), "Go.", state={"temp:t": 1})


async def test_keys_of_users_are_shared_by_runs() -> None:
    engine = InlineEngine()
    write = Agent("a").mock("Ann").writes("user:name") >> bounded("heavy", "h")
    await engine.run(write, "Go.", user_id="ann")
    read = bounded("heavy", "h") >> Agent("b").mock("B")
    for user, name in (("ann", "Ann"), ("bob", None)):
        assert (await engine.run(read, "Go.", user_id=user)).state.get("user:name") == name


async def test_a_deadline_crosses() -> None:
    import asyncio

    async def slow(state: State) -> None:
        await asyncio.sleep(60)

    heavy = (Agent("b").mock("B") >> slow).named("heavy").execution_boundary()
    engine = InlineEngine(config=ExecutionConfig(timeout_seconds=0.2))
    stands = await engine.submit(Agent("a").mock("A") >> heavy, "Go.", run_id="r")
    assert stands.error is not None
    error = {name: stands.error[name] for name in ("type", "code", "node")}
    assert (stands.segment, error) == (
        "heavy",
        {"type": "StepTimeoutError", "code": StepTimeoutError.code, "node": "pipeline"},
    )
    assert stands.error["help"]


async def test_the_trace_crosses() -> None:
    seen: list[int] = []

    def look(state: State) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    context = trace.SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=trace.TraceFlags(1))
    pipeline = Agent("a").mock("A") >> (Agent("b").mock("B") >> look).named("heavy")
    engine = InlineEngine()
    with trace.use_span(trace.NonRecordingSpan(context)):
        from adk_fluent.distributed._station_adk import trace_now  # imports ADK

        assert "traceparent" in trace_now()
        await engine.submit(pipeline, "Go.", run_id="r")
    assert seen == [0xABC]


async def test_a_run_is_one_trace_where_its_caller_has_none() -> None:
    seen: list[trace.SpanContext] = []

    def look(state: State) -> None:
        seen.append(trace.get_current_span().get_span_context())

    first = (Agent("a").mock("A") >> look).named("first")
    second = (Agent("b").mock("B") >> look).named("second").execution_boundary()
    pipeline = first >> gate(message="Go on?", name="on") >> second
    engine = InlineEngine()
    for id in ("r", "other"):
        stands = await engine.submit(pipeline, "Go.", run_id=id)
        await engine.answer(id, stands.pending[0].answer(True))
    ids = [each.trace_id for each in seen]
    assert (ids[0], ids[2]) == (ids[1], ids[3])
    assert len({0, *ids}) == 3
    assert all(each.trace_flags.sampled for each in seen)


def test_a_trace_that_nobody_has_begun_is_sampled_as_this_process_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from adk_fluent.distributed import _station_adk as adk

    never = TracerProvider(sampler=sampling.ParentBased(sampling.ALWAYS_OFF))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: never)
    context = adk._traced(adk.trace_now())
    assert not trace.get_current_span(context).get_span_context().trace_flags.sampled


async def test_what_is_refused() -> None:
    engine, pipeline = InlineEngine(), Agent("a").mock("A")
    remote = Agent("b").execution_boundary(transport=TransportConfig("http", "https://b.example"))
    with pytest.raises(BoundaryError, match="no A2A server can run 'b'"):
        await engine.submit(pipeline >> remote, "Go.")
    for state in (3, [1], {1: 2}):
        with pytest.raises(UsageError, match="state= is a mapping with text as keys"):
            await engine.submit(pipeline, "Go.", state=cast("Any", state))
    for large in ({"message": "x" * 8_000_000}, {"message": "x", "state": {"x": "y" * 8_000_000}}):
        with pytest.raises(UsageError, match="is too large to cross a boundary"):
            await engine.submit(pipeline, **cast("Any", large))
    for id in (3, "", "a b"):
        with pytest.raises(UsageError, match="run_id= is a text"):
            await engine.submit(pipeline, "Go.", run_id=cast("Any", id))
    for user in (3, ""):
        with pytest.raises(UsageError, match="user_id= is a text"):
            await engine.submit(pipeline, "Go.", user_id=cast("Any", user))
    with pytest.raises(UsageError, match="so it cannot cross a boundary"):
        await engine.submit(pipeline, "Go.", state={"f": object()})
    with pytest.raises(DistributedRunError, match="there is no run 'x'"):
        await engine.status("x")
    await engine.submit(pipeline, "Go.", run_id="r")
    with pytest.raises(DistributedRunError, match="does not wait for an answer"):
        await engine.answer("r")
    with pytest.raises(UsageError, match="takes answers"):
        await engine.answer("r", True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_a_waiting_run_is_cancelled() -> None:
    engine = InlineEngine()
    await engine.submit(gate(message="Sure?") >> Agent("a").mock("A"), "Go.", run_id="r")
    assert (await engine.cancel("r")).status == "cancelled"
    with pytest.raises(DistributedRunError, match="does not wait for an answer"):
        await engine.answer("r")


@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
def test_each_segment_is_an_app() -> None:
    plan = split(Agent("a").mock("A") >> bounded("heavy", "h"))
    apps = {name: plan.to_app(name) for name in plan.names}
    assert apps["pipeline"] is not apps["heavy"]
    assert len({app.name for app in apps.values()}) == 1
    assert all(app.resumability_config is not None for app in apps.values())
