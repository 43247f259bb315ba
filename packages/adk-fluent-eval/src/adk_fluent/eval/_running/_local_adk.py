"""ADK's own service. Importing this needs the extra of google-adk."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import aclosing, asynccontextmanager, contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation.base_eval_service import BaseEvalService
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager

from adk_fluent.eval._running._simulator_adk import OneConversation

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Sequence

    from google.adk.apps.app import App
    from google.adk.evaluation.base_eval_service import (
        EvaluateRequest,
        InferenceRequest,
        InferenceResult,
    )
    from google.adk.evaluation.eval_case import EvalCase, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetric
    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.evaluation.evaluator import Evaluator
    from google.adk.evaluation.simulation.user_simulator import UserSimulator
    from google.adk.sessions.session import Session

    from adk_fluent.eval._running._simulator_adk import Conversation
    from adk_fluent.eval._running._watch_adk import Watch


@contextmanager
def _chosen() -> Generator[None]:
    """Without ADK's warnings that it is new: whoever asks for it here has chosen it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\]")
        yield


with _chosen():
    from google.adk.evaluation.local_eval_service import LocalEvalService
    from google.adk.evaluation.metric_evaluator_registry import MetricEvaluatorRegistry

#: Whether ADK's service runs an App, and not an agent alone: only then are there plugins.
RUNS_APPS: Final[bool] = "app" in signature(LocalEvalService.__init__).parameters


class OneCaseService(BaseEvalService):
    """ADK's own service, for one case.

    ADK leaves its tasks to themselves when it is cancelled; here they end with it.

    Args:
        app: What is run.
        case: The case.
        eval_set_id: The set that requests name.
        conversation: What its user says.
        evaluator_of: The evaluator of a metric.
        **services: ADK's services.
    """

    def __init__(
        self,
        app: App,
        case: EvalCase,
        eval_set_id: str,
        *,
        conversation: Conversation,
        evaluator_of: Callable[[EvalMetric], Evaluator],
        **services: Any,
    ) -> None:
        self._begun: list[asyncio.Task[Any]] = []
        manager = InMemoryEvalSetsManager()
        manager.create_eval_set(app_name=app.name, eval_set_id=eval_set_id)
        manager.add_eval_case(app_name=app.name, eval_set_id=eval_set_id, eval_case=case)
        more: dict[str, Any] = {"app": app} if RUNS_APPS else {}
        root: Any = app.root_agent
        with _chosen():
            self._service = LocalEvalService(
                root_agent=root,
                eval_sets_manager=manager,
                metric_evaluator_registry=_Registry(evaluator_of, self._begun),
                user_simulator_provider=_Provider(conversation, self._begun),
                **services,
                **more,
            )

    async def perform_inference(
        self, inference_request: InferenceRequest
    ) -> AsyncGenerator[InferenceResult, None]:
        """Run the conversation."""
        async with (
            self._tidy(),
            aclosing(self._service.perform_inference(inference_request)) as found,
        ):
            async for each in found:
                yield each

    async def evaluate(
        self, evaluate_request: EvaluateRequest
    ) -> AsyncGenerator[EvalCaseResult, None]:
        """Compute the metrics."""
        async with self._tidy(), aclosing(self._service.evaluate(evaluate_request)) as found:
            async for each in found:
                yield each

    @asynccontextmanager
    async def _tidy(self) -> AsyncGenerator[None]:
        """End what was begun, however it ends."""
        try:
            yield
        finally:
            for task in self._begun:
                task.cancel()
            await asyncio.gather(*self._begun, return_exceptions=True)
            self._begun.clear()


class _Registry(MetricEvaluatorRegistry):
    """Gives ADK's service the evaluators of one run, in the task in which it wants them."""

    def __init__(  # without ADK's: in 1.x all registries share one mapping
        self, evaluator_of: Callable[[EvalMetric], Evaluator], begun: list[asyncio.Task[Any]]
    ) -> None:
        self._evaluator_of = evaluator_of
        self._begun = begun

    def get_evaluator(self, eval_metric: EvalMetric) -> Evaluator:
        """The evaluator of a metric."""
        _note(self._begun)
        return self._evaluator_of(eval_metric)


class _Provider(OneConversation):
    """Gives ADK's service the conversation, in the task in which it runs it."""

    def __init__(self, conversation: Conversation, begun: list[asyncio.Task[Any]]) -> None:
        super().__init__(conversation)
        self._begun = begun

    def provide(self, eval_case: Any) -> UserSimulator:
        """The conversation."""
        _note(self._begun)
        return super().provide(eval_case)


def _note(begun: list[asyncio.Task[Any]]) -> None:
    task = asyncio.current_task()
    if task is not None and task not in begun:
        begun.append(task)


def replay(
    session: Session | None, watch: Watch, invocations: Sequence[Invocation], error: str | None
) -> str | None:
    """Tell the watch what a session holds, and return what went wrong in it.

    Args:
        session: The session; None if none was made.
        watch: Who is told.
        invocations: What ADK's service gave, for the time that it measured.
        error: What the run raised.
    """
    seconds = {each.invocation_id: getattr(each, "duration", None) for each in invocations}
    found: str | None = None
    begun: list[Any] = []

    def end(error: str | None) -> str | None:
        if not begun:
            return None
        first, last = begun[0], begun[-1]
        took = seconds.get(last.invocation_id)
        begun.clear()
        return watch.end(error, last.timestamp - first.timestamp if took is None else took)

    for event in session.events if session is not None else ():
        content = event.content
        if event.author == "user" and content is not None and not event.get_function_responses():
            found = end(None) or found
            watch.begin(content)
        else:
            watch.add(event, is_live=False)
        begun.append(event)
    return end(error) or found
