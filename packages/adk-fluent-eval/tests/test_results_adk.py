from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.evaluation.eval_case import get_all_tool_calls, get_all_tool_responses
from google.adk.evaluation.eval_metrics import EvalMetricResult, EvalStatus
from google.adk.evaluation.eval_result import EvalSetResult
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

from adk_fluent.eval import (
    CaseOutcome,
    EvalError,
    EvalFileError,
    Finding,
    FluentCase,
    FluentEvalReport,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._files import _results_adk
from adk_fluent.eval._files._results_adk import (
    case_results,
    save_with,
    to_eval_set_result,
    write_eval_set_result,
)

if TYPE_CHECKING:
    from pathlib import Path

    from google.adk.evaluation.eval_rubrics import RubricScore

pytestmark = pytest.mark.adk


def _turn() -> TurnOutcome:
    use = ToolUse("look", {"order": "7"}, {"status": "sent"}, agent="desk", call_id="c1")
    return TurnOutcome(
        "where is 7?",
        "On its way.",
        [
            Step("desk", "Let me see.", thought=True),
            Step("desk", tool=use),
            Step("clerk", "On its way.", inside="look"),  # which ADK has nowhere
            Step("clerk", tool=ToolUse("inner"), inside="look"),
            Step("desk", tool=ToolUse("note", error="ValueError: full")),
            Step("desk", state={"intent": "order"}),
            Step("desk", "On its way."),
        ],
        duration_s=1.5,
        invocation_id="i1",
    )


def _outcome(id: str = "a", run: int = 1, **fields: Any) -> CaseOutcome:
    scores = [
        MetricScore(
            "tool_trajectory_avg_score",
            MetricStatus.FAILED,
            0.0,
            1.0,
            findings=[Finding("tools of turn 1", ok=False, reason="look was not expected")],
            turns=[0.0],
        ),
        MetricScore("judge", MetricStatus.PASSED, 0.9, 0.5, reason="It is kind."),
        MetricScore("latency", MetricStatus.PASSED, 1.0, 2.0, lower_is_better=True, turns=[1.0]),
        MetricScore("token_usage_v1", MetricStatus.INFORMATIONAL, 30.0, unit="tokens", turns=[30]),
        MetricScore("safety_v1", MetricStatus.NOT_EVALUATED, None, 0.8, turns=[None]),
    ]
    given: dict[str, Any] = {
        "status": Status.FAILED,
        "scores": scores,
        "turns": [_turn()],
        "state": {"intent": "order"},
        "session_id": "session-1",
        "user_id": "user-1",
        **fields,
    }
    return CaseOutcome(id, run, **given)


def _report(*outcomes: CaseOutcome, **fields: Any) -> FluentEvalReport:
    return FluentEvalReport(outcomes, suite="billing v2", **fields)


def _why(result: EvalMetricResult) -> RubricScore:
    """The one reason of a result."""
    scores = result.details.rubric_scores
    assert scores is not None
    assert len(scores) == 1
    return scores[0]


INFORMATIONAL = getattr(EvalStatus, "INFORMATIONAL", EvalStatus.NOT_EVALUATED)


def test_a_run_as_adk_has_it() -> None:
    case = FluentCase("where is 7?", id="a", expected_trajectory=["note"])
    (made,) = case_results(_report(_outcome(), cases=[case]))
    assert (made.eval_set_id, made.eval_id) == ("billing_v2", "a")
    assert made.final_eval_status is EvalStatus.FAILED
    assert (made.session_id, made.user_id) == ("session-1", "user-1")
    assert [
        (each.metric_name, each.score, each.threshold, each.eval_status)
        for each in made.overall_eval_metric_results
    ] == [
        ("tool_trajectory_avg_score", 0.0, 1.0, EvalStatus.FAILED),
        ("judge", 0.9, 0.5, EvalStatus.PASSED),
        ("latency", 1.0, 2.0, EvalStatus.PASSED),
        ("token_usage_v1", 30.0, None, INFORMATIONAL),
        ("safety_v1", None, 0.8, EvalStatus.NOT_EVALUATED),
    ]
    trajectory, judge, *_ = made.overall_eval_metric_results
    assert trajectory.criterion is not None  # google-adk 1.25 reads one, 2.x the other
    assert trajectory.criterion.threshold == 1.0
    why = _why(trajectory)
    assert (why.rubric_id, why.rationale, why.score) == (
        "tools of turn 1",
        "look was not expected",
        0.0,
    )
    why = _why(judge)
    assert why.rationale == "It is kind."


def test_the_turns_of_a_run() -> None:
    case = FluentCase("where is 7?", id="a", expected_trajectory=["note"])
    (made,) = case_results(_report(_outcome(), cases=[case]))
    (turn,) = made.eval_metric_result_per_invocation
    actual = turn.actual_invocation
    assert actual.invocation_id == "i1"
    assert actual.final_response is not None
    assert [part.text for part in actual.final_response.parts or ()] == ["On its way."]
    assert [each.name for each in get_all_tool_calls(actual.intermediate_data)] == ["look", "note"]
    assert [each.response for each in get_all_tool_responses(actual.intermediate_data)] == [
        {"status": "sent"},
        {"error": "ValueError: full"},
    ]
    assert turn.expected_invocation is not None
    expected = get_all_tool_calls(turn.expected_invocation.intermediate_data)
    assert [each.name for each in expected] == ["note"]
    assert [
        (each.metric_name, each.score, each.eval_status) for each in turn.eval_metric_results
    ] == [
        ("tool_trajectory_avg_score", 0.0, EvalStatus.FAILED),
        ("latency", 1.0, EvalStatus.PASSED),
        ("token_usage_v1", 30.0, INFORMATIONAL),
        ("safety_v1", None, EvalStatus.NOT_EVALUATED),
    ]
    session = made.session_details
    assert session is not None
    assert session.state == {"intent": "order"}
    assert [event.author for event in session.events] == ["user", *["desk"] * 7]
    assert session.events[-1].is_final_response()
    deltas = [event.actions.state_delta for event in session.events if event.actions.state_delta]
    assert deltas == [{"intent": "order"}]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.PASSED, EvalStatus.PASSED),
        (Status.FAILED, EvalStatus.FAILED),
        (Status.ERROR, EvalStatus.FAILED),
        (Status.SKIPPED, EvalStatus.NOT_EVALUATED),
        (Status.XFAILED, EvalStatus.NOT_EVALUATED),
    ],
)
def test_statuses(status: Status, expected: EvalStatus) -> None:
    (made,) = case_results(_report(_outcome(status=status)))
    assert made.final_eval_status is expected


def test_why_a_run_failed_is_kept() -> None:
    error = CaseOutcome("a", status=Status.ERROR, error="ValueError: the model is gone")
    skipped = CaseOutcome("b", status=Status.SKIPPED, note="not yet")
    failed, left_out = case_results(_report(error, skipped))
    (told,) = failed.overall_eval_metric_results
    assert told.eval_status is EvalStatus.NOT_EVALUATED
    why = _why(told)
    assert why.rationale == "ValueError: the model is gone"
    (told,) = left_out.overall_eval_metric_results
    why = _why(told)
    assert (why.rubric_id, why.rationale) == ("skipped", "not yet")


def test_turns_without_expectations() -> None:
    outcome = _outcome(turns=[_turn(), TurnOutcome("[image/png]", "", [Step("d", error="C: m")])])
    (made,) = case_results(_report(outcome, cases=[FluentCase("x", id="a")]))
    one, two = made.eval_metric_result_per_invocation
    assert one.expected_invocation is not None
    assert two.expected_invocation is None
    assert two.actual_invocation.final_response is None
    assert made.session_details is not None
    last = made.session_details.events[-1]
    assert (last.error_code, last.error_message) == ("C", "m")


def test_runs_have_the_ids_of_an_exported_set() -> None:
    runs = [_outcome("a", 1), _outcome("a", 2), _outcome("a__run2", 1), _outcome("a__run2", 2)]
    report = _report(*runs)
    assert [each.eval_id for each in case_results(report)] == ["a", "a", "a__run2", "a__run2"]
    made = to_eval_set_result(report, "desk")
    ids = [each.eval_id for each in made.eval_case_results]
    assert ids == ["a", "a__run2_", "a__run2", "a__run2__run2"]
    assert made.eval_set_id == "billing_v2"
    assert EvalSetResult.model_validate_json(made.model_dump_json()) == made


def test_adk_lists_and_reads_what_we_write(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    report = _report(_outcome("a", 1), _outcome("a", 2))
    (file,) = write_eval_set_result(report, tmp_path, "desk")
    assert file.parent == tmp_path / "desk" / ".adk" / "eval_history"
    assert file.name.endswith(".evalset_result.json")
    manager = LocalEvalSetResultsManager(str(tmp_path))
    (name,) = manager.list_eval_set_results("desk")
    made = manager.get_eval_set_result("desk", name)
    assert made.eval_case_results == to_eval_set_result(report, "desk").eval_case_results
    assert not list((tmp_path / "desk" / ".adk").glob(".eval-*"))
    write_eval_set_result(report, tmp_path, "desk")
    assert len(manager.list_eval_set_results("desk")) == 2


def test_any_manager_of_results_will_do(tmp_path: Path) -> None:
    manager = LocalEvalSetResultsManager(str(tmp_path))
    save_with(manager, _report(_outcome()), "desk")
    assert len(manager.list_eval_set_results("desk")) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc"])
def test_apps_that_are_no_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvalError, match="named by its folder"):
        write_eval_set_result(_report(_outcome()), tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="no folder of this agent"):
        write_eval_set_result(_report(_outcome()), tmp_path, "desk")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(LocalEvalSetResultsManager):
        def save_eval_set_result(self, *args: Any, **fields: Any) -> None:
            super().save_eval_set_result(*args, **fields)
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(_results_adk, "LocalEvalSetResultsManager", Full)
    (tmp_path / "desk").mkdir()
    with pytest.raises(EvalFileError, match="No space left"):
        write_eval_set_result(_report(_outcome()), tmp_path, "desk")
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
