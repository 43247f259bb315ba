"""Metrics by name: what each needs, and who computes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class PrebuiltMetrics(StrEnum):
    """The metrics of ADK, by ADK's names."""

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
    TOKEN_USAGE_V1 = "token_usage_v1"  # noqa: S105  # no secret
    INVOCATION_DURATION_V1 = "invocation_duration_v1"


#: How often a judge is asked about each turn, where nobody says: ADK's own default.
JUDGE_SAMPLES: Final = 5
#: Checks of a case's own expectations, in the order in which they are told.
TRAJECTORY: Final = "tool_trajectory_avg_score"  # ADK's name: there is one such check, not two
RESPONSE: Final = "adk_fluent_response"
STATE: Final = "adk_fluent_state"
BUDGET: Final = "adk_fluent_budget"

#: Who computes a metric: this package, an evaluator of ADK's, or Google Cloud through one.
By = Literal["own", "judge", "cloud"]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is known of one of ADK's metrics.

    Attributes:
        name: ADK's name.
        by: Who computes it: ``own`` this package, ``judge`` an evaluator of ADK's with a model,
            ``cloud`` Google Cloud.
        evaluator: Where that evaluator is, as ``module:Class``; empty for ``own``.
        criterion: ADK's class of its criterion.
        threshold: What it has to reach where the suite does not say.
        since: The first version of google-adk that has it.
        needs: What a case must have for it: ``reference``, ``rubrics``, ``simulation``,
            ``trajectory``, or "".
        informational: It never decides anything.
        unit: What it is counted in; "" is 0 to 1.
    """

    name: str
    by: By
    evaluator: str = ""
    criterion: str = "BaseCriterion"
    threshold: float = 0.5
    since: tuple[int, int] = (1, 25)
    needs: str = ""
    informational: bool = False
    unit: str = ""


_E = "google.adk.evaluation."
#: The oldest google-adk that is supported.
_OLDEST: Final = (1, 25)
_P = PrebuiltMetrics

METRICS: Final[dict[str, Metric]] = {
    each.name: each
    for each in (
        Metric(_P.TOOL_TRAJECTORY_AVG_SCORE.value, "own", threshold=1.0, needs="trajectory"),
        Metric(_P.RESPONSE_MATCH_SCORE.value, "own", threshold=0.8, needs="reference"),
        Metric(
            _P.RESPONSE_EVALUATION_SCORE.value,
            "cloud",
            f"{_E}response_evaluator:ResponseEvaluator",
            threshold=3.5,
            unit="1-5",
        ),
        Metric(
            _P.SAFETY_V1.value, "cloud", f"{_E}safety_evaluator:SafetyEvaluatorV1", threshold=0.8
        ),
        Metric(
            _P.FINAL_RESPONSE_MATCH_V2.value,
            "judge",
            f"{_E}final_response_match_v2:FinalResponseMatchV2Evaluator",
            "LlmAsAJudgeCriterion",
            threshold=0.8,
            needs="reference",
        ),
        Metric(
            _P.RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1.value,
            "judge",
            f"{_E}rubric_based_final_response_quality_v1:RubricBasedFinalResponseQualityV1Evaluator",
            "RubricsBasedCriterion",
            threshold=0.8,
            needs="rubrics",
        ),
        Metric(
            _P.HALLUCINATIONS_V1.value,
            "judge",
            f"{_E}hallucinations_v1:HallucinationsV1Evaluator",
            "HallucinationsCriterion",
            threshold=0.8,
        ),
        Metric(
            _P.RUBRIC_BASED_TOOL_USE_QUALITY_V1.value,
            "judge",
            f"{_E}rubric_based_tool_use_quality_v1:RubricBasedToolUseV1Evaluator",
            "RubricsBasedCriterion",
            threshold=0.8,
            needs="rubrics",
        ),
        Metric(
            _P.PER_TURN_USER_SIMULATOR_QUALITY_V1.value,
            "judge",
            f"{_E}simulation.per_turn_user_simulator_quality_v1:PerTurnUserSimulatorQualityV1",
            "LlmBackedUserSimulatorCriterion",
            threshold=0.8,
            needs="simulation",
        ),
        Metric(
            _P.MULTI_TURN_TASK_SUCCESS_V1.value,
            "cloud",
            f"{_E}multi_turn_task_success_evaluator:MultiTurnTaskSuccessV1Evaluator",
            since=(2, 0),
        ),
        Metric(
            _P.MULTI_TURN_TRAJECTORY_QUALITY_V1.value,
            "cloud",
            f"{_E}multi_turn_trajectory_quality_evaluator:MultiTurnTrajectoryQualityV1Evaluator",
            since=(2, 0),
        ),
        Metric(
            _P.MULTI_TURN_TOOL_USE_QUALITY_V1.value,
            "cloud",
            f"{_E}multi_turn_tool_use_quality_evaluator:MultiTurnToolUseQualityV1Evaluator",
            since=(2, 0),
        ),
        Metric(
            _P.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1.value,
            "judge",
            f"{_E}rubric_based_multi_turn_trajectory_evaluator:RubricBasedMultiTurnTrajectoryEvaluator",
            "RubricsBasedCriterion",
            threshold=0.8,
            since=(2, 0),
            needs="rubrics",
        ),
        Metric(_P.TOOL_CALL_COUNT_V1.value, "own", informational=True, unit="calls"),
        Metric(_P.INFERENCE_CALL_COUNT_V1.value, "own", informational=True, unit="calls"),
        Metric(_P.TOKEN_USAGE_V1.value, "own", informational=True, unit="tokens"),
        Metric(_P.INVOCATION_DURATION_V1.value, "own", informational=True, unit="s"),
    )
}

_HEAD: Final = (
    "Metric",
    "Alone",
    "With `[adk]`",
    "Google Cloud",
    "Judge model",
    "A case has",
    "Passes from",
    "google-adk",
)
_NEEDS: Final = {
    "": "",
    "reference": "`reference_response`",
    "rubrics": "`rubrics`",
    "simulation": "`simulation`",
    "trajectory": "`expected_trajectory`",
}


def metric_table() -> str:
    """The metrics as a table in Markdown: where each is computed, and what that takes."""
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, METRICS.values())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(metric: Metric) -> tuple[str, ...]:
    in_cloud = metric.by == "cloud"
    threshold = "informs" if metric.informational else f"{metric.threshold:g}"
    if metric.unit and not metric.informational:
        threshold += f" of {metric.unit}"
    return (
        f"`{metric.name}`",
        "" if in_cloud else "yes",
        "yes",
        "needed" if in_cloud else "",
        "needed" if metric.by == "judge" else "",
        _NEEDS[metric.needs],
        threshold,
        ".".join(map(str, metric.since)) if metric.since > _OLDEST else "",
    )
