"""Retries, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from google.genai.errors import ClientError, ServerError
from kit import SSE, TWO_TOOLS, Time, clerk, until

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.middleware import RetryMiddleware, pii_filter, retry
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


def at_once(**options: Any) -> RetryMiddleware:
    options.setdefault("clock", Time())
    return retry(**options)


# --- what every middleware here is tried in ------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
async def test_happy(status: int, metrics: Measured) -> None:
    with GeminiEmulator(reply(status=status), reply(status=status), "At last.") as gemini:
        result = await clerk(gemini, at_once()).run("hi")
        assert result.text == "At last."
        assert len(gemini.requests) == 3
    assert metrics("adk_fluent.retry.attempts", adk_fluent__call="model") == 2


@pytest.mark.parametrize("fault", ["disconnect", "cut"])
async def test_streamed(fault: str) -> None:
    broken = reply(status=503) if fault == "cut" else reply(fault="disconnect")
    with GeminiEmulator(broken, reply(chunks=["a", "b", "c"])) as gemini:
        result = await clerk(gemini, at_once()).run("hi", config=SSE)
        assert result.text == "abc"
        assert [each.content for each in result if each.is_partial][:3] == ["a", "b", "c"]
        assert len(gemini.requests) == 2


async def test_parallel_tools(metrics: Measured) -> None:
    calls: list[str] = []

    async def search(word: str) -> str:
        calls.append("search")
        if calls.count("search") < 3:
            raise ConnectionError("reset")
        return "found"

    async def weather(city: str) -> str:
        calls.append("weather")
        return "sun"

    pipeline = Agent("a", ScriptedModel(*TWO_TOOLS)).tool(search).tool(weather)
    result = await pipeline.middleware(at_once(tools=True)).run("hi")
    assert result.text == "done"
    assert sorted(calls) == ["search", "search", "search", "weather"]
    assert metrics("adk_fluent.retry.attempts", gen_ai__tool__name="search") == 2


async def test_cancelled() -> None:
    """Whoever cancels is not told to wait, and nothing is called after that."""

    class Slow(Time):
        async def sleep(self, seconds: float) -> None:
            self.waits.append(seconds)
            await asyncio.sleep(60)

    model, time = ScriptedModel(default=ConnectionError("reset")), Slow()
    pipeline = Agent("a", model).middleware(retry(max_attempts=100, clock=time))
    running = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(time.waits) or running.done())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(model.calls) == 1


async def test_error_after_the_first_partial() -> None:
    """What the user has read of an answer is not said again."""
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(reply(status=503), half, "whole") as gemini:
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await clerk(gemini, at_once()).run("hi", config=SSE)
        assert len(gemini.requests) == 2


async def test_concurrent() -> None:
    """Each run has its own attempts."""
    failing = [ConnectionError("reset")] * 2
    models = [ScriptedModel(*failing, f"answer {n}") for n in range(8)]
    shared = at_once(max_attempts=3)
    results = await asyncio.gather(
        *(Agent("a", model).middleware(shared).run("hi") for model in models)
    )
    assert [each.text for each in results] == [f"answer {n}" for n in range(8)]
    assert [len(model.calls) for model in models] == [3] * 8


# --- how long it waits ---------------------------------------------------------------------------


async def waits(*errors: Any, **options: Any) -> list[float]:
    time = Time()
    pipeline = Agent("a", ScriptedModel(*errors, "ok")).middleware(retry(clock=time, **options))
    await pipeline.run("hi")
    return time.waits


async def test_each_wait_is_twice_as_long_up_to_a_limit() -> None:
    errors = [ConnectionError("reset")] * 5
    assert await waits(*errors, max_attempts=6, jitter=0.0, backoff_max=5.0) == [1, 2, 4, 5, 5]


async def test_a_part_of_a_wait_is_left_to_chance() -> None:
    errors = [ConnectionError("reset")] * 2
    assert await waits(*errors, jitter=0.5, random=lambda: 1.0) == [0.5, 1.0]
    assert await waits(*errors, jitter=1.0, random=lambda: 0.25) == [0.75, 1.5]


async def test_a_service_is_left_alone_as_long_as_it_asks() -> None:
    time = Time()
    with GeminiEmulator(reply(status=429, retry_after=7), "ok") as gemini:
        await clerk(gemini, retry(clock=time)).run("hi")
    assert time.waits == [7.0]


async def test_a_service_that_asks_for_too_long_has_failed() -> None:
    with GeminiEmulator(reply(status=429, retry_after=70), "ok") as gemini:
        with pytest.raises(ClientError, match="429"):
            await clerk(gemini, at_once()).run("hi")
        assert len(gemini.requests) == 1


async def test_no_call_begins_after_the_deadline() -> None:
    model = ScriptedModel(default=ConnectionError("reset"))
    options: Any = {"max_attempts": 100, "jitter": 0.0, "deadline": 6.5}
    with pytest.raises(ConnectionError):
        await Agent("a", model).middleware(at_once(**options)).run("hi")
    assert len(model.calls) == 3  # after 0, 1 and 3 seconds; the next would come after 7


# --- what is called again ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 403, 404, 408])
async def test_what_will_fail_again_is_not_tried_again(status: int) -> None:
    with GeminiEmulator(reply(status=status), "ok") as gemini:
        with pytest.raises(ClientError):
            await clerk(gemini, at_once()).run("hi")
        assert len(gemini.requests) == 1


async def test_the_last_error_is_raised_as_it_is() -> None:
    with GeminiEmulator(default=reply(status=503, error_message="overloaded")) as gemini:
        with pytest.raises(ServerError, match="overloaded"):
            await clerk(gemini, at_once()).run("hi")
        assert len(gemini.requests) == 3


@pytest.mark.parametrize("config", [None, SSE])
async def test_an_answer_that_was_cut_is_asked_for_again(config: Any) -> None:
    with GeminiEmulator(reply("It is on its way.", fault="truncated"), "ok") as gemini:
        assert (await clerk(gemini, at_once()).run("hi", config=config)).text == "ok"


@pytest.mark.parametrize("config", [None, SSE])
@pytest.mark.parametrize("fault", ["html", "bad_json"])
async def test_what_is_no_answer_at_all_is_not_asked_for_again(fault: Any, config: Any) -> None:
    with GeminiEmulator(reply("x", fault=fault), "never") as gemini:
        with pytest.raises(ValueError, match=r"JSON|Expecting"):
            await clerk(gemini, at_once()).run("hi", config=config)
        assert len(gemini.requests) == 1


def is_unusable(made: ModelReply) -> bool:
    return made.final is None or made.final.error_code is not None or not made.final.content


GARBLED = reply(error_code="MALFORMED_FUNCTION_CALL", error_message="garbled")


async def test_answers_that_will_not_do_are_asked_for_again(metrics: Measured) -> None:
    model, time = ScriptedModel(GARBLED, ConnectionError("reset"), GARBLED, "ok"), Time()
    again = at_once(retry_reply=is_unusable, max_attempts=4, jitter=0, clock=time)
    result = await Agent("a", model).middleware(again).run("hi")
    assert (result.text, result.errors) == ("ok", [])
    assert time.waits == [1, 2, 4]
    assert metrics("adk_fluent.retry.attempts", error__type="reply") == 2


@pytest.mark.parametrize("options", [{"max_attempts": 2}, {"deadline": 2.5}])
async def test_the_last_answer_is_taken_as_it_is(options: Any) -> None:
    model = ScriptedModel(GARBLED, GARBLED, "never")
    again = at_once(retry_reply=is_unusable, jitter=0, **options)
    result = await Agent("a", model).middleware(again).run("hi")
    assert [each.code for each in result.errors] == ["MALFORMED_FUNCTION_CALL"]
    assert len(model.calls) == 2


async def test_an_answer_that_was_read_is_taken_as_it_is() -> None:
    model = ScriptedModel(reply(chunks=["a", "b"]), "never")
    again = retry(retry_reply=lambda _: True, backoff_base=0)
    assert (await Agent("a", model).middleware(again).run("hi", config=SSE)).text == "ab"


async def test_what_a_filter_outside_holds_back_counts_as_read() -> None:
    model = ScriptedModel(reply(chunks=["ann@"], raises=ConnectionError("cut")), default="never")
    pipeline = Agent("a", model).middleware(pii_filter()).middleware(at_once())
    with pytest.raises(ConnectionError, match="cut"):
        await pipeline.run("hi", config=SSE)
    assert len(model.calls) == 1


async def test_who_retries_may_decide_which_errors_are_passing() -> None:
    def odd(error: Exception) -> bool:
        return isinstance(error, KeyError)

    model = ScriptedModel(KeyError("x"), "ok")
    assert (await Agent("a", model).middleware(at_once(retry_if=odd)).run("hi")).text == "ok"


async def test_the_request_of_each_call_is_what_that_of_the_first_was() -> None:
    """Models edit their requests; so do middlewares inside."""
    seen: list[tuple[int, str]] = []

    class Edits:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            seen.append((len(call.request.contents), call.request.config.system_instruction))
            call.request.contents.append(types.Content(parts=[types.Part(text="more")]))
            call.request.contents[0].parts.append(types.Part(text="inside"))
            call.request.config.system_instruction = "edited"
            return await next(call)

    model = ScriptedModel(ConnectionError("reset"), ConnectionError("reset"), "ok")
    pipeline = Agent("a", model).instruct("as it was").middleware(at_once()).middleware(Edits())
    await pipeline.run("hi")
    assert len(set(seen)) == 1
    assert len(seen) == 3
    assert [each.prompt for each in model.calls] == [model.calls[0].prompt] * 3


@pytest.mark.parametrize(("tools", "calls"), [(True, 3), (False, 1), (["search"], 3), (["x"], 1)])
async def test_tools_are_called_again_by_name(tools: Any, calls: int) -> None:
    made: list[str] = []

    def search(word: str) -> str:
        """Look something up."""
        made.append(word)
        raise TimeoutError(word)

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    pipeline = Agent("a", model).tool(search).middleware(at_once(tools=tools))
    with pytest.raises(TimeoutError):
        await pipeline.run("hi")
    assert len(made) == calls


async def test_tools_are_called_once_unless_it_is_said() -> None:
    made: list[str] = []

    def pay(to: str) -> str:
        """Pay, and lose the connection before it is confirmed."""
        made.append(to)
        raise ConnectionError("reset")

    model = ScriptedModel(Call("pay", {"to": "ann"}), "done")
    with pytest.raises(ConnectionError):
        await Agent("a", model).tool(pay).middleware(at_once()).run("hi")
    assert made == ["ann"]


@pytest.mark.parametrize(("tools", "paid"), [(False, 1), (True, 1), (["billing"], 2)])
async def test_an_agent_that_is_a_tool_is_run_again_only_by_name(tools: Any, paid: int) -> None:
    """What its own tools have done would be done again."""
    made: list[str] = []

    def pay(to: str) -> str:
        """Pay."""
        made.append(to)
        return "paid"

    call = Call("pay", {"to": "ann"})
    model = ScriptedModel(call, *[ConnectionError("reset")] * 3, call, "done")
    boss = Agent("boss", ScriptedModel(Call("billing", {"request": "x"}), "done"))
    pipeline = boss.agent_tool(Agent("billing", model).tool(pay)).middleware(at_once(tools=tools))
    if paid == 1:
        with pytest.raises(ConnectionError):
            await pipeline.run("hi")
    else:
        assert (await pipeline.run("hi")).text == "done"
    assert len(made) == paid


class Live:
    """Something that cannot be copied."""

    def __reduce__(self) -> Any:
        raise TypeError("not this one")


@pytest.mark.parametrize("live", [False, True])
async def test_a_tool_that_changes_its_arguments_is_given_them_as_they_were(live: bool) -> None:
    seen: list[list[str]] = []
    same: list[Any] = []

    class Adds:
        async def before_tool(self, ctx: Any, name: str, args: dict[str, Any]) -> None:
            if live:
                args["more"] = [Live()]

    class Takes:
        async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
            same.append(call.args.pop("more", [None]).pop())
            return await next(call)

    def send(items: list[str]) -> str:
        """Send."""
        seen.append(list(items))
        items.clear()
        if len(seen) < 3:
            raise ConnectionError("reset")
        return "sent"

    model = ScriptedModel(Call("send", {"items": ["a", "b"]}), "done")
    pipeline = Agent("a", model).tool(send).middleware(Adds(), at_once(tools=["send"]), Takes())
    assert (await pipeline.run("hi")).text == "done"
    assert seen == [["a", "b"]] * 3
    assert len(set(map(id, same))) == 1


async def test_models_may_be_left_out() -> None:
    model = ScriptedModel(ConnectionError("reset"), "ok")
    with pytest.raises(ConnectionError):
        await Agent("a", model).middleware(at_once(models=False)).run("hi")


async def test_it_warns_of_a_client_that_tries_again_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = types.HttpRetryOptions(attempts=4)
    with caplog.at_level(logging.WARNING, "adk_fluent"), GeminiEmulator(default="ok") as gemini:
        pipeline = clerk(gemini, at_once(), retry_options=options)
        await pipeline.run("hi")
        await pipeline.run("hi")
    (record,) = [each for each in caplog.records if "by itself" in each.message]
    assert "up to 4 attempts" in record.message


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(RetryMiddleware(), Middleware)
    assert (RetryMiddleware().max_attempts, RetryMiddleware().backoff_base) == (3, 1.0)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": "3"}, "max_attempts"),
        ({"backoff_base": -1}, "backoff_base"),
        ({"jitter": 2}, "jitter"),
        ({"deadline": 0}, "deadline"),
        ({"tools": "search"}, "tools"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"retry\({option}=\.\.\.\)") as caught:
        RetryMiddleware(**options)
    assert __file__ in str(caught.value)
