"""Metrics that Google Cloud computes, through evaluators of ADK's."""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.evaluator import EvaluationResult, Evaluator

from adk_fluent.eval._checks._checks import judged
from adk_fluent.eval._scoring._metrics_adk import adk_evaluator, as_expected

if TYPE_CHECKING:
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric

    from adk_fluent.eval._metrics import Metric
    from adk_fluent.eval._outcome import MetricScore
    from adk_fluent.eval._scoring._wanted import Wanted

#: What ADK says of rubrics that it took the mean of, in the place of a reason.
_NO_REASON: Final = "This is an aggregated score"


class CloudEvaluator(Evaluator):
    """A metric that Google Cloud computes, through ADK's evaluator of it.

    Args:
        wanted: The metric.
        asked: The same as ADK is asked for it.
        told: Where the score is kept, by name.
    """

    def __init__(self, wanted: Wanted, asked: EvalMetric, told: dict[str, MetricScore]) -> None:
        self._wanted = wanted
        self._asked = asked
        self._told = told

    async def evaluate_invocations(
        self,
        actual_invocations: list[Invocation],
        expected_invocations: list[Invocation] | None = None,
        conversation_scenario: Any = None,
    ) -> EvaluationResult:
        """The score, asked for in a thread: ADK's client waits for the network."""
        evaluator = adk_evaluator(cast("Metric", self._wanted.metric), self._asked)
        # ADK asks for what is expected also where nothing is compared, as of a played user's turns
        expected = expected_invocations or [as_expected(each, "") for each in actual_invocations]
        found: Any = await asyncio.to_thread(
            evaluator.evaluate_invocations, actual_invocations, expected, conversation_scenario
        )
        result: EvaluationResult = await found if isawaitable(found) else found
        turns = result.per_invocation_results
        rubrics = list(result.overall_rubric_scores or ())
        if not any(_has_reason(each) for each in rubrics):
            rubrics = [rubric for each in turns for rubric in each.rubric_scores or ()]
        reason = "; ".join(
            f"{each.rubric_id}: {each.rationale}" for each in rubrics if _has_reason(each)
        )
        status = result.overall_eval_status
        score = result.overall_score if status != EvalStatus.NOT_EVALUATED else None
        self._told[self._wanted.name] = judged(
            self._wanted.name,
            score,
            self._wanted.threshold or 0.0,
            reason=reason or ("Google Cloud gave no score" if score is None else ""),
            turns=[each.score for each in turns],
        )
        return result


def _has_reason(rubric: Any) -> bool:
    return bool(rubric.rationale) and not rubric.rationale.startswith(_NO_REASON)
