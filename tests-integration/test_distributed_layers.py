"""Segments with every other layer: middlewares, typed state and evaluation hold across them."""

from __future__ import annotations

from datetime import date  # noqa: TC003  # a schema is read at run time
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, gate, race
from adk_fluent.cost import Budget, SqliteLedger, cost_attribution, cost_of
from adk_fluent.distributed import DbosEngine, InlineEngine, split
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.middleware import RetryMiddleware
from adk_fluent.protocol import Usage
from adk_fluent.state import StateSchema
from adk_fluent.testing import ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


class Order(StateSchema):
    """What an order is about."""

    due: date
    answer: str


async def test_a_middleware_of_the_pipeline_acts_in_every_segment() -> None:
    heavy = ScriptedModel(ConnectionError("reset"), "Fine.")
    after = ScriptedModel(ConnectionError("reset"), "Done.")
    pipeline = (
        Agent("a").mock("A") >> Agent("heavy", heavy).execution_boundary() >> Agent("after", after)
    ).middleware(RetryMiddleware(max_attempts=2, backoff_base=0.001))
    result = await InlineEngine().run(pipeline, "Go.")
    assert (result.text, len(heavy.calls), len(after.calls)) == ("Done.", 2, 2)


async def test_a_schema_holds_in_every_segment() -> None:
    def wrong(state: Mapping[str, Any]) -> dict[str, Any]:
        return {"due": "soon"}

    heavy = (Agent("b").mock("B").writes(Order.answer) >> wrong).named("heavy")
    pipeline = (Agent("a").mock("A") >> heavy.execution_boundary()).state(Order)
    stands = await InlineEngine().submit(pipeline, "Go.", run_id="r")
    assert stands.error is not None
    assert (stands.status, stands.segment) == ("failed", "heavy")
    assert stands.error["type"] == "StateTypeError"


async def test_a_pipeline_with_boundaries_is_evaluated_in_one_process() -> None:
    pipeline = Agent("a").mock("A") >> Agent("b").mock("Refunded.").execution_boundary()
    assert split(pipeline).names == ("pipeline", "b")
    case = FluentCase("Refund it.", expected_response_contains="Refunded", id="refund")
    report = await FluentEvalSuite("desk", pipeline, [case]).run()
    assert report.ok


@pytest.mark.parametrize("engine", ["inline", "dbos"])
async def test_what_no_answer_came_of_is_in_the_result_of_an_engine(
    tmp_path: Path, engine: str
) -> None:
    def model(*replies: Any) -> ScriptedModel:
        return ScriptedModel(*replies, model="m")

    said = [reply("ok", usage=Usage(output=1000), latency=latency) for latency in (0, 0.05, 60)]
    thrown_away = Agent("slow", model(said[0])) >> Agent("slower", model(said[2]))
    contest = race(Agent("fast", model(said[1])), thrown_away)
    prices = {"m": {"input": 0, "output": 1000}}
    pipeline = (Agent("first", model(said[0])) >> contest.execution_boundary()).middleware(
        cost_attribution(prices=prices)
    )
    if engine == "inline":
        result = await InlineEngine().run(pipeline, "Go.")
    else:
        async with DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") as durable:
            result = await durable.run(pipeline, "Go.")
    assert {each.agent for each in cost_of(result).records} == {"first", "fast", "slow", "slower"}


async def test_a_budget_in_a_file_holds_where_another_process_goes_on(tmp_path: Path) -> None:
    def built() -> Pipeline:  # as another process builds it, with a ledger object of its own
        said = reply("ok", usage=Usage(output=1000))
        a, b = (Agent(name, ScriptedModel(default=said, model="m")) for name in "ab")
        prices = {"m": {"input": 0, "output": 1000}}
        ledger = SqliteLedger(tmp_path / "budgets.db")
        budget = Budget(1.5, prices=prices, reserve_output=1000, ledger=ledger)
        asks = a.execution_boundary() >> gate(message="Go on?", name="on")
        return (asks >> b.execution_boundary()).middleware(budget)

    url = f"sqlite:///{tmp_path / 'runs.sqlite'}"
    async with DbosEngine(url) as first:
        (question,) = (await first.run(built(), "Go.", run_id="r")).pending
    async with DbosEngine(url) as second:
        await second.answer("r", question.answer(True))
        result = await second.run(built(), "Go.", run_id="r")
    assert [each.code for each in result.errors] == ["BUDGET_EXHAUSTED"]
