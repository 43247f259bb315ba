"""Ours with OpenTelemetry's SDK set up, which cannot be undone in a process: a side of its own."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.side.around import Hooked, agents

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

    from adk_fluent.builders import Builder
    from bench.side.worker import Task


class Switch(SynchronousMultiSpanProcessor):
    """Exports spans, and tells of them those who were added only while it is on.

    What describes spans stays with a provider, and may not be part of what it is compared with.

    Attributes:
        on: Whether those who were added are told.
    """

    def __init__(self, export: SpanProcessor) -> None:
        super().__init__()
        self.on = False
        self._export = export

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Tell of a span that begins."""
        if self.on:
            super().on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Export a span that ends."""
        self._export.on_end(span)
        if self.on:
            super().on_end(span)


_EXPORTER = InMemorySpanExporter()
_SWITCH = Switch(SimpleSpanProcessor(_EXPORTER))
trace.set_tracer_provider(TracerProvider(active_span_processor=_SWITCH))


def _spans(chain: Builder, *, on: bool = False) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """How many spans a run has, and on how many of them something is said of ours."""
    from bench.side.scripted import driven

    run = driven(chain.to_runner())

    async def once() -> list[int]:
        _SWITCH.on = on
        await run()
        ended = _EXPORTER.get_finished_spans()
        _EXPORTER.clear()
        described = [each for each in ended if "adk_fluent.pipeline" in (each.attributes or ())]
        return [len(ended), len(described)]

    return once


def run(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """A pipeline of agents, and nothing around it."""
    return _spans(agents(size))


def run_hooked(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """The same, with the hooks that enrichment has, which let everything through."""
    return _spans(agents(size).middleware(Hooked()))


def run_enriched(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """The same with enrichment."""
    from adk_fluent.telemetry import otel_enrichment

    return _spans(agents(size).middleware(otel_enrichment()), on=True)


TASKS: dict[str, Task] = {
    "run": run,
    "run-hooked": run_hooked,
    "run-enriched": run_enriched,
}
