"""Estimates of agents that choose their model, with bounds over the candidates."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.cost import TrafficAssumptions, cost_attribution, cost_of, estimate_cost
from adk_fluent.errors import UsageError
from adk_fluent.ir import ModelCandidate
from adk_fluent.protocol import ModelReply, Usage
from adk_fluent.testing import ScriptedModel, reply

pytestmark = pytest.mark.adk

#: What a call costs with 500 and 200 tokens: 1, 10 and 100 times that.
ONE = 0.0025
PRICES = {name: {"input": n, "output": 10 * n} for name, n in (("m", 1), ("n", 10), ("o", 100))}
TIERS = {"m": 1, "n": 2, "o": 3}


def candidate(model: str, **more: Any) -> ModelCandidate:
    return ModelCandidate(model, quality_tier=TIERS[model], prices=PRICES[model], **more)


def agent(*models: Any, **options: Any) -> Agent:
    made = [candidate(each) if isinstance(each, str) else each for each in models]
    return Agent("a").model_select(candidates=made, **options)


def bounds(pipeline: Any, **traffic: Any) -> tuple[float, ...]:
    made = estimate_cost(pipeline, TrafficAssumptions(**traffic))
    return tuple(round(number / ONE, 6) for number in (made.lo, made.mean, made.hi))


def no(ctx: Any, request: Any) -> bool:
    return False


def accepts(answer: ModelReply) -> bool:
    return "no" not in answer.text


def test_one_of_the_candidates_takes_each_call() -> None:
    assert bounds(agent("o", "n", "m")) == (1, 1, 1)
    assert bounds(agent("o", "n", candidate("m", condition=no))) == (1, 1, 10)
    assert bounds(agent("m", "n", strategy="quality_optimized")) == (10, 10, 10)
    best = candidate("o", condition=no)
    assert bounds(agent("m", best, strategy="quality_optimized")) == (1, 100, 100)
    assert bounds(agent(candidate("m", max_tokens=400), "n")) == (10, 10, 10)


def test_a_fallback_is_a_bound() -> None:
    bounded = agent("n", strategy="budget_bounded", fallback_model="gemini-2.5-flash-lite")
    lite = estimate_cost(Agent("a", "gemini-2.5-flash-lite")).mean
    made = estimate_cost(bounded)
    assert (made.lo, made.mean, made.hi) == pytest.approx((lite, 10 * ONE, 10 * ONE))


def test_adaptive_ones_climb() -> None:
    adaptive = agent("o", "m", "n", strategy="adaptive", judge=accepts)
    made = estimate_cost(adaptive, TrafficAssumptions(escalation_rate=0.5))
    assert (made.lo, made.mean, made.hi) == pytest.approx((ONE, 31 * ONE, 111 * ONE))
    assert made.calls == {"a": 1.75}
    assert made.per_model == pytest.approx({"m": ONE, "n": 5 * ONE, "o": 25 * ONE})
    assert bounds(adaptive, escalation_rate={"a": 0.0}) == (1, 1, 111)
    with pytest.raises(UsageError, match="escalation_rate"):
        bounds(adaptive, escalation_rate=2)


def test_a_candidate_without_a_price_is_named() -> None:
    house = ModelCandidate("house-9")
    made = estimate_cost(agent(house, candidate("m", condition=no)))
    assert made.unpriced == {"house-9": 0.0}
    assert made.mean == pytest.approx(ONE)
    assert estimate_cost(agent(house)).unpriced == {"house-9": 1.0}


async def test_a_measured_desk_is_estimated_within_a_fifth() -> None:
    """Of five answers of the cheap model, one will not do."""

    def model(name: str, *texts: str) -> ScriptedModel:
        said = cycle([reply(text, usage=Usage(prompt=500, output=200)) for text in texts])
        return ScriptedModel(default=lambda asked: next(said), model=name)

    desk = agent(
        ModelCandidate(model("m", *["yes"] * 4, "no"), prices=PRICES["m"]),
        ModelCandidate(model("n", "yes"), prices=PRICES["n"]),
        strategy="adaptive",
        judge=accepts,
    )
    results = [await desk.middleware(cost_attribution()).run("hi") for _ in range(20)]
    spent = sum(float(cost_of(each).total.usd) for each in results) / len(results)
    assert spent == pytest.approx(3 * ONE)
    assumed = estimate_cost(desk, TrafficAssumptions(escalation_rate=0.2))
    measured = estimate_cost(desk, TrafficAssumptions.from_results(results))
    for made in (assumed, measured):
        assert made.mean == pytest.approx(spent, rel=0.2)
        assert made.calls["a"] == pytest.approx(1.2)
