"""The spans of a run that is recorded, as OpenTelemetry hands them out when they end."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from google.adk.telemetry.setup import OTelHooks, maybe_set_otel_providers
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from adk_fluent.extend import json_safe

if TYPE_CHECKING:
    from collections.abc import Generator

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from opentelemetry.trace import TracerProvider

    from adk_fluent.debug._recorded_run import Data

_KNOWN: Final[WeakSet[TracerProvider]] = WeakSet()
_LOCK: Final = Lock()
#: The runs that the code that runs is part of: each recorder has its own.
_RUNNING: Final[ContextVar[tuple[Spans, ...]]] = ContextVar("adk_fluent_debug_spans", default=())
#: The runs in which spans began that have not ended.
_OPEN: Final[dict[int, tuple[Spans, ...]]] = {}


class Spans:
    """The spans that began in a run, and have ended."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []
        self._began = 0
        _attach()

    @contextmanager
    def around(self, began: int) -> Generator[None]:
        """Keep what begins inside.

        Args:
            began: When the run began: nanoseconds since 1970.
        """
        self._began = began
        token = _RUNNING.set((*_RUNNING.get(), self))
        try:
            yield
        finally:
            _RUNNING.reset(token)

    def data(self) -> list[Data]:
        """The spans as they stand in a file, in the order in which they began."""
        spans = sorted(self.ended, key=lambda each: each.start_time or 0)
        return [self._data(each) for each in spans]

    def _data(self, span: ReadableSpan) -> Data:
        context = span.get_span_context()
        made: Data = {
            "name": span.name,
            "span_id": "" if context is None else f"{context.span_id:016x}",
            "parent_id": None if span.parent is None else f"{span.parent.span_id:016x}",
            "trace_id": "" if context is None else f"{context.trace_id:032x}",
            "start": self._since(span.start_time),
            "end": self._since(span.end_time),
            "status": span.status.status_code.name.lower(),
            "attributes": json_safe(dict(span.attributes or {})),
        }
        if agent := (span.attributes or {}).get("gen_ai.agent.name"):
            made["agent"] = str(agent)
        return made

    def _since(self, nanoseconds: int | None) -> float:
        return round(((nanoseconds or self._began) - self._began) / 1e6, 3)


class _Keeping(SpanProcessor):
    """Hands spans that end to the runs that they began in."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note in which runs a span begins."""
        if (runs := _RUNNING.get()) and span.context is not None:
            _OPEN[span.context.span_id] = runs

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span in its runs."""
        if span.context is not None:
            for each in _OPEN.pop(span.context.span_id, ()):
                each.ended.append(span)


def _attach() -> None:
    """Let the provider that is set hand out its spans; where none is, one of ADK's is set."""
    with _LOCK:
        provider = trace.get_tracer_provider()
        if provider in _KNOWN:
            return
        add: Any = getattr(provider, "add_span_processor", None)
        if add is None:
            maybe_set_otel_providers([OTelHooks(span_processors=[_Keeping()])])
        else:
            add(_Keeping())
        _KNOWN.add(trace.get_tracer_provider())
