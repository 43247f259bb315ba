"""The cache around model calls, over ADK's own Gemini and real HTTP, and on scripted models."""

from __future__ import annotations

import asyncio
import copy
import logging
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum, Flag, auto
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from kit import SSE, TWO_TOOLS, Time, clerk, until
from pydantic import BaseModel, ConfigDict

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import (
    CacheMiddleware,
    DiskStore,
    MemoryStore,
    cache,
    model_fallback,
    timeout,
)
from adk_fluent.protocol import Middleware, ModelCall, ModelReply, Usage
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, Thought, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from kit import Measured

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import NextModel


pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

REQUESTS = "adk_fluent.cache.requests"


def results(metrics: Measured) -> dict[str, float]:
    """How many calls came to what."""
    found = {
        each: metrics(REQUESTS, adk_fluent__cache__result=each)
        for each in ("hit", "shared", "miss", "bypass")
    }
    return {name: number for name, number in found.items() if number}


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    """Another session asks the same: what users of other caches for ADK miss."""
    with GeminiEmulator("It is on its way.") as gemini:
        pipeline = clerk(gemini, cache())
        first = await pipeline.run("Where is A1?", session_id="one")
        again = await pipeline.run("Where is A1?", session_id="two")
        assert first.text == again.text == "It is on its way."
        assert len(gemini.requests) == 1
    assert results(metrics) == {"miss": 1, "hit": 1}


@pytest.mark.parametrize("before", [SSE, ExecutionConfig()], ids=["streamed", "whole"])
@pytest.mark.parametrize("then", [SSE, ExecutionConfig()], ids=["streamed", "whole"])
async def test_streamed(before: ExecutionConfig, then: ExecutionConfig) -> None:
    """One way or the other, it is the same answer; streamed, its text comes before it is whole."""
    with GeminiEmulator(reply(chunks=["It is ", "on its ", "way."])) as gemini:
        pipeline = clerk(gemini, cache())
        await pipeline.run("hi", config=before)
        again = await pipeline.run("hi", config=then)
        assert len(gemini.requests) == 1
    expected = [("It is on its way.", False)]
    if then is SSE:
        expected.insert(0, ("It is on its way.", True))
    assert [(each.content, each.is_partial) for each in again] == expected


@pytest.mark.parametrize("config", [SSE, ExecutionConfig()], ids=["streamed", "whole"])
async def test_parallel_tools(config: ExecutionConfig, metrics: Measured) -> None:
    """What a model wants done is done each time, under ids of its own."""
    made: list[str] = []

    def search(word: str) -> str:
        """Look something up."""
        made.append(word)
        return f"found {word}"

    def weather(city: str) -> str:
        """The weather."""
        made.append(city)
        return f"sun in {city}"

    with GeminiEmulator(*TWO_TOOLS) as gemini:
        pipeline = Agent("clerk", gemini.model()).tool(search).tool(weather).middleware(cache())
        ids: list[str | None] = []
        for _ in range(3):
            result = await pipeline.run("hi", config=config)
            assert result.text == "done"
            ids += [
                call.call_id for each in result if not each.is_partial for call in each.tool_calls
            ]
        assert len(gemini.requests) == 2
    assert sorted(made) == ["Rome"] * 3 + ["x"] * 3
    assert len(set(ids)) == 6
    assert results(metrics) == {"miss": 2, "hit": 4}


class Together:
    """A model and runs of it: it answers when all of them have come as far as the cache."""

    def __init__(self, *replies: Any, runs: int) -> None:
        self.runs, self.came = runs, 0
        self.model = ScriptedModel(*(self._when_all_are_there(each) for each in replies))

    def _when_all_are_there(self, answer: Any) -> Any:
        async def answers(_: Any) -> Any:
            await until(lambda: self.came >= self.runs)
            await asyncio.sleep(0.01)
            made: Any = answer
            return await made() if callable(answer) else made

        return answers

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.came += 1
        return await next(call)

    def pipeline(self, **options: Any) -> Builder:
        return Agent("a", self.model).middleware(self).middleware(cache(**options))

    async def run(self, *, config: ExecutionConfig | None = None, **options: Any) -> list[Any]:
        """Their results, or what stopped them."""
        pipeline = self.pipeline(**options)
        runs = (pipeline.run("hi", config=config) for _ in range(self.runs))
        return await asyncio.gather(*runs, return_exceptions=True)


async def test_cancelled(metrics: Measured) -> None:
    """The first goes; one who waits for the same answer asks for it, and the others share it."""
    together = Together(reply("never", latency=60), "answer", runs=4)
    pipeline = together.pipeline()
    first = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(together.model.calls))
    others = [asyncio.ensure_future(pipeline.run("hi")) for _ in range(3)]
    await until(lambda: together.came == 4)
    assert len(together.model.calls) == 1
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert [each.text for each in await asyncio.gather(*others)] == ["answer"] * 3
    assert len(together.model.calls) == 2
    assert results(metrics) == {"miss": 2, "shared": 2}


async def test_error_after_the_first_partial(metrics: Measured) -> None:
    """Half an answer is none."""
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(half, "whole", "another") as gemini:
        pipeline = clerk(gemini, cache())
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await pipeline.run("hi", config=SSE)
        assert (await pipeline.run("hi", config=SSE)).text == "whole"
        assert (await pipeline.run("hi")).text == "whole"
        assert len(gemini.requests) == 2
    assert results(metrics) == {"miss": 2, "hit": 1}


@pytest.mark.parametrize("config", [SSE, ExecutionConfig()], ids=["streamed", "whole"])
async def test_concurrent(config: ExecutionConfig, metrics: Measured) -> None:
    """Who asks the same at the same time shares one call."""
    together = Together("answer", runs=8)
    runs = await together.run(config=config)
    assert [each.text for each in runs] == ["answer"] * 8
    assert len(together.model.calls) == 1
    assert results(metrics) == {"miss": 1, "shared": 7}
    if config is SSE:
        assert all(any(event.is_partial for event in each) for each in runs)


# --- what is never kept --------------------------------------------------------------------------


async def asked_twice(first: Any, **options: Any) -> int:
    """How many requests reach Gemini, when the first is answered by this."""
    with GeminiEmulator(first, default="fine") as gemini:
        pipeline = clerk(gemini, cache(**options))
        for _ in range(2):
            with suppress(Exception):  # of many kinds
                await asyncio.wait_for(pipeline.run("hi"), 30)
        return len(gemini.requests)


@pytest.mark.parametrize(
    "first",
    [
        reply(status=429),
        reply(status=503),
        reply(status=400),
        reply(error_code="SAFETY"),
        reply("Half", finish_reason="MAX_TOKENS"),
        reply("No", finish_reason="SAFETY"),
        reply("No", finish_reason="RECITATION"),
        reply(fault="empty"),
        reply("x" * 2000, fault="truncated"),
        reply(fault="html"),
        reply(""),
        reply(Thought("only thinking")),
    ],
    ids=str,
)
async def test_only_whole_answers_are_kept(first: Any) -> None:
    assert await asked_twice(first) == 2


async def test_a_whole_answer_is() -> None:
    assert await asked_twice("fine") == 1


async def test_a_stream_that_ends_too_early_is_not_kept() -> None:
    early = reply(chunks=["Half an ", "answer"], fault="truncated")
    with GeminiEmulator(early, default="whole") as gemini:
        pipeline = clerk(gemini, cache())
        with suppress(Exception):  # some clients see it, some do not
            await pipeline.run("hi", config=SSE)
        assert (await pipeline.run("hi", config=SSE)).text == "whole"


async def test_what_took_too_long_is_not_kept() -> None:
    with GeminiEmulator(reply("late", latency=30), default="in time") as gemini:
        pipeline = clerk(gemini, cache())
        slow = asyncio.ensure_future(pipeline.run("hi"))
        await until(lambda: bool(gemini.requests), seconds=30)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow, 0.01)
        assert (await pipeline.run("hi")).text == "in time"


def says(text: str = "fine", **fields: Any) -> LlmResponse:
    fields.setdefault("finish_reason", types.FinishReason.STOP)
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return LlmResponse(content=content, **fields)


def call_of(request: LlmRequest | None = None, **fields: Any) -> ModelCall:
    """A model call as ADK makes it."""
    session = SimpleNamespace(app_name="app", user_id="user")
    fields.setdefault("ctx", SimpleNamespace(session=session))
    request = request or LlmRequest(model="gemini-2.5-flash", contents=[types.UserContent("hi")])
    return ModelCall(request, **fields)


async def calls_for(
    middleware: CacheMiddleware, *responses: LlmResponse, times: int = 2, **fields: Any
) -> int:
    """How many of several identical calls reach a model that answers all of them so."""
    made: list[ModelCall] = []

    async def model(call: ModelCall) -> ModelReply:
        made.append(call)
        return ModelReply([each.model_copy(deep=True) for each in responses])

    for _ in range(times):
        await middleware.new().wrap_model_call(call_of(**fields), model)
    return len(made)


SEARCHED = types.GroundingMetadata(web_search_queries=["A1"])


@pytest.mark.parametrize(
    ("response", "options", "calls"),
    [
        (says(), {}, 1),
        (says(interrupted=True), {}, 2),
        (says(error_code="ODD"), {}, 2),
        (says(error_message="odd"), {}, 2),
        (says(interaction_id="i/1"), {}, 2),
        (says(finish_reason=None), {}, 2),
        (says(finish_reason=None), {"require_stop": False}, 1),
        (says(finish_reason=types.FinishReason.MAX_TOKENS), {"require_stop": False}, 2),
        (says(grounding_metadata=SEARCHED), {}, 2),
        (says(grounding_metadata=SEARCHED), {"grounded": True}, 1),
        (says(grounding_metadata=types.GroundingMetadata()), {}, 1),
        (says(custom_metadata={"live": object()}), {}, 2),
        (LlmResponse(finish_reason=types.FinishReason.STOP), {}, 2),
    ],
)
async def test_what_is_kept(response: LlmResponse, options: Any, calls: int) -> None:
    assert await calls_for(cache(**options), response) == calls


async def test_nothing_is_kept_of_nothing() -> None:
    assert await calls_for(cache()) == 2


def look(word: str) -> str:
    """Look something up."""
    return f"found {word}"


@pytest.mark.parametrize(("tool_calls", "calls"), [(True, 2), (False, 3)])
async def test_answers_that_call_tools_may_be_left_out(tool_calls: bool, calls: int) -> None:
    asks = reply(Call("look", {"word": "x", "how": None}))
    model = ScriptedModel(asks, "done", asks, "never")
    pipeline = Agent("a", model).tool(look).middleware(cache(tool_calls=tool_calls))
    for _ in range(2):
        result = await pipeline.run("hi")
        assert result.text == "done"
        (made,) = [call for each in result for call in each.tool_calls]
        assert made.args == {"word": "x", "how": None}
    assert len(model.calls) == calls


async def test_an_older_answer_is_held_against_the_rules_of_today() -> None:
    store = MemoryStore()
    calls = says().model_copy(deep=True)
    assert calls.content is not None
    calls.content.parts = [types.Part(function_call=types.FunctionCall(name="look", args={}))]
    assert await calls_for(cache(store=store), calls) == 1
    assert await calls_for(cache(store=store, tool_calls=False), calls, times=1) == 1


async def test_an_answer_of_a_stand_in_is_not_kept() -> None:
    """A fallback within puts its own model in the place of the one that was asked."""
    asked: list[str | None] = []

    async def model(call: ModelCall) -> ModelReply:
        asked.append(call.request.model)
        call.request.model = "backup"
        return ModelReply([says()])

    middleware = cache()
    for _ in range(2):
        await middleware.new().wrap_model_call(call_of(), model)
    assert asked == ["gemini-2.5-flash"] * 2


async def test_an_answer_of_a_stand_in_of_the_same_name_is_not_kept() -> None:
    """The same model elsewhere: its answers are not those of the one that was asked."""
    with (
        GeminiEmulator(reply(status=503), reply(status=503), "first") as here,
        GeminiEmulator(default="second") as there,
    ):
        others = model_fallback(models=[there.model("m")])
        limits = timeout(model=30)  # which has a task of its own
        pipeline = Agent("clerk", here.model("m")).middleware(cache(), limits, others)
        texts = [(await pipeline.run("hi")).text for _ in range(4)]
        assert texts == ["second", "second", "first", "first"]
        assert (len(here.requests), len(there.requests)) == (3, 2)


async def test_an_answer_that_a_stand_in_was_not_needed_for_is_kept() -> None:
    """What another attempt before it was answered by does not count."""
    unsure, sure = reply("unsure"), reply("sure")
    first, second = ScriptedModel(ConnectionError("reset"), sure), ScriptedModel(unsure)

    class AsksAgain:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            said = await next(call)
            return said if said.final.content.parts[0].text == "sure" else await next(call)

    others = model_fallback(models=[second])
    pipeline = Agent("a", first).middleware(cache(), AsksAgain(), others)
    assert [(await pipeline.run("hi")).text for _ in range(2)] == ["sure"] * 2
    assert (len(first.calls), len(second.calls)) == (2, 1)


async def test_models_that_keep_the_conversation_themselves_are_left_alone(
    metrics: Measured,
) -> None:
    model = SimpleNamespace(use_interactions_api=True)
    assert await calls_for(cache(), says(), model=model) == 2
    assert results(metrics) == {"bypass": 2}


async def test_nobody_has_no_answers_kept() -> None:
    """Without a session, nothing tells whose answer it is."""
    assert await calls_for(cache(), says(), ctx=None) == 2
    assert await calls_for(cache(shared=True), says(), ctx=None) == 1


async def test_a_live_object_in_a_request_goes_by_the_cache(metrics: Measured) -> None:
    request = LlmRequest(model="m", contents=[types.UserContent("hi")])
    response = types.FunctionResponse(name="f", response={"result": object()})
    request.contents.append(types.Content(parts=[types.Part(function_response=response)]))
    assert await calls_for(cache(), says(), request=request) == 2
    assert results(metrics) == {"bypass": 2}


# --- what is the same ----------------------------------------------------------------------------


class Says(BaseLlm):
    """A model of one's own, with a setting."""

    model: str = "says"
    setting: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield says(f"{self.setting} {len(ASKED)}")
        ASKED.append(self.setting)


ASKED: list[str] = []


async def same(first: Any, second: Any, **options: Any) -> bool:
    """Whether one cache has one answer for two runs: each a pipeline, and how it is run."""
    ASKED.clear()
    middleware = cache(**options)
    for pipeline, how in (first, second):
        await pipeline.run("hi", middleware=[middleware], **how)
    return len(ASKED) == 1


def agent(name: str = "a", **settings: Any) -> Any:
    return Agent(name, Says(**settings)).instruct("Be brief.")


async def test_users_and_apps_have_their_own_answers() -> None:
    other_app = {"config": ExecutionConfig(app_name="other_app")}
    assert await same((agent(), {"user_id": "u1"}), (agent(), {"user_id": "u1"}))
    assert not await same((agent(), {"user_id": "u1"}), (agent(), {"user_id": "u2"}))
    assert not await same((agent(), {}), (agent(), other_app))
    assert await same((agent(), {"user_id": "u1"}), (agent(), {"user_id": "u2"}), shared=True)
    assert await same((agent(), {}), (agent(), other_app), shared=True)


@pytest.mark.parametrize(
    "other",
    [
        lambda: agent(model="other"),
        lambda: agent(setting="other"),
        lambda: agent().instruct("Be long."),
        lambda: agent().generate_content_config(types.GenerateContentConfig(temperature=0.5)),
        lambda: agent().tool(look),
        lambda: agent("b"),  # ADK tells a model what its agent is called
    ],
    ids=["model", "setting", "instruction", "temperature", "tool", "agent"],
)
async def test_what_is_asked_otherwise_is_asked(other: Callable[[], Any]) -> None:
    assert await same((agent(), {}), (agent(), {}))
    assert not await same((agent(), {}), (other(), {}))


@pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
async def test_who_asks_again_in_one_run_wants_another_answer(
    tools: bool, metrics: Measured
) -> None:
    """A loop that begins anew, a result that is forgotten: from a cache, it would never end."""

    class Forgets:
        async def before_model(self, ctx: Any, request: Any) -> None:
            del request.contents[1:]

    first = reply(Call("look", {"word": "x"})) if tools else "not yet"
    model = ScriptedModel(first, "good", "never")
    agent = Agent("a", model).tool(look).middleware(Forgets()).middleware(cache())
    assert (await (agent if tools else agent * 2).run("hi")).text == "good"
    assert (await agent.run("hi")).text == "good"  # the later answer is the one that is kept
    assert len(model.calls) == 2
    assert results(metrics) == {"miss": 2, "hit": 1}


async def test_what_was_said_before_counts() -> None:
    ASKED.clear()
    pipeline = agent().middleware(cache())
    for session in ("one", "two"):
        for _ in range(2):
            await pipeline.run("hi", session_id=session)
    assert len(ASKED) == 2  # the second "hi" of a conversation is not the first


async def test_how_a_model_is_reached_does_not_count() -> None:
    def model(**more: Any) -> Any:
        return SimpleNamespace(_additional_args={"api_key": "k1", **more})

    middleware = cache()
    assert await calls_for(middleware, says(), model=model(), times=1) == 1
    assert await calls_for(middleware, says(), model=model(api_key="k2", timeout=3)) == 0
    assert await calls_for(middleware, says(), model=model(temperature=0.5)) == 1


@dataclass
class Adapter:
    name: str


class Tone(Enum):
    KIND = auto()
    STERN = auto()


class Tools(Flag):
    SEARCH = 1
    MAPS = 2


class Nested(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    inner: Any


class Holds(Says):
    """A model with a setting of any type."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    of_any_type: Any = None


#: Pairs of settings that differ.
DIFFER: list[tuple[Any, Any]] = [
    (Path("/legal"), Path("/medical")),
    (Path("/legal"), "/legal"),
    (Adapter("x"), Adapter("y")),
    ({"x"}, {"y"}),
    (frozenset("x"), frozenset("y")),
    (frozenset({1, "1"}), frozenset({1, 2})),
    (b"x", b"y"),
    (Tone.KIND, Tone.STERN),
    (Tools.SEARCH | Tools.MAPS, Tools.SEARCH),
    (Decimal("1.0"), 1.0),
    (date(2026, 1, 1), date(2026, 1, 2)),
    ({1: "x"}, {"1": "x"}),
    (Nested(inner=Path("x")), Nested(inner=Path("y"))),
    (Says(setting="x"), Says(setting="y")),
    (Says, Holds),
]


@pytest.mark.parametrize(("one", "other"), DIFFER, ids=range(len(DIFFER)))
async def test_settings_of_a_model_are_told_apart_by_value(one: Any, other: Any) -> None:
    """Of whatever type: two models of one class that differ in one have their own answers."""
    assert await same((agent_of(one), {}), (agent_of(copy.deepcopy(one)), {}))
    assert not await same((agent_of(one), {}), (agent_of(other), {}))


def agent_of(setting: Any) -> Any:
    return Agent("a", Holds(of_any_type=setting))


#: Settings that nothing tells from others of their type.
LIVE: dict[str, Any] = {
    "object": object(),
    "function": len,
    "deep": {"deep": [object()]},
    "class": type("<A>", (), {}),
}


@pytest.mark.parametrize("setting", LIVE.values(), ids=LIVE)
async def test_a_setting_that_nothing_tells_apart_goes_by_the_cache(
    setting: Any, metrics: Measured
) -> None:
    """Neither found nor kept: the next such object is another one."""
    assert not await same((agent_of(setting), {}), (agent_of(setting), {}))
    assert results(metrics) == {"bypass": 2}


async def test_a_key_of_ones_own() -> None:
    """Such as one that leaves out what differs every time."""
    asked: list[str] = []

    def last_word(call: ModelCall) -> str | None:
        text = call.request.contents[-1].parts[0].text
        asked.append(text)
        return None if "secret" in text else text.split()[-1]

    model = ScriptedModel("one", "two", "three", "four")
    pipeline = Agent("a", model).middleware(cache(key=last_word))
    said = ["10:01 A1", "10:02 A1", "10:03 A2", "secret A1"]
    answers = [(await pipeline.run(each)).text for each in said]
    assert answers == ["one", "one", "two", "three"]
    assert asked == said
    assert (await pipeline.run("10:04 A1", user_id="somebody else")).text == "four"


async def test_a_key_that_fails_is_an_error() -> None:
    def wrong(_: ModelCall) -> str:
        raise TypeError("the key's own")

    with pytest.raises(TypeError, match="the key's own"):
        await Agent("a").mock("A").middleware(cache(key=wrong)).run("hi")


async def test_who_decides_what_is_kept() -> None:
    def short(call: ModelCall, reply: ModelReply) -> bool:
        return call.agent == "a" and len(reply.final.content.parts[0].text) < 4

    model = ScriptedModel("too long", "ok", "never")
    pipeline = Agent("a", model).middleware(cache(cache_if=short))
    assert [(await pipeline.run("hi")).text for _ in range(3)] == ["too long", "ok", "ok"]


# --- for how long --------------------------------------------------------------------------------


async def test_an_answer_is_good_for_a_time() -> None:
    time = Time()
    model = ScriptedModel("one", "two")
    pipeline = Agent("a", model).middleware(cache(ttl=60, store=MemoryStore(clock=time)))
    answers: list[str] = []
    for seconds in (0, 59, 2):
        time.time += seconds
        answers.append((await pipeline.run("hi")).text)
    assert answers == ["one", "one", "two"]


async def test_an_answer_may_be_good_for_ever() -> None:
    time = Time()
    pipeline = Agent("a", ScriptedModel("one")).middleware(
        cache(ttl=None, store=MemoryStore(clock=time))
    )
    await pipeline.run("hi")
    time.time += 1e9
    assert (await pipeline.run("hi")).text == "one"


async def test_it_can_be_told_to_forget() -> None:
    middleware = cache()
    pipeline = Agent("a", ScriptedModel("one", "two")).middleware(middleware)
    await pipeline.run("hi")
    await middleware.clear()
    assert (await pipeline.run("hi")).text == "two"


# --- a hit is an answer like any other -----------------------------------------------------------


class Signs:
    """Changes what it is given, as middlewares outside and hooks may."""

    async def after_model(self, ctx: Any, response: Any) -> None:
        if response.content and not response.partial:
            response.content.parts[0].text += "!"
            response.content.parts.append(types.Part(text="?"))
            response.custom_metadata = {"changed": True}


@pytest.mark.parametrize("config", [SSE, ExecutionConfig()], ids=["streamed", "whole"])
async def test_who_changes_an_answer_changes_only_his_own(config: ExecutionConfig) -> None:
    pipeline = Agent("a", ScriptedModel("yes")).middleware(Signs()).middleware(cache())
    for _ in range(3):
        assert (await pipeline.run("hi", config=config)).text == "yes!?"


async def test_who_shares_an_answer_has_his_own() -> None:
    together = Together("yes", runs=4)
    pipeline = together.pipeline()
    config = ExecutionConfig(middlewares=[Signs()])
    runs = await asyncio.gather(*(pipeline.run("hi", config=config) for _ in range(4)))
    assert {each.text for each in runs} == {"yes!?"}
    assert len(together.model.calls) == 1


async def test_hooks_events_and_state_are_those_of_any_answer() -> None:
    seen: list[str] = []

    class Watches:
        async def before_model(self, ctx: Any, request: Any) -> None:
            seen.append("before")

        async def after_model(self, ctx: Any, response: Any) -> None:
            seen.append(response.content.parts[0].text)
            ctx.state["seen"] = len(seen)

    pipeline = Agent("a", ScriptedModel("yes")).writes("answer").middleware(Watches())
    pipeline = pipeline.middleware(cache())
    first, again = [await pipeline.run("hi") for _ in range(2)]
    assert seen == ["before", "yes"] * 2
    assert first.state == {"answer": "yes", "seen": 2}
    assert again.state == {"answer": "yes", "seen": 4}
    assert [each.author for each in first] == [each.author for each in again]


async def test_it_took_no_tokens_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    middleware = cache()
    usage = Usage(prompt=100, output=7)
    pipeline = Agent("a", ScriptedModel(reply("yes", usage=usage))).middleware(middleware)
    first, again = [await pipeline.run("hi") for _ in range(2)]
    assert (first.usage, again.usage) == (usage, Usage())
    assert [each.custom_metadata for each in again if each.content] == [{"adk_fluent_cache": "hit"}]
    assert not any("adk_fluent_cache" in (each.custom_metadata or {}) for each in first)
    assert middleware.stats.saved == usage
    assert "usage metadata" not in caplog.text  # ADK warns of answers that tell nothing of it


async def test_ids_and_caches_of_one_conversation_are_not_given_to_another() -> None:
    """ADK gives calls their ids; and takes the last answer's context cache up where it was."""
    response = says()
    assert response.content is not None
    call = types.FunctionCall(id="call_1", name="look", args={"word": "x"})
    response.content.parts = [types.Part(function_call=call, thought_signature=b"\xff\x00")]
    if "CacheMetadata" in str(LlmResponse.model_fields["cache_metadata"].annotation):
        from google.adk.models.cache_metadata import CacheMetadata

        response.cache_metadata = CacheMetadata(fingerprint="f", contents_count=1)

    async def model(call: ModelCall) -> ModelReply:
        return ModelReply([response])

    middleware = cache()
    await middleware.new().wrap_model_call(call_of(), model)
    kept = (await middleware.new().wrap_model_call(call_of(), model)).final
    assert (kept.cache_metadata, kept.content.parts[0].function_call.id) == (None, None)
    assert kept.content.parts[0].thought_signature == b"\xff\x00"
    assert kept.content.parts[0].function_call.args == {"word": "x"}
    assert response.content.parts[0].function_call is call
    assert call.id == "call_1"


async def test_all_that_was_said_comes_again() -> None:
    """Text, thoughts, pictures, and citations; each time anew."""
    parts = [
        types.Part(text="hm", thought=True),
        types.Part(text="Look: "),
        types.Part.from_bytes(data=bytes(range(256)), mime_type="image/png"),
    ]
    response = says(
        model_version="m-1",
        avg_logprobs=-0.5,
        citation_metadata=types.CitationMetadata(citations=[types.Citation(uri="http://a")]),
        custom_metadata={"mine": [1, None]},
    )
    response.content = types.Content(role="model", parts=parts)

    async def model(call: ModelCall) -> ModelReply:
        return ModelReply([response])

    middleware = cache()
    await middleware.new().wrap_model_call(call_of(), model)
    fragments: list[LlmResponse] = []
    call = call_of(stream=True)

    async def forward(fragment: Any) -> None:
        fragments.append(fragment)

    call.sink.forward = forward
    found = (await middleware.new().wrap_model_call(call, model)).final
    for name in ("content", "model_version", "avg_logprobs", "citation_metadata", "finish_reason"):
        assert getattr(found, name) == getattr(response, name)
    assert found.custom_metadata == {"mine": [1, None], "adk_fluent_cache": "hit"}
    (fragment,) = fragments
    assert (fragment.partial, fragment.finish_reason) == (True, None)
    assert fragment.content is not None
    assert fragment.content.parts == parts[:2]


# --- at the same time ----------------------------------------------------------------------------


async def test_the_next_one_tries_when_the_first_has_failed(metrics: Measured) -> None:
    together = Together(reply(raises=ConnectionError("reset")), "answer", runs=5)
    runs = await together.run()
    assert [isinstance(each, ConnectionError) for each in runs].count(True) == 1
    assert [getattr(each, "text", None) for each in runs].count("answer") == 4
    assert len(together.model.calls) == 2
    assert results(metrics) == {"miss": 2, "shared": 3}


async def test_nobody_waits_for_more_than_two_who_fail() -> None:
    """Else the last of many would wait for all those before."""
    failing = [reply(raises=ConnectionError("reset"))] * 2
    together = Together(*failing, *[reply(latency=60)] * 6, runs=8)
    running = asyncio.ensure_future(together.run())
    await until(lambda: len(together.model.calls) == 8)  # the last six at the same time
    running.cancel()
    await asyncio.wait([running])


async def test_what_cannot_be_kept_is_not_shared() -> None:
    """Nor do those who have waited for it wait for each other."""
    half = reply("half", finish_reason="MAX_TOKENS")

    async def with_all_others() -> Any:
        await until(lambda: len(together.model.calls) == 4)
        return half

    together = Together(half, *[with_all_others] * 3, runs=4)
    assert [each.text for each in await together.run()] == ["half"] * 4
    assert len(together.model.calls) == 4


async def test_nobody_waits_longer_than_he_likes() -> None:
    """The first may have a user who reads slowly."""
    model = ScriptedModel(reply("never", latency=60), "mine")
    pipeline = Agent("a", model).middleware(cache(max_wait=0.05))
    first = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(model.calls))
    assert (await pipeline.run("hi")).text == "mine"
    first.cancel()
    await asyncio.wait([first])


async def test_nobody_waits_for_a_user_who_reads_slowly(
    monkeypatch: pytest.MonkeyPatch, metrics: Measured
) -> None:
    """The others share a call of their own, and the slow one gets all that he was promised."""
    from adk_fluent.middleware._cache import _middleware

    monkeypatch.setattr(_middleware, "_READER_SECONDS", 0.1)
    model = ScriptedModel(reply(chunks=["one ", "two ", "three"]), reply("whole", latency=0.1))
    pipeline = Agent("a", model).middleware(cache(shared=True))
    goes_on = asyncio.Event()

    class Reads:
        """As a slow user may: the model waits until he has taken a fragment."""

        async def after_model(self, ctx: Any, response: Any) -> None:
            if response.partial:
                await goes_on.wait()

    slow = pipeline.run("hi", config=SSE, user_id="slow", middleware=[Reads()])
    reading = asyncio.ensure_future(slow)
    await until(lambda: bool(model.calls))
    async with asyncio.timeout(20):
        runs = await asyncio.gather(*(pipeline.run("hi", user_id=f"{n}") for n in range(3)))
    assert [each.text for each in runs] == ["whole"] * 3
    goes_on.set()
    assert (await reading).text == "one two three"
    assert len(model.calls) == 2
    assert results(metrics) == {"miss": 2, "shared": 2}


async def test_who_reads_as_it_comes_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, metrics: Measured
) -> None:
    """However long all of it takes."""
    from adk_fluent.middleware._cache import _middleware

    monkeypatch.setattr(_middleware, "_READER_SECONDS", 0.3)
    model = ScriptedModel(reply(chunks=["a", "b", "c", "d", "e", "f"], pause=0.1))
    pipeline = Agent("a", model).middleware(cache())
    runs = await asyncio.gather(*(pipeline.run("hi", config=SSE) for _ in range(3)))
    assert [each.text for each in runs] == ["abcdef"] * 3
    assert results(metrics) == {"miss": 1, "shared": 2}


async def test_one_need_not_wait_at_all() -> None:
    together = Together(*["answer"] * 3, runs=3)
    pipeline = together.pipeline(max_wait=0)
    await asyncio.gather(*(pipeline.run("hi") for _ in range(3)))
    assert len(together.model.calls) == 3
    assert (await pipeline.run("hi")).text == "answer"
    assert len(together.model.calls) == 3


async def test_who_gives_up_waiting_leaves_the_others_waiting() -> None:
    together = Together("answer", runs=4)
    pipeline = together.pipeline()
    first = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(together.model.calls))
    impatient, patient = (asyncio.ensure_future(pipeline.run("hi")) for _ in range(2))
    await until(lambda: together.came == 3)
    impatient.cancel()
    await asyncio.wait([impatient])
    together.came += 1
    runs = await asyncio.gather(first, patient)
    assert [each.text for each in runs] == ["answer"] * 2
    assert impatient.cancelled()
    assert len(together.model.calls) == 1


async def test_one_cache_twice_in_a_stack_does_not_wait_for_itself() -> None:
    middleware = cache()
    pipeline = (
        Agent("a", ScriptedModel("A")).middleware(middleware) >> Agent("b").mock("B")
    ).named("both")
    async with asyncio.timeout(20):
        result = await pipeline.middleware(middleware).run("hi", middleware=[middleware])
    assert [each.content for each in result if each.content] == ["A", "B"]


async def test_event_loops_of_several_threads() -> None:
    """Nobody waits for somebody in another loop; the answers are for all."""
    middleware = cache()
    model = ScriptedModel(default=reply("answer", latency=0.1))
    pipeline = Agent("a", model).middleware(middleware)
    texts: list[str] = []

    def work() -> None:
        async def both() -> None:
            runs = await asyncio.gather(*(pipeline.run("hi") for _ in range(3)))
            texts.extend(each.text for each in runs)

        asyncio.run(both())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        await asyncio.to_thread(each.join, 30)
    assert texts == ["answer"] * 9
    assert 1 <= len(model.calls) <= 3
    stats = middleware.stats
    assert stats.hits + stats.shared + stats.misses == 9
    assert stats.misses == len(model.calls)


# --- where answers are kept ----------------------------------------------------------------------


async def test_a_file_outlives_the_middleware(tmp_path: Path) -> None:
    for answer in ("one", "never"):
        middleware = cache(store=DiskStore(tmp_path / "cache.db"))
        result = await Agent("a", ScriptedModel(answer)).middleware(middleware).run("hi")
        assert result.text == "one"
        await middleware.close()


PROGRAM = """
import asyncio, sys
from adk_fluent import Agent
from adk_fluent.middleware import DiskStore, cache
from adk_fluent.testing import Call, ScriptedModel, reply

def look(words: list[str], how: str = "well") -> dict[str, object]:
    \"""Look something up.\"""
    return {"how": how, "found": words}

model = ScriptedModel(reply(Call("look", {"words": ["a", "b", "c"]})), sys.argv[2])
pipeline = Agent("a", model).instruct("Be brief.").tool(look)
pipeline = pipeline.middleware(cache(store=DiskStore(sys.argv[1])))
print(pipeline.ask("hi"), len(model.calls))
"""


@pytest.mark.full
def test_a_file_outlives_the_process(tmp_path: Path) -> None:
    """Hashes of texts are others in every process; what is the same is not."""
    said: list[str] = []
    for answer in ("one", "two"):
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-c",
            PROGRAM,
            str(tmp_path / "cache.db"),
            answer,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        said.append(done.stdout.strip() or done.stderr)
    assert said == ["one 2", "one 0"]


class Broken:
    """A store that cannot be reached."""

    def __init__(self, *works: str) -> None:
        self.works = works

    def _maybe(self, what: str) -> None:
        if what not in self.works:
            raise OSError(28, "No space left on device")

    async def get(self, key: str) -> bytes | None:
        self._maybe("get")
        return None

    async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
        self._maybe("set")

    async def clear(self) -> None:
        self._maybe("clear")

    async def close(self) -> None:
        self._maybe("close")


@pytest.mark.parametrize("works", [(), ("get",), ("set",)])
async def test_a_store_that_fails_is_as_good_as_none(
    works: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    middleware = cache(store=Broken(*works))
    pipeline = Agent("a", ScriptedModel(default="fine")).middleware(middleware)
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        for _ in range(3):
            assert (await pipeline.run("hi")).text == "fine"
        await middleware.close()
    (record,) = [each for each in caplog.records if each.name == "adk_fluent"]
    assert "models are called without it" in record.message
    assert "No space left on device" in record.message


class Hangs(Broken):
    """A store that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def get(self, key: str) -> bytes | None:
        self.asked += 1
        await asyncio.sleep(3600)
        return None

    async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
        await self.get(key)


async def test_a_store_that_hangs_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from adk_fluent.middleware._cache import _middleware

    monkeypatch.setattr(_middleware, "_STORE_SECONDS", 0.05)
    store = Hangs()
    middleware = cache(store=store)
    model = ScriptedModel(default="fine")
    pipeline = Agent("a", model).middleware(timeout(model=20), middleware)
    for _ in range(5):
        assert (await pipeline.run("hi")).text == "fine"
    assert (store.asked, len(model.calls)) == (1, 5)
    assert len([each for each in caplog.records if "called without it" in each.message]) == 1
    middleware._common.rests_until = time.monotonic()
    await pipeline.run("hi")
    assert store.asked == 2


async def test_a_store_that_hangs_is_left_alone_by_who_gives_up_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else no call would ever come as far as the model."""
    from adk_fluent.middleware._cache import _middleware

    monkeypatch.setattr(_middleware, "_STORE_SECONDS", 20.0)
    store = Hangs()
    middleware = cache(store=store)
    pipeline = Agent("a", ScriptedModel("fine")).middleware(middleware)
    running = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: store.asked == 1)
    monkeypatch.setattr(_middleware, "_STORE_SECONDS", 0.01)
    await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.wait([running])
    assert (await pipeline.run("hi")).text == "fine"
    assert store.asked == 1


async def test_what_is_logged_of_a_store_holds_no_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients of services put the address into their errors, and stores into what they are."""

    @dataclass
    class Service(Broken):
        url: str

        def _maybe(self, what: str) -> None:
            raise ConnectionError(f"cannot reach {self.url}")

    pipeline = Agent("a", ScriptedModel("fine"))
    pipeline = pipeline.middleware(cache(store=Service("redis://user:secret@host")))
    with caplog.at_level(logging.DEBUG, "adk_fluent"):
        assert (await pipeline.run("hi")).text == "fine"
    (record,) = [each for each in caplog.records if "called without it" in each.message]
    assert "Service" in record.message
    assert "ConnectionError" in record.message
    assert "secret" not in caplog.text


async def test_a_file_of_somebody_else_is_as_good_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary")
    pipeline = Agent("a", ScriptedModel(default="fine")).middleware(cache(store=DiskStore(path)))
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        for _ in range(2):
            assert (await pipeline.run("hi")).text == "fine"
    (record,) = [each for each in caplog.records if each.name == "adk_fluent"]
    assert "is no cache" in record.message
    assert path.read_text() == "Dear diary"


async def test_a_folder_that_cannot_be_made_is_as_good_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    store = DiskStore(tmp_path / "file" / "cache.db")
    pipeline = Agent("a", ScriptedModel(default="fine")).middleware(cache(store=store))
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        assert (await pipeline.run("hi")).text == "fine"
    assert len([each for each in caplog.records if each.name == "adk_fluent"]) == 1


def instead(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(value: bytes) -> bytes:
        assert old in value
        return value.replace(old, new)

    return change


def only(value: bytes) -> Callable[[bytes], bytes]:
    return lambda _: value


#: What somebody, or another version, may have left in a store.
LEFT: dict[str, Callable[[bytes], bytes]] = {
    "empty": only(b""),
    "no json": only(b"no json"),
    "pickle": only(b"cos\nsystem\n(S'true'\ntR."),
    "deep": only(b"[" * 100_000),
    "cut": lambda value: value[:-10],
    "format": instead(b'"format":1', b'"format":2'),
    "key": instead(b'"key":"', b'"key":"f'),
    "field": instead(b'"text"', b'"txet"'),
    "finish": instead(b'"STOP"', b'"MAX_TOKENS"'),
}


@pytest.mark.parametrize("change", LEFT.values(), ids=LEFT)
async def test_what_is_no_answer_is_asked_again(change: Callable[[bytes], bytes]) -> None:
    class Odd(MemoryStore):
        async def get(self, key: str) -> bytes | None:
            found = await super().get(key)
            return found and change(found)

    assert await calls_for(cache(store=Odd()), says()) == 2


async def test_what_is_kept_is_json() -> None:
    import json

    kept: list[bytes] = []

    class Shows(MemoryStore):
        async def set(self, key: str, value: bytes, ttl: float | None = None) -> None:
            kept.append(value)

    await calls_for(cache(store=Shows()), says(), times=1)
    entry = json.loads(kept[0])
    assert (entry["format"], entry["responses"][0]["content"]["parts"]) == (1, [{"text": "fine"}])


async def test_a_closed_runner_does_not_end_the_cache(tmp_path: Path) -> None:
    """Other runners may have it, too."""
    middleware = cache(store=DiskStore(tmp_path / "cache.db"))
    pipeline = Agent("a", ScriptedModel("one")).middleware(middleware)
    runner = pipeline.to_runner()
    await runner.close()
    for _ in range(2):
        assert (await pipeline.run("hi")).text == "one"
    await middleware.close()


# --- what it is given, and what it tells ---------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(CacheMiddleware(), Middleware)
    made = cache()
    assert (made.ttl, made.shared, made.tool_calls, made.grounded) == (3600.0, False, True, False)
    assert cache().store is not made.store


async def test_it_tells_what_it_has_done() -> None:
    middleware = cache()
    pipeline = Agent("a", ScriptedModel("one", "two")).middleware(middleware)
    for message in ("hi", "hi", "hello", "hi"):
        await pipeline.run(message)
    stats = middleware.stats
    assert (stats.hits, stats.shared, stats.misses, stats.bypassed) == (2, 0, 2, 0)
    assert stats.saved.total > 0


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"ttl": 0}, "ttl"),
        ({"ttl": "60"}, "ttl"),
        ({"max_wait": -1}, "max_wait"),
        ({"shared": 1}, "shared"),
        ({"store": "cache.db"}, "store"),
        ({"store": DiskStore}, "store"),
        ({"store": {}}, "store"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"cache\({option}=\.\.\.\)") as caught:
        CacheMiddleware(**options)
    assert __file__ in str(caught.value)
