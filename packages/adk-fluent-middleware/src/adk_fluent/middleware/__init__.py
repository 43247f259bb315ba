"""Middlewares for production: each a class, and a short name for it.

Nothing but what is asked for is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from adk_fluent.middleware._places import ALIASES, MIDDLEWARES

if TYPE_CHECKING:
    from adk_fluent.backends.adk import MiddlewarePlugin as _MiddlewarePlugin  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from adk_fluent.ir import MiddlewareRef as MiddlewareRef
    from adk_fluent.middleware._budgets._budget import (
        TokenBudgetMiddleware as TokenBudgetMiddleware,
    )
    from adk_fluent.middleware._budgets._budget import token_budget as token_budget
    from adk_fluent.middleware._budgets._ledger import Ledger as Ledger
    from adk_fluent.middleware._budgets._limits import (
        ModelCallLimitMiddleware as ModelCallLimitMiddleware,
    )
    from adk_fluent.middleware._budgets._limits import (
        ToolCallLimitMiddleware as ToolCallLimitMiddleware,
    )
    from adk_fluent.middleware._budgets._limits import model_call_limit as model_call_limit
    from adk_fluent.middleware._budgets._limits import tool_call_limit as tool_call_limit
    from adk_fluent.middleware._cache import CacheMiddleware as CacheMiddleware
    from adk_fluent.middleware._cache import CacheStats as CacheStats
    from adk_fluent.middleware._cache import CacheStore as CacheStore
    from adk_fluent.middleware._cache import DiskStore as DiskStore
    from adk_fluent.middleware._cache import MemoryStore as MemoryStore
    from adk_fluent.middleware._cache import cache as cache
    from adk_fluent.middleware._context._editing import (
        ContextEditingMiddleware as ContextEditingMiddleware,
    )
    from adk_fluent.middleware._context._editing import context_editing as context_editing
    from adk_fluent.middleware._context._summarization import (
        SummarizationMiddleware as SummarizationMiddleware,
    )
    from adk_fluent.middleware._context._summarization import summarization as summarization
    from adk_fluent.middleware._context._warning import ContextUsage as ContextUsage
    from adk_fluent.middleware._context._warning import (
        ContextWarningMiddleware as ContextWarningMiddleware,
    )
    from adk_fluent.middleware._context._warning import context_warning as context_warning
    from adk_fluent.middleware._define import define_middleware as define_middleware
    from adk_fluent.middleware._define import describe_middleware as describe_middleware
    from adk_fluent.middleware._errors import BudgetExceededError as BudgetExceededError
    from adk_fluent.middleware._errors import CallLimitError as CallLimitError
    from adk_fluent.middleware._errors import CallTimeoutError as CallTimeoutError
    from adk_fluent.middleware._errors import CircuitOpenError as CircuitOpenError
    from adk_fluent.middleware._errors import PersonalDataError as PersonalDataError
    from adk_fluent.middleware._errors import RateLimitError as RateLimitError
    from adk_fluent.middleware._log import StructuredLogMiddleware as StructuredLogMiddleware
    from adk_fluent.middleware._log import structured_log as structured_log
    from adk_fluent.middleware._pii import Detector as Detector
    from adk_fluent.middleware._pii import Finding as Finding
    from adk_fluent.middleware._pii import PIIFilterMiddleware as PIIFilterMiddleware
    from adk_fluent.middleware._pii import PresidioDetector as PresidioDetector
    from adk_fluent.middleware._pii import pii_filter as pii_filter
    from adk_fluent.middleware._pii import presidio as presidio
    from adk_fluent.middleware._presets import development as development
    from adk_fluent.middleware._presets import production as production
    from adk_fluent.middleware._resilience._breaker import (
        CircuitBreakerMiddleware as CircuitBreakerMiddleware,
    )
    from adk_fluent.middleware._resilience._breaker import circuit_breaker as circuit_breaker
    from adk_fluent.middleware._resilience._fallback import (
        ModelFallbackMiddleware as ModelFallbackMiddleware,
    )
    from adk_fluent.middleware._resilience._fallback import model_fallback as model_fallback
    from adk_fluent.middleware._resilience._limiter import (
        RateLimiterMiddleware as RateLimiterMiddleware,
    )
    from adk_fluent.middleware._resilience._limiter import rate_limiter as rate_limiter
    from adk_fluent.middleware._resilience._retry import RetryMiddleware as RetryMiddleware
    from adk_fluent.middleware._resilience._retry import retry as retry
    from adk_fluent.middleware._resilience._timeout import TimeoutMiddleware as TimeoutMiddleware
    from adk_fluent.middleware._resilience._timeout import timeout as timeout
    from adk_fluent.middleware._tools._approval import (
        ToolApprovalMiddleware as ToolApprovalMiddleware,
    )
    from adk_fluent.middleware._tools._approval import human_in_the_loop as human_in_the_loop
    from adk_fluent.middleware._tools._approval import tool_approval as tool_approval
    from adk_fluent.middleware._tools._emulator import Emulated as Emulated
    from adk_fluent.middleware._tools._emulator import (
        ToolEmulatorMiddleware as ToolEmulatorMiddleware,
    )
    from adk_fluent.middleware._tools._emulator import tool_emulator as tool_emulator
    from adk_fluent.middleware._tools._selector import (
        ToolSelectorMiddleware as ToolSelectorMiddleware,
    )
    from adk_fluent.middleware._tools._selector import tool_selector as tool_selector
    from adk_fluent.middleware._tools._todo import TodoListMiddleware as TodoListMiddleware
    from adk_fluent.middleware._tools._todo import todo_list as todo_list
    from adk_fluent.protocol import Middleware as Middleware
    from adk_fluent.protocol import MiddlewareDesc as MiddlewareDesc
    from adk_fluent.protocol import wrap as wrap
    from adk_fluent.telemetry import OTelEnrichmentMiddleware as OTelEnrichmentMiddleware
    from adk_fluent.telemetry import otel_enrichment as otel_enrichment

_HERE: Final = "adk_fluent.middleware"

#: Public name to the module that has it.
_NAMES: Final[dict[str, str]] = {
    **{public: home for name, (home, cls) in MIDDLEWARES.items() for public in (name, cls)},
    **{alias: MIDDLEWARES[name][0] for alias, name in ALIASES.items()},
    **{
        name: module
        for module, names in {
            f"{_HERE}._budgets._ledger": "Ledger",
            f"{_HERE}._cache": "CacheStats CacheStore DiskStore MemoryStore",
            f"{_HERE}._context._warning": "ContextUsage",
            f"{_HERE}._define": "define_middleware describe_middleware",
            f"{_HERE}._errors": "BudgetExceededError CallLimitError CallTimeoutError"
            " CircuitOpenError PersonalDataError RateLimitError",
            f"{_HERE}._pii": "Detector Finding PresidioDetector presidio",
            f"{_HERE}._presets": "development production",
            f"{_HERE}._tools._emulator": "Emulated",
            "adk_fluent.ir": "MiddlewareRef",
            "adk_fluent.protocol": "Middleware MiddlewareDesc wrap",
        }.items()
        for name in names.split()
    },
}

__all__ = [
    "BudgetExceededError",
    "CacheMiddleware",
    "CacheStats",
    "CacheStore",
    "CallLimitError",
    "CallTimeoutError",
    "CircuitBreakerMiddleware",
    "CircuitOpenError",
    "ContextEditingMiddleware",
    "ContextUsage",
    "ContextWarningMiddleware",
    "Detector",
    "DiskStore",
    "Emulated",
    "Finding",
    "Ledger",
    "MemoryStore",
    "Middleware",
    "MiddlewareDesc",
    "MiddlewareRef",
    "ModelCallLimitMiddleware",
    "ModelFallbackMiddleware",
    "OTelEnrichmentMiddleware",
    "PIIFilterMiddleware",
    "PersonalDataError",
    "PresidioDetector",
    "RateLimitError",
    "RateLimiterMiddleware",
    "RetryMiddleware",
    "StructuredLogMiddleware",
    "SummarizationMiddleware",
    "TimeoutMiddleware",
    "TodoListMiddleware",
    "TokenBudgetMiddleware",
    "ToolApprovalMiddleware",
    "ToolCallLimitMiddleware",
    "ToolEmulatorMiddleware",
    "ToolSelectorMiddleware",
    "cache",
    "circuit_breaker",
    "context_editing",
    "context_warning",
    "define_middleware",
    "describe_middleware",
    "development",
    "human_in_the_loop",
    "model_call_limit",
    "model_fallback",
    "otel_enrichment",
    "pii_filter",
    "presidio",
    "production",
    "rate_limiter",
    "retry",
    "structured_log",
    "summarization",
    "timeout",
    "todo_list",
    "token_budget",
    "tool_approval",
    "tool_call_limit",
    "tool_emulator",
    "tool_selector",
    "wrap",
]

if not TYPE_CHECKING:  # a type checker must see a misspelt name, not Any

    def __getattr__(name: str) -> object:
        if name == "_MiddlewarePlugin":  # imports ADK
            from adk_fluent.backends.adk import MiddlewarePlugin  # noqa: PLC0415

            return MiddlewarePlugin
        module = _NAMES.get(name)
        if module is not None:
            value = globals()[name] = getattr(import_module(module), name)
            return value
        from adk_fluent.extend import resolve_name  # noqa: PLC0415

        return resolve_name(name, __name__, __all__)
