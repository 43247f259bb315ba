"""Telemetry: what is added to ADK's own spans, and the metrics that ADK has not."""

from __future__ import annotations

from adk_fluent.telemetry._metrics import INSTRUMENTS, count, measure

__all__ = ["INSTRUMENTS", "count", "measure"]
