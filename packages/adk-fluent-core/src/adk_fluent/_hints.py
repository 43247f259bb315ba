"""What wheels bring that may be absent. Written by tools/hints.py; do not edit."""

from __future__ import annotations

from typing import Final

#: Part of adk_fluent, or layer -> the wheel that brings it.
WHEELS: Final[dict[str, str]] = {
    "a2a": "adk-fluent-a2a",
    "cost": "adk-fluent-cost",
    "debug": "adk-fluent-debug",
    "distributed": "adk-fluent-distributed",
    "eval": "adk-fluent-eval",
    "middleware": "adk-fluent-middleware",
    "state": "adk-fluent-state",
    "telemetry": "adk-fluent-middleware",
}

#: Slot -> name in it -> the layer that provides it.
PROVIDERS: Final[dict[str, dict[str, str]]] = {
    "commands": {
        "answer": "distributed",
        "cancel": "distributed",
        "deploy": "distributed",
        "diff": "debug",
        "estimate": "cost",
        "eval": "eval",
        "middleware": "middleware",
        "record": "debug",
        "replay": "debug",
        "status": "distributed",
        "submit": "distributed",
        "worker": "distributed",
    },
    "middleware": {
        "budget": "cost",
        "cache": "middleware",
        "circuit_breaker": "middleware",
        "context_editing": "middleware",
        "context_warning": "middleware",
        "cost_attribution": "cost",
        "human_in_the_loop": "middleware",
        "model_call_limit": "middleware",
        "model_fallback": "middleware",
        "otel_enrichment": "middleware",
        "pii_filter": "middleware",
        "price_limit": "cost",
        "rate_limiter": "middleware",
        "recorder": "debug",
        "retry": "middleware",
        "structured_log": "middleware",
        "summarization": "middleware",
        "timeout": "middleware",
        "todo_list": "middleware",
        "token_budget": "middleware",
        "tool_approval": "middleware",
        "tool_call_limit": "middleware",
        "tool_emulator": "middleware",
        "tool_selector": "middleware",
    },
    "names": {
        "AppScoped": "state",
        "Budget": "cost",
        "CostAttributionMiddleware": "cost",
        "CostModel": "cost",
        "DbosEngine": "distributed",
        "FluentCase": "eval",
        "FluentEvalReport": "eval",
        "FluentEvalSuite": "eval",
        "FluentJudge": "eval",
        "InlineEngine": "distributed",
        "OTelEnrichmentMiddleware": "middleware",
        "Recorder": "debug",
        "Recording": "debug",
        "ReplayerBackend": "debug",
        "RetryMiddleware": "middleware",
        "SegmentPlan": "distributed",
        "SessionScoped": "state",
        "StateSchema": "state",
        "StructuredLogMiddleware": "middleware",
        "Temp": "state",
        "TrafficAssumptions": "cost",
        "UserScoped": "state",
        "cost_attribution": "cost",
        "cost_of": "cost",
        "diff_events": "debug",
        "estimate_cost": "cost",
        "idempotency_key": "distributed",
        "otel_enrichment": "middleware",
        "price_limit": "cost",
        "recorder": "debug",
        "structured_log": "middleware",
        "token_budget": "middleware",
    },
}

#: Part of adk_fluent and command -> the wheel of which a later version will bring it.
LATER: Final[dict[str, str]] = {
    "serve": "adk-fluent-a2a",
}
