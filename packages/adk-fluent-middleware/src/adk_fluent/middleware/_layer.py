"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.middleware"
#: Other names of middlewares, by which references may name them.
ALIASES = {"human_in_the_loop": "tool_approval"}


def _desc(module: str, cls: str, name: str) -> Entry:
    return Entry(f"{module}:{cls}.DESC", name)


LAYER = Layer(
    "middleware",
    {
        "middleware": (
            _desc(f"{_HERE}._tools._approval", "ToolApprovalMiddleware", "tool_approval"),
            Entry(f"{_HERE}._tools._approval:HUMAN_IN_THE_LOOP", "human_in_the_loop"),
            _desc(f"{_HERE}._resilience._breaker", "CircuitBreakerMiddleware", "circuit_breaker"),
            _desc(f"{_HERE}._budgets._budget", "TokenBudgetMiddleware", "token_budget"),
            _desc(f"{_HERE}._cache", "CacheMiddleware", "cache"),
            _desc(f"{_HERE}._context._warning", "ContextWarningMiddleware", "context_warning"),
            _desc(f"{_HERE}._context._editing", "ContextEditingMiddleware", "context_editing"),
            _desc(f"{_HERE}._tools._emulator", "ToolEmulatorMiddleware", "tool_emulator"),
            _desc(f"{_HERE}._resilience._fallback", "ModelFallbackMiddleware", "model_fallback"),
            _desc(f"{_HERE}._resilience._limiter", "RateLimiterMiddleware", "rate_limiter"),
            _desc(f"{_HERE}._budgets._limits", "ModelCallLimitMiddleware", "model_call_limit"),
            _desc(f"{_HERE}._budgets._limits", "ToolCallLimitMiddleware", "tool_call_limit"),
            _desc(f"{_HERE}._log", "StructuredLogMiddleware", "structured_log"),
            _desc(f"{_HERE}._pii", "PIIFilterMiddleware", "pii_filter"),
            _desc(f"{_HERE}._resilience._retry", "RetryMiddleware", "retry"),
            _desc(f"{_HERE}._tools._selector", "ToolSelectorMiddleware", "tool_selector"),
            _desc(f"{_HERE}._context._summarization", "SummarizationMiddleware", "summarization"),
            _desc(f"{_HERE}._resilience._timeout", "TimeoutMiddleware", "timeout"),
            _desc(f"{_HERE}._tools._todo", "TodoListMiddleware", "todo_list"),
            _desc("adk_fluent.telemetry", "OTelEnrichmentMiddleware", "otel_enrichment"),
        ),
        "checkers": (
            Entry(f"{_HERE}._order:check_order", "order"),
            Entry(f"{_HERE}._order:check_retries", "retries"),
            Entry(f"{_HERE}._targets:check_targets", "targets"),
        ),
        "commands": Entry(
            f"{_HERE}._cli:middleware", "middleware", "List middlewares, and show their settings."
        ),
        "telemetry": "adk_fluent.telemetry._config_adk:apply",
        "names": tuple(
            Entry(f"{_HERE}:{name}", name)
            for name in (
                *("OTelEnrichmentMiddleware", "RetryMiddleware", "StructuredLogMiddleware"),
                *("otel_enrichment", "structured_log", "token_budget"),
            )
        ),
    },
)
