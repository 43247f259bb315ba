"""The trace context of W3C, which requests carry both ways; baggage is left out."""

from __future__ import annotations

from typing import Final

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

#: Writes the current span into headers, and reads it from them.
TRACE: Final = TraceContextTextMapPropagator()
