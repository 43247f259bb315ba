"""What type checkers know about costs, budgets and estimates."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_type

from adk_fluent import Agent
from adk_fluent.cost import (
    Budget,
    CostLine,
    CostModel,
    CostReport,
    MemoryLedger,
    Money,
    PriceTable,
    SqliteLedger,
    TrafficAssumptions,
    Unknown,
    cost_attribution,
    cost_of,
    estimate_cost,
    price_limit,
)
from adk_fluent.protocol import RunResult, Usage

if TYPE_CHECKING:
    from datetime import datetime

    from adk_fluent.protocol import ModelCall

ROW = {"input": 0.3, "output": 2.5}


class House:
    """A price book of somebody's own."""

    def price(
        self, model: str, usage: Usage, at: datetime, *, tier: str | None = None
    ) -> Money | Unknown:
        return Money.of(1)


async def decide(call: ModelCall, left: Money) -> Any:
    return "stop"


agent = Agent("a", "gemini-2.5-flash")
agent.middleware(cost_attribution(prices={"house-9": ROW}))
agent.middleware(cost_attribution(prices=[House(), PriceTable({"house-9": ROW})]))
agent.middleware(cost_attribution(prices="prices.yaml", on_record=CostReport().add))
agent.middleware(cost_attribution(prices=5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

agent.middleware(Budget(0.05, scope="user", ledger=SqliteLedger("budgets.db")))
agent.middleware(Budget(Decimal("0.05"), on_exceed=decide, ledger=MemoryLedger()))
agent.middleware(Budget(Money.of(1), scope="planet"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.middleware(Budget())  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
agent.middleware(Budget(0.05, on_exceed="ask"))
agent.middleware(Budget(0.05, on_exceed="beg"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agent.middleware(price_limit(0.05))

report = cost_of(RunResult())
assert_type(report, CostReport)
assert_type(report.total, Money)
assert_type(report.by_agent(), list[CostLine])
assert_type(report.unpriced, dict[str, int])

model = estimate_cost(agent, TrafficAssumptions(avg_output_tokens={"a": 200}))
assert_type(model, CostModel)
assert_type(model.total_estimated, float)
TrafficAssumptions(escalation_rate={"a": 0.1})
TrafficAssumptions(500)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
again = estimate_cost(agent, percentiles=(50, 99.9))
assert_type(again.percentiles, dict[float, float])
assert_type(again.to_html([report]), str)
again.to_markdown(report)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
