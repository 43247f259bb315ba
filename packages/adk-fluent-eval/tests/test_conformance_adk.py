"""The engine `local` beside `light`: the same statuses and scores, and ADK's defects closed."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from eval_desk import answer, desk, judge, run
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
from adk_fluent.testing import Call, ScriptedModel, reply

MAJOR = int(adk_version.partition(".")[0])
HAS_EXTRA = all(find_spec(name) for name in ("pandas", "rouge_score", "vertexai"))
LOCAL = pytest.mark.skipif(not HAS_EXTRA, reason="LocalEvalService needs google-adk[eval]")

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
    FluentCase("my order", id="status", expected_status="completed"),
    FluentCase("my order", id="wrong status", expected_status="escalated"),
    FluentCase("my order", id="rubric", rubrics=["It is polite."]),
    FluentCase(["good day", "break my order"], id="breaks", expected_trajectory=[]),
    FluentCase("my order", id="later", max_tokens=1, skip="later"),
    FluentCase("my order", id="x", expected_trajectory=[], xfail="known"),
]


def short(actual_response: str) -> float:
    return 1.0 if len(actual_response) < 20 else 0.0


#: What ADK's service of 1.x cannot do is left out there.
BARE = MAJOR < 2
RUN = [each for each in CASES if not (BARE and (each.mock_tool_outputs or each.state_assertions))]


def suite(**more: Any) -> FluentEvalSuite:
    return FluentEvalSuite(
        "s",
        desk(),
        RUN,
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


def never(_: Any) -> str:
    raise AssertionError


@pytest.mark.skipif(HAS_EXTRA, reason="it can be used here")
def test_local_is_refused_without_the_extra_before_any_model_call() -> None:
    with pytest.raises(EvalError, match=r"adk-fluent-eval\[adk\]"):
        FluentEvalSuite("s", desk(answer=never), CASES[:1]).run_sync(engine="local")


@pytest.mark.skipif(not (HAS_EXTRA and BARE), reason="LocalEvalService of google-adk 2.x can")
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"mock_tool_outputs": {"look_up": 1}}, "tools cannot be mocked"),
        ({"state_assertions": {"answer": "x"}}, "state cannot be asserted"),
        ({"input": [Turn("a", state_assertions={"b": 1}), "c"]}, "state cannot be asserted"),
    ],
)
def test_local_refuses_on_1_x_mocks_and_state(fields: Any, says: str) -> None:
    given: dict[str, Any] = {"input": "hi", "expected_trajectory": [], **fields}
    case = FluentCase(**given)
    suite = FluentEvalSuite("s", desk(answer=never), [case])
    with pytest.raises(EvalError, match=says) as caught:
        suite.run_sync(engine="local")
    assert "runs the agent alone" in str(caught.value)


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
def test_a_model_that_fails_in_the_middle_loses_nothing_before(engine: Any) -> None:
    def broken(asked: Any) -> Any:
        if asked.number == 3:  # after the tool of the second turn
            raise ConnectionError("reset")
        return answer(asked)

    case = FluentCase(["my order", "my order", "bye"], max_tokens=10_000)
    made = run(case, desk(answer=broken), engine=engine)
    assert made.status is Status.ERROR
    assert "reset" in made.reasons[0]
    first, second = made.turns
    assert first.response
    assert [len(turn.tool_uses) for turn in (first, second)] == [1, 1]
    assert not second.response
    assert made.tokens.total


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
