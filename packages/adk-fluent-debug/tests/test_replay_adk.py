"""Replaying on ADK: no model is asked, no tool runs, and all else is as it was."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from recorded_desk import RAN, clerk, desk

from adk_fluent import Agent, gate, map_over, race, timeout
from adk_fluent.debug import (
    PipelineMismatchError,
    RecordedError,
    Recorder,
    Recording,
    RecordingFileError,
    ReplayerBackend,
    ReplayMismatchError,
    diff_events,
    replay_async,
)
from adk_fluent.debug._adk import load_error
from adk_fluent.errors import StepTimeoutError, UnknownNameError, UsageError
from adk_fluent.ir import ExecutionConfig, StateFieldRef
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, Redactor, wrap
from adk_fluent.testing import Call, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

STREAMED = ExecutionConfig(streaming_mode="sse")


def unasked(name: str = "a") -> Agent:
    """An agent whose model fails if it is asked."""
    return Agent(name, ScriptedModel())


async def recorded(pipeline: Any, message: Any = "Refund A1", **options: Any) -> Recording:
    with Recorder() as kept:
        await pipeline.run(message, **options)
    return Recording.from_json(kept.recording.to_json())


@pytest.mark.parametrize("config", [None, STREAMED], ids=["whole", "streamed"])
async def test_no_model_is_asked_and_no_tool_runs_but_their_effects_are_there(config: Any) -> None:
    RAN.clear()
    recording = await recorded(desk(late=0.01), config=config, state={"vip": True})
    assert RAN == ["A1"]
    backend = ReplayerBackend(recording)
    pipeline = desk()
    result = await pipeline.run("Refund A1", config=config, backend=backend)
    assert RAN == ["A1"]
    assert not diff_events(recording.events, result)
    assert result.state == recording.state_at(-1)
    assert result.state["refunded"] == "A1"
    assert result.state["vip"] is True
    assert backend.unused == []
    assert backend.missed == 0


@pytest.mark.parametrize("config", [None, STREAMED], ids=["whole", "streamed"])
async def test_an_answer_that_was_given_again_is_given_again(config: Any) -> None:
    keys = StateFieldRef("total", int), "number"

    def clerk(*replies: str) -> Agent:
        agent = Agent("clerk", ScriptedModel(*replies)).writes(*keys)
        return agent.output_retries(1)

    good = '{"total": 3, "number": "A1"}'
    recording = await recorded(clerk("It is 3.", good), config=config)
    backend = ReplayerBackend(recording)
    result = await clerk().run("Refund A1", config=config, backend=backend)
    assert result.state == {"total": 3, "number": "A1"}
    assert result.output == {"total": 3, "number": "A1"}
    assert not diff_events(recording.events, result)
    assert (backend.unused, backend.missed) == ([], 0)


@pytest.mark.parametrize("late", [0.0, 0.02], ids=["one first", "other first"])
async def test_parallel_steps_end_in_the_order_recorded(late: float) -> None:
    recording = await recorded(desk(late=late))
    order = [event.author for event in recording.events if event.branch]
    assert order == (["sales", "legal"] if late else ["legal", "sales"])
    for turned in (0.0, 0.02):
        result = await desk(late=turned).run("Refund A1", backend=ReplayerBackend(recording))
        assert [event.author for event in result if event.branch] == order


async def test_races_maps_and_timeouts_end_as_they_did() -> None:
    def build(first: float, second: float) -> Any:
        runners = (
            Agent(name, ScriptedModel(default=name, latency=seconds)).writes("won")
            for name, seconds in (("hare", first), ("tortoise", second))
        )
        each = Agent("each", ScriptedModel(default="seen", latency=0.001)).instruct("{item}")
        late = timeout(Agent("late", ScriptedModel(default="late", latency=60)), 0.05)
        spare = Agent("spare", ScriptedModel(default="instead"))
        return (
            race(*runners)
            >> map_over("orders", each, item_key="item", output_key="seen")
            >> (late // spare)
        )

    recording = await recorded(build(0.0, 0.05), state={"orders": ["A", "B", "C"]})
    began = asyncio.get_running_loop().time()
    result = await build(0.05, 0.0).run("Refund A1", backend=ReplayerBackend(recording))
    assert not diff_events(recording.events, result), diff_events(recording.events, result).summary
    assert result.state["won"] == "hare"
    assert result.text.endswith("instead")
    assert asyncio.get_running_loop().time() - began < 5


@pytest.mark.parametrize("on_error", ["collect", "skip"])
async def test_items_that_failed_fail_in_a_replay_too(on_error: Any) -> None:
    def build(model: ScriptedModel) -> Any:
        each = Agent("each", model).instruct("{_item}").history("none")
        return map_over("orders", each, on_error=on_error, concurrency=2, name="map")

    down = reply(raises=ConnectionError("down"))
    script = ScriptedModel(
        default="seen", rules=[rule(lambda asked: "bad" in asked.system, reply=down)]
    )
    state = {"orders": ["A", "bad", "C"]}
    recording = await recorded(build(script), state=state)
    result = await build(ScriptedModel()).run("Go", backend=ReplayerBackend(recording))
    assert not diff_events(recording.events, result), diff_events(recording.events, result).summary
    results = ["seen", None, "seen"] if on_error == "collect" else ["seen", "seen"]
    assert result.state["results"] == results
    assert len(result.discarded) == 1


async def test_a_timeout_strikes_without_waiting() -> None:
    pipeline = timeout(Agent("late", ScriptedModel(default="late", latency=60)), 0.05)
    with Recorder() as kept, pytest.raises(StepTimeoutError):
        await pipeline.run("x")
    patient = timeout(Agent("late", ScriptedModel(default="late", latency=60)), 0.05)
    with pytest.raises(StepTimeoutError):
        await patient.run("x", backend=ReplayerBackend(kept.recording))


async def test_retries_and_fallbacks_around_are_replayed_call_by_call() -> None:
    seen: list[str] = []

    @wrap
    async def again(call: ModelCall, next: NextModel) -> ModelReply:
        try:
            return await next(call)
        except ConnectionError as error:
            seen.append(str(error))
            return await next(call)

    def build(model: ScriptedModel) -> Any:
        return Agent("a", model).middleware(again)

    recording = await recorded(build(ScriptedModel(ConnectionError("down"), "back")))
    result = await build(ScriptedModel()).run("Refund A1", backend=ReplayerBackend(recording))
    assert seen == ["down", "down"]
    assert result.text == "back"


async def test_errors_come_back_with_their_own_type() -> None:
    pipeline = Agent("a", ScriptedModel(ConnectionError("down")))
    with Recorder() as kept, pytest.raises(ConnectionError):
        await pipeline.run("x")
    with pytest.raises(ConnectionError, match="down"):
        await unasked().run("x", backend=ReplayerBackend(kept.recording))


def test_an_error_of_an_unknown_type_imports_nothing() -> None:
    for name in ("no_such_module:Boom", "os:system", "builtins:KeyboardInterrupt", ""):
        error = load_error({"type": name, "message": "boom"})
        assert isinstance(error, RecordedError)
        assert error.type_name == name


async def test_a_paused_run_and_its_answer_are_on_the_tape() -> None:
    def build(model: ScriptedModel) -> Any:
        return gate(lambda state: True, message="Really?") >> Agent("a", model)

    pipeline = build(ScriptedModel("Done."))
    with Recorder() as kept:
        first = await pipeline.run("go")
        await pipeline.resume(first.pending[0].answer(True), session_id=first.session_id)
    recording = Recording.from_json(kept.recording.to_json())
    assert [run.status for run in recording.runs] == ["waiting", "completed"]
    assert recording.runs[1].resumed
    report = await replay_async(build(ScriptedModel()), recording)
    assert report.ok, report.summary
    backend = ReplayerBackend(recording)
    fresh = build(ScriptedModel())
    paused = await fresh.run("go", backend=backend)
    options = {"session_id": paused.session_id, "backend": backend}
    result = await fresh.resume(paused.pending[0].answer(True), **options)
    assert result.text == "Done."


async def test_several_turns_and_what_a_session_held_before_them() -> None:
    def build(*said: str) -> Any:
        return Agent("a", ScriptedModel(*said)).instruct("{k?}")

    pipeline = build("one", "two", "three")
    before = await pipeline.run("first", state={"k": 1})
    with Recorder() as kept:
        for message in ("second", "third"):
            await pipeline.run(message, session_id=before.session_id)
    recording = Recording.from_json(kept.recording.to_json())
    contents = recording.llm_interactions[0].request_content
    assert [each["parts"][0]["text"] for each in contents] == ["first", "one", "second"]
    report = await replay_async(build(), recording)
    assert report.ok, report.summary
    assert [each.text for each in report.results if each is not None] == ["two", "three"]


async def test_one_recording_many_times_and_several_at_once() -> None:
    one, other = await recorded(desk()), await recorded(clerk(), "Hello")
    backend = ReplayerBackend(one)
    for _ in range(2):
        assert not diff_events(one.events, await desk().run("Refund A1", backend=backend))
    results = await asyncio.gather(
        *(desk().run("Refund A1", backend=ReplayerBackend(one)) for _ in range(3)),
        *(clerk().run("Hello", backend=ReplayerBackend(other)) for _ in range(3)),
    )
    assert all(not diff_events(one.events, each) for each in results[:3])
    assert all(not diff_events(other.events, each) for each in results[3:])


async def test_a_block_replays_whatever_is_run_in_it() -> None:
    recording = await recorded(clerk(), "Hello")
    with ReplayerBackend(recording) as backend:
        assert await clerk().ask_async("Hello") == "Good day."
    assert backend.unused == []


# --- mismatches ----------------------------------------------------------------------------------


async def test_a_changed_message_is_a_mismatch_at_the_first_call() -> None:
    recording = await recorded(clerk())
    with pytest.raises(ReplayMismatchError) as caught:
        await clerk().run("Refund B2", backend=ReplayerBackend(recording))
    error = caught.value
    assert error.path == ".contents[0].parts[0].text"
    assert (error.recorded, error.now) == ("Refund A1", "Refund B2")
    assert "agent 'clerk', model call #1" in error.what
    assert "recorded: 'Refund A1'" in str(error)
    assert "now:      'Refund B2'" in str(error)


async def test_changed_state_is_a_mismatch_at_the_call_that_reads_it() -> None:
    pipeline = Agent("a", ScriptedModel(default="x")) >> Agent(
        "b", ScriptedModel(default="y")
    ).instruct("Be {tone}.")
    recording = await recorded(pipeline, state={"tone": "kind"})
    with pytest.raises(ReplayMismatchError, match="agent 'b', model call #1") as caught:
        await pipeline.run("Refund A1", backend=ReplayerBackend(recording), state={"tone": "rude"})
    assert caught.value.path == ".config.system_instruction"


async def test_another_pipeline_is_an_error_that_names_the_node() -> None:
    recording = await recorded(desk())
    with pytest.raises(PipelineMismatchError, match="AgentNode 'clerk' has changed"):
        await desk("Refund rudely.").run("Refund A1", backend=ReplayerBackend(recording))
    with pytest.raises(PipelineMismatchError, match="'closing' is gone"):
        await clerk().run("Refund A1", backend=ReplayerBackend(recording))


async def test_an_edited_answer_is_replayed_and_an_edited_request_is_a_mismatch() -> None:
    text = (await recorded(clerk())).to_json()
    edited = Recording.from_json(text.replace("A1 is refunded.", "A1 is lost."))
    assert (await clerk().run("Refund A1", backend=ReplayerBackend(edited))).text == "A1 is lost."
    edited = Recording.from_json(text.replace("Refund politely.", "Refund gladly."))
    with pytest.raises(ReplayMismatchError, match="system_instruction"):
        await clerk().run("Refund A1", backend=ReplayerBackend(edited))


async def test_changed_arguments_of_a_tool_are_a_mismatch() -> None:
    text = (await recorded(clerk())).to_json()
    data = json.loads(text)
    tape = data["runs"][0]["tape"]
    next(each for each in tape if "tool_call" in each)["args"] = {"order": "Z9"}
    with pytest.raises(ReplayMismatchError, match="tool 'refund'") as caught:
        await clerk().run(
            "Refund A1", backend=ReplayerBackend(Recording.from_json(json.dumps(data)))
        )
    assert caught.value.path == ".order"


async def test_skip_answers_with_nothing_and_live_with_the_model() -> None:
    recording = await recorded(clerk())
    skipped = ReplayerBackend(recording, on_mismatch="skip")
    assert (await clerk().run("Hello", backend=skipped)).text == ""
    assert skipped.missed == 1
    assert len(skipped.unused) == 3
    live = ReplayerBackend(recording, on_mismatch="live")
    assert (await clerk().run("Hello", backend=live)).text == "Good day."


async def test_live_then_record_records_the_run_as_it_goes_now() -> None:
    recording = await recorded(clerk())
    backend = ReplayerBackend(recording, on_mismatch="live_then_record")
    await clerk().run("Hello", backend=backend)
    again = await clerk().run("Hello", backend=ReplayerBackend(backend.recorded))
    assert again.text == "Good day."
    with pytest.raises(UsageError, match="nothing was recorded"):
        _ = ReplayerBackend(recording).recorded


async def test_tools_may_run_all_or_by_name() -> None:
    recording = await recorded(clerk())
    for tools, runs in (("live", 1), ({"refund": "live"}, 1), ({"refund": "replay"}, 0)):
        RAN.clear()
        backend = ReplayerBackend(recording, tools=tools)  # pyright: ignore[reportArgumentType]
        assert (await clerk().run("Refund A1", backend=backend)).text == "A1 is refunded."
        assert len(RAN) == runs


async def test_that_a_block_replays_nothing_in_other_threads_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recording = await recorded(Agent("a", ScriptedModel(default="hello")), "hi")
    with ReplayerBackend(recording), ThreadPoolExecutor(1) as pool:
        pool.submit(Agent("a", ScriptedModel(default="live")).ask, "hi").result()
    assert "no run was replayed in this block" in caplog.text
    caplog.clear()
    with ReplayerBackend(recording) as backend:
        assert (await Agent("a", ScriptedModel(default="live")).run("hi")).text == "hello"
    assert caplog.text == ""
    with backend:
        pass
    assert "no run was replayed in this block" in caplog.text


async def test_what_was_not_asked_for_is_told(caplog: pytest.LogCaptureFixture) -> None:
    recording = await recorded(clerk())
    data = json.loads(recording.to_json())
    tape = data["runs"][0]["tape"]
    more = [{"t": 9, "model_call": 99, "agent": "clerk"}, {"t": 9, "reply_of": 99}]
    data["runs"][0]["tape"] = tape + more
    backend = ReplayerBackend(Recording.from_json(json.dumps(data)))
    await clerk().run("Refund A1", backend=backend)
    assert [each.agent_name for each in backend.unused] == ["clerk"]
    assert "1 recorded call not asked for" in caplog.text


async def test_what_never_happens_is_waited_for_no_longer_than_patience(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = json.loads((await recorded(desk())).to_json())
    stray = {"t": 0, "event": {"author": "nobody", "content": "hi"}}
    data["runs"][0]["tape"].insert(0, stray)
    backend = ReplayerBackend(Recording.from_json(json.dumps(data)), patience=0.01)
    with caplog.at_level(logging.WARNING):
        result = await desk().run("Refund A1", backend=backend)
    assert result.text.endswith("Bye.")
    assert "the event of 'nobody' did not happen within 0.01 s" in caplog.text


async def test_what_nobody_cancels_any_more_is_a_mismatch() -> None:
    data = json.loads((await recorded(clerk())).to_json())
    data["runs"][0]["tape"][1] = {"reply_of": 0, "cancelled": True}
    backend = ReplayerBackend(Recording.from_json(json.dumps(data)), patience=0.01)
    with pytest.raises(ReplayMismatchError, match="clerk: model: this call was cancelled"):
        await clerk().run("Refund A1", backend=backend)


async def test_an_answer_that_is_missing_is_a_mismatch_at_once() -> None:
    whole = json.loads((await recorded(clerk())).to_json())
    for number in (0, 1, 2):  # a model call, a tool call, a model call
        data = json.loads(json.dumps(whole))
        tape = data["runs"][0]["tape"]
        [end] = [each for each in tape if number in (each.get("reply_of"), each.get("result_of"))]
        end |= {key: 99 for key in end if key in {"reply_of", "result_of"}}
        backend = ReplayerBackend(Recording.from_json(json.dumps(data)))
        with pytest.raises(
            ReplayMismatchError, match="'clerk' makes a call whose answer"
        ) as caught:
            await asyncio.wait_for(clerk().run("Refund A1", backend=backend), 5)
        assert f"begins call {number}, and none ends it" in str(caught.value)


@pytest.mark.parametrize("where", ["branch", "step", "function", "at the end"])
async def test_a_run_that_was_cancelled_is_cancelled_there(where: str) -> None:
    runs: list[asyncio.Task[Any]] = []

    def is_asked(_: object) -> bool:
        while runs:
            runs.pop().cancel()
        return True

    async def stuck(state: Any) -> None:
        is_asked(state)
        await asyncio.Event().wait()

    first, after = Agent("first", ScriptedModel(default="1")), Agent("after", ScriptedModel())
    slow = Agent("slow", ScriptedModel(rules=[rule(is_asked, reply=reply("", latency=60))]))
    pipeline: Any = {
        "branch": first >> (slow | Agent("other", ScriptedModel(default="2"))) >> after,
        "step": first >> slow >> after,
        "function": first >> stuck >> after,
        "at the end": first >> stuck,
    }[where]
    with Recorder() as kept:
        task = asyncio.create_task(pipeline.run("Hello"))
        runs.append(task)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert kept.recording.runs[0].status == "cancelled"
    report = await replay_async(pipeline, kept.recording)
    assert report.ok, report.summary


async def test_callers_cancel_replays_as_they_cancelled_runs() -> None:
    slow = Agent("slow", ScriptedModel(default=reply("", latency=60)))
    spare = Agent("spare", ScriptedModel(default="spare"))

    async def answer() -> str:
        try:
            return (await asyncio.wait_for(slow.run("Hello"), 0.05)).text
        except TimeoutError:
            return (await spare.run("Hello")).text

    with Recorder() as kept:
        assert await answer() == "spare"
    with ReplayerBackend(kept.recording):
        assert await answer() == "spare"


async def test_a_stream_that_was_broken_off_is_replayed() -> None:
    pipeline = Agent("a", ScriptedModel(default="1")) >> Agent("b", ScriptedModel(default="2"))
    with Recorder() as kept:
        async with aclosing(pipeline.stream("Hello")) as events:
            async for _ in events:
                break
    report = await replay_async(pipeline, kept.recording)
    assert report.ok, report.summary


async def test_a_mismatch_that_a_middleware_makes_good_is_one_all_the_same() -> None:
    made_good: list[str] = []

    @wrap
    async def instead(call: ModelCall, next: NextModel) -> ModelReply:
        try:
            return await next(call)
        except LookupError as error:
            made_good.append(type(error).__name__)
            said = types.Content(role="model", parts=[types.Part(text="Good.")])
            return ModelReply([LlmResponse(content=said)])

    recording = await recorded(clerk())
    with pytest.raises(ReplayMismatchError, match="agent 'clerk', model call #1"):
        await clerk().middleware(instead).run("Refund B2", backend=ReplayerBackend(recording))
    assert made_good == ["ReplayMismatchError"]


async def test_a_report_says_that_errors_and_state_differ() -> None:
    def build(broken: bool) -> Any:
        def count(state: Any) -> dict[str, int]:
            if broken:
                raise ConnectionError("down")
            return {"n": 1}

        return Agent("a", ScriptedModel(default="x")) >> count

    data = json.loads((await recorded(build(broken=False))).to_json())
    del data["runs"][0]["pipeline"]
    recording = Recording.from_json(json.dumps(data))
    report = await replay_async(build(broken=True), recording)
    [problem] = report.problems
    assert problem == "run 0 raised nothing and now builtins:ConnectionError: down"
    for entry in data["runs"][0]["tape"]:
        if "state_delta" in entry.get("event", ()):
            entry["event"]["state_delta"] = {"n": 2}
    edited = Recording.from_json(json.dumps(data))
    report = await replay_async(build(broken=False), edited)
    assert report.problems == ["run 0 ends with other state at .n: 2 -> 1"]
    assert not report.ok


async def test_secrets_that_were_taken_out_do_not_keep_a_run_from_matching() -> None:
    def login(user: str, password: str) -> str:
        """Log in."""
        return f"{user} is in"

    def build(*said: Any) -> Any:
        return Agent("a", ScriptedModel(*said)).tool(login)

    said = "I am ann, hunter2hunter2"
    call = Call("login", {"user": "ann", "password": "hunter2hunter2"})
    recording = await recorded(build(call, "Welcome."), said)
    assert "hunter2" not in recording.to_json()
    result = await build().run(said, backend=ReplayerBackend(recording))
    assert result.text == "Welcome."


async def test_what_ones_own_function_took_out_does_not_keep_a_run_from_matching() -> None:
    no_orders = Redactor(keys={"order"})
    with Recorder(redact=no_orders) as kept:
        await clerk().run("Refund A1")
    assert kept.recording.tool_interactions[0].args == {}
    backend = ReplayerBackend(kept.recording, redact=no_orders)
    assert (await clerk().run("Refund A1", backend=backend)).text == "A1 is refunded."
    assert (backend.unused, backend.missed) == ([], 0)


async def test_a_tool_that_runs_agents_is_answered_without_running_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def build(inner: ScriptedModel, outer: ScriptedModel) -> Any:
        return Agent("boss", outer).agent_tool(Agent("helper", inner))

    call = Call("helper", {"request": "help"})
    recording = await recorded(build(ScriptedModel("helped"), ScriptedModel(call, "thanks")))
    backend = ReplayerBackend(recording)
    result = await build(ScriptedModel(), ScriptedModel()).run("Refund A1", backend=backend)
    assert result.text == "thanks"
    assert not diff_events(recording.events, result)
    assert backend.unused == []
    assert caplog.text == ""


def test_what_cannot_be_replayed_is_refused(tmp_path: Path) -> None:
    empty = Recording([], {})
    with pytest.raises(UsageError, match="seconds above 0"):
        ReplayerBackend(empty, patience=-1)
    with pytest.raises(UsageError, match="no run"):
        ReplayerBackend(empty)
    with pytest.raises(UsageError, match="no content"):
        ReplayerBackend(Recording([], {"capture_content": False}))
    with pytest.raises(UnknownNameError):
        ReplayerBackend(empty, on_mismatch="explode")  # pyright: ignore[reportArgumentType]
    with pytest.raises(OSError, match="cannot be read"):
        ReplayerBackend(tmp_path / "none.json")


async def test_fragments_come_back_as_they_were() -> None:
    pipeline = Agent("a", ScriptedModel(reply(chunks=["Good ", "day."])))
    recording = await recorded(pipeline, config=STREAMED)
    again = [
        event
        async for event in unasked().stream(
            "Refund A1", config=STREAMED, backend=ReplayerBackend(recording)
        )
    ]
    assert not diff_events(recording.events, again)
    assert [event.content for event in again if event.is_partial] == ["Good ", "day."]


async def test_the_name_of_no_tool_is_refused() -> None:
    with Recorder() as kept:
        await clerk().run("Refund A1")
    wrong = ReplayerBackend(kept.recording, tools={"refnd": "live"})
    with pytest.raises(UnknownNameError, match="refund"):
        await clerk().run("Refund A1", backend=wrong)
    live = ReplayerBackend(kept.recording, tools={"refund": "live", "clerk": "replay"})
    RAN.clear()
    await clerk().run("Refund A1", backend=live)
    assert RAN == ["A1"]


@pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL")  # as ADK 1.x calls confirmations
async def test_a_tool_that_asks_for_its_confirmation_asks_and_is_answered_again() -> None:
    def pay(tool_context: Any) -> str:
        """Pay."""
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="sure?", payload={"amount": 1})
            return "asked"
        return "paid"

    def pipeline() -> Agent:
        return Agent("a", ScriptedModel(Call("pay", {}), "Done.")).tool(pay)

    with Recorder() as kept:
        paying = pipeline()
        paused = await paying.run("Pay")
        [question] = paused.pending
        await paying.resume(question.answer(True), session_id=paused.session_id)
    assert [each.result for each in kept.recording.tool_interactions] == ["asked", "paid"]
    report = await replay_async(pipeline(), kept.recording)
    assert report.ok, report.summary


async def test_a_report_is_told_in_short_and_can_be_copied() -> None:
    recording = await recorded(clerk(), "Hello")
    report = await replay_async(clerk(), recording)
    assert repr(report) == "<ReplayReport: as recorded, no difference in 1 event>"
    for each in (copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert each.ok
        assert repr(each) == repr(report)


def test_what_is_no_path_of_a_recording_is_refused() -> None:
    wrong: Any = 3
    for use in (Recording.load, Recording([], {}).save, Recording([], {}).to_html):
        with pytest.raises(UsageError, match="given by its path"):
            use(wrong)
    with pytest.raises(RecordingFileError, match="take a file that Recorder"):
        Recording.from_json("from pathlib import Path")
