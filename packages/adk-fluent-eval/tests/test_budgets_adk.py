"""What a run may take: tokens, calls of tools, time and money."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    agent,
    calling,
    case,
    desk,
    lookup,
    outcome_of,
    passes,
    report_of,
    says,
    scripted,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.eval import (
    EvalError,
    FluentEvalSuite,
    Gate,
    MetricStatus,
    ResponseCache,
    Status,
    UserSimulation,
)
from adk_fluent.ir import AppNode
from adk_fluent.protocol import Money, Unknown, Usage
from adk_fluent.testing import Asked, Call, reply

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.eval import CaseOutcome, MetricScore

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

A1 = Call("lookup", {"order": "A1"})
USAGE = Usage(prompt=100, cached=40, output=10, thoughts=5)


class Prices:
    """A book of a few prices, in dollars for each token; notes what it was asked."""

    def __init__(self, **prices: float) -> None:
        self.prices = prices
        self.asked: list[tuple[str, Usage, datetime]] = []

    def price(
        self, model: str, usage: Usage, at: datetime, *, tier: str | None = None
    ) -> Money | Unknown:
        self.asked.append((model, usage, at))
        if model not in self.prices:
            return Unknown(f"there is no price for {model!r}")
        return Money.of(self.prices[model] * usage.total)


def budget(outcome: CaseOutcome) -> MetricScore:
    score = outcome.score("adk_fluent_budget")
    assert score is not None
    return score


def model(name: str, *answers: Any) -> Any:
    return scripted(*(reply(each, usage=USAGE) for each in answers), model=name)


def priced(name: str = "m", answer: str = "ok") -> Any:
    """A model whose every answer takes 115 tokens."""
    return scripted(default=reply(answer, usage=USAGE), model=name)


# --- tokens, calls and time ----------------------------------------------------------------------


async def test_tokens() -> None:
    program = Agent("a", priced()) >> Agent("b", priced())
    outcome = await outcome_of(program, max_tokens=230)
    assert outcome.status is Status.PASSED
    assert outcome.tokens.total == 230
    outcome = await outcome_of(program, max_tokens=229)
    assert outcome.status is Status.FAILED
    assert outcome.reasons == ["max_tokens: 230 tokens of 229 tokens"]
    [finding] = budget(outcome).findings
    assert (finding.expected, finding.actual) == (229, 230)


async def test_tokens_of_all_turns() -> None:
    outcome = await outcome_of(Agent("a", priced()), ["one", "two"], max_tokens=229)
    assert outcome.reasons == ["max_tokens: 230 tokens of 229 tokens"]


async def test_tokens_that_are_streamed_count_once() -> None:
    ir = AppNode(
        "p",
        Agent("a", scripted(default=reply(chunks=["o", "k"], usage=USAGE))).to_ir(),
        execution=ExecutionConfig(streaming_mode="sse"),
    )
    assert (await passes(ir, max_tokens=115)).tokens.total == 115


@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_calls_of_tools(built: str) -> None:
    answer = says(calling(A1, A1))
    program: Any = (
        Agent("desk", answer).tool(lookup)
        if built == "ours"
        else LlmAgent(name="desk", model=answer, tools=[lookup])
    )
    await passes(program, max_tool_calls=2)
    outcome = await outcome_of(program, ["one", "two"], max_tool_calls=3)
    assert outcome.reasons == ["max_tool_calls: 4 of 3"]
    await passes(agent("a"), max_tool_calls=0)


async def test_time() -> None:
    async def slowly(asked: Asked) -> str:
        await asyncio.sleep(0.05)
        return "ok"

    outcome = await outcome_of(agent("a", slowly), max_latency_s=0.01)
    assert outcome.status is Status.FAILED
    assert outcome.response == "ok"  # it is not ended for it
    assert re.fullmatch(r"max_latency_s: [\d.]+ s of 0.01 s", outcome.reasons[0])
    await passes(agent("a"), max_latency_s=60)


async def test_everything_that_is_over_is_told() -> None:
    outcome = await outcome_of(
        desk(), max_tokens=1, max_tool_calls=0, max_latency_s=60, expected_trajectory=["lookup"]
    )
    assert [reason.partition(":")[0] for reason in outcome.reasons] == [
        "max_tokens",
        "max_tool_calls",
    ]
    assert budget(outcome).score == pytest.approx(1 / 3)


# --- money ---------------------------------------------------------------------------------------


async def test_money() -> None:
    program = Agent("a", priced("cheap")) >> Agent("b", priced("dear"))
    prices = Prices(cheap=0.0001, dear=0.001)
    outcome = await outcome_of(program, options={"prices": prices}, max_cost_usd=0.13)
    assert outcome.status is Status.PASSED
    assert outcome.cost_usd == pytest.approx(0.1265)
    outcome = await outcome_of(program, options={"prices": prices}, max_cost_usd=0.1)
    assert outcome.status is Status.FAILED
    assert outcome.reasons == ["max_cost_usd: 0.1265 USD of 0.1 USD"]


async def test_each_call_is_priced_for_itself() -> None:
    prices = Prices(m=0.001)
    program = Agent("desk", model("m", A1, "ok")).tool(lookup)
    before = datetime.now(UTC)
    outcome = await outcome_of(program, options={"prices": prices}, max_cost_usd=1)
    assert outcome.cost_usd == pytest.approx(0.23)
    assert [(name, usage) for name, usage, _ in prices.asked] == [("m", USAGE)] * 2
    assert all(before <= at <= datetime.now(UTC) for _, _, at in prices.asked)


async def test_the_model_that_answered_is_the_one_that_is_priced() -> None:
    """Not the one that was asked for: an alias is answered by a version."""
    said = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="ok")]),
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, candidates_token_count=10, total_token_count=20
        ),
        model_version="m-001",
    )
    program = Agent("a", scripted(default=reply(said), model="m"))
    prices = Prices(**{"m-001": 0.001})
    outcome = await outcome_of(program, options={"prices": prices}, max_cost_usd=1)
    assert outcome.cost_usd == pytest.approx(0.02)


@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_another_model_has_its_own_price(built: str) -> None:
    dear, cheap = priced("dear"), priced("cheap")
    program: Any = Agent("a", dear) if built == "ours" else LlmAgent(name="a", model=dear)
    prices = Prices(dear=0.01, cheap=0.0001)
    outcome = await outcome_of(
        program, options={"prices": prices, "model": cheap}, max_cost_usd=0.02
    )
    assert outcome.reasons == []
    assert outcome.cost_usd == pytest.approx(0.0115)


async def test_agents_below_have_their_models_prices() -> None:
    leaf = LlmAgent(name="leaf", model=priced("cheap"))
    root = LlmAgent(
        name="root",
        model=model("dear", Call("transfer_to_agent", {"agent_name": "leaf"})),
        sub_agents=[leaf],
    )
    prices = Prices(dear=0.01, cheap=0.0001)
    outcome = await outcome_of(root, options={"prices": prices}, max_cost_usd=2)
    assert outcome.cost_usd == pytest.approx(1.15 + 0.0115)


async def test_without_a_price_nothing_is_passed() -> None:
    outcome = await outcome_of(
        Agent("a", priced("unheard")), options={"prices": Prices(m=1)}, max_cost_usd=1000
    )
    assert outcome.status is Status.ERROR
    assert outcome.cost_usd is None
    assert budget(outcome).status is MetricStatus.NOT_EVALUATED
    assert outcome.reasons == [
        "adk_fluent_budget could not be evaluated: max_cost_usd: there is no price for 'unheard'"
    ]


async def test_one_call_without_a_price_leaves_the_whole_without_one() -> None:
    program = Agent("a", priced("unheard")) >> Agent("b", priced("m"))
    outcome = await outcome_of(program, options={"prices": Prices(m=0.001)}, max_cost_usd=1000)
    assert outcome.cost_usd is None
    assert outcome.status is Status.ERROR


async def test_what_is_over_fails_whether_or_not_there_is_a_price() -> None:
    outcome = await outcome_of(
        Agent("a", priced("unheard")), options={"prices": Prices()}, max_cost_usd=1, max_tokens=1
    )
    assert outcome.status is Status.FAILED
    assert "max_tokens: 115 tokens of 1 tokens" in outcome.reasons


async def test_no_price_book_is_told_before_anything_runs() -> None:
    asked = priced()
    with pytest.raises(EvalError) as caught:
        await outcome_of(Agent("a", asked), id="x", max_cost_usd=1)
    assert caught.value.what == "case 'x': max_cost_usd= needs prices, and there is no price book"
    assert caught.value.help == "give run(prices=...), or: pip install adk-fluent-cost"
    assert caught.value.location is not None
    assert asked.calls == ()


async def test_costs_are_told_without_a_budget() -> None:
    report = await report_of(Agent("a", priced()), case(), num_runs=3, prices=Prices(m=0.001))
    assert [each.cost_usd for each in report.outcomes] == [pytest.approx(0.115)] * 3
    assert (await outcome_of(Agent("a", priced()))).cost_usd is None


async def test_a_run_that_calls_no_model_costs_nothing() -> None:
    def count(state: Any) -> dict[str, Any]:
        return {"n": 1}

    from adk_fluent import Pipeline

    outcome = await outcome_of(
        Pipeline("p", count),
        options={"prices": Prices()},
        state_assertions={"n": 1},
        max_cost_usd=0,
    )
    assert outcome.reasons == []
    assert outcome.cost_usd == 0


async def test_what_a_failed_run_cost_is_told() -> None:
    program = Agent("a", priced()) >> agent("b", ValueError("no"))
    outcome = await outcome_of(program, options={"prices": Prices(m=0.001)}, max_cost_usd=1)
    assert outcome.status is Status.ERROR
    assert outcome.cost_usd == pytest.approx(0.115)
    assert outcome.tokens.total == 115


async def test_a_book_that_raises_ends_no_run() -> None:
    class Broken(Prices):
        def price(self, *_: Any, **__: Any) -> Any:
            raise OSError("the book is gone")

    outcome = await outcome_of(Agent("a", priced()), options={"prices": Broken()}, max_cost_usd=1)
    assert outcome.status is Status.ERROR
    assert outcome.response == "ok"
    assert "the book is gone" in outcome.reasons[0]
    without = await outcome_of(Agent("a", priced()), options={"prices": Broken()})
    assert without.status is Status.PASSED
    assert without.cost_usd is None


@pytest.mark.parametrize("prices", ["prices", 7, dict])
async def test_what_is_no_price_book(prices: Any) -> None:
    with pytest.raises(EvalError, match="prices= is no price book"):
        await report_of(agent("a"), case(), prices=prices)


# --- what evaluating costs -----------------------------------------------------------------------


def judged_suite(*cases: Any, **fields: Any) -> FluentEvalSuite:
    """Cases whose answers a model of 115 tokens an answer compares."""
    verdict = '{"reasoning": "same", "is_the_agent_response_valid": "valid"}'
    metrics = ["final_response_match_v2"]
    fields = {"judge_model": priced("judge", verdict), "judge_samples": 2, **fields}
    return FluentEvalSuite("s", Agent("a", priced()), cases, metrics, **fields)


async def test_judges_are_told_beside_what_the_pipeline_took() -> None:
    suite = judged_suite(case(reference_response="ok"))
    report = await suite.run(prices=Prices(m=0.001, judge=0.01))
    outcome = report.outcomes[0]
    assert outcome.reasons == []
    assert (outcome.tokens.total, outcome.cost_usd) == (115, pytest.approx(0.115))
    assert (outcome.eval_tokens.total, outcome.eval_cost_usd) == (230, pytest.approx(2.3))
    assert (report.eval_tokens.total, report.eval_cost_usd) == (230, pytest.approx(2.3))
    assert report.cost_usd == pytest.approx(0.115)


async def test_a_played_user_is_told_beside_what_the_pipeline_took() -> None:
    played = UserSimulation(priced("user", "</finished>"))
    suite = FluentEvalSuite("s", Agent("a", priced()), [case()], simulation=played)
    outcome = (await suite.run(prices=Prices(m=0.001, user=0.01))).outcomes[0]
    assert outcome.stop_reason == "stop_signal"
    assert outcome.tokens.total == 115
    assert (outcome.eval_tokens.total, outcome.eval_cost_usd) == (115, pytest.approx(1.15))


async def test_replayed_judges_cost_what_they_did(tmp_path: Path) -> None:
    suite = judged_suite(case(reference_response="ok"))
    runs = [
        await suite.run(prices=Prices(m=0.001, judge=0.01), cache=ResponseCache(tmp_path / "c"))
        for _ in range(2)
    ]
    assert [each.outcomes[0].replayed for each in runs] == [0, 3]
    first, again = (each.outcomes[0] for each in runs)
    assert (first.cost_usd, first.eval_cost_usd) == (again.cost_usd, again.eval_cost_usd)
    assert first.eval_tokens == again.eval_tokens


@pytest.mark.parametrize(
    ("most", "prices", "failures"),
    [
        (2.5, {"m": 0.001, "judge": 0.01}, []),
        (
            2.0,
            {"m": 0.001, "judge": 0.01},
            ["the cost, $2.42 (judges and the like: $2.30), is above $2.00"],
        ),
        (2.5, {"m": 0.001}, ["the cost of 1 run is not known"]),
    ],
)
async def test_a_gate_counts_judges(
    most: float, prices: dict[str, float], failures: list[str]
) -> None:
    suite = judged_suite(case(reference_response="ok"), gate=Gate(max_cost_usd=most))
    assert (await suite.run(prices=Prices(**prices))).failures == failures


async def test_a_gate_asks_nothing_of_metrics_that_inform() -> None:
    gate = Gate(min_metric={"token_usage_v1": 1_000})
    suite = FluentEvalSuite("s", agent("a"), [case()], ["token_usage_v1"], gate=gate)
    with pytest.raises(EvalError, match="which only informs"):
        await suite.run()
