"""The engine ``light``: ADK's eval service interface without google-adk's extra."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from google.adk.evaluation import base_eval_service as adk_service
from google.adk.evaluation.eval_metrics import (
    EvalMetricResult,
    EvalMetricResultPerInvocation,
    EvalStatus,
)
from google.adk.evaluation.eval_result import EvalCaseResult
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.events.event import Event
from google.adk.runners import Runner

from adk_fluent.eval._checks._checks import scored
from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.extend import error_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from google.adk.apps.app import App
    from google.adk.evaluation.eval_case import EvalCase, SessionInput
    from google.adk.evaluation.eval_metrics import EvalMetric
    from google.genai import types

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._models_adk import User
    from adk_fluent.eval._running._plan import PlannedMetric
    from adk_fluent.eval._running._recorder_adk import Recorder

#: ADK's statuses; google-adk 1.x has none for metrics that inform.
STATUS = {each: getattr(EvalStatus, each.name, EvalStatus.NOT_EVALUATED) for each in MetricStatus}


@dataclass(eq=False)
class LightEvalService(adk_service.BaseEvalService):
    """Runs one run of one case with a Runner, and computes all metrics itself.

    Attributes:
        engine: What `run` calls it.
        adk_runs: Whether ADK's service runs the conversation, and does not tell its events.
        app: The App, with the recorder's plugin.
        case: The case.
        adk_case: The same as ADK has it, with a `session_input`.
        session_id: The session of the run.
        recorder: Records the run.
        user: Says the messages.
        planned: The metrics.
        compute: Computes a metric of ours.
        services: ADK's services, as a Runner takes them.
    """

    engine: ClassVar[str] = "light"
    adk_runs: ClassVar[bool] = False
    app: App
    case: FluentCase
    adk_case: EvalCase
    session_id: str
    recorder: Recorder
    user: User
    planned: Sequence[PlannedMetric]
    compute: Callable[[PlannedMetric], Awaitable[MetricScore]]
    services: dict[str, Any]

    def __post_init__(self) -> None:
        self._runner = Runner(app=self.app, **self.services)
        self._session = cast("SessionInput", self.adk_case.session_input)
        self._who: dict[str, Any] = {"user_id": self._session.user_id}
        self._who["session_id"] = self.session_id
        self._scores: list[MetricScore] = []

    @property
    def metrics(self) -> list[EvalMetric]:
        """The metrics as ADK is asked for them; none, as all are computed here."""
        return []

    def scores(self, result: EvalCaseResult) -> list[MetricScore]:
        """Return the scores of what `evaluate` gave."""
        return self._scores

    async def perform_inference(
        self, inference_request: adk_service.InferenceRequest
    ) -> AsyncGenerator[adk_service.InferenceResult]:
        """Run the conversation."""
        name, sessions = self._runner.app_name, self._runner.session_service
        await sessions.create_session(app_name=name, state=dict(self._session.state), **self._who)
        events: list[Event] = []
        problem = None
        while problem is None and (message := await self.user.next(events)) is not None:
            problem = await self._run_turn(message, events)
        made = EvaluationGenerator.convert_events_to_eval_invocations
        yield adk_service.InferenceResult(
            app_name=name,
            eval_set_id=inference_request.eval_set_id,
            eval_case_id=self.adk_case.eval_id,
            session_id=self.session_id,
            status=adk_service.InferenceStatus["SUCCESS" if problem is None else "FAILURE"],
            error_message=problem,
            inferences=made(events, self.recorder.app_details()) if problem is None else None,
        )

    async def _run_turn(self, message: types.Content, events: list[Event]) -> str | None:
        """Run a turn, and return what went wrong."""
        recorder, problem = self.recorder, None
        recorder.begin(message)
        said = Event(author="user", content=message)
        events.append(said)
        try:
            reply: Event | None = said
            while reply is not None:
                await self._run_message(reply, said, events)
                reply = recorder.reply()
        except asyncio.CancelledError:
            recorder.end("the run was cancelled")
            raise
        except ExceptionGroup as error:  # parallel branches of google-adk 1.x
            problem = "; ".join(error_line(each, None) for each in error.exceptions)
            recorder.failed(error)
        except Exception as error:  # noqa: BLE001  # user code
            problem = error_line(error, None)
            recorder.failed(error)
        return recorder.end(problem)

    async def _run_message(self, message: Event, said: Event, events: list[Event]) -> None:
        running = self._runner.run_async(new_message=message.content, **self._who)
        async with aclosing(running) as stream:
            async for event in stream:
                self.recorder.add(event)
                if not event.partial:
                    said.invocation_id = said.invocation_id or event.invocation_id
                    # what goes on with an answer has another id, and is of the same turn
                    turn = {"invocation_id": said.invocation_id}
                    is_other = event.invocation_id != said.invocation_id
                    events.append(event.model_copy(update=turn) if is_other else event)

    async def evaluate(
        self, evaluate_request: adk_service.EvaluateRequest
    ) -> AsyncGenerator[EvalCaseResult]:
        """Compute the metrics of a conversation that was run."""
        sessions, expected = self._runner.session_service, self.adk_case.conversation or []
        session = await sessions.get_session(app_name=self._runner.app_name, **self._who)
        for inference in evaluate_request.inference_results:
            scores = self._scores = [await self.compute(each) for each in self.planned]
            deciding = {each.status for each in scores} - {MetricStatus.INFORMATIONAL}
            final = max(deciding, key=list(MetricStatus).index, default=MetricStatus.NOT_EVALUATED)
            yield EvalCaseResult.model_construct(
                **self._who,
                eval_set_id=inference.eval_set_id,
                eval_id=inference.eval_case_id,
                final_eval_status=STATUS[final],  # the worst one
                overall_eval_metric_results=[_result(each, each.score) for each in scores],
                eval_metric_result_per_invocation=[
                    EvalMetricResultPerInvocation.model_construct(
                        actual_invocation=invocation,
                        expected_invocation=expected[at] if at < len(expected) else None,
                        eval_metric_results=[
                            _result(each, each.turns[at] if at < len(each.turns) else None)
                            for each in scores
                        ],
                    )
                    for at, invocation in enumerate(inference.inferences or [])
                ],
                session_details=session,
            )


def _result(score: MetricScore, value: float | None) -> EvalMetricResult:
    """The result of all turns, or of one that has another value."""
    fields: dict[str, Any] = {"metric_name": score.name, "score": value}
    status = score.status
    if score.threshold is not None:
        fields["threshold"] = score.threshold
        lower = score.lower_is_better
        status = scored(score.name, value, score.threshold, lower_is_better=lower).status
    return EvalMetricResult.model_construct(**fields, eval_status=STATUS[status])
