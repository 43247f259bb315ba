"""Ours with OpenTelemetry's SDK set up, which cannot be undone in a process: a side of its own.

What describes spans stays attached to the provider, so `enriched` has a process of its own again.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.side.around import Hooked, agents

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.builders import Builder
    from bench.side.worker import Task

_EXPORTER = InMemorySpanExporter()
_PROVIDER = TracerProvider()
_PROVIDER.add_span_processor(SimpleSpanProcessor(_EXPORTER))
trace.set_tracer_provider(_PROVIDER)


def _spans(chain: Builder) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """How many spans a run has, and on how many of them something is said of ours."""
    from bench.side.scripted import driven

    run = driven(chain.to_runner())

    async def once() -> list[int]:
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

    return _spans(agents(size).middleware(otel_enrichment()))


TASKS: dict[str, Task] = {
    "run": run,
    "run-hooked": run_hooked,
    "run-enriched": run_enriched,
}
