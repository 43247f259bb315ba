"""Recording on ADK: what is on the tape, and what is not."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import BaseModel
from recorded_desk import CANARY, clerk, desk

from adk_fluent import Agent, Pipeline
from adk_fluent.debug import (
    Recorder,
    Recording,
    ReplayerBackend,
    diff_events,
    recorder,
    replay_async,
)
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.extend import find_middleware, to_agent_event
from adk_fluent.ir import ExecutionConfig, MiddlewareRef, content_hash
from adk_fluent.protocol import (
    AgentEvent,
    Middleware,
    ModelCall,
    ModelReply,
    NextModel,
    NextTool,
    ToolCall,
    ToolCallInfo,
    wrap,
)
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from adk_fluent.debug._notes import Note

pytestmark = pytest.mark.adk

Data = dict[str, Any]


async def test_calls_events_state_and_versions_are_recorded() -> None:
    pipeline = desk()
    with Recorder() as kept:
        result = await pipeline.run("Refund A1", state={"vip": True})
    recording = kept.recording
    assert not diff_events(recording.events, result)
    assert [each.agent_name for each in recording.llm_interactions][:2] == ["clerk", "clerk"]
    first = recording.llm_interactions[0]
    assert first.request_content[0]["parts"] == [{"text": "Refund A1"}]
    assert "Refund politely." in first.request["config"]["system_instruction"]
    assert first.usage is not None
    assert first.usage.prompt > 0
    [tool] = recording.tool_interactions
    assert (tool.tool_name, tool.args, tool.agent_name) == ("refund", {"order": "A1"}, "clerk")
    assert tool.result == {"status": "done", "order": "A1"}
    assert tool.effects == {"state_delta": {"refunded": "A1"}, "skip_summarization": False}
    assert recording.state_at(-1) == result.state
    assert recording.state_at(0) == {"vip": True}
    assert recording.pipeline_ir_hash == content_hash(pipeline.to_ir())
    assert "google-adk" in recording.metadata["versions"]
    assert recording.runs[0].status == "completed"


async def test_a_block_records_every_run_in_it_and_none_outside() -> None:
    pipeline, other = clerk(), Agent("other", ScriptedModel(default="Hi."))
    await pipeline.run("Hello")
    with recorder() as kept:
        await pipeline.run("Hello")
        assert await other.ask_async("Hello") == "Hi."
        await asyncio.gather(*(pipeline.run("Hello") for _ in range(3)))
    await pipeline.run("Hello")
    assert [run.status for run in kept.recording.runs] == ["completed"] * 5


async def test_as_a_middleware_by_name_and_by_object() -> None:
    kept = Recorder()
    await clerk().run("Hello", middleware=[kept])
    assert kept.get_recording().events[-1].content == "Good day."
    assert find_middleware("recorder").factory is Recorder
    await clerk().middleware(MiddlewareRef("recorder", {"capture_state": False})).run("Hello")


async def test_fragments_errors_and_cancelled_calls_are_recorded() -> None:
    kept = Recorder()
    streamed = ExecutionConfig(streaming_mode="sse")
    model = ScriptedModel(reply(chunks=["Good ", "day."], latency=0.01))
    await Agent("a", model).run("Hello", config=streamed, middleware=[kept])
    [call] = kept.recording.llm_interactions
    times = [each["t"] for each in kept.recording.runs[0].tape]
    assert times == sorted(times)
    assert times[-1] - times[0] >= call.latency_ms >= 5
    assert [each["content"]["parts"][0]["text"] for each in call.chunks] == ["Good ", "day."]
    failing = Recorder()
    with pytest.raises(ConnectionError):
        await Agent("a", ScriptedModel(ConnectionError("down"))).run("x", middleware=[failing])
    [call] = failing.recording.llm_interactions
    assert call.error is not None
    assert (call.error["type"], call.error["message"]) == ("builtins:ConnectionError", "down")
    assert failing.recording.runs[0].status == "failed"
    raced = Recorder()
    never = Agent("slow", ScriptedModel(default="too late", latency=60))
    from adk_fluent import race

    await race(Agent("fast", ScriptedModel(default="first")), never).run("x", middleware=[raced])
    assert [each.cancelled for each in raced.recording.llm_interactions].count(True) == 1


async def test_it_records_what_the_model_got_and_what_the_user_said() -> None:
    class Shouts:
        async def on_user_message(self, ctx: Any, message: Any) -> Any:
            message.parts[0].text = message.parts[0].text.upper()
            return message

    @wrap
    async def warns(call: ModelCall, next: NextModel) -> ModelReply:
        call.request.append_instructions(["Be careful."])
        return await next(call)

    kept = Recorder()
    await clerk().middleware(kept).middleware(Shouts()).middleware(warns).run("Hello")
    run = kept.recording.runs[0]
    assert run.message is not None
    assert run.message["parts"] == [{"text": "Hello"}]
    request = kept.recording.llm_interactions[0].request
    assert request["contents"][0]["parts"] == [{"text": "HELLO"}]
    assert "Be careful." in request["config"]["system_instruction"]


async def test_no_secret_reaches_a_file(tmp_path: Path) -> None:
    def login(user: str, password: str, tool_context: Any) -> str:
        """Log in."""
        tool_context.state["session_token"] = f"{password}!"
        return f"{user} is in, token {password}"

    model = ScriptedModel(Call("login", {"user": "ann", "password": CANARY}), f"used {CANARY}")
    pipeline = Agent("a", model).tool(login) >> Agent("b", ScriptedModel(default="Bye."))
    with Recorder() as kept:
        await pipeline.run(f"My password is {CANARY}.", state={"headers": {"x-api-key": CANARY}})
    kept.save(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text("utf-8")
    assert CANARY not in text
    assert "ann is in" in text


async def test_without_content_nothing_that_was_said_is_recorded(tmp_path: Path) -> None:
    with Recorder(capture_content=False) as kept:
        await desk().run(f"Refund A1 {CANARY}", state={"vip": "yes sir"})
    kept.save(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text("utf-8")
    for said in (CANARY, "yes sir", "politely", "agrees", "A1"):
        assert said not in text
    recording = Recording.load(tmp_path / "run.json")
    assert recording.llm_interactions[0].usage is not None
    assert recording.tool_interactions[0].tool_name == "refund"
    with pytest.raises(UsageError, match="no state"):
        recording.state_at(0)


async def test_without_state_the_deltas_of_events_stay() -> None:
    with Recorder(capture_state=False) as kept:
        await clerk().run("Refund A1", state={"vip": True})
    assert kept.recording.runs[0].state is None
    assert any("refunded" in event.state_delta for event in kept.recording.events)


async def test_saving_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run was recorded"):
        Recorder().save(tmp_path / "x.json")


def test_a_misspelt_argument_comes_with_the_nearest() -> None:
    options: Any = {"strem": "run.jsonl"}
    with pytest.raises(UnknownNameError, match=r"(?s)Recorder takes no 'strem'.*'stream'"):
        Recorder(**options)


async def test_what_changes_later_does_not_change_what_was_recorded() -> None:
    def add(tool_context: Any) -> str:
        """Add one."""
        tool_context.state["seen"] = [*tool_context.state.get("seen", []), 1]
        return "added"

    def spoil(state: Any) -> None:
        state["seen"].append(2)

    model = ScriptedModel(Call("add", {}), "done")
    with Recorder() as kept:
        await (Agent("a", model).tool(add) >> spoil).run("x")
    assert kept.recording.tool_interactions[0].effects == {"state_delta": {"seen": [1]}}


async def test_what_models_and_middlewares_change_later_does_not_change_what_was_recorded() -> None:
    class Spoils(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            for content in llm_request.contents:
                for part in content.parts or ():
                    part.text = "spoilt"
            llm_request.contents.append(types.Content(parts=[types.Part(text="spoilt")]))
            llm_request.config.temperature = 2.0
            llm_request.model = "spoilt"
            said = types.Content(role="model", parts=[types.Part(text="Good day.")])
            usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=3)
            yield LlmResponse(content=said, usage_metadata=usage)

    class Changes(Middleware):
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            reply = await next(call)
            for each in reply.responses:
                assert each.usage_metadata is not None
                each.content.parts[0].text = "changed"
                each.usage_metadata.prompt_token_count = 7_000
                each.error_message = "changed"
            return reply

    model = Spoils(model="m")
    with Recorder() as kept:
        result = await (Agent("a", model) >> Agent("b", model)).middleware(Changes()).run("x")
    assert [each.content for each in result] == ["changed", "changed"]
    first, second = kept.recording.llm_interactions
    assert first.request_content == [{"role": "user", "parts": [{"text": "x"}]}]
    assert "changed" in str(second.request_content[1]["parts"])  # what the second was really asked
    for each in (first, second):
        assert each.response_content[0]["parts"] == [{"text": "Good day."}]
        assert each.usage is not None
        assert each.usage.prompt == 3
        assert "spoilt" not in repr(each)
        assert "temperature" not in each.request["config"]
        assert "error_message" not in each.responses[0]


_PARTS: list[Data] = [
    {"text": "x"},
    {"text": "x", "thought": True},
    {"function_call": {"id": "1", "name": "f", "args": {"a": [1, None]}}},
    {"function_call": {"name": "f", "args": {"a": float("nan")}}},
    {"function_response": {"name": "f", "response": {"d": Decimal(1), "s": {1}}}},
    {"function_response": {"name": "f", "response": {"a": float("inf"), "o": object()}}},
    {"inline_data": {"data": b"\x00\xff", "mime_type": "image/png"}},
    {"text": "half \ud83d"},
]


class Shape(BaseModel):
    """A schema that is a class."""

    size: int


@pytest.mark.parametrize(
    "parts", [[], *([each] for each in _PARTS), _PARTS[:2], _PARTS[:1] * 2, _PARTS[1:3]]
)
def test_what_is_kept_is_what_was_asked_whatever_becomes_of_it(parts: list[Data]) -> None:
    from adk_fluent.debug import _adk

    content = types.Content(role="user", parts=[types.Part(**each) for each in parts])
    config = types.GenerateContentConfig(
        temperature=0.5,
        tools=[types.Tool(function_declarations=[types.FunctionDeclaration(name="f")])],
        thinking_config=types.ThinkingConfig(thinking_budget=7),
        response_schema=Shape,
        system_instruction=types.Content(parts=[types.Part(text="Hi")]),
    )
    plain = types.GenerateContentConfig(temperature=0.5, labels={"a": "b"})
    for each in (config, plain, types.GenerateContentConfig(stop_sequences=["x"])):
        request = LlmRequest(model="m", contents=[content, types.Content()], config=each)
        copy = request.model_copy(deep=True)
        kept = _adk.keep_request(request, {})
        content.role = each.temperature = None
        request.contents.append(content)
        each.stop_sequences = ["changed"]
        assert _adk.kept_request(kept) == _adk.dump_request(copy)
        content.role = "user"


def test_what_a_request_says_stands_in_it_as_json_has_it() -> None:
    from adk_fluent.debug import _adk

    parts = [types.Part(**each) for each in _PARTS]
    config = types.GenerateContentConfig(response_schema=Shape, labels={"a": "b"})
    asked = LlmRequest(model="m", contents=[types.Content(parts=parts)], config=config)
    made = json.loads(json.dumps(_adk.dump_request(asked), allow_nan=False))
    assert made["config"]["response_schema"]["title"] == "Shape"
    assert "labels" not in made["config"]
    said = made["contents"][0]["parts"]
    assert [each.get("text") for each in said] == ["x", "x", *[None] * 5, "half \ud83d"]
    assert said[1]["thought"] is True
    assert said[2]["function_call"] == {"id": 0, "name": "f", "args": {"a": [1, None]}}
    assert said[3]["function_call"]["args"] == {"a": "nan"}
    assert said[4]["function_response"]["response"] == {"d": "1", "s": [1]}
    assert said[5]["function_response"]["response"]["o"] == "<object>"
    assert said[6]["inline_data"]["data"].keys() == {"sha256"}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("odd", [{"content": "text"}, {"usage_metadata": {"a": 1}}])
def test_odd_messages_and_answers_are_kept_too(odd: Data) -> None:
    from adk_fluent.debug import _adk

    answer = LlmResponse(content=types.Content(parts=[types.Part(text="hi")]))
    vars(answer).update(odd)
    kept = _adk.kept_response(_adk.keep_response(answer))
    assert {name: kept[name] for name in odd} == odd
    request = LlmRequest(model="m")
    vars(request)["contents"] = ["text"]
    assert "text" in str(_adk.kept_request(_adk.keep_request(request, {}))["contents"])


@pytest.mark.parametrize("parts", [[], *([each] for each in _PARTS), _PARTS[:1] * 2])
def test_an_answer_that_is_kept_can_be_answered_again(parts: list[Data]) -> None:
    from adk_fluent.debug import _adk

    content = types.Content(role="model", parts=[types.Part(**each) for each in parts])
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=3)
    more: Data
    for more in ({}, {"usage_metadata": usage}, {"custom_metadata": {"k": [1]}, "partial": True}):
        answer = LlmResponse(content=content, **more)
        kept = _adk.kept_response(_adk.keep_response(answer))
        again = _adk.load_response(json.loads(json.dumps(kept)))
        assert again.model_copy(update={"content": None}) == answer.model_copy(
            update={"content": None}
        )
        assert again.content is not None
        asked = LlmRequest(contents=[again.content])
        assert _adk.dump_request(asked) == _adk.dump_request(LlmRequest(contents=[content]))


class Adds(Middleware):
    async def on_event(self, ctx: Any, event: AgentEvent) -> AgentEvent:
        return replace(event, state_delta={**event.state_delta, "added": 1})


class AddsInPlace(Middleware):
    async def on_event(self, ctx: Any, event: AgentEvent) -> AgentEvent:
        event.state_delta["added"] = 1
        return event


@pytest.mark.parametrize("adds", [Adds, AddsInPlace])
async def test_what_a_middleware_adds_to_state_is_recorded_and_replayed(
    adds: type[Middleware], tmp_path: Path
) -> None:
    def pipeline() -> Agent:
        return Agent("a", ScriptedModel("fine")).middleware(adds())

    with Recorder(stream=tmp_path / "run.jsonl") as kept:
        result = await pipeline().run("hi")
    for recording in (kept.recording, Recording.load(tmp_path / "run.jsonl")):
        assert not diff_events(recording.events, result)
        assert recording.state_at(-1) == {"added": 1}
        assert (await replay_async(pipeline(), recording)).ok


async def test_what_others_do_to_an_event_does_not_change_the_recording() -> None:
    class Spoils(Middleware):
        events: ClassVar[list[AgentEvent]] = []

        async def on_event(self, ctx: Any, event: AgentEvent) -> None:
            self.events.append(event)

    with Recorder() as kept:
        await Agent("a", ScriptedModel("fine")).middleware(Spoils()).run("hi")
    [event] = Spoils.events
    was = replace(event, **{name: {**getattr(event, name)} for name in ("metadata", "state_delta")})
    event.content = "spoilt"
    event.tool_calls.append(ToolCallInfo("spoilt"))
    for each in (event.state_delta, event.artifact_delta, event.metadata, event.custom_metadata):
        each["spoilt"] = 1
    [recorded] = kept.recording.events
    assert (
        recorded.to_dict()
        == replace(was, tool_calls=[], artifact_delta={}, custom_metadata={}).to_dict()
    )


def said(*parts: types.Part, **more: Any) -> Event:
    place = {"adk_fluent": {"path": "s1", "node": "a", "run": "r", **more.pop("place", {})}}
    more.setdefault("custom_metadata", {}).update(place)
    return Event(author="a", content=types.Content(role="model", parts=[*parts]), **more)


@pytest.mark.parametrize(
    "event",
    [
        said(types.Part(text="x"), types.Part(text="y"), partial=True),
        said(types.Part(text="x"), actions=EventActions(state_delta={"k": 1, "temp:t": 2})),
        said(actions=EventActions(state_delta={"k": [1, {"b"}]}), place={"discarded": ["s1"]}),
        said(actions=EventActions(escalate=True, artifact_delta={"f": 1}), error_code="E"),
        said(
            types.Part(text="x"),
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
        ),
        said(types.Part(function_call=types.FunctionCall(id="1", name="f", args={"x": [1]}))),
        said(types.Part(text="x"), custom_metadata={"c": {"d": [1]}}),
        Event(author="a", content=types.Content(parts=[types.Part(text="x")])),
        Event(author="a", content=types.Content(), custom_metadata={"adk_fluent": ["path"]}),
    ],
)
async def test_an_event_that_is_kept_is_what_would_be_written_at_once(event: Event) -> None:
    with Recorder() as kept:
        await Agent("a", ScriptedModel("fine")).run("hi")
    [run] = kept._runs  # nobody else can add to it
    assert isinstance(run, Middleware)
    run.see_event(None, event)
    data = to_agent_event(event).to_dict()
    data.get("state_delta", {}).pop("temp:t", None)
    changeable: Any = event.actions.state_delta.get("k")
    if isinstance(changeable, list):
        changeable[0] = "spoilt"
    assert event.content is not None
    for part in event.content.parts or ():
        part.text = "spoilt"
    event.actions.state_delta["spoilt"] = event.custom_metadata = {"spoilt": 1}
    event.author = "spoilt"
    assert kept.recording.runs[0].tape[-1]["event"] == data


async def test_the_settings_of_a_request_stay_what_they_were() -> None:
    class Spoils(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            config: Any = llm_request.config
            config.tools[0].function_declarations[0].description = "spoilt"
            config.thinking_config.thinking_budget = 1
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="ok")]))

    def look() -> str:
        """Look."""
        return "seen"

    thinks = types.ThinkingConfig(thinking_budget=7)
    config = types.GenerateContentConfig(thinking_config=thinks)
    agent = Agent("a", Spoils(model="m")).tool(look).generate_content_config(config)
    with Recorder() as kept:
        await agent.run("hi")
    asked = kept.recording.llm_interactions[0].request["config"]
    assert asked["thinking_config"] == {"thinking_budget": 7}
    assert asked["tools"][0]["function_declarations"][0]["description"] == "Look."


async def test_the_usage_of_an_answer_stays_what_it_was() -> None:
    from adk_fluent.debug import _adk

    detail = types.ModalityTokenCount(modality=types.MediaModality.AUDIO, token_count=3)
    usage = types.GenerateContentResponseUsageMetadata(prompt_tokens_details=[detail])
    said = types.Content(role="model", parts=[types.Part(text="x")])
    kept = _adk.keep_response(LlmResponse(content=said, usage_metadata=usage))
    detail.token_count = 999
    assert _adk.kept_response(kept)["usage_metadata"]["prompt_tokens_details"] == [
        {"modality": "AUDIO", "token_count": 3}
    ]


async def test_the_message_stays_what_it_was() -> None:
    message = types.Content(role="user", parts=[types.Part(text="first")])
    with Recorder() as kept:
        await clerk().run(message)
    assert message.parts is not None
    message.parts[0].text = "second"
    said = kept.recording.runs[0].message
    assert said is not None
    assert said["parts"] == [{"text": "first"}]


async def test_what_a_tool_returns_is_recorded_as_it_was_then(tmp_path: Path) -> None:
    counter: Data = {"items": []}

    def tick() -> Data:
        """Count."""
        counter["items"].append(1)
        return counter

    agent = Agent("a", ScriptedModel(Call("tick", {}), Call("tick", {}), "done")).tool(tick)
    with Recorder(stream=tmp_path / "run.jsonl") as kept:
        await agent.run("hi")
    for recording in (kept.recording, Recording.load(tmp_path / "run.jsonl")):
        results = [{"items": [1]}, {"items": [1, 1]}]
        assert [each.result for each in recording.tool_interactions] == results
        told = [each.result for event in recording.events for each in event.tool_responses]
        assert told == results


async def test_what_a_tool_does_to_what_was_written_before_it_is_recorded() -> None:
    class Begins(Middleware):
        async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
            call.ctx.state["log"] = ["middleware"]
            return await next(call)

    def work(tool_context: Any) -> str:
        """Work."""
        tool_context.state["log"].append("tool")
        return "done"

    def pipeline() -> Agent:
        agent = Agent("a", ScriptedModel(Call("work", {}), "done")).tool(work)
        return agent.middleware(Begins())

    with Recorder() as kept:
        await pipeline().run("hi")
    [tool] = kept.recording.tool_interactions
    assert tool.effects == {"state_delta": {"log": ["middleware", "tool"]}}
    assert (await replay_async(pipeline(), kept.recording)).ok


@pytest.mark.parametrize(
    "value", [float("nan"), float("-inf"), b"\xff", Decimal("1.10"), {"a"}, 10**400]
)
async def test_whatever_a_tool_returns_is_replayed(value: Any) -> None:
    def give() -> Data:
        """Give."""
        return {"x": value}

    def pipeline() -> Agent:
        return Agent("a", ScriptedModel(Call("give", {}), "done")).tool(give)

    with Recorder() as kept:
        await pipeline().run("hi")
    assert (await replay_async(pipeline(), kept.recording)).ok


async def test_arguments_that_are_no_numbers_are_replayed() -> None:
    def take(x: float) -> str:
        """Take."""
        return str(x)

    def pipeline() -> Agent:
        return Agent("a", ScriptedModel(Call("take", {"x": float("nan")}), "done")).tool(take)

    with Recorder() as kept:
        await pipeline().run("hi")
    assert kept.recording.tool_interactions[0].args == {"x": "nan"}
    assert (await replay_async(pipeline(), kept.recording)).ok


async def test_a_request_that_cannot_be_recorded_costs_no_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "false")  # ADK 1.25 fails in its own

    class Shapeless(BaseModel):
        @classmethod
        def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
            raise ValueError("no schema for you")

    config = types.GenerateContentConfig(response_json_schema=Shapeless)
    with Recorder() as kept:
        await Agent("good", ScriptedModel("fine")).run("hi")
        await Agent("odd", ScriptedModel("fine")).generate_content_config(config).run("hi")
    kept.save(tmp_path / "run.json")
    good, odd = Recording.load(tmp_path / "run.json").llm_interactions
    assert good.request_content == odd.request_content
    assert "the instruction alone are recorded: no schema for you" in caplog.text
    assert odd.response_content[0]["parts"] == [{"text": "fine"}]


async def test_settings_of_a_wrong_type_cost_no_recording(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS", "false")  # ADK 1.25 fails in its own

    @wrap
    async def spoils(call: ModelCall, next: NextModel) -> ModelReply:
        config: Any = call.request.config
        config.stop_sequences = ["x"]
        config.__dict__["temperature"] = "warm"
        return await next(call)

    with Recorder() as kept:
        await Agent("a", ScriptedModel("fine")).middleware(spoils).run("hi")
    kept.save(tmp_path / "run.json")
    [call] = Recording.load(tmp_path / "run.json").llm_interactions
    assert "temperature" in call.request["error"]["message"]
    assert call.response_content[0]["parts"] == [{"text": "fine"}]
    assert "could not be recorded" in caplog.text


async def test_a_request_is_not_kept_alive_and_what_it_repeats_is_held_once() -> None:
    from adk_fluent.debug import _adk

    alive: list[weakref.ref[Any]] = []

    def keep() -> list[Any]:  # pydantic may keep the locals of whoever makes the first model
        picture = types.Part(inline_data=types.Blob(data=b"x" * 1000, mime_type="image/png"))
        contents = [types.Content(parts=[picture]), types.Content(parts=[types.Part()])]
        config = types.GenerateContentConfig(stop_sequences=["y" * 1000])
        request = LlmRequest(contents=contents, config=config)
        alive.extend(weakref.ref(each) for each in (picture, config, *contents))
        known: Data = {}
        return [_adk.keep_request(request, known) for _ in range(2)]

    first, second = keep()
    assert isinstance(first, _adk.Asked)
    assert isinstance(second, _adk.Asked)
    assert first.contents[0] is second.contents[0]
    assert first.config[1] is second.config[1]
    gc.collect()
    assert [each() for each in alive] == [None] * 4


def tape_of(kept: Recorder) -> list[Note]:
    """What a recorder holds of its run."""
    [run] = kept._runs  # nobody else can look
    return run.tape


async def test_without_content_nothing_that_was_said_is_held() -> None:
    with Recorder(capture_content=False) as kept:
        await desk().run(f"Refund A1 {CANARY}", state={"vip": "yes sir"})
    notes = tape_of(kept)
    assert notes
    for said in (CANARY, "politely", "agrees", "Good day", "A1 is refunded"):
        assert said not in repr(notes)
    assert kept.recording.llm_interactions[0].usage is not None


@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
async def test_bookkeeping_is_not_held() -> None:
    with Recorder() as kept:
        pipeline = Agent("a", ScriptedModel("x")) >> Agent("b", ScriptedModel("x"))
        await pipeline.run("hi", config=ExecutionConfig(resumable=True))
    held = [each for each in tape_of(kept) if "event" in each[2](*each[3])]
    assert len(held) == len(kept.recording.events) == 2


async def test_half_a_character_is_recorded_saved_and_replayed(tmp_path: Path) -> None:
    def pipeline() -> Pipeline:
        broken = Agent("a", ScriptedModel(default="half \ud83d"))
        return broken >> Agent("b", ScriptedModel(default="Bye."))

    with Recorder() as kept:
        await pipeline().run("x")
    kept.save(tmp_path / "run.json")
    recording = Recording.load(tmp_path / "run.json")
    assert not recording.edited
    assert recording.events[0].content == "half \ud83d"
    assert (await replay_async(pipeline(), tmp_path / "run.json")).ok


async def test_no_secret_in_errors_headers_and_texts_reaches_a_file() -> None:
    def call() -> str:
        """Call."""
        raise ConnectionError(
            f"401 for https://ann:{CANARY}@host/?token={CANARY}", {"Authorization": CANARY}
        )

    headers = {"Authorization": f"Basic {CANARY}", "X-Goog-Api-Key": CANARY}
    config = types.GenerateContentConfig(http_options=types.HttpOptions(headers=headers))
    model = ScriptedModel(default=Call("call", {}))
    agent = Agent("a", model).tool(call).generate_content_config(config)
    with Recorder() as kept, pytest.raises(ConnectionError):
        await agent.run(f"export OPENAI_API_KEY={CANARY}", state={"user:api_key": CANARY})
    text = kept.recording.to_json()
    assert CANARY not in text
    assert "401 for" in text


@pytest.mark.parametrize("wrong", [None, 3])
async def test_what_is_no_recording_or_pipeline_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="takes a Recording"):
        ReplayerBackend(wrong)
    with Recorder() as kept:
        await clerk().run("Hello")
    with pytest.raises(UsageError, match="takes a pipeline"):
        await replay_async(wrong, kept.recording)
