"""The middlewares of this wheel: their names, and where each class is.

The layer's middlewares, the lazy imports of the package, and the name of each class come from here.
Names stand elsewhere, too, where something is said of a middleware, and a test compares those with
these: in ``__all__`` and the imports for type checkers (``__init__``), the public names that core
finds (``_layer``), rules about the order of stacks (``_order``), and options that name tools and
agents (``_targets``).
"""

from __future__ import annotations

from typing import Final

_HERE: Final = "adk_fluent.middleware"

#: Name of a middleware, which its function has, too, to the module and the name of its class.
MIDDLEWARES: Final = {
    "cache": (f"{_HERE}._cache", "CacheMiddleware"),
    "circuit_breaker": (f"{_HERE}._resilience._breaker", "CircuitBreakerMiddleware"),
    "context_editing": (f"{_HERE}._context._editing", "ContextEditingMiddleware"),
    "context_warning": (f"{_HERE}._context._warning", "ContextWarningMiddleware"),
    "model_call_limit": (f"{_HERE}._budgets._limits", "ModelCallLimitMiddleware"),
    "model_fallback": (f"{_HERE}._resilience._fallback", "ModelFallbackMiddleware"),
    "otel_enrichment": ("adk_fluent.telemetry", "OTelEnrichmentMiddleware"),
    "pii_filter": (f"{_HERE}._pii", "PIIFilterMiddleware"),
    "rate_limiter": (f"{_HERE}._resilience._limiter", "RateLimiterMiddleware"),
    "retry": (f"{_HERE}._resilience._retry", "RetryMiddleware"),
    "structured_log": (f"{_HERE}._log", "StructuredLogMiddleware"),
    "summarization": (f"{_HERE}._context._summarization", "SummarizationMiddleware"),
    "timeout": (f"{_HERE}._resilience._timeout", "TimeoutMiddleware"),
    "todo_list": (f"{_HERE}._tools._todo", "TodoListMiddleware"),
    "token_budget": (f"{_HERE}._budgets._budget", "TokenBudgetMiddleware"),
    "tool_approval": (f"{_HERE}._tools._approval", "ToolApprovalMiddleware"),
    "tool_call_limit": (f"{_HERE}._budgets._limits", "ToolCallLimitMiddleware"),
    "tool_emulator": (f"{_HERE}._tools._emulator", "ToolEmulatorMiddleware"),
    "tool_selector": (f"{_HERE}._tools._selector", "ToolSelectorMiddleware"),
}
#: Other names of middlewares, by which references may name them.
ALIASES: Final = {"human_in_the_loop": "tool_approval"}


def name_of_class(name: str) -> str:
    """The name of the middleware whose class is called `name`."""
    return next(each for each, (_, called) in MIDDLEWARES.items() if called == name)
