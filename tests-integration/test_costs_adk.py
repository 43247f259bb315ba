"""Costs and budgets beside the middlewares of the other wheel: all is charged exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig, TelemetryConfig
from adk_fluent.cost import Budget, CostReport, Money, PriceError, cost_attribution, cost_of
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.ir import ModelCandidate
from adk_fluent.middleware import (
    BudgetExceededError,
    cache,
    model_fallback,
    production,
    retry,
    summarization,
    token_budget,
    tool_emulator,
    tool_selector,
)
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AnyMiddleware

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

PRICES = {"small": {"input": 1, "output": 10}, "large": {"input": 100, "output": 1000}}
SSE = ExecutionConfig(streaming_mode="sse")


def said(text: Any = "ok", **more: Any) -> Any:
    """An answer of 0.002 USD by the small model, 0.2 by the large one."""
    return reply(text, usage=Usage(prompt=1000, output=100), **more)


def model(name: str, *replies: Any) -> ScriptedModel:
    return ScriptedModel(*replies, model=name)


class Verdict(BaseModel):
    paid: bool
    why: str


class Instant:
    """A clock that never waits."""

    def now(self) -> float:
        return 1_800_000_000.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None: ...


def look(word: str) -> str:
    """Look something up."""
    return word


def of_retry() -> tuple[Builder, AnyMiddleware, float]:
    """One answer will not do, one attempt fails before it says anything."""
    replies = said("bad"), reply(raises=ConnectionError("gone")), said("good")
    again = retry(
        retry_reply=lambda made: made.final.content.parts[0].text == "bad", clock=Instant()
    )
    return Agent("a", model("small", *replies)), again, 0.004


def of_fallback() -> tuple[Builder, AnyMiddleware, float]:
    other = model("large", said("good"))
    instead = model_fallback(
        models=[other], fallback_if=lambda made: made.final.content.parts[0].text == "bad"
    )
    return Agent("a", model("small", said("bad"))), instead, 0.202


def of_selector() -> tuple[Builder, AnyMiddleware, float]:
    chooser = model("large", said('{"tools": ["look"]}'))

    def other(word: str) -> str:
        """Do something else."""
        return word

    agent = Agent("a", model("small", said("good"))).tool(look).tool(other)
    return agent, tool_selector(model=chooser, max_tools=1), 0.202


def of_emulator() -> tuple[Builder, AnyMiddleware, float]:
    actor = model("large", said('{"result": 1}'))
    agent = Agent("a", model("small", said(Call("look", {"word": "x"})), said("good"))).tool(look)
    return agent, tool_emulator(model=actor, tools=["look"]), 0.204


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", [of_retry, of_fallback, of_selector, of_emulator])
async def test_what_a_middleware_spends_is_charged_once_wherever_it_stands(
    case: Callable[[], tuple[Builder, AnyMiddleware, float]],
    config: ExecutionConfig | None,
    outside: bool,
) -> None:
    if config is SSE and case in (of_retry, of_fallback):
        config = None  # what was streamed is not thrown away
    agent, other, usd = case()
    live = CostReport()
    costs = cost_attribution(prices=PRICES, on_record=live.add)
    limit = Budget(10, prices=PRICES, reserve_output=100)
    for each in (limit, costs, other) if outside else (other, costs, limit):
        agent = agent.middleware(each)
    result = await agent.run("hi", config=config)
    assert result.text == "good"
    assert live.total == cost_of(result).total == limit.balance(result).spent == Money.of(usd)


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
async def test_a_summary_is_charged_once_wherever_it_stands(outside: bool) -> None:
    short = summarization(trigger_contents=3, keep=1, model=model("large", said("a summary")))
    agent = Agent("a", model("small", said("one"), said("two")))
    costs, service = cost_attribution(prices=PRICES), InMemorySessionService()
    for each in (costs, short) if outside else (short, costs):
        agent = agent.middleware(each)
    await agent.run("hi", session_service=service, session_id="s")
    result = await agent.run("hi again", session_service=service, session_id="s")
    assert [each.model for each in cost_of(result).records] == ["large", "small"]
    assert cost_of(result).total == Money.of("0.202")


@pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
async def test_what_the_cache_answers_costs_nothing(outside: bool) -> None:
    costs, kept = cost_attribution(prices=PRICES), cache()
    agent = Agent("a", model("small", said("good")))
    for each in (costs, kept) if outside else (kept, costs):
        agent = agent.middleware(each)
    results = [await agent.run("hi") for _ in range(2)]
    assert [each.text for each in results] == ["good", "good"]
    assert [cost_of(each).total for each in results] == [Money.of("0.002"), Money()]


async def test_the_telemetry_of_a_run_attributes_costs_without_a_middleware() -> None:
    config = ExecutionConfig(telemetry=TelemetryConfig(enable_cost_metrics=True))
    agent = Agent("a", model("gemini-2.5-flash", said("good")))
    result = await agent.run("hi", config=config)
    assert [each.agent for each in cost_of(result).records] == ["a"]
    assert cost_of(result).total == Money.of("0.00055")


@pytest.mark.parametrize(("limit", "passed"), [(0.001, True), (0.0001, False)])
async def test_a_case_is_held_to_what_it_may_cost(limit: float, passed: bool) -> None:
    """By the prices of this layer, which nobody has to name."""
    agent = Agent("a", model("gemini-2.5-flash", said("good")))
    case = FluentCase("hi", expected_response_contains="good", max_cost_usd=limit)
    report = await FluentEvalSuite("desk", agent, [case]).run()
    (outcome,) = report.outcomes
    assert outcome.passed is passed


async def test_a_suite_takes_the_prices_that_costs_take() -> None:
    case = FluentCase("hi", expected_response_contains="good", max_cost_usd=0.01)
    suite = FluentEvalSuite("desk", Agent("a", model("small", said("good"))), [case])
    (outcome,) = (await suite.run(prices=PRICES)).outcomes
    assert outcome.cost_usd == pytest.approx(0.002)
    with pytest.raises(PriceError, match="typo"):
        await suite.run(prices={"small": {"typo": 1}})


@pytest.mark.parametrize("around", [cost_attribution(prices=PRICES), Budget(5, prices=PRICES)])
async def test_a_suite_takes_the_prices_of_the_pipeline(around: AnyMiddleware) -> None:
    agent = Agent("a", model("small", said("good"), said("good")))
    case = FluentCase("hi", expected_response_contains="good", max_cost_usd=0.001)
    (outcome,) = (await FluentEvalSuite("desk", agent, [case]).run()).outcomes
    assert "no price of 'small'; give prices= to the run or a middleware" in outcome.reasons[0]
    (outcome,) = (await FluentEvalSuite("desk", agent.middleware(around), [case]).run()).outcomes
    assert (outcome.passed, outcome.cost_usd) == (False, pytest.approx(0.002))


# --- models that are chosen ----------------------------------------------------------------------


def choosing(cheap: ScriptedModel, dear: ScriptedModel) -> Agent:
    """An agent that asks the large model where the small one says something bad."""
    return Agent("a").model_select(
        strategy="adaptive",
        candidates=[
            ModelCandidate(cheap, quality_tier=1, prices=PRICES["small"]),
            ModelCandidate(dear, quality_tier=2, prices=PRICES["large"]),
        ],
        judge=lambda answer: "bad" not in answer.text,
    )


@pytest.mark.parametrize("config", [None, SSE], ids=["whole", "streamed"])
async def test_a_chosen_model_under_the_stack_of_production(config: ExecutionConfig | None) -> None:
    """The first answer fails in passing, the second will not do, the third is kept by the cache."""
    small = model(
        "small", reply(raises=ConnectionError("gone")), said('{"paid": false, "why": "bad"}')
    )
    large = model("large", said('{"paid": true, "why": "due"}'))
    agent = choosing(small, large).produces(Verdict)
    stack = production(cached=True, max_tokens=10_000, fallbacks=[model("other")])
    budget = Budget(1, name="cents", reserve_output=100)
    pipeline = agent.middleware(*stack).middleware(budget).middleware(cost_attribution())
    first = await pipeline.run("hi", config=config)
    assert (first.state["paid"], first.state["why"]) == (True, "due")
    assert [each.model for each in cost_of(first).records if each.usage.total] == ["small", "large"]
    assert cost_of(first).total == budget.balance(first).spent == Money.of("0.202")
    second = await pipeline.run("hi", config=config)
    assert (second.state["why"], len(small.calls), len(large.calls)) == ("due", 2, 1)
    assert cost_of(second).total == Money()


async def test_a_limit_of_tokens_knows_of_answers_that_were_thrown_away() -> None:
    """Wherever it stands: choosing stands outside of it."""
    for part in (False, True):
        agent = choosing(model("small", said("bad")), model("large", said("good")))
        limit, again = token_budget(max_tokens=2000), Agent("b", model("small", said("never")))
        inner = agent.middleware(limit, scope="agent") * 2
        pipeline = inner if part else (agent >> again).middleware(limit)
        with pytest.raises(BudgetExceededError, match="are used up") as caught:
            await pipeline.run("hi")
        assert "2,200 of 2,000 used" in str(caught.value)


async def test_choosing_beside_a_fallback_and_a_cache_inside_a_part() -> None:
    small = model("small", reply(raises=ConnectionError("gone")))
    agent = choosing(small, model("large", said("good")))
    inner = agent.middleware(model_fallback(models=[model("other", said("bad"))]), scope="agent")
    result = await inner.middleware(cost_attribution(prices=PRICES)).run("hi")
    assert result.text == "good"
    assert [each.model for each in cost_of(result).records] == ["other", "large"]
