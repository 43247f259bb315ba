"""Money: what pipelines cost by agent and model, and budgets that cannot be overspent.

Importing this imports neither ADK nor OpenTelemetry.
"""

from __future__ import annotations

from adk_fluent.cost._attribution import CostAttributionMiddleware, cost_attribution
from adk_fluent.cost._budget import Budget, price_limit
from adk_fluent.cost._errors import LedgerError, PriceError, PriceFileError, UnknownPriceError
from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._estimate import CostModel, estimate_cost
from adk_fluent.cost._ledger._ledger import Balance, Ledger, MemoryLedger, Reservation
from adk_fluent.cost._ledger._sqlite import SqliteLedger
from adk_fluent.cost._prices._books import BuiltInPrices, PriceBooks, PriceTable, default_prices
from adk_fluent.cost._prices._genai import GenaiPrices
from adk_fluent.cost._records import CostRecord
from adk_fluent.cost._report import CostLine, CostReport, cost_of
from adk_fluent.protocol import Money, PriceBook, Unknown

__all__ = [
    "Balance",
    "Budget",
    "BuiltInPrices",
    "CostAttributionMiddleware",
    "CostLine",
    "CostModel",
    "CostRecord",
    "CostReport",
    "GenaiPrices",
    "Ledger",
    "LedgerError",
    "MemoryLedger",
    "Money",
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
