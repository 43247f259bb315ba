"""Metrics as OpenTelemetry's SDK collects them: those of ours, and on ADK 1.x those it lacks."""

from __future__ import annotations

from typing import Any, Final

import pytest
from kit import told_by

from adk_fluent.telemetry import INSTRUMENTS

pytestmark = pytest.mark.adk

#: Prints what was measured, as rows of name, scope, attributes, sum and count.
READ: Final = """
    import json
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    {provider}

    def told():
        rows = []
        data = reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        row = [metric.name, scope.scope.name, dict(point.attributes)]
                        total = getattr(point, "sum", getattr(point, "value", None))
                        rows.append([*row, total, getattr(point, "count", 1)])
        print(json.dumps(rows))
"""
SET: Final = "metrics.set_meter_provider(MeterProvider([reader]))"

Row = tuple[str, str, dict[str, str], float, int]


def measured(program: str, provider: str = SET) -> list[Row]:
    found: list[Any] = told_by(READ.replace("{provider}", provider) + program + "\n    told()\n")
    return [tuple(row) for row in found]


def of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row[0] == name]


def test_every_instrument_is_one_of_opentelemetrys() -> None:
    program = """
    from adk_fluent.telemetry import INSTRUMENTS, count, measure

    for name, each in INSTRUMENTS.items():
        emit = count if each.kind == "counter" else measure
        emit(name, 2, {"adk_fluent.call": "model"})
        emit(name, 3, {"adk_fluent.call": "model"})
    """
    rows = {row[0]: row for row in measured(program)}
    assert rows.keys() == INSTRUMENTS.keys()
    for name, each in INSTRUMENTS.items():
        assert rows[name][1] == "adk_fluent"
        assert rows[name][3] == (3 if each.kind == "gauge" else 5)


def test_runs_that_fail_are_counted() -> None:
    program = """
    from adk_fluent import Agent
    from adk_fluent.telemetry import otel_enrichment
    from adk_fluent.testing import ScriptedModel

    model = ScriptedModel(ValueError("no"), "ok", TimeoutError("late"))
    shop = Agent("a", model).middleware(otel_enrichment(pipeline_name="shop"))
    for _ in range(3):
        try:
            shop.ask("hi")
        except (ValueError, TimeoutError):
            pass
    """
    rows = of(measured(program), "adk_fluent.pipeline.errors")
    assert sorted((row[2]["error.type"], row[3]) for row in rows) == [
        ("TimeoutError", 1),
        ("ValueError", 1),
    ]
    assert {row[2]["adk_fluent.pipeline"] for row in rows} == {"shop"}


VIOLATING: Final = """
    from adk_fluent import Agent, Route
    from adk_fluent.telemetry import otel_enrichment

    def build():
        b = Agent("b").mock("B")
        return (Agent("a").mock("A") >> Route("k").eq("x", b)).named("shop")

    assert build().check().diagnostics, "there is something to find"
    for _ in range(2):
        shop = build().middleware(otel_enrichment())
        shop.ask("hi")
        shop.ask("hi")
"""


def test_findings_of_checks_are_counted_once_for_each_pipeline() -> None:
    rows = of(measured(VIOLATING), "adk_fluent.contracts.violations")
    assert [row[3] for row in rows] == [1] * len(rows)
    assert len(rows) >= 1
    for row in rows:
        assert row[2]["adk_fluent.code"].startswith("FLW")
        assert row[2]["adk_fluent.severity"] in {"info", "warning", "error"}
        assert row[2]["adk_fluent.pipeline"] == "shop"


@pytest.mark.full
def test_nothing_is_checked_where_nobody_measures() -> None:
    program = """
    from adk_fluent.telemetry import _pipelines

    def dear(root):
        raise AssertionError("worked out for nobody")

    _pipelines.check_all = dear
    """
    assert measured(program + VIOLATING, provider="pass") == []


@pytest.mark.full
def test_a_checker_that_fails_stops_no_run() -> None:
    program = """
    from adk_fluent import Agent
    from adk_fluent.telemetry import _pipelines, otel_enrichment

    def broken(root):
        raise KeyError("the checker's own")

    _pipelines.check_all = broken
    assert Agent("a").mock("A").middleware(otel_enrichment()).ask("hi") == "A"
    """
    assert of(measured(program), "adk_fluent.contracts.violations") == []


@pytest.mark.parametrize("stream", ["sse", pytest.param("none", marks=pytest.mark.full)])
def test_model_calls_are_measured_once(stream: str) -> None:
    """By ADK 2.x itself, or by us; never by both, and never by nobody."""
    program = f"""
    from adk_fluent import Agent
    from adk_fluent.config import ExecutionConfig
    from adk_fluent.protocol import Usage
    from adk_fluent.telemetry import otel_enrichment
    from adk_fluent.testing import ScriptedModel, reply

    usage = Usage(prompt=100, output=10, thoughts=5, tool=7)
    model = ScriptedModel(reply("one", usage=usage), reply("two", usage=usage))
    pipeline = (Agent("a", model) >> Agent("b", model)).middleware(otel_enrichment())
    pipeline.ask("hi", config=ExecutionConfig(streaming_mode="{stream}"))
    """
    rows = measured(program)
    tokens = of(rows, "gen_ai.client.token.usage")
    for kind, total in (("input", 214), ("output", 30)):
        mine = [row for row in tokens if row[2]["gen_ai.token.type"] == kind]
        assert sum(row[3] for row in mine) == total
        assert sum(row[4] for row in mine) == 2
        assert {row[2]["gen_ai.agent.name"] for row in mine} == {"a", "b"}
    durations = of(rows, "gen_ai.client.operation.duration")
    assert sum(row[4] for row in durations) == 2
    for row in (*tokens, *durations):
        assert row[2]["gen_ai.operation.name"] == "generate_content"
        assert row[2]["gen_ai.request.model"] == "scripted"
    assert len({row[1] for row in (*tokens, *durations)}) == 1


def test_model_calls_that_fail_are_measured_once() -> None:
    program = """
    from adk_fluent import Agent
    from adk_fluent.telemetry import otel_enrichment
    from adk_fluent.testing import ScriptedModel

    try:
        Agent("a", ScriptedModel(ValueError("no"))).middleware(otel_enrichment()).ask("hi")
    except ValueError:
        pass
    """
    (row,) = of(measured(program), "gen_ai.client.operation.duration")
    assert (row[2]["error.type"], row[4]) == ("ValueError", 1)
