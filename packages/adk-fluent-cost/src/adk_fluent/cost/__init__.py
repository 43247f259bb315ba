"""Money: what pipelines cost by agent and model, and budgets that cannot be overspent.

Importing this imports neither ADK nor OpenTelemetry.
"""

from __future__ import annotations

from adk_fluent.cost._errors import LedgerError, PriceError, PriceFileError, UnknownPriceError
from adk_fluent.cost._prices._books import BuiltInPrices, PriceBooks, PriceTable, default_prices
from adk_fluent.cost._prices._genai import GenaiPrices
from adk_fluent.protocol import Money, PriceBook, Unknown

__all__ = [
    "BuiltInPrices",
    "GenaiPrices",
    "LedgerError",
    "Money",
    "PriceBook",
    "PriceBooks",
    "PriceError",
    "PriceFileError",
    "PriceTable",
    "Unknown",
    "UnknownPriceError",
    "default_prices",
]
