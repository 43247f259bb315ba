"""Metrics as ADK's services want them, and their results as ours."""

from __future__ import annotations

import warnings
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.evaluator import EvaluationResult, Evaluator, PerInvocationResult
from google.genai import types

from adk_fluent.eval._outcome import MetricScore, MetricStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from adk_fluent.eval._cases._case import Rubric as FluentRubric
    from adk_fluent.eval._metrics import Metric

#: google-adk 1.x has no word for a metric that only informs.
_INFORMS: EvalStatus = getattr(EvalStatus, "INFORMATIONAL", EvalStatus.NOT_EVALUATED)

TO_ADK: dict[MetricStatus, EvalStatus] = {
    MetricStatus.PASSED: EvalStatus.PASSED,
    MetricStatus.FAILED: EvalStatus.FAILED,
    MetricStatus.NOT_EVALUATED: EvalStatus.NOT_EVALUATED,
    MetricStatus.INFORMATIONAL: _INFORMS,
}


class OwnEvaluator(Evaluator):
    """A metric that is computed here, as an evaluator of ADK's.

    Args:
        score: Gives the score.
        told: Where it is kept, by name: ADK has no place for reasons and findings.
    """

    def __init__(
        self,
        score: Callable[[], MetricScore | Awaitable[MetricScore]],
        told: dict[str, MetricScore],
    ) -> None:
        self._score = score
        self._told = told

    async def evaluate_invocations(
        self,
        actual_invocations: list[Invocation],
        expected_invocations: list[Invocation] | None = None,
        conversation_scenario: Any = None,
    ) -> EvaluationResult:
        """The score, also as that of each turn that has none of its own."""
        made = self._score()
        score = await made if isawaitable(made) else made
        self._told[score.name] = score
        status = TO_ADK[score.status]
        if score.status is MetricStatus.NOT_EVALUATED:
            return EvaluationResult(overall_eval_status=status)
        turns = score.turns if len(score.turns) == len(actual_invocations) else []
        return EvaluationResult(
            overall_score=score.score,
            overall_eval_status=status,
            per_invocation_results=[
                PerInvocationResult(
                    actual_invocation=each,
                    expected_invocation=expected_invocations[at]
                    if expected_invocations and at < len(expected_invocations)
                    else None,
                    score=turns[at] if turns else score.score,
                    eval_status=_of_turn(score, turns[at]) if turns else status,
                )
                for at, each in enumerate(actual_invocations)
            ],
        )


def _of_turn(score: MetricScore, turn: float | None) -> EvalStatus:
    if score.threshold is None:
        return _INFORMS
    if turn is None:
        return EvalStatus.NOT_EVALUATED
    ok = turn <= score.threshold if score.lower_is_better else turn >= score.threshold
    return EvalStatus.PASSED if ok else EvalStatus.FAILED


def adk_evaluator(metric: Metric, wanted: EvalMetric) -> Evaluator:
    """ADK's evaluator of a metric."""
    module, _, name = metric.evaluator.partition(":")
    with warnings.catch_warnings():  # who asks for a metric has chosen it
        warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")
        return getattr(import_module(module), name)(eval_metric=wanted)


def eval_metric(
    name: str,
    threshold: float | None,
    metric: Metric | None = None,
    *,
    judge: str = "",
    samples: int = 1,
    rubrics: Sequence[Rubric] = (),
    stop_signal: str = "",
) -> EvalMetric:
    """A metric as ADK is asked for it: with threshold and criterion, since versions read either.

    Args:
        name: The metric.
        threshold: What it has to reach; None for one that only informs.
        metric: What is known of one of ADK's.
        judge: The name of the model that judges.
        samples: How often it is asked for each turn.
        rubrics: What it looks for.
        stop_signal: What a user who is played ends with.
    """
    if threshold is None:
        return EvalMetric(metric_name=name, criterion=None)
    kind: Any = getattr(eval_metrics, metric.criterion if metric else "BaseCriterion")
    fields: dict[str, Any] = {"threshold": threshold}
    if judge:
        options: dict[str, Any] = {
            "judge_model": judge,
            "judge_model_config": types.GenerateContentConfig(),  # google-adk 1.25 fails without
            "num_samples": samples,
        }
        if "parallelism_limit" in eval_metrics.JudgeModelOptions.model_fields:
            options["parallelism_limit"] = samples
        fields["judge_model_options"] = eval_metrics.JudgeModelOptions(**options)
    if rubrics:
        fields["rubrics"] = list(rubrics)
    if stop_signal and "stop_signal" in kind.model_fields:
        fields["stop_signal"] = stop_signal
    return EvalMetric(metric_name=name, threshold=threshold, criterion=kind(**fields))


def adk_rubrics(given: Sequence[str | FluentRubric], tail: str) -> list[Rubric]:
    """Rubrics of a case or a turn as ADK's.

    Args:
        given: What a judge looks for.
        tail: What ids end with, so that those of turns differ from others.
    """
    made: list[Rubric] = []
    for number, each in enumerate(given, 1):
        text, id = (each, "") if isinstance(each, str) else (each.text, each.id)
        content = RubricContent(text_property=text)
        made.append(Rubric(rubric_id=f"{id or f'rubric_{number}'}{tail}", rubric_content=content))
    return made


def as_expected(actual: Invocation, reference: str) -> Invocation:
    """What is expected of a turn."""
    answer = types.Content(role="model", parts=[types.Part(text=reference)])
    return Invocation(
        invocation_id=actual.invocation_id,
        user_content=actual.user_content,
        final_response=answer,
    )
