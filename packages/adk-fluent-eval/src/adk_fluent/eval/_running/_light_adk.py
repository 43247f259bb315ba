"""The service of our own that runs cases; `_local_adk` has ADK's.

Both are `BaseEvalService`s of ADK's, asked in the same way: `perform_inference` runs the
conversation, `evaluate` computes the metrics. Ours needs no extra, isolates each case, and keeps
what went wrong.
"""

from __future__ import annotations

import asyncio
import uuid
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
    EvalMetricResultDetails,
    EvalMetricResultPerInvocation,
    EvalStatus,
)
from google.adk.evaluation.eval_result import EvalCaseResult
from google.adk.evaluation.evaluation_generator import EvaluationGenerator
from google.adk.evaluation.evaluator import EvaluationResult
from google.adk.events.event import Event
from google.adk.runners import Runner

from adk_fluent.errors import unwrap
from adk_fluent.eval._running._overheard import FAILED, UNSCORED, in_full
from adk_fluent.eval._scoring._requests_adk import RequestsPlugin

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from google.adk.apps.app import App
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.evaluation.eval_case import EvalCase, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric
    from google.adk.evaluation.evaluator import Evaluator
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.eval._running._simulator_adk import Conversation
    from adk_fluent.eval._running._watch_adk import Watch


class LightEvalService(BaseEvalService):
    """Runs and scores eval cases with what google-adk has without its extra.

    Args:
        app: What is run.
        eval_cases: The cases by id; each must have a `session_input`.
        conversation_of: What the user of a case says.
        evaluator_of: The evaluator of a metric.
        session_service: Where sessions are kept.
        artifact_service: Where artifacts are kept.
        memory_service: What agents remember.
        watch_of: Who is told of the events of a case.
        asked: Whether judges are to be told what models were asked, as ADK's service does.
    """

    def __init__(
        self,
        app: App,
        eval_cases: Mapping[str, EvalCase],
        *,
        conversation_of: Callable[[EvalCase], Conversation],
        evaluator_of: Callable[[EvalMetric], Evaluator],
        session_service: BaseSessionService,
        artifact_service: BaseArtifactService,
        memory_service: BaseMemoryService,
        watch_of: Callable[[EvalCase], Watch],
        asked: bool = False,
    ) -> None:
        self._app = app
        self._cases = eval_cases
        self._conversation_of = conversation_of
        self._evaluator_of = evaluator_of
        self._sessions = session_service
        self._artifacts = artifact_service
        self._memory = memory_service
        self._watch_of = watch_of
        self._asked = asked

    async def perform_inference(
        self, inference_request: InferenceRequest
    ) -> AsyncGenerator[InferenceResult, None]:
        """Run the conversations of cases, and give each when it is done.

        Args:
            inference_request: ADK's request; without ids all cases are run.
        """
        wanted = inference_request.eval_case_ids
        cases = [each for id, each in self._cases.items() if not wanted or id in wanted]
        limit = asyncio.Semaphore(inference_request.inference_config.parallelism)

        async def infer(case: EvalCase) -> InferenceResult:
            async with limit:
                return await self._infer(case, inference_request.eval_set_id)

        if len(cases) == 1:
            yield await infer(cases[0])
            return
        tasks = [asyncio.ensure_future(infer(case)) for case in cases]
        try:
            for done in asyncio.as_completed(tasks):
                yield await done
        finally:
            for task in tasks:
                task.cancel()

    async def _infer(self, case: EvalCase, eval_set_id: str) -> InferenceResult:
        where = case.session_input
        if where is None:
            what = f"eval case {case.eval_id!r} has no session_input"
            raise ValueError(what)
        app, session_id = self._app, f"adk-fluent-eval-{uuid.uuid4()}"
        result = InferenceResult(
            app_name=app.name,
            eval_set_id=eval_set_id,
            eval_case_id=case.eval_id,
            session_id=session_id,
        )
        asks = RequestsPlugin() if self._asked else None
        if asks is not None:
            app = app.model_copy(update={"plugins": [*app.plugins, asks]})
        await self._sessions.create_session(
            app_name=app.name, user_id=where.user_id, state=dict(where.state), session_id=session_id
        )
        runner = Runner(
            app=app,
            session_service=self._sessions,
            artifact_service=self._artifacts,
            memory_service=self._memory,
        )
        events: list[Event] = []
        problem = await self._talk(case, runner, where.user_id, session_id, events)
        result.status = InferenceStatus.SUCCESS if problem is None else InferenceStatus.FAILURE
        result.error_message = problem
        if problem is None:
            details = None if asks is None else asks.details()
            result.inferences = EvaluationGenerator.convert_events_to_eval_invocations(
                events, details
            )
        return result

    async def _talk(
        self, case: EvalCase, runner: Runner, user_id: str, session_id: str, events: list[Event]
    ) -> str | None:
        """Run turn by turn, and return what went wrong."""
        conversation, watch = self._conversation_of(case), self._watch_of(case)
        while True:
            try:
                message = await conversation.next(events)
            except Exception as error:  # noqa: BLE001  # of the model that plays the user
                FAILED.get([]).append(error)
                return in_full(error)
            if message is None:
                return None
            watch.begin(message)
            said, problem = Event(author="user", content=message), None
            events.append(said)
            try:
                running = runner.run_async(
                    user_id=user_id, session_id=session_id, new_message=message
                )
                async with aclosing(running) as stream:
                    async for event in stream:
                        watch.add(event)
                        if not event.partial:
                            said.invocation_id = said.invocation_id or event.invocation_id
                            events.append(event)
            except asyncio.CancelledError:
                watch.end("it was ended")
                raise
            except Exception as error:  # noqa: BLE001  # anything may happen in somebody's pipeline
                FAILED.get([]).append(unwrap(error))
                problem = in_full(error)
            problem = watch.end(problem)
            if problem is not None:
                return problem

    async def evaluate(
        self, evaluate_request: EvaluateRequest
    ) -> AsyncGenerator[EvalCaseResult, None]:
        """Compute the metrics of what was run.

        Args:
            evaluate_request: ADK's request.
        """
        for inference in evaluate_request.inference_results:
            yield await self._evaluate(inference, evaluate_request.evaluate_config.eval_metrics)

    async def _evaluate(
        self, inference: InferenceResult, metrics: list[EvalMetric]
    ) -> EvalCaseResult:
        case = self._cases[inference.eval_case_id]
        actual, expected = inference.inferences or [], case.conversation
        turns = [
            EvalMetricResultPerInvocation.model_construct(
                actual_invocation=each,
                expected_invocation=expected[at] if expected and at < len(expected) else None,
                eval_metric_results=[],
            )
            for at, each in enumerate(actual)
        ]
        overall: list[EvalMetricResult] = []
        for metric in metrics if actual else ():
            found = await self._score(metric, case, actual)
            overall.append(
                _result(metric, found.overall_score, found.overall_eval_status, found, "overall_")
            )
            for at, turn in enumerate(turns):
                each: Any = (
                    found.per_invocation_results[at]
                    if at < len(found.per_invocation_results)
                    else None
                )
                status = each.eval_status if each else EvalStatus.NOT_EVALUATED
                score = each.score if each else None
                turn.eval_metric_results.append(_result(metric, score, status, each, ""))
        where = case.session_input
        return EvalCaseResult.model_construct(
            eval_set_id=inference.eval_set_id,
            eval_id=inference.eval_case_id,
            final_eval_status=_final(overall),
            overall_eval_metric_results=overall,
            eval_metric_result_per_invocation=turns,
            session_id=inference.session_id or "",
            session_details=None,
            user_id=where.user_id if where else None,
        )

    async def _score(
        self, metric: EvalMetric, case: EvalCase, actual: list[Invocation]
    ) -> EvaluationResult:
        try:
            found: Any = self._evaluator_of(metric).evaluate_invocations(
                actual_invocations=actual,
                expected_invocations=case.conversation,
                conversation_scenario=case.conversation_scenario,
            )
            return await found if asyncio.iscoroutine(found) else found
        except Exception as error:  # noqa: BLE001  # one metric must not end the others
            UNSCORED.get({})[metric.metric_name] = in_full(error)
            return EvaluationResult(overall_eval_status=EvalStatus.NOT_EVALUATED)


def _result(
    metric: EvalMetric, score: float | None, status: EvalStatus, found: Any, of: str
) -> EvalMetricResult:
    return EvalMetricResult.model_construct(
        metric_name=metric.metric_name,
        threshold=metric.threshold,
        criterion=metric.criterion,
        score=score,
        eval_status=status,
        details=EvalMetricResultDetails(rubric_scores=getattr(found, f"{of}rubric_scores", None)),
    )


def _final(overall: list[EvalMetricResult]) -> EvalStatus:
    """Passed only if there is something that passed, and nothing that did not."""
    deciding = [each.eval_status for each in overall if each.threshold is not None]
    if deciding and all(each == EvalStatus.PASSED for each in deciding):
        return EvalStatus.PASSED
    failed = EvalStatus.FAILED in deciding
    return EvalStatus.FAILED if failed else EvalStatus.NOT_EVALUATED
