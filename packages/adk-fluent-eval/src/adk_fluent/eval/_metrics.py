"""Metrics by name: ADK's, and the checks of a case's own expectations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class PrebuiltMetrics(StrEnum):
    """The metrics of ADK, by ADK's names; the table in the docs says what each needs."""

    TOOL_TRAJECTORY_AVG_SCORE = "tool_trajectory_avg_score"
    RESPONSE_MATCH_SCORE = "response_match_score"
    RESPONSE_EVALUATION_SCORE = "response_evaluation_score"
    SAFETY_V1 = "safety_v1"
    FINAL_RESPONSE_MATCH_V2 = "final_response_match_v2"
    RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1 = "rubric_based_final_response_quality_v1"
    HALLUCINATIONS_V1 = "hallucinations_v1"
    RUBRIC_BASED_TOOL_USE_QUALITY_V1 = "rubric_based_tool_use_quality_v1"
    PER_TURN_USER_SIMULATOR_QUALITY_V1 = "per_turn_user_simulator_quality_v1"
    MULTI_TURN_TASK_SUCCESS_V1 = "multi_turn_task_success_v1"
    MULTI_TURN_TRAJECTORY_QUALITY_V1 = "multi_turn_trajectory_quality_v1"
    MULTI_TURN_TOOL_USE_QUALITY_V1 = "multi_turn_tool_use_quality_v1"
    RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1 = "rubric_based_multi_turn_trajectory_quality_v1"
    TOOL_CALL_COUNT_V1 = "tool_call_count_v1"
    INFERENCE_CALL_COUNT_V1 = "inference_call_count_v1"
    TOKEN_USAGE_V1 = "token_usage_v1"  # noqa: S105  # not a secret
    INVOCATION_DURATION_V1 = "invocation_duration_v1"


#: Checks of a case's own expectations, in the order of reports.
TRAJECTORY: Final = "tool_trajectory_avg_score"  # ADK's name: it is the same metric
RESPONSE: Final = "adk_fluent_response"
STATE: Final = "adk_fluent_state"
BUDGET: Final = "adk_fluent_budget"
STATUS: Final = "adk_fluent_status"
ANSWERS: Final = "adk_fluent_answers"
CHECKS: Final = (TRAJECTORY, RESPONSE, STATE, BUDGET, STATUS, ANSWERS)
MATCH: Final = "response_match_score"

#: What computes a metric: this package, an evaluator of ADK's with a model, or Google Cloud.
By = Literal["own", "judge", "cloud"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of ADK.

    Attributes:
        name: ADK's name.
        threshold: The default threshold; None for an informational metric.
        unit: The unit of its score; "" is a score from 0 to 1.
        needs: The field that a case must have for it; "" is none.
        by: What computes it.
        evaluator: ADK's evaluator, as ``module:Class`` below ``google.adk.evaluation``.
        since: The first major version of google-adk that has it.
    """

    name: str
    threshold: float | None = None
    unit: str = ""
    needs: str = ""
    by: By = "own"
    evaluator: str = ""
    since: int = 1


_P = PrebuiltMetrics


def _judged(name: str, needs: str, evaluator: str, since: int = 1) -> Metric:
    """A metric that a model judges; its evaluator is in a module of its name, or says where."""
    place = evaluator if ":" in evaluator else f"{name}:{evaluator}"
    return Metric(str(name), 0.8, "", needs, "judge", place, since)


def _cloud(name: str, threshold: float, unit: str, evaluator: str, since: int = 1) -> Metric:
    """A metric that Google Cloud computes."""
    return Metric(str(name), threshold, unit, "", "cloud", evaluator, since)


_ALL: Final = (
    Metric(TRAJECTORY, 1.0, needs="expected_trajectory"),
    Metric(MATCH, 0.8, needs="reference_response"),
    _judged(
        *(_P.RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1, "rubrics"),
        "RubricBasedFinalResponseQualityV1Evaluator",
    ),
    _judged(_P.RUBRIC_BASED_TOOL_USE_QUALITY_V1, "rubrics", "RubricBasedToolUseV1Evaluator"),
    _judged(
        *(_P.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1, "rubrics"),
        "rubric_based_multi_turn_trajectory_evaluator:RubricBasedMultiTurnTrajectoryEvaluator",
        since=2,
    ),
    _judged(_P.FINAL_RESPONSE_MATCH_V2, "reference_response", "FinalResponseMatchV2Evaluator"),
    _judged(_P.HALLUCINATIONS_V1, "", "HallucinationsV1Evaluator"),
    _judged(
        *(_P.PER_TURN_USER_SIMULATOR_QUALITY_V1, "simulation"),
        "simulation.per_turn_user_simulator_quality_v1:PerTurnUserSimulatorQualityV1",
    ),
    _cloud(_P.RESPONSE_EVALUATION_SCORE, 3.5, "1-5", "response_evaluator:ResponseEvaluator"),
    _cloud(_P.SAFETY_V1, 0.8, "", "safety_evaluator:SafetyEvaluatorV1"),
    *(
        _cloud(f"multi_turn_{name}_v1", 0.5, "", f"multi_turn_{name}_evaluator:{evaluator}", 2)
        for name, evaluator in (
            ("task_success", "MultiTurnTaskSuccessV1Evaluator"),
            ("trajectory_quality", "MultiTurnTrajectoryQualityV1Evaluator"),
            ("tool_use_quality", "MultiTurnToolUseQualityV1Evaluator"),
        )
    ),
    Metric(_P.TOOL_CALL_COUNT_V1.value, unit="calls"),
    Metric(_P.INFERENCE_CALL_COUNT_V1.value, unit="calls"),
    Metric(_P.TOKEN_USAGE_V1.value, unit="tokens"),
    Metric(_P.INVOCATION_DURATION_V1.value, unit="s"),
)
METRICS: Final[dict[str, Metric]] = {each.name: each for each in _ALL}
