"""Other models, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from google.genai.errors import ClientError, ServerError
from kit import SSE, TWO_TOOLS, Time, until

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.ir import Ref
from adk_fluent.middleware import (
    CircuitOpenError,
    ModelFallbackMiddleware,
    circuit_breaker,
    model_fallback,
    rate_limiter,
    retry,
    timeout,
)
from adk_fluent.protocol import Middleware
from adk_fluent.testing import GeminiEmulator, Script, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_request import LlmRequest
    from kit import Measured

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

PRO, FLASH = "gemini-2.5-pro", "gemini-2.5-flash"
DOWN = ConnectionError("reset")


def scripted(*replies: Any, name: str = "other", **options: Any) -> ScriptedModel:
    return ScriptedModel(*replies, model=name, **options)


# --- what every middleware here is tried in ------------------------------------------------------


@pytest.mark.parametrize("status", [404, 408, 429, 500, 502, 503, 504, 529])
async def test_happy(status: int, metrics: Measured, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.WARNING, "adk_fluent"),
        GeminiEmulator(reply(status=status), "From the other.") as gemini,
    ):
        other = model_fallback(models=[gemini.model(FLASH)])
        result = await Agent("a", gemini.model(PRO)).middleware(other).run("hi")
        assert result.text == "From the other."
        assert [each.model for each in gemini.requests] == [PRO, FLASH]
    switched = {"gen_ai__request__model": PRO, "adk_fluent__fallback__model": FLASH}
    assert metrics("adk_fluent.fallback.switches", **switched) == 1
    assert f"model {PRO} has not answered" in caplog.text


@pytest.mark.parametrize("error", [DOWN, reply(status=503)])
async def test_streamed(error: Any) -> None:
    with GeminiEmulator(reply(chunks=["a", "b", "c"])) as gemini:
        other = model_fallback(models=[gemini.model(FLASH)])
        result = await Agent("a", ScriptedModel(error)).middleware(other).run("hi", config=SSE)
        assert result.text == "abc"
        assert [each.content for each in result if each.is_partial][:3] == ["a", "b", "c"]
        assert [(each.model, each.stream) for each in gemini.requests] == [(FLASH, True)]


async def test_parallel_tools() -> None:
    """Whoever asks for the tools, the agent's own model is asked first with what they say."""

    def search(word: str) -> str:
        """Look something up."""
        return f"found {word}"

    def weather(city: str) -> str:
        """The weather."""
        return f"sun in {city}"

    first, other = ScriptedModel(DOWN, "done"), scripted(TWO_TOOLS[0])
    pipeline = Agent("a", first).tool(search).tool(weather)
    result = await pipeline.middleware(model_fallback(models=[other])).run("hi")
    assert result.text == "done"
    assert (len(first.calls), len(other.calls)) == (2, 1)
    assert other.calls[0].tools == ("search", "weather")
    assert "[result search" in first.calls[1].prompt


async def test_cancelled() -> None:
    """Who cancels wants no other answer."""
    second, third = scripted(reply("late", latency=60)), scripted("never", name="third")
    others = model_fallback(models=[second, third])
    pipeline = Agent("a", ScriptedModel(DOWN)).middleware(others)
    running = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(second.calls) or running.done())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert third.calls == ()


async def test_error_after_the_first_partial() -> None:
    """Two models' answers are never made into one."""
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(reply(status=503), half, "whole") as gemini:
        others = model_fallback(models=[gemini.model(FLASH), gemini.model("gemini-2.0-flash")])
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await Agent("a", gemini.model(PRO)).middleware(others).run("hi", config=SSE)
        assert [each.model for each in gemini.requests] == [PRO, FLASH]


async def test_concurrent() -> None:
    """Each call begins with the agent's own model."""
    firsts = [ScriptedModel(DOWN, f"first {n}") for n in range(6)]
    other = scripted(default=reply("other", latency=0.01))
    shared = model_fallback(models=[other])
    pipelines = [Agent("a", each).middleware(shared) for each in firsts]
    assert {each.text for each in await asyncio.gather(*(p.run("hi") for p in pipelines))} == {
        "other"
    }
    results = await asyncio.gather(*(p.run("hi") for p in pipelines))
    assert [each.text for each in results] == [f"first {n}" for n in range(6)]


# --- what the others are asked -------------------------------------------------------------------


class Edits(BaseLlm):
    """A model that edits its request, as some of ADK's do, and fails."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        llm_request.contents.append(types.Content(parts=[types.Part(text="edited")], role="user"))
        llm_request.config.temperature = None
        llm_request.config.tools = None
        raise ConnectionError(self.model)
        yield LlmResponse()


async def test_each_model_gets_the_request_and_the_config_of_the_first() -> None:
    def search(word: str) -> str:
        """Look something up."""
        return word

    config = types.GenerateContentConfig(temperature=0.125, max_output_tokens=77)
    with GeminiEmulator("ok") as gemini:
        pipeline = Agent("a", Edits(model="first")).generate_content_config(config).tool(search)
        others = model_fallback(models=[Edits(model="second"), gemini.model(FLASH)])
        assert (await pipeline.instruct("as it was").middleware(others).run("hi")).text == "ok"
        (asked,) = gemini.requests
    assert asked.config["temperature"] == 0.125
    assert asked.config["maxOutputTokens"] == 77
    assert asked.tools == ("search",)
    assert asked.system.startswith("as it was")
    assert [each["parts"][0].get("text") for each in asked.contents] == ["hi"]


async def test_those_inside_are_told_which_model_is_called_and_those_outside_which_answered() -> (
    None
):
    inside: list[tuple[str, str, Any]] = []
    outside: list[tuple[str, str]] = []

    class Inside:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            inside.append((call.model.model, call.request.model, call.request.cache_metadata))
            return await next(call)

    class Outside:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            call.request.cache_metadata = "of the first"
            made = await next(call)
            outside.append((call.model.model, call.request.model))
            return made

    first, others = ScriptedModel(DOWN), [scripted(DOWN, name="two"), scripted("ok", name="three")]
    pipeline = Agent("a", first).middleware(Outside()).middleware(model_fallback(models=others))
    await pipeline.middleware(Inside()).run("hi")
    assert inside == [
        ("scripted", "scripted", "of the first"),
        ("two", "two", None),
        ("three", "three", None),
    ]
    assert outside == [("scripted", "three")]
    assert others[1].calls[0].model == "three"


async def test_each_model_has_retries_circuits_and_limits_of_its_own() -> None:
    breaker = circuit_breaker(failures=2)
    limiter = rate_limiter(requests_per_minute=4, clock=Time(), max_wait=0)
    first, other = ScriptedModel(default=DOWN), scripted(default="ok")
    pipeline = Agent("a", first).middleware(model_fallback(models=[other])).middleware(breaker)
    pipeline = pipeline.middleware(retry(max_attempts=2, clock=Time())).middleware(limiter)
    for _ in range(4):
        assert (await pipeline.run("hi")).text == "ok"
    assert (len(first.calls), len(other.calls)) == (4, 4)  # the circuit opens after two calls
    assert (breaker.state("scripted"), breaker.state("other")) == ("open", "closed")


async def test_a_model_that_is_slow_is_ended_and_another_asked() -> None:
    first, other = ScriptedModel(reply("late", latency=60)), scripted("ok")
    pipeline = Agent("a", first).middleware(model_fallback(models=[other]))
    assert (await pipeline.middleware(timeout(model=1.0)).run("hi")).text == "ok"


async def test_a_model_that_has_used_up_its_limit_is_passed_over() -> None:
    limiter = rate_limiter(requests_per_minute=1, clock=Time(), max_wait=0)
    first, other = ScriptedModel("first"), scripted("other")
    pipeline = Agent("a", first).middleware(model_fallback(models=[other])).middleware(limiter)
    assert [(await pipeline.run("hi")).text for _ in range(2)] == ["first", "other"]


async def test_retries_outside_of_it_begin_with_the_first_again() -> None:
    first, other = ScriptedModel(DOWN, "ok"), scripted(DOWN)
    pipeline = Agent("a", first).middleware(retry(clock=Time()))
    result = await pipeline.middleware(model_fallback(models=[other])).run("hi")
    assert (result.text, first.calls[1].model) == ("ok", "scripted")


# --- when another is asked -----------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_what_is_wrong_with_the_request_is_raised_at_once(status: int) -> None:
    with GeminiEmulator(reply(status=status), "never") as gemini:
        other = model_fallback(models=[gemini.model(FLASH)])
        with pytest.raises(ClientError):
            await Agent("a", gemini.model(PRO)).middleware(other).run("hi")
        assert len(gemini.requests) == 1


@pytest.mark.parametrize("config", [None, SSE])
@pytest.mark.parametrize("fault", ["html", "bad_json", "truncated"])
async def test_what_is_no_answer_at_all_may_be_one_elsewhere(fault: Any, config: Any) -> None:
    with GeminiEmulator(reply("x", fault=fault), "From the other.") as gemini:
        other = model_fallback(models=[gemini.model(FLASH)])
        result = await Agent("a", gemini.model(PRO)).middleware(other).run("hi", config=config)
        assert result.text == "From the other."


async def test_who_falls_back_may_decide_after_which_errors() -> None:
    other = model_fallback(models=[scripted("ok")], fallback_on=lambda e: isinstance(e, KeyError))
    assert (await Agent("a", ScriptedModel(KeyError("x"))).middleware(other).run("hi")).text == "ok"
    with pytest.raises(ConnectionError):
        await Agent("a", ScriptedModel(DOWN)).middleware(other).run("hi")


def is_blocked(made: ModelReply) -> bool:
    return made.final is None or made.final.error_code == "SAFETY"


BLOCKED = reply(error_code="SAFETY", error_message="blocked")


async def test_answers_that_will_not_do(metrics: Measured) -> None:
    first, second, third = ScriptedModel(BLOCKED), scripted(BLOCKED), scripted("ok", name="third")
    others = model_fallback(models=[second, third], fallback_if=is_blocked)
    assert (await Agent("a", first).middleware(others).run("hi")).text == "ok"
    assert metrics("adk_fluent.fallback.switches", error__type="reply") == 2


async def test_the_last_answer_is_taken_as_it_is() -> None:
    others = model_fallback(models=[scripted(BLOCKED)], fallback_if=is_blocked)
    result = await Agent("a", ScriptedModel(BLOCKED)).middleware(others).run("hi")
    assert [each.error.code for each in result if each.error is not None] == ["SAFETY"]


async def test_an_answer_that_was_read_is_taken_as_it_is() -> None:
    other = scripted("never")
    pipeline = Agent("a", ScriptedModel(reply(chunks=["a", "b"])))
    others = model_fallback(models=[other], fallback_if=lambda _: True)
    assert (await pipeline.middleware(others).run("hi", config=SSE)).text == "ab"
    assert other.calls == ()


# --- when none answers ---------------------------------------------------------------------------


async def test_the_last_error_is_raised_and_tells_of_the_others() -> None:
    with GeminiEmulator(reply(status=429), reply(status=503)) as gemini:
        others = model_fallback(models=[scripted(DOWN, name="two"), gemini.model(FLASH)])
        with pytest.raises(ServerError) as caught:
            await Agent("a", gemini.model(PRO)).middleware(others).run("hi")
    assert f"model_fallback has asked {PRO}, two, {FLASH}" in caught.value.__notes__
    before = caught.value.__context__
    assert isinstance(before, ConnectionError)
    assert isinstance(before.__context__, ClientError)


async def test_circuits_that_are_all_open_are_told() -> None:
    breaker = circuit_breaker(failures=1)
    pipeline = Agent("a", ScriptedModel(default=DOWN))
    pipeline = pipeline.middleware(model_fallback(models=[scripted(default=DOWN)]))
    pipeline = pipeline.middleware(breaker)
    with pytest.raises(ConnectionError):
        await pipeline.run("hi")
    with pytest.raises(CircuitOpenError, match="'other'"):
        await pipeline.run("hi")


# --- ADK's own -----------------------------------------------------------------------------------


async def test_adks_own_fallback_is_a_model_like_any_other() -> None:
    """As the agent's model, and as one of the others."""
    module = pytest.importorskip("google.adk.models._fallback_model")
    with GeminiEmulator(*[reply(status=503)] * 4, "ok", default="never") as gemini:
        names = ("a", "b", "c", "d", "e")
        a, b, c, d, e = (gemini.model(f"gemini-{name}") for name in names)
        agent = Agent("a", module.FallbackModel(models=[a, b]))
        others = model_fallback(models=[c, module.FallbackModel(models=[d, e])])
        assert (await agent.middleware(others).run("hi")).text == "ok"
        assert [each.model for each in gemini.requests] == [f"gemini-{name}" for name in names]


# --- models by name ------------------------------------------------------------------------------


async def test_models_by_name(gemini_emulator: GeminiEmulator) -> None:
    gemini_emulator.script = Script(reply(status=503), "ok")
    pipeline = Agent("a", PRO).middleware(model_fallback(models=[FLASH]))
    assert (await pipeline.run("hi")).text == "ok"
    assert [each.model for each in gemini_emulator.requests] == [PRO, FLASH]


async def test_models_in_references() -> None:
    other = model_fallback(models=[Ref(scripted("ok"))])
    assert (await Agent("a", ScriptedModel(DOWN)).middleware(other).run("hi")).text == "ok"


def test_each_event_loop_has_models_of_its_own(gemini_emulator: GeminiEmulator) -> None:
    """A client's connections belong to the loop in which they were made."""
    gemini_emulator.script = Script(default="ok")
    other, seen = model_fallback(models=[FLASH]), list[Any]()

    class Notes:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            seen.append(call.model)
            return await next(call)

    pipeline = Agent("a", scripted(default=DOWN)).middleware(other).middleware(Notes())

    async def twice() -> None:
        for _ in range(2):
            assert (await pipeline.run("hi")).text == "ok"

    threads = [threading.Thread(target=asyncio.run, args=(twice(),)) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    asked = [each for each in seen if each.model == FLASH]
    assert len(asked) == 4
    assert len({id(each) for each in asked}) == 2


async def test_a_name_that_stands_for_no_model_is_found_before_it_is_needed() -> None:
    other = model_fallback(models=["no such model"])
    with pytest.raises(UsageError, match="no such model"):
        await Agent("a", ScriptedModel("ok")).middleware(other).run("hi")


# --- what it is given ----------------------------------------------------------------------------


async def test_it_can_be_pickled_after_it_was_used() -> None:
    other = model_fallback(models=[FLASH])
    await Agent("a", ScriptedModel("ok")).middleware(other).run("hi")
    assert pickle.loads(pickle.dumps(other)).models == [FLASH]


def test_it_is_a_middleware() -> None:
    assert isinstance(ModelFallbackMiddleware(models=[FLASH]), Middleware)


@pytest.mark.parametrize("models", [[], FLASH, [""], [None], [BaseLlm], [object()], None])
def test_wrong_options_are_refused_where_they_are_given(models: Any) -> None:
    with pytest.raises(UsageError, match=r"model_fallback\(models=\.\.\.\)") as caught:
        ModelFallbackMiddleware(models=models)
    assert __file__ in str(caught.value)


def test_it_can_be_described_without_models() -> None:
    schema = ModelFallbackMiddleware.DESC.config_schema
    assert schema is not None
    assert schema["properties"]["models"]["items"] == {"type": "string"}
    assert schema["required"] == ["models"]
