"""Telemetry: what is added to ADK's own spans, and the metrics that ADK has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.telemetry._metrics import INSTRUMENTS, count, measure

if TYPE_CHECKING:
    from adk_fluent.telemetry._enrichment import (
        OTelEnrichmentMiddleware as OTelEnrichmentMiddleware,
    )
    from adk_fluent.telemetry._enrichment import otel_enrichment as otel_enrichment

__all__ = ["INSTRUMENTS", "OTelEnrichmentMiddleware", "count", "measure", "otel_enrichment"]

if not TYPE_CHECKING:  # a type checker must see a misspelt name, not Any

    def __getattr__(name: str) -> object:
        if name in __all__:  # it needs this package itself, for metrics
            from adk_fluent.telemetry import _enrichment  # noqa: PLC0415

            value = globals()[name] = getattr(_enrichment, name)
            return value
        from adk_fluent.extend import resolve_name  # noqa: PLC0415

        return resolve_name(name, __name__, __all__)
