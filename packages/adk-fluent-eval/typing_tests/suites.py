"""What type checkers know about cases, suites, judges and reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, assert_type

from adk_fluent import Agent
from adk_fluent.eval import (
    CaseOutcome,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    FluentJudge,
    Gate,
    MetricSummary,
    ModelMatrix,
    PrebuiltMetrics,
    RegressionReport,
    ResponseCache,
    Status,
    TagSummary,
    ToolCall,
    Turn,
    UserSimulation,
)


def short(actual_response: str) -> bool:
    return len(actual_response) < 80


def from_order(order: str) -> str:
    return order


case = FluentCase(
    ["Hi", Turn("Where is A1?", expected_trajectory=["find"])],
    expected_trajectory=["find", ToolCall("find", {"order": lambda order: order == "A1"})],
    trajectory_match="in_order",
    expected_response_contains=["A1", re.compile("A[0-9]")],
    mock_tool_outputs={"find": [1, ValueError("no"), from_order]},
    state_assertions={"answer": "x", "n": lambda n: n > 1},
    tags=["orders"],
)
suite = FluentEvalSuite(
    "desk",
    Agent("desk"),
    [case],
    metrics=[PrebuiltMetrics.RESPONSE_MATCH_SCORE, "token_usage_v1"],
    thresholds={PrebuiltMetrics.RESPONSE_MATCH_SCORE: 0.5},
    custom_judges=[FluentJudge("short", short)],
    gate=Gate(0.9, max_regressions=None),
    judge_model="gemini-2.5-flash",
    simulation=UserSimulation(script=["And B2?"]),
)
assert_type(suite.case("Hi", expected_trajectory=[], id="hi"), FluentEvalSuite)

FluentCase(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentCase("Hi", trajectory_match="fuzzy")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentCase("Hi", rubrik=["x"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
suite.case("Hi", expected=[])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ResponseCache("a", "again")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.run_sync(engine="lokal")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.run_sync(cash=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def use() -> None:
    report = await suite.run(parallelism=4, filter_tags=["orders"])
    assert_type(report, FluentEvalReport)
    assert_type(report.outcomes, Sequence[CaseOutcome])
    assert_type(report.outcomes[0].status, Status)
    assert_type(report.pass_rate_ci(), tuple[float, float])
    assert_type(report.per_tag, dict[str, TagSummary])
    assert_type(report.per_metric, dict[str, MetricSummary])
    assert_type(report.compare(FluentEvalReport.load("r.json")), RegressionReport)
    assert_type(report.outcome("hi").state, dict[str, Any])
    assert_type(await suite.matrix(["a", "b"], cache="answers"), ModelMatrix)
    await suite.run(engine="local", shard=(1, 2), cache=ResponseCache("a", "replay"), journal="j")
    async for outcome in suite.stream():
        assert_type(outcome, CaseOutcome)
