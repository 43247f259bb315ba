"""The span processor behind `_spans`; imports OpenTelemetry's SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

from adk_fluent.telemetry._spans import begins

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span


class Describing(SpanProcessor):
    """Describes ADK's spans as they begin. At their end nothing can be set any more."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Describe a span that begins."""
        begins(span, parent_context)
