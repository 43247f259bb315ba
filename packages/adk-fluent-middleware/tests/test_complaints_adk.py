"""What people complain about in middlewares of other frameworks; here it does not happen.

The complaints are issues of LangChain, deepagents, agentscope, Genkit, pydantic-ai, ADK for
JavaScript and Restate. Most have more tests beside the middleware they are about.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from kit import SSE, TWO_TOOLS, Time, search, weather
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.middleware import (
    cache,
    model_fallback,
    pii_filter,
    rate_limiter,
    retry,
    structured_log,
    summarization,
    timeout,
    tool_call_limit,
)
from adk_fluent.testing import AgentHarness, Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

EMAIL = "ann@example.com"


async def test_personal_data_in_arguments_of_tools_is_found() -> None:
    """langchain#37659: only texts were looked at."""
    given: list[Any] = []

    def send(to: list[str], times: int) -> dict[str, Any]:
        """Send it."""
        given.append((to, times))
        return {"sent": to}

    model = ScriptedModel(Call("send", {"to": [EMAIL, "Bob"], "times": 2}), "done")
    await Agent("a", model).tool(send).middleware(pii_filter()).run("hi")
    assert given == [(["[EMAIL]", "Bob"], 2)]
    assert EMAIL not in model.calls[1].prompt


class Contact(BaseModel):
    name: str
    mail: str
    age: int


async def test_structured_answers_stay_what_they_are() -> None:
    """langchain#37659: JSON was broken by what was put into it."""
    said = f'{{"name": "Ann", "mail": "{EMAIL}", "age": 40}}'
    pipeline = (Agent("a").mock(said) @ Contact).writes("contact").middleware(pii_filter())
    result = await pipeline.run("hi")
    assert result.state["contact"] == {"name": "Ann", "mail": "[EMAIL]", "age": 40}


async def test_the_summary_is_made_of_filtered_text() -> None:
    """langchain#40725: the summary model was sent what the filter had kept from the other."""
    maker = ScriptedModel(default="They talked.")
    model = ScriptedModel(default="answer " * 50)
    pipeline = (
        Agent("a", model)
        .middleware(pii_filter())
        .middleware(summarization(model=maker, trigger_tokens=100, keep_tokens=20))
    )
    harness = AgentHarness(pipeline)
    for _ in range(4):
        await harness.send(f"I am {EMAIL}. " + "word " * 60)
    assert maker.calls, "nothing was summarised"
    for asked in (*maker.calls, *model.calls):
        assert EMAIL not in repr(asked.raw.contents)


async def test_no_result_of_a_tool_is_left_without_its_call() -> None:
    """langchain#38352, #34282: a summary cut calls from their results, and providers said 400."""
    with GeminiEmulator(default="done") as gemini:
        script = [TWO_TOOLS[0], "one " * 80, TWO_TOOLS[0], "two " * 80, "three"]
        gemini.script = type(gemini.script)(*script, default="done")
        pipeline = (
            Agent("a", gemini.model())
            .tool(search)
            .tool(weather)
            .middleware(
                summarization(model=ScriptedModel(default="They talked."), trigger_tokens=60)
            )
        )
        harness = AgentHarness(pipeline)
        for _ in range(3):
            await harness.send("word " * 40)  # the emulator refuses what Gemini would refuse


async def test_a_limit_leaves_a_conversation_that_goes_on() -> None:
    """langchain#34159: calls over the limit had no results, and the next request was refused."""
    with GeminiEmulator(TWO_TOOLS[0], "I could not look up all.") as gemini:
        limit = tool_call_limit(per_run=1, on_exceeded="stop")
        pipeline = Agent("a", gemini.model()).tool(search).tool(weather).middleware(limit)
        assert (await pipeline.run("hi")).text == "I could not look up all."


async def test_cancellation_is_no_failure() -> None:
    """langchain#38837, #39121: retries and fallbacks caught what ends a run."""
    model, other = ScriptedModel(reply("late", latency=60)), ScriptedModel("never")
    pipeline = Agent("a", model).middleware(model_fallback(models=[other])).middleware(retry())
    running = asyncio.ensure_future(pipeline.run("hi"))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not other.calls


async def test_agents_in_agents_pass_through_each_middleware_once() -> None:
    """deepagents#184: what an agent had, its sub-agents had once more."""
    calls: list[str] = []

    class Counts:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            calls.append(call.agent)
            return await next(call)

    helper = Agent("helper").mock("helped")
    specialist = Agent("specialist").mock("done")
    model = ScriptedModel(
        Call("helper", {"request": "x"}), Call("transfer_to_agent", {"agent_name": "specialist"})
    )
    pipeline = Agent("a", model).agent_tool(helper).delegates(specialist)
    await pipeline.middleware(Counts()).run("hi")
    assert calls == ["a", "helper", "a", "specialist"]


async def test_an_error_after_a_stream_has_begun_is_seen() -> None:
    """agentscope#2757: it passed by everything that looks at errors."""
    log = structured_log()
    model = ScriptedModel(reply(chunks=["Half an ", "answer"], raises=ConnectionError("cut")), "x")
    pipeline = Agent("a", model).middleware(log, retry(clock=Time()))
    with pytest.raises(ConnectionError, match="cut"):
        await pipeline.run("hi", config=SSE)
    assert "on_model_error" in [entry["event"] for entry in log.log]
    assert len(model.calls) == 1


async def test_streams_pass_through_everything() -> None:
    """Several: a middleware that works on whole answers only, or makes one of a stream."""
    model = ScriptedModel(reply(chunks=["one ", "two ", "three"]))
    stack = (cache(), retry(), rate_limiter(concurrency=1), timeout(model=60.0))
    result = await Agent("a", model).middleware(*stack).run("hi", config=SSE)
    assert [each.content for each in result if each.is_partial] == ["one ", "two ", "three"]
    assert model.calls[0].stream


async def test_another_model_gets_the_settings_of_the_first() -> None:
    """Genkit: a fallback dropped the configuration."""
    with GeminiEmulator(reply(status=503), "from the other") as gemini:
        fallback = model_fallback(models=[gemini.model("gemini-2.5-flash")])
        agent = Agent("a", gemini.model("gemini-2.5-pro")).instruct("Be brief.")
        agent = agent.generate_content_config(types.GenerateContentConfig(temperature=0.1))
        await agent.tool(search).middleware(fallback).run("hi")
        first, second = gemini.requests
        assert (first.model, second.model) == ("gemini-2.5-pro", "gemini-2.5-flash")
        for part in ("contents", "systemInstruction", "tools", "generationConfig"):
            assert (first.body or {})[part] == (second.body or {})[part]


async def test_the_order_is_that_of_the_list() -> None:
    """pydantic-ai#7053: which one is outermost changed between versions."""
    order: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def before_model(self, ctx: Any, request: Any) -> None:
            order.append(f"before {self.name}")

        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            order.append(f"in {self.name}")
            made = await next(call)
            order.append(f"out {self.name}")
            return made

        async def after_model(self, ctx: Any, response: Any) -> None:
            order.append(f"after {self.name}")

    await Agent("a").mock("A").middleware(Named("1"), Named("2")).run("hi")
    assert order == [
        *("before 1", "before 2", "in 1", "in 2", "out 2", "out 1", "after 2", "after 1"),
    ]


async def test_who_only_looks_is_told_whoever_answers() -> None:
    """adk-js#342: the first that answered kept the others from seeing anything."""
    log = structured_log()

    class Answers:
        async def before_model(self, ctx: Any, request: Any) -> Any:
            from google.adk.models.llm_response import LlmResponse

            return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="no")]))

    await Agent("a").mock("A").middleware(Answers(), log).run("hi")
    assert {"before_model", "before_run", "after_run"} <= {each["event"] for each in log.log}


async def test_what_stands_around_a_call_leaves_the_other_hooks_alone() -> None:
    """sdk-python#191: a plugin that made the model's call itself kept all others from seeing it."""
    seen: list[str] = []

    def after_model(callback_context: Any, llm_response: Any) -> None:
        seen.append("callback")

    class After:
        async def after_model(self, ctx: Any, response: Any) -> None:
            seen.append("hook")

    agent = Agent("a", ScriptedModel(ConnectionError("reset"), "A")).after_model(after_model)
    await agent.middleware(After()).middleware(retry(clock=Time())).run("hi")
    assert seen == ["hook", "callback"]
