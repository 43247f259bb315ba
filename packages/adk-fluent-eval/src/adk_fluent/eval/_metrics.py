"""Metrics by name: ADK's, and the checks of a case's own expectations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class PrebuiltMetrics(StrEnum):
    """The metrics of ADK, by ADK's names.

    The engine ``light`` computes the tool trajectory, ROUGE-1 (``response_match_score``) and the
    four informational counts. The others need ADK's own evaluators and are refused before any
    model call.
    """

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
CHECKS: Final = (TRAJECTORY, RESPONSE, STATE, BUDGET)
MATCH: Final = "response_match_score"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that the engine ``light`` computes.

    Attributes:
        name: ADK's name.
        threshold: The default threshold; None for an informational metric.
        unit: The unit of its score; "" is a score from 0 to 1.
    """

    name: str
    threshold: float | None = None
    unit: str = ""


_P = PrebuiltMetrics
METRICS: Final[dict[str, Metric]] = {
    each.name: each
    for each in (
        Metric(TRAJECTORY, 1.0),
        Metric(MATCH, 0.8),
        Metric(_P.TOOL_CALL_COUNT_V1.value, unit="calls"),
        Metric(_P.INFERENCE_CALL_COUNT_V1.value, unit="calls"),
        Metric(_P.TOKEN_USAGE_V1.value, unit="tokens"),
        Metric(_P.INVOCATION_DURATION_V1.value, unit="s"),
    )
}
_CLOUD: Final = {
    _P.RESPONSE_EVALUATION_SCORE,
    _P.SAFETY_V1,
    _P.MULTI_TURN_TASK_SUCCESS_V1,
    _P.MULTI_TURN_TRAJECTORY_QUALITY_V1,
    _P.MULTI_TURN_TOOL_USE_QUALITY_V1,
}
#: Metrics that need ADK's own evaluators, and what else those need.
UNAVAILABLE: Final[dict[str, str]] = {
    each.value: "Google Cloud" if each in _CLOUD else "a judge model"
    for each in _P
    if each.value not in METRICS
}
