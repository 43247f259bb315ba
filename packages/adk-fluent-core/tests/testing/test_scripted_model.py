from __future__ import annotations

import asyncio
import copy
import time
from contextlib import aclosing
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # here in every version
)
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import errors, types

from adk_fluent.errors import UsageError
from adk_fluent.protocol import Usage, classify
from adk_fluent.testing import (
    Call,
    Script,
    ScriptedModel,
    ScriptExhaustedError,
    Thought,
    reply,
    rule,
)

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event

pytestmark = pytest.mark.adk


def request(*turns: str, system: str = "", labels: dict[str, str] | None = None) -> LlmRequest:
    contents = [
        types.Content(role="model" if at % 2 else "user", parts=[types.Part(text=turn)])
        for at, turn in enumerate(turns or ("hi",))
    ]
    config = types.GenerateContentConfig(system_instruction=system or None, labels=labels)
    return LlmRequest(contents=contents, config=config)


async def answer(
    model: ScriptedModel, asked: LlmRequest | None = None, *, stream: bool = False
) -> list[LlmResponse]:
    async with aclosing(model.generate_content_async(asked or request(), stream=stream)) as answers:
        return [each async for each in answers]


def text(response: LlmResponse) -> str:
    parts = response.content.parts if response.content else None
    return "".join(part.text or "" for part in parts or ())


async def run(
    agent: BaseAgent, message: str = "hi", *, mode: StreamingMode = StreamingMode.NONE
) -> list[Event]:
    service = InMemorySessionService()
    session = await service.create_session(app_name="app", user_id="u")
    runner = Runner(app_name="app", agent=agent, session_service=service)
    content = types.Content(role="user", parts=[types.Part(text=message)])
    config = RunConfig(streaming_mode=mode)
    return [
        event
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=content, run_config=config
        )
    ]


async def test_a_text() -> None:
    (got,) = await answer(ScriptedModel("hello"))
    assert text(got) == "hello"
    assert got.content is not None
    assert got.content.role == "model"
    assert not got.partial
    assert got.finish_reason is types.FinishReason.STOP


async def test_streamed_text_comes_in_chunks_and_then_as_a_whole() -> None:
    model = ScriptedModel(reply(chunks=["he", "llo"]), "whole")
    streamed = await answer(model, stream=True)
    assert [(text(each), each.partial) for each in streamed] == [
        ("he", True),
        ("llo", True),
        ("hello", False),
    ]
    assert streamed[-1].finish_reason is types.FinishReason.STOP
    assert streamed[0].finish_reason is None
    at_once = await answer(model, stream=True)
    assert [(text(each), each.partial) for each in at_once] == [("whole", True), ("whole", False)]


async def test_chunks_without_streaming_are_one_text() -> None:
    (got,) = await answer(ScriptedModel(reply(chunks=["he", "llo"])))
    assert text(got) == "hello"


async def test_thoughts_calls_and_parts_in_order() -> None:
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    script = Script(reply(Thought("hm"), "so", Call("look_up", {"id": 3}, id="c1"), image))
    streamed = await answer(ScriptedModel(script=script), stream=True)
    # a call in a fragment would be run twice where progressive streaming is switched off
    assert [each.partial for each in streamed] == [True, True, False]
    assert streamed[-1].content is not None
    assert streamed[-1].content.parts is not None
    hm, so, call, picture = streamed[-1].content.parts
    assert (hm.text, hm.thought) == ("hm", True)
    assert (so.text, so.thought) == ("so", None)
    assert call.function_call is not None
    assert (call.function_call.name, call.function_call.args) == ("look_up", {"id": 3})
    assert call.function_call.id == "c1"
    assert picture == image
    assert picture is not image


async def test_usage_and_finish_reason() -> None:
    usage = Usage(prompt=100, cached=40, output=9, thoughts=5, tool=2, audio=30, image_output=4)
    (got,) = await answer(ScriptedModel(reply("cut", usage=usage, finish_reason="MAX_TOKENS")))
    assert got.finish_reason is types.FinishReason.MAX_TOKENS
    assert got.usage_metadata is not None
    assert got.usage_metadata.total_token_count == 116
    assert Usage.from_genai(got.usage_metadata) == usage


async def test_an_error_response() -> None:
    model = ScriptedModel(reply(error_code="SAFETY", error_message="blocked"))
    (got,) = await answer(model)
    assert (got.error_code, got.error_message, got.content) == ("SAFETY", "blocked", None)


async def test_exceptions_are_raised_as_they_are() -> None:
    error = ConnectionError("gone")
    model = ScriptedModel(error, default=error)
    for _ in range(2):
        with pytest.raises(ConnectionError) as caught:
            await answer(model)
        assert caught.value is error


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, errors.ClientError), (503, errors.ServerError), (400, errors.ClientError)],
)
async def test_a_status_is_an_error_of_genai(status: int, kind: type[errors.APIError]) -> None:
    with pytest.raises(kind) as caught:
        await answer(ScriptedModel(reply(status=status)))
    assert caught.value.code == status
    assert classify(caught.value) == ("permanent" if status == 400 else "retriable")


async def test_an_error_in_the_middle_of_a_stream() -> None:
    model = ScriptedModel(reply(chunks=["par"], raises=TimeoutError("late")))
    responses = model.generate_content_async(request(), stream=True)
    assert text(await anext(responses)) == "par"
    with pytest.raises(TimeoutError, match="late"):
        await anext(responses)


async def test_latency_and_pauses() -> None:
    start = time.perf_counter()
    await answer(
        ScriptedModel(reply(chunks=["a", "b", "c"], latency=0.02, pause=0.02)), stream=True
    )
    assert time.perf_counter() - start >= 0.055


async def test_a_response_of_its_own() -> None:
    own = LlmResponse(content=types.Content(role="model", parts=[]), model_version="v9")
    (got,) = await answer(ScriptedModel(own))
    assert got == own
    assert got is not own


async def test_what_a_reply_cannot_hold() -> None:
    with pytest.raises(UsageError, match="cannot hold a Decimal"):
        await answer(ScriptedModel(reply(Decimal(1))))


async def test_it_records_what_it_was_asked() -> None:
    parts = [
        types.Part(text="thinking", thought=True),
        types.Part(function_call=types.FunctionCall(name="f", args={"x": "ä"})),
    ]
    results = [
        types.Part(function_response=types.FunctionResponse(name="f", response={"result": 1})),
        types.Part(inline_data=types.Blob(data=b"12345", mime_type="image/png")),
        types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="text/csv")),
        types.Part(executable_code=types.ExecutableCode(code="1")),
    ]
    asked = request(
        "question", "draft", "again", system="Be kind.", labels={"adk_agent_name": "bob"}
    )
    asked.contents += [
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=results),
    ]
    model = ScriptedModel("ok")
    await answer(model, asked, stream=True)
    asked.contents.append(types.Content(role="model", parts=[types.Part(text="later")]))
    asked.config.system_instruction = "changed"
    (call,) = model.calls
    assert [(turn.role, turn.text) for turn in call.turns] == [
        ("user", "question"),
        ("model", "draft"),
        ("user", "again"),
        ("model", '[call f {"x": "ä"}]'),
        (
            "user",
            '[result f {"result": 1}]\n[image/png 5 bytes]\n[text/csv gs://a/b]\n[executable_code]',
        ),
    ]
    assert call.prompt.startswith("[result f")
    assert (call.system, call.agent, call.stream) == ("Be kind.", "bob", True)
    assert call.config.system_instruction == "Be kind."
    assert len(call.raw.contents) == 5


async def test_the_agent_is_known_by_its_instruction_too() -> None:
    model = ScriptedModel("ok")
    system = 'Be kind.\n\nYou are an agent. Your internal name is "bob". Help.'
    await answer(model, request(system=system))
    assert model.calls[0].agent == "bob"


async def test_copies_share_script_and_record() -> None:
    model = ScriptedModel("a", "b", "c", "d")
    copies = [
        model.model_copy(),
        model.model_copy(deep=True),
        copy.copy(model),
        copy.deepcopy(model),
    ]
    assert [text((await answer(each))[0]) for each in copies] == ["a", "b", "c", "d"]
    assert len(model.calls) == 4
    assert "script" not in model.model_dump()
    assert repr(model) == "ScriptedModel(model='scripted')"


def test_a_script_brings_its_replies() -> None:
    with pytest.raises(UsageError, match="brings its replies"):
        ScriptedModel("a", script=Script("b"))


async def test_in_an_agent_with_tools_and_rules() -> None:
    def look_up(order: str) -> dict[str, Any]:
        """Looks up an order."""
        return {"order": order, "state": "shipped"}

    model = ScriptedModel(
        rules=[
            rule("[result look_up", reply="It is on its way."),
            rule("where", agent="desk", reply=Call("look_up", {"order": "A1"})),
        ]
    )
    agent = LlmAgent(name="desk", model=model, instruction="Help.", tools=[look_up])
    events = await run(agent, "Where is order A1?")
    assert events[-1].content is not None
    assert (events[-1].content.parts or [])[0].text == "It is on its way."
    first, second = model.calls
    assert (first.agent, first.tools, first.number) == ("desk", ("look_up",), 0)
    assert first.prompt == "Where is order A1?"
    assert first.system.startswith("Help.")
    assert '"state": "shipped"' in second.prompt
    assert second.turns[0].text == "Where is order A1?"


async def test_tools_are_those_that_the_model_is_offered() -> None:
    def look_up(order: str) -> str:
        """Looks up an order."""
        return order

    def refund(order: str) -> str:
        """Pays back."""
        return order

    def leave_one(callback_context: Any, llm_request: Any) -> None:
        (tool,) = llm_request.config.tools
        kept = [each for each in tool.function_declarations if each.name == "refund"]
        search = types.Tool(google_search=types.GoogleSearch())
        llm_request.config.tools = [types.Tool(function_declarations=kept), search]

    model = ScriptedModel("ok")
    agent = LlmAgent(
        name="a", model=model, tools=[look_up, refund], before_model_callback=leave_one
    )
    await run(agent)
    (asked,) = model.calls
    assert asked.tools == ("refund",)
    assert set(asked.raw.tools_dict) == {"look_up", "refund"}


@pytest.mark.parametrize("mode", [StreamingMode.NONE, StreamingMode.SSE])
async def test_streaming_in_an_agent(mode: StreamingMode) -> None:
    model = ScriptedModel(reply(chunks=["he", "llo"]))
    agent = LlmAgent(name="a", model=model)
    events = await run(agent, mode=mode)
    whole = [("hello", False)]
    streamed = [("he", True), ("llo", True), *whole]
    assert [
        ((e.content.parts or [])[0].text if e.content else None, bool(e.partial)) for e in events
    ] == (streamed if mode is StreamingMode.SSE else whole)
    assert model.calls[0].stream is (mode is StreamingMode.SSE)


async def test_exhaustion_stops_the_run_with_its_own_type() -> None:
    with pytest.raises(ScriptExhaustedError, match="'a'"):
        await run(LlmAgent(name="a", model=ScriptedModel()))


async def test_concurrent_runs_share_one_model() -> None:
    model = ScriptedModel(
        lambda asked: reply(asked.prompt, latency=0.001), default=lambda a: a.prompt
    )
    agents = [LlmAgent(name=f"a{i}", model=model) for i in range(10)]
    runs = await asyncio.gather(*(run(agent, agent.name) for agent in agents))
    for agent, events in zip(agents, runs, strict=True):
        assert events[-1].content is not None
        assert (events[-1].content.parts or [])[0].text == agent.name
    assert len(model.calls) == 10
