"""The names that ``adk_fluent`` itself exports, in one place."""

from __future__ import annotations

from adk_fluent.builders import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    expect,
    map_over,
    race,
    tap,
    timeout,
    until,
)

__all__ = [
    "Agent",
    "Fallback",
    "FanOut",
    "Loop",
    "Pipeline",
    "Route",
    "expect",
    "map_over",
    "race",
    "tap",
    "timeout",
    "until",
]
