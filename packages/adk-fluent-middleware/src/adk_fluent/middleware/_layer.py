"""What this package provides, as data: nothing it names is imported before it is needed."""

from __future__ import annotations

from adk_fluent.protocol import Entry, Layer

_HERE = "adk_fluent.middleware"

LAYER = Layer(
    "middleware",
    {
        "middleware": (
            Entry(f"{_HERE}._retry:RetryMiddleware.DESC", "retry", "Call again what failed."),
        ),
        "telemetry": "adk_fluent.telemetry._config_adk:apply",
        "names": (Entry(f"{_HERE}:RetryMiddleware", "RetryMiddleware"),),
    },
)
