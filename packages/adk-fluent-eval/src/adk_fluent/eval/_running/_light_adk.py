"""The engine ``light``: ADK's eval service interface without google-adk's extra."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.adk.evaluation.base_eval_service import (
    BaseEvalService,
    EvaluateRequest,
    InferenceRequest,
    InferenceResult,
    InferenceStatus,
)
from google.adk.evaluation.eval_metrics import (
    EvalMetricResult,
    EvalMetricResultPerInvocation,
    EvalStatus,
)
from google.adk.evaluation.eval_result import EvalCaseResult
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.events.event import Event
from google.adk.runners import Runner

from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.eval._values import error_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from google.adk.apps.app import App
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.evaluation.eval_case import EvalCase
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.genai import types

    from adk_fluent.eval._running._recorder_adk import Recorder

_STATUS = {
    MetricStatus.PASSED: EvalStatus.PASSED,
    MetricStatus.FAILED: EvalStatus.FAILED,
    MetricStatus.NOT_EVALUATED: EvalStatus.NOT_EVALUATED,
    # google-adk 1.x has no such status
    MetricStatus.INFORMATIONAL: getattr(EvalStatus, "INFORMATIONAL", EvalStatus.NOT_EVALUATED),
}


class LightEvalService(BaseEvalService):
    """Runs and scores one run of one case.

    Args:
        app: What is run.
        case: The case; it must have a `session_input`.
        session_id: The session of the run.
        session_service: ADK's.
        artifact_service: ADK's.
        memory_service: ADK's.
        recorder: Records the run.
        score: Computes the metrics once the conversation is over.
    """

    def __init__(
        self,
        app: App,
        case: EvalCase,
        session_id: str,
        *,
        session_service: BaseSessionService,
        artifact_service: BaseArtifactService,
        memory_service: BaseMemoryService,
        recorder: Recorder,
        score: Callable[[list[Any]], Awaitable[list[MetricScore]]],
    ) -> None:
        self._app = app
        self._case = case
        self._session_id = session_id
        self._sessions = session_service
        self._runner = Runner(
            app=app,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
        )
        self._recorder = recorder
        self._score = score

    async def perform_inference(
        self, inference_request: InferenceRequest
    ) -> AsyncGenerator[InferenceResult, None]:
        """Run the conversation.

        Args:
            inference_request: ADK's request.
        """
        where = self._case.session_input
        if where is None:
            what = f"eval case {self._case.eval_id!r} has no session_input"
            raise ValueError(what)
        await self._sessions.create_session(
            app_name=self._app.name,
            user_id=where.user_id,
            state=dict(where.state),
            session_id=self._session_id,
        )
        events: list[Event] = []
        problem = None
        for invocation in self._case.conversation or ():
            problem = await self._run_turn(invocation.user_content, where.user_id, events)
            if problem is not None:
                break
        yield InferenceResult(
            app_name=self._app.name,
            eval_set_id=inference_request.eval_set_id,
            eval_case_id=self._case.eval_id,
            session_id=self._session_id,
            status=InferenceStatus.SUCCESS if problem is None else InferenceStatus.FAILURE,
            error_message=problem,
            inferences=EvaluationGenerator.convert_events_to_eval_invocations(events)
            if problem is None
            else None,
        )

    async def _run_turn(
        self, message: types.Content, user_id: str, events: list[Event]
    ) -> str | None:
        """Run a turn, and return what went wrong."""
        recorder, problem = self._recorder, None
        recorder.begin(message)
        said = Event(author="user", content=message)
        events.append(said)
        running = self._runner.run_async(
            user_id=user_id, session_id=self._session_id, new_message=message
        )
        try:
            async with aclosing(running) as stream:
                async for event in stream:
                    recorder.add(event)
                    if not event.partial:
                        said.invocation_id = said.invocation_id or event.invocation_id
                        events.append(event)
        except asyncio.CancelledError:
            recorder.end("the run was cancelled")
            raise
        except BaseExceptionGroup as error:  # parallel branches of google-adk 1.x
            if not isinstance(error, Exception):
                raise
            problem = "; ".join(error_line(each, None) for each in error.exceptions)
        except Exception as error:  # noqa: BLE001  # user code
            problem = error_line(error, None)
        return recorder.end(problem)

    async def evaluate(
        self, evaluate_request: EvaluateRequest
    ) -> AsyncGenerator[EvalCaseResult, None]:
        """Compute the metrics.

        Args:
            evaluate_request: ADK's request, with the result of `perform_inference`.
        """
        for inference in evaluate_request.inference_results:
            actual, expected = inference.inferences or [], self._case.conversation or []
            scores = await self._score(actual)
            where = self._case.session_input
            yield EvalCaseResult.model_construct(
                eval_set_id=inference.eval_set_id,
                eval_id=inference.eval_case_id,
                final_eval_status=_final([each.status for each in scores]),
                overall_eval_metric_results=[
                    _result(each, each.score, _STATUS[each.status]) for each in scores
                ],
                eval_metric_result_per_invocation=[
                    EvalMetricResultPerInvocation.model_construct(
                        actual_invocation=invocation,
                        expected_invocation=expected[at] if at < len(expected) else None,
                        eval_metric_results=[_of_turn(each, at) for each in scores],
                    )
                    for at, invocation in enumerate(actual)
                ],
                session_id=inference.session_id or "",
                session_details=None,
                user_id=where.user_id if where else None,
            )


def _of_turn(score: MetricScore, at: int) -> EvalMetricResult:
    value = score.turns[at] if at < len(score.turns) else None
    if value is None:
        return _result(score, None, EvalStatus.NOT_EVALUATED)
    if score.threshold is None:
        return _result(score, value, _STATUS[score.status])
    reached = value <= score.threshold if score.lower_is_better else value >= score.threshold
    return _result(score, value, EvalStatus.PASSED if reached else EvalStatus.FAILED)


def _result(score: MetricScore, value: float | None, status: EvalStatus) -> EvalMetricResult:
    fields: dict[str, Any] = {"metric_name": score.name, "score": value, "eval_status": status}
    if score.threshold is not None:
        fields["threshold"] = score.threshold
    return EvalMetricResult.model_construct(**fields)


def _final(statuses: list[MetricStatus]) -> EvalStatus:
    """Passed only if something passed, and nothing failed or is missing."""
    deciding = {each for each in statuses if each is not MetricStatus.INFORMATIONAL}
    if not deciding or MetricStatus.NOT_EVALUATED in deciding:
        return EvalStatus.NOT_EVALUATED
    return EvalStatus.FAILED if MetricStatus.FAILED in deciding else EvalStatus.PASSED
