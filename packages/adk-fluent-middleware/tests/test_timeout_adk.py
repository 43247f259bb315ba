"""Time limits, over ADK's own Gemini and real HTTP, and on models that are scripted.

Time is real here. What has to be cut off takes long, and what must not be has a minute.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from kit import SSE, TWO_TOOLS, Time, clerk, until

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.middleware import CallTimeoutError, TimeoutMiddleware, retry, timeout
from adk_fluent.middleware._adk import says
from adk_fluent.protocol import Middleware, classify
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

LATE = reply("late", latency=20)


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """The first call takes longer: clients are imported, and certificates read."""
    with GeminiEmulator("warm") as gemini:
        clerk(gemini).ask("hi")


async def read(pipeline: Any, into: list[str], pause: float = 0.0) -> None:
    """Read what is said, with a pause after each event."""
    async for event in pipeline.stream("hi", config=SSE):
        into.append(event.content)
        await asyncio.sleep(pause)


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    """The connection of what is ended is closed, too."""
    with GeminiEmulator(LATE, "in time") as gemini:
        pipeline = clerk(gemini, timeout(model=2.0, tool=60, run=60))
        with pytest.raises(
            CallTimeoutError, match=r"model 'gemini-2.5-flash' .* 2 seconds"
        ) as caught:
            await pipeline.run("hi")
        assert caught.value.seconds == 2.0
        assert isinstance(caught.value, TimeoutError)
        assert classify(caught.value) == "retriable"
        await until(lambda: len(gemini.abandoned) == 1)
        assert (await clerk(gemini, timeout(model=60)).run("hi")).text == "in time"
    assert metrics("adk_fluent.timeout.expirations", adk_fluent__call="model") == 1


async def test_streamed() -> None:
    with GeminiEmulator(reply(chunks=["a", "b", "c"], pause=0.05)) as gemini:
        limits = timeout(model=60, first=60, tool=60, run=60)
        result = await clerk(gemini, limits).run("hi", config=SSE)
        assert result.text == "abc"
        assert [each.content for each in result if each.is_partial][:3] == ["a", "b", "c"]
    with GeminiEmulator(reply(chunks=["a", "b"], latency=20)) as gemini:
        with pytest.raises(CallTimeoutError, match="to begin its answer took longer than 1 second"):
            await clerk(gemini, timeout(first=1.0)).run("hi", config=SSE)
        await until(lambda: len(gemini.abandoned) == 1)


async def test_parallel_tools(metrics: Measured) -> None:
    """One that is late is cancelled, and the other has its result."""
    ended: list[str] = []

    async def search(word: str) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(word)
        return "found"

    async def weather(city: str) -> str:
        return "sun"

    class Mends:
        async def on_tool_error(self, ctx: Any, name: str, args: Any, error: Exception) -> Any:
            return {"error": str(error)}

    pipeline = Agent("a", ScriptedModel(*TWO_TOOLS)).tool(search).tool(weather)
    result = await pipeline.middleware(Mends()).middleware(timeout(tool=0.5)).run("hi")
    told = {each.tool_name: each.result for event in result for each in event.tool_responses}
    assert told["search"] == {"error": "tool 'search' took longer than 0.5 seconds"}
    assert told["weather"] == {"result": "sun"}
    assert ended == ["x"]
    assert metrics("adk_fluent.timeout.expirations", adk_fluent__call="tool") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"model": 2.0},
        pytest.param({"first": 2.0}, marks=pytest.mark.full),
        pytest.param({"run": 2.0}, marks=pytest.mark.full),
    ],
)
async def test_cancelled(options: Any, metrics: Measured) -> None:
    """Who cancels is told so, and of no timeout; whoever comes next is given all the time."""
    with GeminiEmulator(default=reply("late", latency=20)) as gemini:
        pipeline = clerk(gemini, timeout(**options))
        running = asyncio.ensure_future(pipeline.run("hi"))
        await until(lambda: bool(gemini.requests))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: len(gemini.abandoned) == 1)
        assert metrics("adk_fluent.timeout.expirations") == 0
        with pytest.raises(CallTimeoutError):
            await pipeline.run("hi")
    assert metrics("adk_fluent.timeout.expirations") == 1


async def test_error_after_the_first_partial() -> None:
    """What has begun to stream is ended, too."""
    partials: list[str] = []
    with GeminiEmulator(reply(chunks=["Half an ", "answer"], pause=60)) as gemini:
        pipeline = clerk(gemini, timeout(model=2.0))
        with pytest.raises(CallTimeoutError):
            await read(pipeline, partials)
        await until(lambda: len(gemini.abandoned) == 1)
    assert partials == ["Half an "]


async def test_concurrent() -> None:
    """Each call has its own time."""
    limits = timeout(model=1.0)
    slow = [Agent("a", ScriptedModel(LATE)).middleware(limits).run("hi") for _ in range(4)]
    fast = [Agent("a", ScriptedModel("ok")).middleware(limits).run("hi") for _ in range(4)]
    results = await asyncio.gather(*slow, *fast, return_exceptions=True)
    assert [type(each) is CallTimeoutError for each in results] == [True] * 4 + [False] * 4


# --- models --------------------------------------------------------------------------------------


async def test_a_model_that_does_not_begin_is_ended(metrics: Measured) -> None:
    with GeminiEmulator(LATE) as gemini:
        with pytest.raises(CallTimeoutError, match="to begin its answer took longer than 2 s"):
            await clerk(gemini, timeout(first=2.0, model=60)).run("hi", config=SSE)
        await until(lambda: len(gemini.abandoned) == 1)
    assert metrics("adk_fluent.timeout.expirations", adk_fluent__call="first") == 1


async def test_one_that_has_begun_may_take_longer() -> None:
    model = ScriptedModel(reply(chunks=["a", "b"], pause=1.2))
    result = await Agent("a", model).middleware(timeout(first=0.8)).run("hi", config=SSE)
    assert result.text == "ab"


async def test_the_time_of_who_reads_does_not_count() -> None:
    model = ScriptedModel(reply(chunks=["a", "b", "c"]))
    pipeline = Agent("a", model).middleware(timeout(model=1.0))
    said: list[str] = []
    await read(pipeline, said, pause=0.6)
    assert said[:3] == ["a", "b", "c"]


async def test_the_time_before_who_reads_counts() -> None:
    """What is left of the time after a fragment is what was left before it."""
    model = ScriptedModel(reply(chunks=["a", "b", "c", "d"], pause=0.3))
    pipeline = Agent("a", model).middleware(timeout(model=0.5))
    said: list[str] = []
    with pytest.raises(CallTimeoutError):
        await read(pipeline, said, pause=0.1)
    assert "d" not in said


async def test_it_is_known_inside_what_was_emitted() -> None:
    """Retries inside of it do not begin again what the user has read a part of."""
    with GeminiEmulator(reply(chunks=["Half an ", "answer"], fault="cut"), "never") as gemini:
        pipeline = clerk(gemini, timeout(model=60), retry(clock=Time()))
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await pipeline.run("hi", config=SSE)
        assert len(gemini.requests) == 1


async def test_what_was_emitted_before_is_known_inside() -> None:
    model = ScriptedModel(ConnectionError("reset"), "never")

    class Greets:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            await call.emit(says("One moment.", partial=True))
            return await next(call)

    pipeline = Agent("a", model).middleware(Greets()).middleware(timeout(model=60))
    with pytest.raises(ConnectionError):
        await pipeline.middleware(retry(clock=Time())).run("hi", config=SSE)
    assert len(model.calls) == 1


@pytest.mark.parametrize("emitted", [True, False])
async def test_and_outside_of_it(emitted: bool) -> None:
    seen: list[bool] = []

    class Looks:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = await next(call)
            seen.append(call.emitted)
            return made

    model = ScriptedModel(reply(chunks=["a", "b"]))
    pipeline = Agent("a", model).middleware(Looks()).middleware(timeout(model=60))
    await pipeline.run("hi", config=SSE if emitted else None)
    assert seen == [emitted]


async def test_retries_outside_of_it_call_again() -> None:
    model = ScriptedModel(LATE, "ok")
    pipeline = Agent("a", model).middleware(retry(clock=Time())).middleware(timeout(model=0.2))
    assert (await pipeline.run("hi")).text == "ok"


# --- tools ---------------------------------------------------------------------------------------


async def run_tool(limits: TimeoutMiddleware, seconds: float, error: Any = None) -> Any:
    async def search(word: str) -> str:
        """Look something up."""
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return "found"

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    agent = Agent("a", model).tool(search).allow("MDW003")
    return await agent.middleware(limits).run("hi")


async def test_a_tools_own_timeout_stays_its_own() -> None:
    own = TimeoutError("of the database")
    with pytest.raises(TimeoutError, match="of the database") as caught:
        await run_tool(timeout(tool=60), 0, own)
    assert type(caught.value) is TimeoutError


async def test_tools_are_limited_by_name() -> None:
    with pytest.raises(CallTimeoutError, match="tool 'search' took longer"):
        await run_tool(timeout(tool={"search": 0.1}), 60)
    assert (await run_tool(timeout(tool={"weather": 0.01}), 0.1)).text == "done"
    assert (await run_tool(timeout(model=60), 0.1)).text == "done"


@pytest.mark.parametrize("limits", [{"tool": 0.1}, {"tool": {"helper": 0.1}}])
async def test_an_agent_that_is_a_tool_is_limited_only_by_name(limits: Any) -> None:
    """Its model may take longer than a tool."""
    helper = Agent("helper", ScriptedModel(reply("found", latency=0.5)))
    model = ScriptedModel(Call("helper", {"request": "x"}), "done")
    pipeline = Agent("a", model).agent_tool(helper).middleware(timeout(**limits))
    if isinstance(limits["tool"], dict):
        with pytest.raises(CallTimeoutError, match="tool 'helper' took longer"):
            await pipeline.run("hi")
    else:
        assert (await pipeline.run("hi")).text == "done"


async def test_what_a_tool_makes_of_being_ended_is_the_cause() -> None:
    """A client that turns its cancellation into an error of its own hides nothing."""

    async def search(word: str) -> str:
        """Look something up."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None
        return word

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    pipeline = Agent("a", model).tool(search).middleware(timeout(tool=0.1))
    with pytest.raises(CallTimeoutError) as caught:
        await pipeline.run("hi")
    assert isinstance(caught.value.__cause__, ConnectionError)


# --- runs ----------------------------------------------------------------------------------------


async def test_a_run_is_ended(metrics: Measured) -> None:
    with GeminiEmulator("first", LATE) as gemini:
        pipeline = clerk(gemini) >> Agent("second", gemini.model())
        with pytest.raises(CallTimeoutError, match="the run took longer than 3 seconds"):
            await pipeline.middleware(timeout(run=3.0)).run("hi")
        assert len(gemini.requests) == 2
        await until(lambda: len(gemini.abandoned) == 1)
    assert metrics("adk_fluent.timeout.expirations", adk_fluent__call="run") == 1


async def test_the_events_before_that_are_kept() -> None:
    said: list[str] = []
    pipeline = Agent("a").mock("A") >> Agent("b", ScriptedModel(LATE))
    with pytest.raises(CallTimeoutError):
        await read(pipeline.middleware(timeout(run=1.0)), said)
    assert set(said) == {"A"}


async def test_the_shortest_limit_is_the_one_that_is_told() -> None:
    pipeline = Agent("a", ScriptedModel(LATE)).middleware(timeout(model=0.2, first=40, run=60))
    with pytest.raises(CallTimeoutError, match="model 'scripted'"):
        await pipeline.run("hi")


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(TimeoutMiddleware(model=60), Middleware)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"model": 0}, "model"),
        ({"first": -1}, "first"),
        ({"tool": {"search": 0}}, "tool"),
        ({"tool": "60"}, "tool"),
        ({"run": float("inf")}, "run"),
        ({"run": float("nan")}, "run"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"timeout\({option}=\.\.\.\)") as caught:
        TimeoutMiddleware(**options)
    assert __file__ in str(caught.value)


def test_one_that_limits_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="limits nothing"):
        timeout()


@pytest.mark.parametrize("limits", [timeout(run=1), timeout(run=1, model=1)])
def test_a_limit_of_runs_is_refused_around_a_part(limits: TimeoutMiddleware) -> None:
    with pytest.raises(UsageError, match=r"timeout\(run=\.\.\.\) ends whole runs") as caught:
        Agent("a").mock("A").middleware(limits, scope="agent")
    assert __file__ in str(caught.value)


async def test_the_other_limits_hold_in_a_part() -> None:
    slow = Agent("a").mock(reply("late", latency=60))
    pipeline = slow.middleware(timeout(model=0.05), scope="agent") >> Agent("b").mock("B")
    with pytest.raises(CallTimeoutError):
        await pipeline.run("hi")
