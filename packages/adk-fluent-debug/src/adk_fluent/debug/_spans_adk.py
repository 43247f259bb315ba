"""The spans of a run that is recorded, as OpenTelemetry hands them out when they end."""

from __future__ import annotations

import time
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
    from collections.abc import Callable, Generator

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span
    from opentelemetry.trace import TracerProvider

    from adk_fluent.debug._recorded_run import Data

#: Whose spans belong to a run that they began before: ADK's, and those of the library for Gemini.
_SCOPES: Final = ("gcp.vertex.agent", "opentelemetry.instrumentation.google_genai")
#: The span of a run by ADK's Runner; what is above it belongs to somebody else.
_RUNS: Final = ("invocation", "invoke_workflow")
_KNOWN: Final[WeakSet[TracerProvider]] = WeakSet()
_LOCK: Final = Lock()
#: The runs that the code that runs is part of: each recorder has its own.
_RUNNING: Final[ContextVar[tuple[Spans, ...]]] = ContextVar("adk_fluent_debug_spans", default=())
#: The runs that spans belong to which have not ended.
_OWNERS: Final[dict[int, tuple[Spans, ...]]] = {}


class Spans:
    """The spans of one run that have ended.

    Args:
        told: Called when one has ended.
    """

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._began = time.time_ns()
        self._ended: list[ReadableSpan] = []

    def __len__(self) -> int:
        return len(self._ended)

    @contextmanager
    def around(self) -> Generator[None]:
        """Keep what begins inside, and what of ADK's it stands in."""
        above = trace.get_current_span().get_span_context()
        if above.is_valid:
            _own(above.span_id, self)
        token = _RUNNING.set((*_RUNNING.get(), self))
        try:
            yield
        finally:
            _RUNNING.reset(token)

    def keep(self, span: ReadableSpan) -> None:
        """Take in a span that has ended, and await the one above it."""
        above, scope = span.parent, span.instrumentation_scope
        is_adks = scope is not None and scope.name in _SCOPES
        if above is not None and not (above.is_remote or span.name.startswith(_RUNS)) and is_adks:
            _own(above.span_id, self)
        self._ended.append(span)
        self._told()

    def data(self) -> list[Data]:
        """The spans as they stand in a file, in the order in which they began."""
        return [
            self._data(each) for each in sorted(self._ended, key=lambda each: each.start_time or 0)
        ]

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
        events = [
            {"name": each.name, "at": self._since(each.timestamp), "attributes": each.attributes}
            for each in span.events
        ]
        if agent := (span.attributes or {}).get("gen_ai.agent.name"):
            made["agent"] = str(agent)
        return {**made, "events": json_safe(events)} if events else made

    def _since(self, nanoseconds: int | None) -> float:
        return round(((nanoseconds or self._began) - self._began) / 1e6, 3)


def _own(span_id: int, *runs: Spans) -> None:
    known = _OWNERS.get(span_id, ())
    _OWNERS[span_id] = (*known, *(each for each in runs if each not in known))


class _Keeping(SpanProcessor):
    """Hands spans that end to the runs that they belong to."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note which run a span belongs to."""
        if (runs := _RUNNING.get()) and span.context is not None:
            _own(span.context.span_id, *runs)

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span in its run."""
        if span.context is not None:
            for each in _OWNERS.pop(span.context.span_id, ()):
                each.keep(span)


def attach() -> None:
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
