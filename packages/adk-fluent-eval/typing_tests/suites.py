"""What type checkers know about cases, suites, judges and reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

from google.genai import types

from adk_fluent import Agent, Pipeline
from adk_fluent.eval import (
    CaseOutcome,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    FluentJudge,
    Gate,
    MetricScore,
    MetricSummary,
    ModelMatrix,
    PrebuiltMetrics,
    RegressionReport,
    ResponseCache,
    Rubric,
    Status,
    TagSummary,
    ToolCall,
    ToolUse,
    Turn,
    TurnOutcome,
    UserSimulation,
)
from adk_fluent.state import SessionScoped, StateSchema, UserScoped
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.sessions import Session


class Desk(StateSchema):
    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    tier: UserScoped[str]


def is_sure(value: float) -> bool:
    return value > 0.8


def find_order(order: str) -> dict[str, str]:
    return {"order": order}


async def find_later(order: str, tool_context: Any) -> str:
    return order


# --- what the user says --------------------------------------------------------------------------

photo = types.Part(text="photo")
FluentCase("Hello")
FluentCase(photo)
FluentCase(types.Content(role="user", parts=[photo]))
FluentCase(["Hello", "And now?"])
FluentCase(("Hello", "And now?"))
FluentCase(Turn("Hello"))
FluentCase(Turn(["What is this?", photo]))
FluentCase([Turn("Hello", expected_trajectory=[]), "And now?", types.Content(parts=[photo])])
said: list[str] = ["Hello", "And now?"]
FluentCase(said)
turns: list[str | Turn] = ["Hello", Turn("And now?")]
FluentCase(turns)
FluentCase(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentCase(b"Hello")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- tools ---------------------------------------------------------------------------------------

names: list[str] = ["find_order"]
calls: list[ToolCall] = [ToolCall("find_order")]
FluentCase("x", expected_trajectory=[])
FluentCase("x", expected_trajectory=names)
FluentCase("x", expected_trajectory=calls)
FluentCase("x", expected_trajectory=("find_order", ToolCall("pay_back")))
FluentCase("x", expected_trajectory=["find_order", ToolCall("pay_back", {"order": "A1", "n": 3})])
FluentCase("x", expected_trajectory=[ToolCall("pay_back", {"percent": is_sure, "order": None})])
FluentCase("x", expected_trajectory=[ToolCall("pay_back", {"percent": lambda n: n > 50})])
for match in ("exact", "in_order", "any_order", "subset", "f1"):
    FluentCase("x", expected_trajectory=["a"], trajectory_match=match)
FluentCase(
    "x",
    expected_trajectory=["a"],
    trajectory_match="exactly",  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
)
FluentCase(
    "x",
    expected_trajectory=[find_order],  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
)
ToolCall("a", ["order"])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- answers -------------------------------------------------------------------------------------

FluentCase("x", expected_response_contains="ticket")
FluentCase("x", expected_response_contains=re.compile(r"T-\d+"))
FluentCase("x", expected_response_contains=["ticket", re.compile(r"T-\d+")])
texts: list[str] = ["ticket", "T-1"]
FluentCase("x", expected_response_contains=texts)
FluentCase("x", reference_response="A1 is on its way.")
FluentCase(
    "x",
    expected_response_contains=re.compile(b"T"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
)

# --- mocks ---------------------------------------------------------------------------------------

FluentCase("x", mock_tool_outputs={"a": {"order": "A1"}, "b": 3, "c": None})
FluentCase("x", mock_tool_outputs={"a": find_order, "b": find_later})
FluentCase("x", mock_tool_outputs={"a": ConnectionError("down")})
FluentCase("x", mock_tool_outputs={"a": [{"order": "A1"}, find_order, ConnectionError("down")]})
FluentCase(
    "x",
    mock_tool_outputs=["a"],  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
)

# --- state ---------------------------------------------------------------------------------------

FluentCase("x", initial_state={"user:tier": "gold"}, state_assertions={"intent": "refund"})
FluentCase("x", state_assertions={"triage.confidence": is_sure, "ticket": None})
FluentCase("x", initial_state={Desk.tier: "gold"})
FluentCase("x", state_assertions={Desk.intent: "refund", Desk.confidence: is_sure})
FluentCase("x", state_assertions={Desk.intent: "refund", "user:tier": "gold"})
known: dict[str, Any] = {"intent": "refund"}
FluentCase("x", initial_state=known, state_assertions=known)
Turn("x", state_assertions={Desk.intent: "refund"})
FluentCase("x", state_assertions={"intent": "refund", "confidence": lambda v: v > 0.8})
FluentCase("x", state_assertions={Desk.confidence: lambda v: v > 0.8, "ticket": None})
FluentCase(
    "x",
    state_assertions=["intent"],  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
)

# --- the rest of a case --------------------------------------------------------------------------

case = FluentCase(
    "x",
    target_node="triage",
    tags=["a", "b"],
    metadata={"source": "mail", "n": 3},
    id="x",
    rubrics=["It names the ticket", Rubric("It is polite", id="polite")],
    simulation=UserSimulation(script=["A1"]),
    max_cost_usd=0.01,
    max_tokens=500,
    max_latency_s=3,
    max_tool_calls=2,
    timeout_s=10,
    skip="no sandbox",
    xfail="bug 17",
)
assert_type(case.name, str)
assert_type(case.turns, tuple[Turn, ...])
FluentCase("x", max_tokens="500")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentCase("x", skip=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentCase("x", tag=["a"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def of_session(session: Session) -> FluentCase:
    FluentCase.from_session(session, input=["Hello", Turn("And now?")])
    FluentCase.from_session(session, tag=["seen"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    FluentCase.from_session(session, tags=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return FluentCase.from_session(session, id="x", tags=["seen"])


UserSimulation(model="gemini-2.5-flash", persona="In a hurry", max_turns=3)
UserSimulation(model=ScriptedModel("Hello"), stop_signal="bye")
UserSimulation(script="A1")  # a text is a sequence of texts; refused when it runs
UserSimulation(model=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- judges --------------------------------------------------------------------------------------


def graded(actual_response: str, reference: str | None, tool_trajectory: list[str]) -> float:
    return 1.0 if actual_response == reference else len(tool_trajectory) / 10


def reasoned(responses: list[str], state: dict[str, Any]) -> tuple[float, str]:
    return len(responses) / 2, f"{len(state)} keys"


def yes(tool_calls: list[ToolUse], turns: list[TurnOutcome], case: FluentCase) -> bool:
    return len(tool_calls) <= len(turns) and case.skip is None


async def later(stop_reason: str) -> float | None:
    return None if stop_reason else 1.0


judges = [
    FluentJudge("graded", graded, threshold=0.8),
    FluentJudge(name="reasoned", fn=reasoned, lower_is_better=True),
    FluentJudge("yes", yes),
    FluentJudge("later", later),
]
FluentJudge("none", 0.8)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentJudge(graded)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]

# --- suites --------------------------------------------------------------------------------------


def pipeline() -> Pipeline:
    return Agent("a").mock("A") >> Agent("b").mock("B")


suite = FluentEvalSuite(
    "desk",
    pipeline(),
    [case],
    [PrebuiltMetrics.TOOL_TRAJECTORY_AVG_SCORE, "response_match_score"],
    {PrebuiltMetrics.TOOL_TRAJECTORY_AVG_SCORE: 1.0, "response_match_score": 0.5},
    2,
    custom_judges=judges,
    simulation=UserSimulation(script=["A1"]),
    judge_model=ScriptedModel("yes"),
    gate=Gate(min_pass_rate=0.9, min_tag_pass_rate={"a": 1.0}, max_regressions=None),
)
FluentEvalSuite(pipeline=pipeline, cases=(case,), judge_model="gemini-2.5-pro")
FluentEvalSuite(
    pipeline=pipeline,
    thresholds={PrebuiltMetrics.RESPONSE_MATCH_SCORE: 0.5},
    metrics=(each for each in ("response_match_score",)),
)
assert_type(suite.add(case, case), FluentEvalSuite)
assert_type(suite.case("Hello", expected_trajectory=[]), FluentEvalSuite)
suite.case(["Hello", Turn("And now?")], state_assertions={Desk.confidence: is_sure}, skip="later")
suite.case("Hello", tag=["a"])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
suite.case("Hello", max_tokens="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.case("Hello", trajectory_match="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.case(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentEvalSuite(
    cases=[42],  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
)
FluentEvalSuite(
    cases=["Hello"],  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
)
FluentEvalSuite(
    custom_judges=[graded],  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
)
FluentEvalSuite(gate=0.9)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Gate(max_regressions=0.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FluentEvalSuite(runs=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

FluentEvalSuite.from_yaml("desk.yaml", pipeline(), registry={"is_sure": is_sure}, num_runs=2)
FluentEvalSuite.from_eval_set(Path("desk.evalset.json"), pipeline)
FluentEvalSuite.from_csv("desk.csv", map={"question": "input"})
assert_type(FluentEvalSuite.from_jsonl("desk.jsonl"), FluentEvalSuite)
suite.to_eval_set_file("desk.evalset.json", config_path="desk.config.json")
suite.to_yaml(Path("desk.yaml"))


@suite.to_pytest(cache=ResponseCache("answers", "replay"))
def test_desk() -> None: ...


# --- runs ----------------------------------------------------------------------------------------

suite.check()
report = suite.run_sync(
    engine="light",
    parallelism=4,
    filter_tags=["a"],
    cache=ResponseCache(Path("answers"), mode="replay"),
    journal="run.jsonl",
    shard=(1, 4),
    model="gemini-2.5-pro",
    progress=lambda progress: print(progress.done, progress.outcome.status, progress.resumed),
)
suite.run_sync(paralelism=4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
suite.run_sync(engine="fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.run_sync(shard="1/4")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
suite.run_sync(cache="answers")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ResponseCache("answers", "always")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def in_a_loop() -> None:
    assert_type(await suite.run(num_runs=3, baseline=report), FluentEvalReport)
    async for outcome in suite.stream(fail_fast=True):
        assert_type(outcome, CaseOutcome)
    matrix = await suite.matrix(["gemini-2.5-pro", ScriptedModel("x")], parallelism=2)
    assert_type(matrix, ModelMatrix)
    assert_type(matrix["gemini-2.5-pro"], FluentEvalReport)
    assert_type(matrix.best, str)
    await suite.run(num_run=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# --- reports -------------------------------------------------------------------------------------

assert_type(report, FluentEvalReport)
assert_type(report.outcomes, tuple[CaseOutcome, ...])
assert_type(report.pass_rate, float)
assert_type(report.pass_rate_ci(), tuple[float, float])
assert_type(report.counts[Status.PASSED], int)
assert_type(report.flaky, tuple[str, ...])
assert_type(report.per_tag["a"], TagSummary)
assert_type(report.per_metric["graded"], MetricSummary)
assert_type(report.per_metric["graded"].mean, float | None)
assert_type(report.failures, list[str])
assert_type(report.outcome("x", 2).score("graded"), MetricScore | None)
assert_type(report.outcome("x").cost_usd, float | None)
results: Sequence[EvalCaseResult] = report.case_results
comparison = report.compare(FluentEvalReport.load("baseline.json"), alpha=0.01)
assert_type(comparison, RegressionReport)
assert_type(comparison.p_value, float)
assert_type([each.id for each in comparison.regressed], list[str])
report.compare("baseline.json")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
report.outcome(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
print(report.pass_rat)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
