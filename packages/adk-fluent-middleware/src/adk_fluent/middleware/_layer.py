"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.middleware._places import ALIASES, MIDDLEWARES
from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.middleware"

LAYER = Layer(
    "middleware",
    {
        "middleware": (
            *(Entry(f"{home}:{cls}.DESC", name) for name, (home, cls) in MIDDLEWARES.items()),
            *(
                Entry(f"{MIDDLEWARES[name][0]}:{each.upper()}", each)
                for each, name in ALIASES.items()
            ),
        ),
        "checkers": (
            Entry(f"{_HERE}._order:check_order", "order"),
            Entry(f"{_HERE}._order:check_retries", "retries"),
            Entry(f"{_HERE}._targets:check_targets", "targets"),
        ),
        "run_checkers": Entry(f"{_HERE}._targets:check_targets", "targets"),
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
