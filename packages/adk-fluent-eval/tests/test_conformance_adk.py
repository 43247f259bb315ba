"""The engine `local` beside `light`: the same statuses and scores, and ADK's defects closed."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from eval_desk import desk, judge
from google.adk.version import __version__ as adk_version

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    FluentJudge,
    MetricStatus,
    PrebuiltMetrics,
    Status,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.testing import ScriptedModel, reply

MAJOR = int(adk_version.partition(".")[0])
HAS_EXTRA = all(find_spec(name) for name in ("pandas", "rouge_score", "vertexai"))
LOCAL = pytest.mark.skipif(
    not HAS_EXTRA or MAJOR < 2, reason="LocalEvalService needs google-adk[eval] 2.x"
)

pytestmark = pytest.mark.adk

COUNTS = [str(each) for each in PrebuiltMetrics][-4:]
CASES = [
    FluentCase("my order", id="pass", expected_trajectory=["look_up"], reference_response="it is"),
    FluentCase("good day", id="fail", expected_trajectory=["look_up"], reference_response="no"),
    FluentCase("my order", id="none", expected_trajectory=[], reference_response="it is shipped"),
    FluentCase("two of my order", id="order", expected_trajectory=["look_up"] * 2),
    FluentCase(
        "two of my order", id="any", expected_trajectory=["look_up"], trajectory_match="any_order"
    ),
    FluentCase(
        "two of my order", id="sub", expected_trajectory=["look_up"], trajectory_match="subset"
    ),
    FluentCase("two of my order", id="f1", expected_trajectory=["look_up"], trajectory_match="f1"),
    FluentCase("my order", id="args", expected_trajectory=[ToolCall("look_up", {"order": "A2"})]),
    FluentCase(
        [
            Turn("good day", expected_trajectory=[], reference_response="good morning"),
            Turn("my order", expected_trajectory=["look_up"], reference_response="x"),
        ],
        id="turns",
    ),
    FluentCase(
        ["good day", "my order"],
        id="state",
        expected_response_contains="lost",
        mock_tool_outputs={"look_up": {"status": "lost"}},
        state_assertions={"answer": "it is lost", "seen": 1},
        initial_state={"seen": 1},
        max_tool_calls=1,
        max_tokens=1000,
    ),
    FluentCase("my order", id="wrong state", state_assertions={"answer": "it is lost"}),
    FluentCase("my order", id="too many", max_tool_calls=0),
    FluentCase(
        "my order",
        id="raises",
        mock_tool_outputs={"look_up": ValueError("gone")},
        expected_trajectory=["look_up"],
    ),
    FluentCase(
        "my order",
        id="user",
        simulation=UserSimulation(script=["good day"]),
        expected_trajectory=["look_up"],
        expected_response_contains="morning",
    ),
    FluentCase("my order", id="rubric", rubrics=["It is polite."]),
    FluentCase("my order", id="later", max_tokens=1, skip="later"),
    FluentCase("my order", id="x", expected_trajectory=[], xfail="known"),
]


def short(actual_response: str) -> float:
    return 1.0 if len(actual_response) < 20 else 0.0


def suite(**more: Any) -> FluentEvalSuite:
    return FluentEvalSuite(
        "s",
        desk(),
        CASES,
        [
            *("response_match_score", "hallucinations_v1", *(COUNTS if MAJOR > 1 else ())),
            *("rubric_based_final_response_quality_v1", "final_response_match_v2"),
        ],
        {"response_match_score": 0.5},
        num_runs=2,
        custom_judges=[FluentJudge("short", short)],
        judge_model=judge(True, {"It is polite.": True}),
        judge_samples=1,
        **more,
    )


def told(report: FluentEvalReport) -> dict[Any, Any]:
    return {
        (each.id, each.run): (
            each.status,
            each.stop_reason,
            [turn.response for turn in each.turns],
            [use.name for use in each.tool_uses],
            dict(each.state),
            each.tokens,
            {
                score.name: (score.status, None if score.unit == "s" else score.score)
                for score in each.scores
            },
        )
        for each in report.outcomes
    }


@LOCAL
@pytest.mark.filterwarnings("ignore")  # of the libraries of the extra
def test_both_engines_give_the_same_statuses_and_scores() -> None:
    light, local = suite().run_sync(), suite().run_sync(engine="local")
    assert (light.engine, local.engine) == ("light", "local")
    ours, theirs = told(light), told(local)
    for key, each in ours.items():
        assert theirs[key] == each, key
    assert {each.status for each in light.outcomes} == set(Status)
    assert len(local.case_results) == len(light.case_results)
    for mine, other in zip(light.case_results, local.case_results, strict=True):
        assert (mine.eval_id, mine.final_eval_status) == (other.eval_id, other.final_eval_status)


@pytest.mark.skipif(HAS_EXTRA and MAJOR > 1, reason="it can be used here")
def test_local_is_refused_with_the_reason_before_any_model_call() -> None:
    def never(_: Any) -> str:
        raise AssertionError

    needs = "needs google-adk 2.x" if MAJOR < 2 else r"adk-fluent-eval\[adk\]"
    with pytest.raises(EvalError, match=needs):
        FluentEvalSuite("s", desk(answer=never), CASES[:1]).run_sync(engine="local")


# --- ADK's defects, closed in both engines -------------------------------------------------------

ENGINES = ["light", pytest.param("local", marks=LOCAL)]
closed = pytest.mark.parametrize("engine", ENGINES)


@closed
@pytest.mark.filterwarnings("ignore")
def test_a_metric_that_crashes_does_not_pass(engine: Any) -> None:
    def crash() -> float:
        raise ZeroDivisionError

    case = FluentCase("my order", id="a", expected_trajectory=["look_up"])
    judges = [FluentJudge("crash", crash)]
    report = FluentEvalSuite("s", desk(), [case], custom_judges=judges).run_sync(engine=engine)
    [outcome] = report.outcomes
    assert outcome.status is Status.ERROR
    assert "ZeroDivisionError" in outcome.reasons[0]
    score = outcome.score("crash")
    assert score is not None
    assert score.status is MetricStatus.NOT_EVALUATED
    assert not report.ok


@closed
@pytest.mark.filterwarnings("ignore")
def test_a_failed_run_keeps_its_reason_and_the_others_go_on(engine: Any) -> None:
    def broken(asked: Any) -> Any:
        if "order" in asked.prompt:
            raise ValueError("no model")
        return "good morning"

    cases = [FluentCase(text, id=text, expected_trajectory=[]) for text in ("my order", "hi")]
    suite = FluentEvalSuite("s", desk(answer=broken), cases)
    first, second = suite.run_sync(engine=engine).outcomes
    assert first.status is Status.ERROR
    assert "no model" in str(first.error)
    assert second.passed


@closed
@pytest.mark.filterwarnings("ignore")
def test_state_does_not_leak_between_cases_or_into_results(engine: Any) -> None:
    seen: list[Any] = []

    def note(order: str, tool_context: Any) -> str:
        """Note an order."""
        seen.append((tool_context.state.get("user:bill"), tool_context.state.get("app:bill")))
        tool_context.state["user:bill"] = tool_context.state["app:bill"] = order
        return "noted"

    def calls(asked: Any) -> Any:
        from adk_fluent.testing import Call

        return "done" if "[result" in asked.prompt else Call("note", {"order": "A1"})

    cases = [FluentCase(f"order {n}", id=str(n), expected_trajectory=["note"]) for n in range(3)]
    pipeline = Agent("a", ScriptedModel(default=calls)).tool(note)
    report = FluentEvalSuite("s", pipeline, cases, num_runs=2).run_sync(engine=engine)
    assert report.ok
    assert seen == [(None, None)] * 6
    assert [(each.id, each.run) for each in report.outcomes] == [
        (str(n), run) for n in range(3) for run in (1, 2)
    ]
    assert all(set(each.state) == {"user:bill", "app:bill"} for each in report.outcomes)
    assert all(each.session_details is not None for each in report.case_results)


@closed
@pytest.mark.filterwarnings("ignore")
def test_a_run_that_takes_too_long_or_reports_an_error_is_an_error(engine: Any) -> None:
    async def slow(asked: Any) -> Any:
        if "wait" in asked.prompt:
            await asyncio.sleep(60)
        return reply(error_code="SAFETY", error_message="no")

    cases = [
        FluentCase("wait", id="a", expected_trajectory=[], timeout_s=0.5),
        FluentCase("hi", id="b", expected_trajectory=[]),
    ]
    suite = FluentEvalSuite("s", desk(answer=slow), cases)
    first, second = suite.run_sync(engine=engine).outcomes
    assert (first.status, second.status) == (Status.ERROR, Status.ERROR)
    assert "longer than 0.5 s" in str(first.error)
    assert "SAFETY" in str(second.error)


# --- what ADK's service does by itself -----------------------------------------------------------


async def by_adk(agent: Any, case: Any, *metrics: str) -> Any:
    """ADK's result of a case, without anything of ours."""
    from google.adk.evaluation import base_eval_service as base
    from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
    from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
    from google.adk.evaluation.local_eval_service import LocalEvalService

    sets = InMemoryEvalSetsManager()
    sets.create_eval_set(app_name="app", eval_set_id="s")
    sets.add_eval_case("app", "s", case)
    service = LocalEvalService(root_agent=agent, eval_sets_manager=sets)
    request = base.InferenceRequest(
        app_name="app", eval_set_id="s", inference_config=base.InferenceConfig()
    )
    inferences = [each async for each in service.perform_inference(request)]
    asked = [
        EvalMetric(metric_name=name, threshold=1.0, criterion=BaseCriterion(threshold=1.0))
        for name in metrics
    ]
    config = base.EvaluateConfig(eval_metrics=asked)
    evaluation = base.EvaluateRequest(inference_results=inferences, evaluate_config=config)
    [result] = [each async for each in service.evaluate(evaluation)]
    return result


@LOCAL
@pytest.mark.filterwarnings("ignore")
async def test_adk_itself_passes_what_cannot_pass_here() -> None:
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.evaluation.eval_set import EvalSet

    def agent(says: Any = "good morning") -> LlmAgent:
        return LlmAgent(name="desk", model=ScriptedModel(default=says), output_key="answer")

    asserted = FluentCase(
        "hi", id="a", expected_trajectory=[], state_assertions={"answer": "it is lost"}
    )
    [case] = FluentEvalSuite("s", agent(), [asserted]).to_eval_set().eval_cases
    # an unknown metric is left out, and state is not looked at
    result = await by_adk(agent(), case, "tool_trajectory_avg_score", "no_such_metric")
    assert result.final_eval_status.name == "PASSED"
    suite = FluentEvalSuite.from_eval_set(EvalSet(eval_set_id="s", eval_cases=[case]), agent())
    [outcome] = (await suite.run(engine="local")).outcomes
    assert outcome.status is Status.FAILED
    assert "it is lost" in outcome.reasons[0]
    suite.metrics = ("no_such_metric",)
    with pytest.raises(EvalError, match="unknown metric"):
        suite.check()

    def broken(_: Any) -> Any:
        raise ValueError("no model")

    # the reason of a failed run is not in its result
    result = await by_adk(agent(broken), case, "tool_trajectory_avg_score")
    assert (result.final_eval_status.name, result.overall_eval_metric_results) == ("FAILED", [])
    assert "no model" not in result.model_dump_json()
