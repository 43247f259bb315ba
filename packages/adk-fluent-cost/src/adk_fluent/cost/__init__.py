"""Money: what pipelines will cost and did cost, and budgets that cannot be overspent.

Importing this imports neither ADK nor OpenTelemetry; each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.extend import lazy_names

if TYPE_CHECKING:
    from adk_fluent.cost._attribution import CostAttributionMiddleware, cost_attribution
    from adk_fluent.cost._budget import Budget, price_limit
    from adk_fluent.cost._errors import (
        FunctionError,
        LedgerError,
        NoCandidateError,
        PriceError,
        PriceFileError,
        UnknownPriceError,
    )
    from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
    from adk_fluent.cost._estimate._estimate import CostModel, estimate_cost
    from adk_fluent.cost._ledger import Balance, Ledger, MemoryLedger, Reservation
    from adk_fluent.cost._prices._books import (
        BuiltInPrices,
        GenaiPrices,
        PriceBooks,
        PriceTable,
        default_prices,
    )
    from adk_fluent.cost._report import CostLine, CostRecord, CostReport, cost_of
    from adk_fluent.cost._sqlite_ledger import SqliteLedger
    from adk_fluent.protocol import Money, PriceBook, Unknown
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__,
        {
            "cost._attribution": "CostAttributionMiddleware cost_attribution",
            "cost._budget": "Budget price_limit",
            "cost._errors": "FunctionError LedgerError NoCandidateError PriceError "
            "PriceFileError UnknownPriceError",
            "cost._estimate._assumptions": "TrafficAssumptions",
            "cost._estimate._estimate": "CostModel estimate_cost",
            "cost._ledger": "Balance Ledger MemoryLedger Reservation",
            "cost._prices._books": "BuiltInPrices GenaiPrices PriceBooks PriceTable default_prices",
            "cost._report": "CostLine CostRecord CostReport cost_of",
            "cost._sqlite_ledger": "SqliteLedger",
            "protocol": "Money PriceBook Unknown",
        },
    )


__all__ = [
    "Balance",
    "Budget",
    "BuiltInPrices",
    "CostAttributionMiddleware",
    "CostLine",
    "CostModel",
    "CostRecord",
    "CostReport",
    "FunctionError",
    "GenaiPrices",
    "Ledger",
    "LedgerError",
    "MemoryLedger",
    "Money",
    "NoCandidateError",
    "PriceBook",
    "PriceBooks",
    "PriceError",
    "PriceFileError",
    "PriceTable",
    "Reservation",
    "SqliteLedger",
    "TrafficAssumptions",
    "Unknown",
    "UnknownPriceError",
    "cost_attribution",
    "cost_of",
    "default_prices",
    "estimate_cost",
    "price_limit",
]
