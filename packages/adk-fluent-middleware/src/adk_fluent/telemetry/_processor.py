"""The span processor behind `_spans`; imports OpenTelemetry's SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import SpanProcessor

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Span


class Describing(SpanProcessor):
    """Describes ADK's spans as they begin. At their end nothing can be set any more.

    Args:
        begins: Describes one.
    """

    def __init__(self, begins: Callable[[Span, Context | None], None]) -> None:
        self._begins = begins

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Describe a span that begins."""
        self._begins(span, parent_context)
