"""The metrics of one run of a case, on their way to ADK's service and back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.eval._scoring._cloud_adk import CloudEvaluator
from adk_fluent.eval._scoring._judged_adk import JudgedEvaluator
from adk_fluent.eval._scoring._judges_adk import Hearing
from adk_fluent.eval._scoring._metrics_adk import (
    OwnEvaluator,
    adk_rubrics,
    eval_metric,
)
from adk_fluent.eval._scoring._own import is_own, own_score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.evaluation.eval_metrics import EvalMetric
    from google.adk.evaluation.evaluator import Evaluator
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._checks._observed import Observed
    from adk_fluent.eval._running._models_adk import Answers
    from adk_fluent.eval._scoring._wanted import Wanted


class Scoring:
    """The metrics of one run of a case.

    Args:
        wanted: The metrics.
        seen: What is observed.
        judge: The model that judges; None where none of the metrics needs one.
        samples: How often it is asked for each turn.
        answers: Where answers of models are kept.
        played: Who plays the user.
        errors: Where is noted what the judge's model raised.

    Attributes:
        wants_requests: Whether a judge may want to know what models were asked.
    """

    def __init__(
        self,
        wanted: Sequence[Wanted],
        seen: Observed,
        *,
        judge: BaseLlm | None,
        samples: int,
        answers: Answers,
        played: UserSimulation | None,
        errors: list[BaseException],
    ) -> None:
        self._wanted = {each.name: each for each in wanted}
        self._seen = seen
        self._judge = judge
        self._samples = samples
        self._answers = answers
        self._errors = errors
        self._stop_signal = played.stop_signal if played else ""
        self._told: dict[str, MetricScore] = {}
        self.wants_requests: bool = any(_is_judged(each) or each.judge for each in wanted)

    @property
    def metrics(self) -> list[EvalMetric]:
        """What ADK's service is asked for, as its results have it."""
        return [self._asked(each) for each in self._wanted.values()]

    def _asked(self, wanted: Wanted) -> EvalMetric:
        if wanted.metric is None or is_own(wanted):
            return eval_metric(wanted.name, wanted.threshold)
        has_rubrics = wanted.metric.needs == "rubrics"
        return eval_metric(
            wanted.name,
            wanted.threshold,
            wanted.metric,
            judge=self._judge.model if self._judge is not None and _is_judged(wanted) else "",
            samples=self._samples,
            rubrics=adk_rubrics(self._seen.case.rubrics, "") if has_rubrics else (),
            stop_signal=self._stop_signal,
        )

    # --- evaluators ----------------------------------------------------------------------------

    def evaluator(self, metric: EvalMetric) -> Evaluator:
        """The evaluator of a metric."""
        wanted = self._wanted[metric.metric_name]
        if is_own(wanted):
            return OwnEvaluator(partial(own_score, wanted, self._seen), self._told)
        if not _is_judged(wanted):
            return CloudEvaluator(wanted, self._asked(wanted), self._told)
        return JudgedEvaluator(
            wanted,
            self._seen,
            self._hear,
            samples=self._samples,
            stop_signal=self._stop_signal,
            told=self._told,
        )

    def _hear(self) -> Hearing:
        assert self._judge is not None  # noqa: S101  # looked at before anything ran
        return Hearing(self._judge, self._answers, self._errors)

    # --- back ----------------------------------------------------------------------------------

    def scores(self, unscored: dict[str, str]) -> list[MetricScore]:
        """The scores in the order of the metrics.

        Args:
            unscored: Metric to what its evaluator raised.
        """
        return [
            self._told.get(name)
            or MetricScore(
                name,
                MetricStatus.NOT_EVALUATED,
                threshold=wanted.threshold,
                reason=unscored.get(name) or "the run gave nothing to look at",
            )
            for name, wanted in self._wanted.items()
        ]


def _is_judged(wanted: Wanted) -> bool:
    """Whether a model judges it."""
    return wanted.metric is not None and wanted.metric.by == "judge"
