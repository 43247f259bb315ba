"""Rate limits, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from kit import SSE, TWO_TOOLS, Time, clerk, search, until, weather

from adk_fluent import Agent
from adk_fluent.middleware import RateLimitError, rate_limiter, retry
from adk_fluent.middleware._resilience import _limiter
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

START = Time().time
LONG = types.GenerateContentConfig(max_output_tokens=600)


def at_once(**options: Any) -> tuple[Any, Time]:
    """A limiter that nobody really waits for, and its clock."""
    time = Time()
    return rate_limiter(clock=time, **options), time


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    limiter, time = at_once(requests_per_minute=2)
    with GeminiEmulator(default="ok") as gemini:
        pipeline = clerk(gemini, limiter)
        for expected in (0.0, 0.0, 60.0, 60.0, 120.0):
            assert (await pipeline.run("hi")).text == "ok"
            assert time.time - START == expected
        assert len(gemini.requests) == 5
    named = {"gen_ai__request__model": "gemini-2.5-flash", "adk_fluent__call": "model"}
    assert metrics("adk_fluent.limiter.wait", **named) == 120.0
    assert len(metrics.points) == 5


async def test_streamed() -> None:
    limiter, time = at_once(requests_per_minute=1)
    with GeminiEmulator(default=reply(chunks=["a", "b", "c"])) as gemini:
        pipeline = clerk(gemini, limiter)
        for _ in range(2):
            result = await pipeline.run("hi", config=SSE)
            assert [each.content for each in result if each.is_partial][:3] == ["a", "b", "c"]
    assert time.time - START == 60.0


async def test_parallel_tools(metrics: Measured) -> None:
    """Tools have limits of their own, by name."""
    limiter, time = at_once(tools={"search": 1})
    when: dict[str, list[float]] = {"search": [], "weather": []}

    async def search(word: str) -> str:
        when["search"].append(time.time - START)
        return "found"

    async def weather(city: str) -> str:
        when["weather"].append(time.time - START)
        return "sun"

    model = ScriptedModel(*TWO_TOOLS * 2)
    pipeline = Agent("a", model).tool(search).tool(weather).middleware(limiter)
    for _ in range(2):
        assert (await pipeline.run("hi")).text == "done"
    assert when["search"] == [0.0, 60.0]
    assert len(when["weather"]) == 2
    assert metrics("adk_fluent.limiter.wait", gen_ai__tool__name="search") == 60.0
    assert metrics("adk_fluent.limiter.wait", gen_ai__tool__name="weather") == 0
    assert len(metrics.points) == 2


async def test_cancelled() -> None:
    """Who waits no longer makes room for the next, and takes nothing."""
    limiter = rate_limiter(concurrency=1)
    model = ScriptedModel(reply("slow", latency=60), "ok")
    pipeline = Agent("a", model).middleware(limiter)
    slow = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: len(model.calls) == 1)
    gone = asyncio.ensure_future(pipeline.run("hi"))
    patient = asyncio.ensure_future(pipeline.run("hi"))
    await asyncio.sleep(0.1)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert not patient.done()
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert (await patient).text == "ok"
    assert len(model.calls) == 2


async def test_error_after_the_first_partial() -> None:
    """What has failed is over, and what it has taken is taken."""
    limiter, time = at_once(tokens_per_minute=1000, concurrency=1)
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(half, "whole") as gemini:
        pipeline = Agent("a", gemini.model()).generate_content_config(LONG).middleware(limiter)
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await pipeline.run("hi", config=SSE)
        assert (await pipeline.run("hi")).text == "whole"
    assert time.time - START == 60.0


async def test_concurrent() -> None:
    """All runs stand in one line."""
    at_work, most = 0, 0

    class Counts:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            try:
                return await next(call)
            finally:
                at_work -= 1

    model = ScriptedModel(default=reply("ok", latency=0.02))
    limiter = rate_limiter(concurrency=3)
    pipeline = Agent("a", model).middleware(limiter).middleware(Counts())
    results = await asyncio.gather(*(pipeline.run("hi") for _ in range(12)))
    assert [each.text for each in results] == ["ok"] * 12
    assert most == 3


async def test_one_within_itself_lets_each_call_wait_once(metrics: Measured) -> None:
    """Around a pipeline and around a part of it, a call would wait for itself."""
    limiter, _ = at_once(concurrency=1, requests_per_minute=2, max_wait=0)
    part = Agent("b", ScriptedModel("two")).middleware(limiter, scope="agent")
    pipeline = (Agent("a", ScriptedModel("one")) >> part).middleware(limiter).middleware(limiter)
    async with asyncio.timeout(10):
        assert (await pipeline.run("hi")).text == "two"
    with pytest.raises(RateLimitError):  # two have gone, and each was counted once
        await Agent("c", ScriptedModel("three")).middleware(limiter).run("hi")
    assert metrics("adk_fluent.limiter.wait") == 0
    assert len(metrics.points) == 2


async def test_one_within_itself_lets_each_tool_wait_once() -> None:
    limiter, time = at_once(tools={"search": 2})
    model = ScriptedModel(TWO_TOOLS[0], TWO_TOOLS[0], "done")
    pipeline = Agent("a", model).tool(search).tool(weather)
    assert (await pipeline.middleware(limiter, limiter).run("hi")).text == "done"
    assert time.time == START


async def test_a_tool_within_a_tool_of_the_same_name_is_another_call() -> None:
    limiter, time = at_once(tools={"search": 1})
    inner = Agent("search", ScriptedModel(Call("search", {"word": "x"}), "found")).tool(search)
    outer = Agent("a", ScriptedModel(Call("search", {"request": "x"}), "done")).agent_tool(inner)
    assert (await outer.middleware(limiter).run("hi")).text == "done"
    assert time.time - START == 60.0


async def test_a_reader_who_does_not_read_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limiter, "_READER_SECONDS", 0.1)
    limiter = rate_limiter(concurrency=1)
    model = ScriptedModel(reply(chunks=["a"] * 50), default="ok")
    pipeline = Agent("a", model).middleware(limiter)
    async with asyncio.timeout(10), aclosing(pipeline.stream("hi", config=SSE)) as reading:
        await anext(reading)
        assert (await pipeline.run("hi")).text == "ok"
        rest = [each.content async for each in reading if each.is_partial]
        assert len(rest) >= 49
    busy = ScriptedModel(reply("x", latency=60))
    slow = asyncio.ensure_future(Agent("b", busy).middleware(limiter).run("hi"))
    await until(lambda: len(busy.calls) == 1)
    waits = asyncio.ensure_future(pipeline.run("hi"))
    await asyncio.sleep(0.2)
    assert not waits.done()  # the place was given up once, and not twice
    slow.cancel()
    assert (await waits).text == "ok"
    await asyncio.wait([slow])


# --- tokens --------------------------------------------------------------------------------------


async def test_what_an_answer_may_take_is_reserved_and_what_it_took_counts() -> None:
    limiter, time = at_once(tokens_per_minute=1000)
    used = reply("ok", usage=Usage(prompt=100, output=100, thoughts=100))
    pipeline = Agent("a", ScriptedModel(default=used)).generate_content_config(LONG)
    for expected in (0.0, 0.0, 60.0):  # 600 and more of 1000, then of 700, then of 400
        await pipeline.middleware(limiter).run("hi")
        assert time.time - START == expected


async def test_a_long_prompt_is_counted_before_it_is_sent() -> None:
    limiter, time = at_once(tokens_per_minute=1000)
    silent = ScriptedModel(default=ConnectionError("reset"))
    pipeline = Agent("a", silent).middleware(limiter)
    for expected in (0.0, 60.0):
        with pytest.raises(ConnectionError):
            await pipeline.run("word" * 900)
        assert time.time - START == expected


# --- whose ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("per", "expected"), [("model", 0.0), ("all", 60.0)])
async def test_limits_of_each_model_or_of_all(per: Any, expected: float) -> None:
    limiter, time = at_once(requests_per_minute=1, per=per)
    models = [ScriptedModel("ok", model=name) for name in ("one", "two")]
    await (Agent("a", models[0]) >> Agent("b", models[1])).middleware(limiter).run("hi")
    assert time.time - START == expected


async def test_limits_of_each_user() -> None:
    limiter, time = at_once(requests_per_minute=1, per="user")
    pipeline = Agent("a", ScriptedModel(default="ok")).middleware(limiter)
    for user, expected in (("ann", 0.0), ("bob", 0.0), ("ann", 60.0)):
        await pipeline.run("hi", user_id=user)
        assert time.time - START == expected


# --- who waits too long --------------------------------------------------------------------------


async def test_who_would_wait_too_long_is_told_at_once() -> None:
    limiter, time = at_once(requests_per_minute=1, max_wait=30)
    model = ScriptedModel(default="ok")
    pipeline = Agent("a", model).middleware(limiter)
    await pipeline.run("hi")
    time.time += 10.0
    with pytest.raises(RateLimitError, match="'scripted'") as caught:
        await pipeline.run("hi")
    assert (caught.value.retry_after, time.waits, len(model.calls)) == (50.0, [], 1)
    time.time += 20.0
    await pipeline.run("hi")
    assert time.time - START == 60.0


@pytest.mark.parametrize("seconds", [0, 0.2])
async def test_who_waits_too_long_for_those_before_is_told_then(seconds: float) -> None:
    limiter = rate_limiter(concurrency=1, max_wait=seconds)
    model = ScriptedModel(reply("slow", latency=60), "ok")
    pipeline = Agent("a", model).middleware(limiter)
    slow = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: len(model.calls) == 1)
    with pytest.raises(RateLimitError):
        await pipeline.run("hi")
    slow.cancel()
    await asyncio.wait([slow])
    assert (await pipeline.run("hi")).text == "ok"


async def test_every_attempt_waits_for_its_turn() -> None:
    limiter, time = at_once(requests_per_minute=1)
    model = ScriptedModel(ConnectionError("reset"), "ok")
    again = retry(clock=Time())
    pipeline = Agent("a", model).middleware(again).middleware(limiter)
    assert (await pipeline.run("hi")).text == "ok"
    assert time.time - START == 60.0


async def test_retries_outside_of_it_do_not_wait_again() -> None:
    limiter, _ = at_once(requests_per_minute=1, max_wait=0)
    again = retry(clock=Time())
    pipeline = Agent("a", ScriptedModel("ok")).middleware(again).middleware(limiter)
    await pipeline.run("hi")
    with pytest.raises(RateLimitError):
        await pipeline.run("hi")
    assert isinstance(again.clock, Time)
    assert again.clock.waits == []


async def test_models_are_not_limited_with_tools() -> None:
    limiter, time = at_once(tools={"search": 1})
    pipeline = Agent("a", ScriptedModel(default="ok")).middleware(limiter).allow("MDW003")
    for _ in range(5):
        await pipeline.run("hi")
    assert time.time == START
