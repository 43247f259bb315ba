"""The engine ``local``: ADK's LocalEvalService. Importing this needs ``google-adk[eval]``."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.evaluator import EvaluationResult, Evaluator, PerInvocationResult
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.adk.evaluation.simulation.user_simulator import NextUserMessage, Status, UserSimulator
from google.adk.evaluation.simulation.user_simulator_provider import UserSimulatorProvider

from adk_fluent.eval._metrics import MATCH, METRICS, TRAJECTORY
from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.eval._running._light_adk import STATUS, LightEvalService
from adk_fluent.extend import chosen_experiment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from google.adk.evaluation import base_eval_service as adk_service
    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.events.event import Event

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._models_adk import User
    from adk_fluent.eval._running._plan import PlannedMetric
    from adk_fluent.eval._running._recorder_adk import Recorder

    Score = Callable[[PlannedMetric], Awaitable[MetricScore]]


with chosen_experiment():
    from google.adk.evaluation.local_eval_service import LocalEvalService
    from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY

#: That of google-adk 1.x compares arguments, or nothing.
_IGNORES_ARGS: Final = "ignore_args" in eval_metrics.ToolTrajectoryCriterion.model_fields
_MATCHES: Final = {"exact": "EXACT", "in_order": "IN_ORDER", "any_order": "ANY_ORDER"}


class LocalCaseService(LightEvalService):
    """Runs and scores a case with ADK's service.

    That of google-adk 1.x runs an agent, without an App and its plugins, so there a Runner runs it.
    """

    engine: ClassVar = "local"
    adk_runs: ClassVar = "app" in signature(LocalEvalService.__init__).parameters

    def __post_init__(self) -> None:
        super().__post_init__()
        self._begun: list[asyncio.Task[Any]] = []
        self._native = {each.name: _asked(each, self.case) for each in self.planned}
        self._planned = {each.name: each for each in self.planned}
        self._sets = InMemoryEvalSetsManager()
        self._told: dict[str, MetricScore] = {}
        with chosen_experiment():
            self._service = LocalEvalService(
                root_agent=self.app.root_agent,  # pyright: ignore[reportArgumentType]  # a Workflow runs, too
                eval_sets_manager=self._sets,
                metric_evaluator_registry=cast("Any", self),  # of which only evaluators are asked
                session_id_supplier=lambda: self.session_id,
                user_simulator_provider=_User(self.user, self.recorder, self._begun),
                **({"app": self.app} if self.adk_runs else {}),
                **self.services,
            )

    @property
    def metrics(self) -> list[EvalMetric]:
        """The metrics as ADK is asked for them, with threshold and criterion."""
        every = self._planned.items()
        return [self._native[name] or _metric(name, each.threshold) for name, each in every]

    async def perform_inference(
        self, inference_request: adk_service.InferenceRequest
    ) -> AsyncGenerator[adk_service.InferenceResult]:
        """Run the conversation."""
        request = inference_request
        self._sets.create_eval_set(app_name=request.app_name, eval_set_id=request.eval_set_id)
        self._sets.add_eval_case(request.app_name, request.eval_set_id, self.adk_case)
        if not self.adk_runs:
            async for each in super().perform_inference(request):
                yield each
            return
        async with self._tidy(), aclosing(self._service.perform_inference(request)) as found:
            async for each in found:
                problem = self.recorder.end(each.error_message) or self.recorder.problem
                yield each.model_copy(update={"error_message": problem})

    async def evaluate(
        self, evaluate_request: adk_service.EvaluateRequest
    ) -> AsyncGenerator[EvalCaseResult]:
        """Compute the metrics."""
        async with self._tidy(), aclosing(self._service.evaluate(evaluate_request)) as found:
            async for each in found:
                yield each

    def scores(self, result: EvalCaseResult) -> list[MetricScore]:
        """Return the scores; those of ADK's own evaluators are read from its result."""
        made = {each.metric_name: each for each in result.overall_eval_metric_results}
        turns = [each.eval_metric_results for each in result.eval_metric_result_per_invocation]
        found: list[MetricScore] = []
        for name, planned in self._planned.items():
            by_turn = [each.score for turn in turns for each in turn if each.metric_name == name]
            found.append(self._told.get(name) or _score_of(planned, made.get(name), by_turn))
        return found

    def get_evaluator(self, eval_metric: EvalMetric) -> Evaluator:
        """Return the evaluator of a metric: ADK's where it computes the same, or ours."""
        name = eval_metric.metric_name
        if self._native[name] is not None:
            with chosen_experiment():
                return DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(eval_metric)
        return _Own(self._planned[name], self.compute, self._told)

    @asynccontextmanager
    async def _tidy(self) -> AsyncGenerator[None]:
        """Ends ADK's tasks: it leaves them to themselves when it is cancelled."""
        try:
            yield
        finally:
            for task in self._begun:
                task.cancel()
            await asyncio.gather(*self._begun, return_exceptions=True)
            self._begun.clear()


def _metric(name: str, threshold: float | None, criterion: Any = None) -> EvalMetric:
    """A metric as ADK is asked for it; one without a threshold informs."""
    if threshold is None:
        return EvalMetric(metric_name=name, criterion=None)
    criterion = criterion or eval_metrics.BaseCriterion(threshold=threshold)
    return EvalMetric(metric_name=name, threshold=threshold, criterion=criterion)


def _asked(planned: PlannedMetric, case: FluentCase) -> EvalMetric | None:
    """A metric that ADK's own evaluator computes in the case's way; None for another."""
    name, turns, threshold = planned.name, case.turns, planned.threshold
    metric = METRICS.get(name)
    if metric is None or metric.by != "own" or case.simulation is not None:
        return None
    if threshold is None or (name == MATCH and all(turn.reference_response for turn in turns)):
        return _metric(name, threshold)
    if name == TRAJECTORY and case.trajectory_match in _MATCHES:
        every = [turn.trajectory for turn in turns]
        calls = [call for each in every for call in each or ()]
        # ADK compares all arguments of all calls, or those of none
        if _IGNORES_ARGS and None not in every and all(call.args is None for call in calls):
            kind = eval_metrics.ToolTrajectoryCriterion
            match = kind.MatchType[_MATCHES[case.trajectory_match]]
            criterion = kind(threshold=threshold, match_type=match, ignore_args=True)
            return _metric(name, threshold, criterion)
    return None


def _score_of(planned: PlannedMetric, found: Any, turns: list[float | None]) -> MetricScore:
    """A score that ADK's own evaluator computed; what ADK swallowed is no score."""
    name, unit = planned.name, METRICS[planned.name].unit
    if found is None or found.score is None:
        return planned.without_score("ADK gave no score", unit)
    status = MetricStatus[found.eval_status.name]
    return MetricScore(name, status, found.score, planned.threshold, turns=turns, unit=unit)


@dataclass
class _Own(Evaluator):
    """A metric of ours, as ADK asks for it."""

    planned: PlannedMetric
    score: Score
    told: dict[str, MetricScore]

    async def evaluate_invocations(
        self, actual_invocations: list[Any], *_: Any, **__: Any
    ) -> EvaluationResult:
        score = self.told[self.planned.name] = await self.score(self.planned)
        status = STATUS[score.status]
        told = len(score.turns) == len(actual_invocations)
        turns = score.turns if told else [score.score] * len(actual_invocations)
        results = [
            PerInvocationResult(actual_invocation=each, score=value, eval_status=status)
            for each, value in zip(actual_invocations, turns, strict=True)
        ]
        return EvaluationResult(
            overall_score=score.score, overall_eval_status=status, per_invocation_results=results
        )


class _User(UserSimulator, UserSimulatorProvider):
    """The user of one run, as ADK asks for it; notes the task that asks.

    Each message begins a turn.
    """

    def __init__(self, user: User, recorder: Recorder, begun: list[asyncio.Task[Any]]) -> None:
        self._user = user
        self._recorder = recorder
        self._begun = begun

    def provide(self, eval_case: Any) -> UserSimulator:
        if (task := asyncio.current_task()) is not None:
            self._begun.append(task)
        return self

    async def get_next_user_message(self, events: list[Event]) -> NextUserMessage:
        recorder = self._recorder
        recorder.problem = recorder.problem or recorder.end()
        message = await self._user.next(events)
        if message is None:
            return NextUserMessage(status=Status.STOP_SIGNAL_DETECTED)
        recorder.begin(message)
        return NextUserMessage(status=Status.SUCCESS, user_message=message)

    def get_simulation_evaluator(self) -> None:
        return None
