"""Warnings of a context that gets full, over ADK's own Gemini and on models that are scripted."""

from __future__ import annotations

import asyncio
import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from kit import SSE, TWO_TOOLS, clerk, until

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.middleware import ContextWarningMiddleware, context_warning
from adk_fluent.protocol import Middleware, ModelReply, Usage
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.middleware._context._warning import ContextUsage
    from adk_fluent.protocol import ModelCall, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

SAID = "You have used 62% of the model's context (81,264 of 131,072 tokens)."


def full(text: Any = "ok", used: int = 81_264, **more: Any) -> Any:
    """A reply to a prompt of so many tokens, less one for the answer."""
    return reply(text, usage=Usage(prompt=used - 1, output=1), **more)


def notices(result: Any) -> list[str]:
    return [
        each.custom_metadata["adk_fluent_notice"]
        for each in result
        if "adk_fluent_notice" in each.custom_metadata
    ]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What is logged under ``adk_fluent``."""
    caplog.set_level(logging.WARNING, "adk_fluent")
    return lambda: [each.getMessage() for each in caplog.records if each.name == "adk_fluent"]


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(logged: Callable[[], list[str]]) -> None:
    """It is logged, told, and goes with the answer; the answer is as it was."""
    told: list[ContextUsage] = []
    warning = context_warning(max_context=131_072, on_warning=told.append)
    with GeminiEmulator(full()) as gemini:
        result = await clerk(gemini, warning).run("hi")
    assert result.text == "ok"
    assert notices(result) == [SAID]
    assert logged() == [f"agent clerk: {SAID}"]
    (usage,) = told
    assert (usage.agent, usage.used, usage.max_context) == ("clerk", 81_264, 131_072)
    assert usage.part == pytest.approx(0.62, abs=0.001)


async def test_streamed() -> None:
    """The notice comes with the whole answer, once."""
    warning = context_warning(max_context=131_072)
    answer = reply(chunks=["a", "b"], usage=Usage(prompt=81_262, output=2))
    with GeminiEmulator(answer) as gemini:
        result = await clerk(gemini, warning).run("hi", config=SSE)
    assert [each.content for each in result if each.is_partial][:2] == ["a", "b"]
    (event,) = [each for each in result if each.custom_metadata]
    assert (event.is_partial, event.content) == (False, "ab")
    assert notices(result) == [SAID]


async def test_parallel_tools() -> None:
    """A reply that calls tools is one like any other."""
    calls = reply(*TWO_TOOLS[0].parts, usage=Usage(prompt=60))
    with GeminiEmulator(calls, full("done", 90)) as gemini:
        result = await clerk(gemini, context_warning(max_context=100)).run("hi")
    assert result.text == "done"
    assert sum(len(each.tool_responses) for each in result) == 2
    assert [len(each.tool_calls) for each in result if each.custom_metadata] == [2]


async def test_cancelled() -> None:
    """Who cancels is told nothing, and the next run is."""
    told: list[ContextUsage] = []
    warning = context_warning(max_context=1, on_warning=told.append)
    model = ScriptedModel(reply("never", latency=60), "ok")
    pipeline = Agent("a", model).middleware(warning)
    running = asyncio.ensure_future(pipeline.run("hi"))
    await until(lambda: bool(model.calls))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert told == []
    await pipeline.run("hi")
    assert len(told) == 1


async def test_error_after_the_first_partial(logged: Callable[[], list[str]]) -> None:
    """A call that fails may have failed of that; the estimate has to do."""
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(half) as gemini, pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
        await clerk(gemini, context_warning(max_context=1000)).run("x" * 4000, config=SSE)
    (message,) = logged()
    assert message.startswith("agent clerk: You have used 1")
    assert message.endswith("of 1,000 tokens).")


async def test_concurrent() -> None:
    """Every agent has a context of its own, and every session its warning."""
    warning = context_warning(max_context=100)
    both = Agent("a", ScriptedModel(default=full(used=50, latency=0.01))) | Agent(
        "b", ScriptedModel(default=full(used=70, latency=0.01))
    )
    pipeline = both.middleware(warning)
    results = await asyncio.gather(*(pipeline.run("hi") for _ in range(4)))
    for result in results:
        assert sorted(notices(result)) == [
            "You have used 50% of the model's context (50 of 100 tokens).",
            "You have used 70% of the model's context (70 of 100 tokens).",
        ]


# --- when it warns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "used", "warns"),
    [(0.5, 49, 0), (0.5, 50, 1), (0.9, 89, 0), (0.9, 90, 1), (1, 99, 0), (1, 100, 1)],
)
async def test_from_the_threshold_on(threshold: float, used: int, warns: int) -> None:
    warning = context_warning(threshold_percent=threshold, max_context=100)
    result = await Agent("a", ScriptedModel(full(used=used))).middleware(warning).run("hi")
    assert len(notices(result)) == warns


async def test_once_in_a_session_and_again_when_it_was_less_full_in_between() -> None:
    """Another process knows it from the session's state."""
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    made: list[int] = []
    for used in (60, 70, 80, 20, 30, 60, 70):
        pipeline = Agent("a", ScriptedModel(full(used=used)))
        made.append(
            len(
                notices(
                    await pipeline.middleware(context_warning(max_context=100)).run("hi", **job)
                )
            )
        )
    assert made == [1, 0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(("prompts", "warns"), [((60, 61, 62), 1), ((60, 20, 62), 2)])
async def test_once_in_a_run_likewise(prompts: tuple[int, ...], warns: int) -> None:
    def look() -> str:
        """Look."""
        return "seen"

    calls = [reply(Call("look"), usage=Usage(prompt=each)) for each in prompts]
    pipeline = Agent("a", ScriptedModel(*calls, full("ok", prompts[-1]))).tool(look)
    result = await pipeline.middleware(context_warning(max_context=100)).run("hi")
    assert len(notices(result)) == warns


async def test_one_agent_several_times_at_once_warns_once() -> None:
    """None of them sees the state of the others."""
    told: list[ContextUsage] = []
    expert = Agent("expert", ScriptedModel(default=full(used=60, latency=0.02)))
    three = reply(*(Call("expert", {"request": str(n)}) for n in range(3)), usage=Usage(prompt=1))
    pipeline = Agent("a", ScriptedModel(three, full("done", 5))).agent_tool(expert)
    await pipeline.middleware(context_warning(max_context=100, on_warning=told.append)).run("hi")
    assert [each.agent for each in told] == ["expert"]


async def test_two_thresholds_warn_each_for_itself() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    half, nearly = (context_warning(threshold_percent=part, max_context=100) for part in (0.5, 0.9))
    pipeline = Agent("a", ScriptedModel(full(used=60), full(used=95), full(used=96)))
    pipeline = pipeline.middleware(half).middleware(nearly)
    assert [notices(await pipeline.run("hi", **job)) for _ in range(3)] == [
        ["You have used 60% of the model's context (60 of 100 tokens)."],
        ["You have used 95% of the model's context (95 of 100 tokens)."],
        [],
    ]


async def test_of_a_model_that_does_not_say_the_estimate_counts() -> None:
    class Unmetered:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = await next(call)
            return ModelReply(
                [each.model_copy(update={"usage_metadata": None}) for each in made.responses]
            )

    told: list[ContextUsage] = []
    warning = context_warning(max_context=2000, on_warning=told.append)
    pipeline = Agent("a", ScriptedModel("y" * 400)).middleware(warning).middleware(Unmetered())
    await pipeline.run("x" * 4000)
    assert 1100 <= told[0].used <= 1200


async def test_the_answer_of_somebody_who_keeps_it_is_not_changed() -> None:
    kept: list[Any] = []

    class Keeps:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = await next(call)
            made.responses[-1].custom_metadata = {"mine": 1}
            kept.append(made.responses[-1])
            return made

    pipeline = Agent("a", ScriptedModel(full())).middleware(context_warning(max_context=100_000))
    result = await pipeline.middleware(Keeps()).run("hi")
    assert kept[0].custom_metadata == {"mine": 1}
    (event,) = [each for each in result if each.custom_metadata]
    assert event.custom_metadata["mine"] == 1
    assert len(notices(result)) == 1


# --- whom it tells -------------------------------------------------------------------------------


async def test_whoever_is_told_may_be_async_and_may_fail(logged: Callable[[], list[str]]) -> None:
    told: list[str] = []

    async def tell(usage: ContextUsage) -> None:
        await asyncio.sleep(0)
        told.append(str(usage))
        raise ValueError("the listener's own")

    warning = context_warning(max_context=131_072, on_warning=tell)
    result = await Agent("a", ScriptedModel(full())).middleware(warning).run("hi")
    assert (result.text, told) == ("ok", [SAID])
    assert "on_warning of context_warning failed; the run goes on" in logged()


# --- how large the context is --------------------------------------------------------------------


async def test_each_model_may_have_its_own() -> None:
    with GeminiEmulator(default=full(used=60)) as gemini:
        small = Agent("a", gemini.model("gemini-2.5-flash"))
        large = Agent("b", gemini.model("gemini-2.5-pro"))
        sizes = {"gemini-2.5-flash": 100, "gemini-2.5-pro": 1000}
        result = await (small >> large).middleware(context_warning(max_context=sizes)).run("hi")
    assert notices(result) == ["You have used 60% of the model's context (60 of 100 tokens)."]


@pytest.mark.parametrize("given", [None, {"other": 5}])
async def test_of_an_unknown_model_it_says_so_once(
    given: Any, logged: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    pipeline = Agent("a", ScriptedModel(default=full())).middleware(
        context_warning(max_context=given)
    )
    for _ in range(2):
        assert notices(await pipeline.run("hi")) == []
    (message,) = logged()
    assert message == "context_warning does not know the context of 'scripted': give max_context"


@pytest.mark.parametrize(("size", "warns"), [(100, 1), (1000, 0), (None, 0)])
async def test_a_package_that_knows_models_is_asked(
    size: int | None, warns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Snapshot:
        def find_provider_model(self, *asked: Any) -> Any:
            assert asked == ("scripted", None, "litellm", None)
            return None, SimpleNamespace(context_window=size)

    package, module = ModuleType("genai_prices"), ModuleType("genai_prices.data_snapshot")
    vars(module)["get_snapshot"] = Snapshot
    monkeypatch.setitem(sys.modules, "genai_prices", package)
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", module)
    pipeline = Agent("a", ScriptedModel(full(used=60))).middleware(context_warning())
    assert len(notices(await pipeline.run("hi"))) == warns


def test_genai_prices_knows_models() -> None:
    pytest.importorskip("genai_prices")
    from adk_fluent.middleware._context._warning import known_window

    assert known_window("gemini-2.5-flash") == 1_048_576
    assert (
        known_window("anthropic/claude-sonnet-4-5") == known_window("claude-sonnet-4-5") == 200_000
    )
    assert known_window("nobody/knows") is None


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    made = ContextWarningMiddleware()
    assert isinstance(made, Middleware)
    assert (made.threshold_percent, made.max_context) == (0.5, None)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"threshold_percent": 0}, "threshold_percent"),
        ({"threshold_percent": 50}, "threshold_percent"),
        ({"max_context": 0}, "max_context"),
        ({"max_context": {"m": "8k"}}, "max_context"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"context_warning\({option}=\.\.\.\)") as caught:
        ContextWarningMiddleware(**options)
    assert __file__ in str(caught.value)
