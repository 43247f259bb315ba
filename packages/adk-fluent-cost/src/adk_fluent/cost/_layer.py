"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

LAYER = Layer(
    "cost",
    {
        "commands": Entry(
            "adk_fluent.cost._cli:estimate", "estimate", "Estimate what a pipeline will cost."
        ),
        "checkers": (
            Entry("adk_fluent.cost._checks:check_selectors", "selectors"),
            Entry("adk_fluent.cost._checks:check_budgets", "budgets"),
        ),
        "passes": "adk_fluent.cost._selecting._middleware:PASSES",
        "run_options": Entry(
            "adk_fluent.cost._attribution:CostOption", "cost", "Print what the model calls cost."
        ),
        "price_books": "adk_fluent.cost._prices._books:price_books",
        "middleware": (
            Entry("adk_fluent.cost:Budget.DESC", "budget"),
            Entry("adk_fluent.cost:CostAttributionMiddleware.DESC", "cost_attribution"),
            Entry("adk_fluent.cost._budget:PRICE_LIMIT", "price_limit"),
        ),
        "names": tuple(
            Entry(f"adk_fluent.cost:{name}", name)
            for name in (
                *("Budget", "CostAttributionMiddleware", "CostModel", "TrafficAssumptions"),
                *("cost_attribution", "cost_of", "estimate_cost", "price_limit"),
            )
        ),
    },
)
