"""The presets: sound, and what they promise."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from kit import SSE, TWO_TOOLS, Time, search, weather
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.contracts import check_all
from adk_fluent.errors import UsageError
from adk_fluent.middleware import development, model_fallback, production, retry
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

FULL: Any = {
    "max_tokens": 100_000,
    "requests_per_minute": 600,
    "tokens_per_minute": 1_000_000,
    "personal_data": True,
    "cached": True,
}


def names(stack: tuple[Any, ...]) -> list[str]:
    return [each.name for each in stack]


def test_production_is_in_the_sound_order() -> None:
    stack = production(**FULL, fallbacks=["gemini-2.5-flash"])
    assert names(stack) == [
        *("otel_enrichment", "timeout", "pii_filter", "cache", "model_call_limit"),
        *("tool_call_limit", "token_budget", "model_fallback", "circuit_breaker", "retry"),
        *("rate_limiter", "timeout"),
    ]
    pipeline = Agent("a")
    for each in stack:
        pipeline = pipeline.middleware(each)
    assert [str(each) for each in check_all(pipeline) if each.code.startswith("MDW")] == []


def test_what_is_not_wanted_is_left_out() -> None:
    off: Any = dict.fromkeys(
        ("run_seconds", "model_seconds", "tool_seconds", "model_calls", "tool_calls")
    )
    assert names(production(**off, attempts=1)) == ["otel_enrichment", "circuit_breaker"]


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (
            production,
            {"fallbacks": "gemini-2.5-flash"},
            "give a list, such as ['gemini-2.5-flash']",
        ),
        (production, {"attempts": 0}, "greater than or equal to 1"),
        (production, {"attempts": None}, "give a whole number"),
        (production, {"personal_data": "no"}, "give True or False"),
        (production, {"run_seconds": "60"}, "give a number"),
        (production, {"cachd": True}, "production has no option 'cachd'\n"),
        (production, {"cachd": True}, "did you mean 'cached'?"),
        (development, {"emulated_tools": "pay"}, "give a list, such as ['pay']"),
        (development, {"emulated_tools": [search]}, "give a text"),
        (development, {"cached": 1}, "give True or False"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(make: Any, options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as caught:
        make(**options)
    assert f"{__file__}:" in str(caught.value)


def test_options_of_presets_have_names() -> None:
    with pytest.raises(UsageError, match="production takes its options by name"):
        cast("Any", production)(5)


@pytest.mark.parametrize("config", [None, SSE])
async def test_production_with_everything_over_http(config: Any) -> None:
    with GeminiEmulator(reply(status=503), *TWO_TOOLS, "again") as gemini:
        stack = production(**FULL, fallbacks=[gemini.model("gemini-2.5-pro")])
        pipeline = Agent("a", gemini.model()).tool(search).tool(weather).middleware(*stack)
        result = await pipeline.run("hi", config=config)
        assert result.text == "done"
        assert len(gemini.requests) == 3


async def test_production_calls_no_tool_twice() -> None:
    calls: list[str] = []

    def search(word: str) -> str:
        """Look something up."""
        calls.append(word)
        raise ConnectionError("reset")

    model = ScriptedModel(TWO_TOOLS[0], "done")
    pipeline = Agent("a", model).tool(search).tool(weather).middleware(*production())
    with pytest.raises(ConnectionError):
        await pipeline.run("hi")
    assert calls == ["x"]


async def test_production_lets_an_agent_that_is_a_tool_take_its_time() -> None:
    helper = Agent("helper", ScriptedModel(reply("found", latency=0.5)))
    model = ScriptedModel(Call("helper", {"request": "x"}), "done")
    pipeline = Agent("a", model).agent_tool(helper).middleware(*production(tool_seconds=0.1))
    assert (await pipeline.run("hi")).text == "done"


async def test_production_keeps_nobody_from_a_tool_because_of_another_user() -> None:
    def search(word: str) -> str:
        """Look something up."""
        if word == "x":
            raise TimeoutError(word)
        return f"found {word}"

    stack = production()
    for _ in range(6):
        model = ScriptedModel(Call("search", {"word": "x"}))
        with pytest.raises(TimeoutError):
            await Agent("a", model).tool(search).middleware(*stack).run("hi")
    model = ScriptedModel(Call("search", {"word": "y"}), "done")
    assert (await Agent("a", model).tool(search).middleware(*stack).run("hi")).text == "done"


async def test_production_stands_around_a_part_without_the_limit_of_runs() -> None:
    part = Agent("a").mock("A")
    with pytest.raises(UsageError, match="ends whole runs"):
        part.middleware(*production(), scope="agent")
    part = part.middleware(*production(run_seconds=None), scope="agent")
    assert (await (part >> Agent("b").mock("B")).run("hi")).text == "B"


async def test_development_logs_and_keeps_answers() -> None:
    stack = development()
    assert names(stack) == [
        *("structured_log", "timeout", "cache", "model_call_limit", "tool_call_limit"),
    ]
    model = ScriptedModel("once")
    pipeline = Agent("a", model).middleware(*stack)
    assert [(await pipeline.run("hi")).text for _ in range(2)] == ["once", "once"]
    log: Any = stack[0]
    assert [each["event"] for each in log.log].count("before_model") == 2


class Invoice(BaseModel):
    number: str


async def test_a_typed_answer_passes_middlewares_that_keep_the_request() -> None:
    """The schema in the request is a class, which has no copy of its own."""
    answer = '{"number": "A-1"}'
    clerk = (Agent("clerk", ScriptedModel(ConnectionError("reset"), answer)) @ Invoice).middleware(
        model_fallback(models=["gemini-2.5-flash"]), retry(clock=Time())
    )
    assert await clerk.ask_async("Read it.") == answer
    clerk = (Agent("clerk", ScriptedModel(answer)) @ Invoice).middleware(*production())
    assert await clerk.ask_async("Read it.") == answer
