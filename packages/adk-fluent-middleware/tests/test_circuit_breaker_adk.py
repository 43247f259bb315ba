"""Circuit breakers, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.genai.errors import ClientError
from kit import SSE, TWO_TOOLS, Time, clerk, until

from adk_fluent import Agent
from adk_fluent.middleware import (
    CircuitOpenError,
    RateLimitError,
    circuit_breaker,
    rate_limiter,
    retry,
)
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.middleware import CircuitBreakerMiddleware

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

FLASH = "gemini-2.5-flash"


async def failures(pipeline: Any, times: int, error: type[Exception] = Exception) -> None:
    for _ in range(times):
        with pytest.raises(error) as caught:
            await pipeline.run("hi")
        assert error is Exception or type(caught.value) is error  # one derives from the other


# --- what every middleware here is tried in ------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_happy(status: int, metrics: Measured) -> None:
    time = Time()
    breaker = circuit_breaker(failures=3, reset_after=30.0, clock=time)
    with GeminiEmulator(*[reply(status=status)] * 3, "Back again.") as gemini:
        pipeline = clerk(gemini, breaker)
        await failures(pipeline, 3)
        assert breaker.state(FLASH) == "open"
        time.time += 10.0
        with pytest.raises(CircuitOpenError, match=FLASH) as caught:
            await pipeline.run("hi")
        assert caught.value.retry_after == 20.0
        assert len(gemini.requests) == 3
        time.time += 20.0
        assert (await pipeline.run("hi")).text == "Back again."
    assert breaker.state(FLASH) == "closed"
    assert metrics("adk_fluent.breaker.rejections", gen_ai__request__model=FLASH) == 1


async def test_streamed() -> None:
    breaker = circuit_breaker(failures=2)
    with GeminiEmulator(reply(chunks=["a", "b"]), default=reply(status=503)) as gemini:
        pipeline = clerk(gemini, breaker)
        result = await pipeline.run("hi", config=SSE)
        assert [each.content for each in result if each.is_partial][:2] == ["a", "b"]
        for _ in range(2):
            with pytest.raises(Exception, match="503"):
                await pipeline.run("hi", config=SSE)
        with pytest.raises(CircuitOpenError):
            await pipeline.run("hi", config=SSE)
        assert len(gemini.requests) == 3


async def test_parallel_tools() -> None:
    """Each tool has a circuit of its own."""
    calls: list[str] = []

    async def search(word: str) -> str:
        calls.append("search")
        raise ConnectionError("reset")

    async def weather(city: str) -> str:
        calls.append("weather")
        return "sun"

    class Mends:
        async def on_tool_error(self, ctx: Any, name: str, args: Any, error: Exception) -> Any:
            return {"error": type(error).__name__}

    model = ScriptedModel(*TWO_TOOLS * 3)
    breaker = circuit_breaker(failures=2, tools=True)
    pipeline = Agent("a", model).tool(search).tool(weather).middleware(Mends()).middleware(breaker)
    results = [await pipeline.run("hi") for _ in range(3)]
    assert (calls.count("search"), calls.count("weather")) == (2, 3)
    errors = [
        each.result
        for result in results
        for event in result
        for each in event.tool_responses
        if each.tool_name == "search"
    ]
    assert errors == [{"error": name} for name in ("ConnectionError",) * 2 + ("CircuitOpenError",)]
    assert (breaker.state("search", "tool"), breaker.state("weather", "tool")) == ("open", "closed")


async def test_cancelled() -> None:
    """A probe that is cancelled neither closes it nor holds up the next one."""
    time = Time()
    breaker = circuit_breaker(failures=1, clock=time)
    model = ScriptedModel(ConnectionError("reset"), reply("late", latency=60), "ok")
    pipeline = Agent("a", model).middleware(breaker)
    await failures(pipeline, 1)
    time.time += 30.0
    probing = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: len(model.calls) == 2)
    await failures(pipeline, 1, CircuitOpenError)
    probing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probing
    assert breaker.state("scripted") == "half_open"
    assert (await pipeline.run("hi")).text == "ok"
    assert breaker.state("scripted") == "closed"


async def test_error_after_the_first_partial() -> None:
    breaker = circuit_breaker(failures=1)
    with GeminiEmulator(reply(chunks=["Half an ", "answer"], fault="cut"), "whole") as gemini:
        pipeline = clerk(gemini, breaker)
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await pipeline.run("hi", config=SSE)
        assert breaker.state(FLASH) == "open"
        await failures(pipeline, 1, CircuitOpenError)
        assert len(gemini.requests) == 1


async def test_concurrent() -> None:
    """All runs share the circuit; of those that come at once, one is the probe."""
    time = Time()
    breaker = circuit_breaker(failures=4, clock=time)
    model = ScriptedModel(*[ConnectionError("reset")] * 4, default=reply("ok", latency=0.05))
    pipeline = Agent("a", model).middleware(breaker)
    await asyncio.gather(*(failures(pipeline, 1, ConnectionError) for _ in range(4)))
    assert breaker.state("scripted") == "open"
    time.time += 30.0
    results = await asyncio.gather(*(pipeline.run("hi") for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(each, CircuitOpenError) for each in results) == 5
    assert len(model.calls) == 5
    assert (await pipeline.run("hi")).text == "ok"


# --- what opens it -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_what_says_nothing_about_the_service_does_not_open_it(status: int) -> None:
    breaker = circuit_breaker(failures=1)
    with GeminiEmulator(default=reply(status=status)) as gemini:
        await failures(clerk(gemini, breaker), 3, ClientError)
        assert len(gemini.requests) == 3
    assert breaker.state(FLASH) == "closed"


async def test_who_watches_may_decide_what_speaks_of_the_service() -> None:
    breaker = circuit_breaker(failures=1, failure_if=lambda error: isinstance(error, KeyError))
    model = ScriptedModel(ConnectionError("reset"), KeyError("x"), "never")
    pipeline = Agent("a", model).middleware(breaker)
    await failures(pipeline, 1, ConnectionError)
    await failures(pipeline, 1, KeyError)
    await failures(pipeline, 1, CircuitOpenError)


async def test_models_have_circuits_of_their_own() -> None:
    breaker = circuit_breaker(failures=1)
    bad = Agent("bad", ScriptedModel(default=ConnectionError("reset"), model="bad"))
    good = Agent("good", ScriptedModel(default="ok", model="good"))
    pipeline = (bad // good).middleware(breaker)
    assert [(await pipeline.run("hi")).text for _ in range(2)] == ["ok", "ok"]
    assert (breaker.state("bad"), breaker.state("good")) == ("open", "closed")


async def test_what_retries_mend_is_no_failure() -> None:
    breaker = circuit_breaker(failures=1)
    model = ScriptedModel(ConnectionError("reset"), "ok")
    pipeline = Agent("a", model).middleware(breaker).middleware(retry(clock=Time()))
    assert (await pipeline.run("hi")).text == "ok"
    assert breaker.state("scripted") == "closed"


async def test_retries_outside_of_it_do_not_ask_again() -> None:
    breaker = circuit_breaker(failures=1)
    time = Time()
    model = ScriptedModel(ConnectionError("reset"), "never")
    pipeline = Agent("a", model).middleware(retry(clock=time)).middleware(breaker)
    await failures(pipeline, 1, CircuitOpenError)
    assert (len(model.calls), len(time.waits)) == (1, 1)


async def test_what_is_refused_inside_of_it_says_nothing_about_the_service() -> None:
    breaker, limiter = circuit_breaker(failures=1), rate_limiter(requests_per_minute=1, max_wait=0)
    pipeline = Agent("a", ScriptedModel("ok")).middleware(breaker).middleware(limiter)
    await pipeline.run("hi")
    await failures(pipeline, 2, RateLimitError)
    assert breaker.state("scripted") == "closed"


async def fails_twice(breaker: CircuitBreakerMiddleware) -> int:
    """How often a tool is called that fails both times."""
    calls: list[str] = []

    def search(word: str) -> str:
        """Look something up."""
        calls.append(word)
        raise TimeoutError(word)

    model = ScriptedModel(*[Call("search", {"word": "x"})] * 2)
    agent = Agent("a", model).tool(search).allow("MDW003")
    await failures(agent.middleware(breaker), 2)
    return len(calls)


@pytest.mark.parametrize(("tools", "calls"), [(True, 1), (False, 2), (["search"], 1), (["x"], 2)])
async def test_tools_are_watched_by_name(tools: Any, calls: int) -> None:
    assert await fails_twice(circuit_breaker(failures=1, tools=tools)) == calls


async def test_tools_are_not_watched_unless_they_are_named() -> None:
    """All users share a circuit, and what a tool is asked for is up to each of them."""
    assert await fails_twice(circuit_breaker(failures=1)) == 2


async def test_models_may_be_left_out() -> None:
    model = ScriptedModel(default=ConnectionError("reset"))
    pipeline = Agent("a", model).middleware(circuit_breaker(failures=1, models=False))
    await failures(pipeline, 3, ConnectionError)


async def test_loops_in_threads_share_it() -> None:
    breaker = circuit_breaker(failures=4)
    model = ScriptedModel(default=ConnectionError("reset"))

    def run() -> None:
        asyncio.run(failures(Agent("a", model).middleware(breaker), 2, ConnectionError))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        await asyncio.to_thread(each.join)
    assert breaker.state("scripted") == "open"
