"""How a pipeline runs: the configuration that every way of running it takes."""

from __future__ import annotations

from adk_fluent.ir import CompactionConfig, ExecutionConfig, TelemetryConfig

__all__ = ["CompactionConfig", "ExecutionConfig", "TelemetryConfig"]
