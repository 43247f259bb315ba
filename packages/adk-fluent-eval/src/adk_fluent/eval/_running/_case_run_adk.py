"""One run of one case, from its first message to its outcome."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
    InferenceStatus,
)
from google.adk.evaluation.eval_case import EvalCase
from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent._logs import LOG
from adk_fluent.backends.adk import in_place_of, resolve_model, to_content
from adk_fluent.eval._cases._case import text_of
from adk_fluent.eval._cases._simulation import player_of
from adk_fluent.eval._cases._state import initial_state
from adk_fluent.eval._checks._observed import Observed
from adk_fluent.eval._checks._same import plain
from adk_fluent.eval._files._eval_case_adk import invocation_of, session_input_of
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, MetricStatus, Status
from adk_fluent.eval._running._clean import clean
from adk_fluent.eval._running._instead import Instead
from adk_fluent.eval._running._light_adk import LightEvalService
from adk_fluent.eval._running._models_adk import Answers, InsteadOfModels
from adk_fluent.eval._running._overheard import FAILED, UNSCORED, in_full
from adk_fluent.eval._running._pace import reported
from adk_fluent.eval._running._plugin_adk import CasePlugin
from adk_fluent.eval._running._simulator_adk import Player, Said, scenario_of
from adk_fluent.eval._running._watch_adk import Watch
from adk_fluent.eval._scoring._scoring_adk import Scoring

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.evaluation.base_eval_service import BaseEvalService, InferenceResult
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.sessions.session import Session

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._shared_adk import Shared
    from adk_fluent.eval._running._target_adk import Target

_SET: Final = "adk_fluent"
_RECOVERING: Final = 5.0  # seconds to read the session of a run that did not end well
_NAME: Final = 60  # characters of an app's name; databases hold 128, with the rest
_INFERENCE: Final = InferenceConfig()
_FINAL: Final = {
    Status.PASSED: EvalStatus.PASSED,
    Status.FAILED: EvalStatus.FAILED,
    Status.ERROR: EvalStatus.NOT_EVALUATED,
    Status.SKIPPED: EvalStatus.NOT_EVALUATED,
    Status.XFAILED: EvalStatus.NOT_EVALUATED,
}


class CaseRun:
    """One run of one case.

    Args:
        shared: What it has in common with the others.
        case: The case.
        run: Which run of it, counted from 1.
    """

    def __init__(self, shared: Shared, case: FluentCase, run: int) -> None:
        self._shared = shared
        self._settings = settings = shared.settings
        self._case = case
        self._seen = Observed(case, case.turns)
        self._played = player_of(case, settings.simulation)
        self._instead = Instead(case.mock_tool_outputs or {})
        self._outcome = CaseOutcome(
            case.name,
            run,
            input=text_of(case.turns[0].input),
            tags=list(case.tags),
            metadata=plain(dict(case.metadata)),
            target_node=case.target_node or "",
        )
        self._outcome.user_id = f"adk-fluent-eval-{uuid.uuid4()}"
        self._sessions = settings.session_service or InMemorySessionService()
        self._answers = Answers(shared.recording, case.name, run, settings.prices)
        self._errors: list[BaseException] = []
        self._unscored: dict[str, str] = {}
        self._model = None if settings.model is None else resolve_model(settings.model)
        self._outcome.model = "" if self._model is None else self._model.model
        self._state: dict[str, Any] = {}
        self._target: Target | None = None
        self._watch: Watch | None = None
        self._app = ""

    async def go(self) -> tuple[CaseOutcome, EvalCaseResult | None, list[BaseException]]:
        """Run it.

        Returns:
            The outcome, ADK's own result if there is one, and what was raised on the way.
        """
        outcome, result = self._outcome, None
        FAILED.set(self._errors)
        UNSCORED.set(self._unscored)
        limit = self._settings.timeout_s if self._case.timeout_s is None else self._case.timeout_s
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                result = await self._run()
        except TimeoutError as error:
            ours = clock.expired()
            outcome.error = (
                f"TimeoutError: it took longer than {limit} s" if ours else in_full(error)
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the whole run ends
                raise
            outcome.error = "CancelledError: something in the pipeline cancelled the run"
        except (Exception, SystemExit) as error:  # noqa: BLE001  # one case must not end the others
            self._errors.append(error)
            outcome.error = self._raised()
        finally:
            if self._target is not None:  # what closing takes is no time of the case
                await self._shared.release(self._target)
        await self._recover()
        self._tell()
        if result is not None:
            result.final_eval_status = _FINAL[outcome.status]
        return outcome, result, [*self._errors, *reported(self._seen.events, outcome.error)]

    async def _run(self) -> EvalCaseResult | None:
        self._state = initial_state(self._case)
        target = self._target = self._shared.target(self._case)
        models = self._models()
        plugin = CasePlugin(self._instead, models=models is not None)
        app = target.new_app(self._app_name(target.app.name), plugin, self._settings.plugins)
        conversation = self._conversation()
        case = self._eval_case(app.name)
        self._app = app.name
        self._watch = watch = Watch(
            self._seen,
            self._state,
            prices=self._settings.prices,
            models=target.models
            if self._model is None
            else dict.fromkeys(target.models, self._model.model),
            instead=self._instead,
            beneath=plugin.turns if self._runs_plugins() else None,
        )
        scoring = Scoring(
            self._shared.metrics().of(self._case),
            self._seen,
            judge=self._shared.judge(),
            samples=self._settings.judge_samples,
            answers=self._answers,
            played=self._played,
            errors=self._errors,
        )
        with ExitStack() as stack:
            stack.enter_context(in_place_of(tools=self._instead, models=models))
            service = self._service(app, case, conversation, watch, scoring)
            request = InferenceRequest(
                app_name=app.name, eval_set_id=_SET, inference_config=_INFERENCE
            )
            [inference] = [each async for each in service.perform_inference(request)]
            await self._observe(inference, watch)
            self._outcome.session_id = inference.session_id or ""
            if isinstance(conversation, Player):
                self._outcome.stop_reason = conversation.stop_reason
                self._seen.stop_reason = conversation.stop_reason
        if self._outcome.error is not None:
            return None
        return await self._evaluate(service, inference, scoring)

    def _runs_plugins(self) -> bool:
        """Whether the service runs plugins: ADK's own of google-adk 1.x runs an agent alone."""
        if self._settings.engine == "light":
            return True
        from adk_fluent.eval._running._local_adk import RUNS_APPS  # noqa: PLC0415  # the extra

        return RUNS_APPS

    def _models(self) -> InsteadOfModels | None:
        if self._model is None and self._settings.cache is None:
            return None
        return InsteadOfModels(self._model, self._answers)

    def _app_name(self, name: str) -> str:
        """The name of the App in this run.

        A service that is shared keeps one state for all sessions of an app (``app:``), so that the
        app of a run has a name of its own there, as its user has.
        """
        service = self._settings.session_service
        if service is None or _is_vertex(service):
            return name
        return f"{name[:_NAME]}_{self._outcome.user_id.replace('-', '_')}"

    def _conversation(self) -> Player | Said:
        turns = self._seen.expected
        if self._played is None:
            return Said([to_content(turn.input) for turn in turns])
        return Player(self._played, turns[0].input, self._answers)

    def _service(
        self,
        app: Any,
        case: EvalCase,
        conversation: Player | Said,
        watch: Watch,
        scoring: Scoring,
    ) -> BaseEvalService:
        settings = self._settings
        artifacts = settings.artifact_service or InMemoryArtifactService()
        memory = settings.memory_service or InMemoryMemoryService()
        if settings.engine == "light":
            return LightEvalService(
                app,
                {case.eval_id: case},
                conversation_of=lambda _: conversation,
                evaluator_of=scoring.evaluator,
                session_service=self._sessions,
                artifact_service=artifacts,
                memory_service=memory,
                watch_of=lambda _: watch,
                asked=scoring.wants_requests,
            )
        from adk_fluent.eval._running._local_adk import OneCaseService  # noqa: PLC0415  # the extra

        return OneCaseService(
            app,
            case,
            _SET,
            conversation=conversation,
            evaluator_of=scoring.evaluator,
            session_service=self._sessions,
            artifact_service=artifacts,
            memory_service=memory,
        )

    def _eval_case(self, app_name: str) -> EvalCase:
        """The case as ADK's services take it; metrics know of rubrics by themselves."""
        case, fields = self._case, dict[str, Any]()
        if self._played is not None:
            said = text_of(case.turns[0].input)
            fields["conversation_scenario"] = scenario_of(self._played, said)
        else:
            made = [invocation_of(turn, n) for n, turn in enumerate(self._seen.expected, 1)]
            self._seen.expected_invocations = fields["conversation"] = made
        where = session_input_of(case, app_name, self._outcome.user_id)
        return EvalCase(eval_id=case.name, session_input=where, **fields)

    async def _recover(self) -> None:
        """Take what a run left that ADK's own service did not bring to its end."""
        watch, outcome = self._watch, self._outcome
        if watch is None or self._settings.engine == "light" or self._seen.turns:
            return
        try:
            async with asyncio.timeout(_RECOVERING):
                app, user = self._app, outcome.user_id
                found = await self._sessions.list_sessions(app_name=app, user_id=user)
                for each in found.sessions[:1]:  # the user has no other
                    outcome.session_id = each.id
                    self._replay(await self._session(each.id), watch, [])
        except Exception:  # noqa: BLE001  # of whatever service it is; the case has its error
            LOG.exception("the session of a case that failed cannot be read")

    async def _session(self, id: str) -> Session | None:
        return await self._sessions.get_session(
            app_name=self._app, user_id=self._outcome.user_id, session_id=id
        )

    def _replay(self, session: Session | None, watch: Watch, told: Sequence[Invocation]) -> None:
        """Tell the watch what a session of ADK's own service holds."""
        from adk_fluent.eval._running._local_adk import replay  # noqa: PLC0415  # the extra

        found = replay(session, watch, told, self._outcome.error)
        self._outcome.error = self._outcome.error or found

    async def _observe(self, inference: InferenceResult, watch: Watch) -> None:
        """Take what happened from the session, unless the service has told it as it happened."""
        outcome, problem = self._outcome, inference.error_message
        if inference.status != InferenceStatus.SUCCESS:
            outcome.error = self._raised() or problem or "it failed"
        is_local, is_shared = self._settings.engine == "local", self._settings.session_service
        session = None
        if is_local or is_shared:
            session = await self._session(inference.session_id or "")
        if is_local:
            self._replay(session, watch, inference.inferences or [])
        if is_shared and session is not None:
            watch.settle(session.state)
        if outcome.error is None and not any(self._seen.events):
            outcome.error = "nothing happened: the run gave no events"
        self._seen.invocations = inference.inferences or []

    def _raised(self) -> str:
        """What was raised last, each error of a group for itself; empty if nothing was."""
        if not self._errors:
            return ""
        self._errors[-1:] = leaves = list(_leaves(self._errors[-1]))
        return "; ".join(map(in_full, leaves))

    async def _evaluate(
        self, service: BaseEvalService, inference: InferenceResult, scoring: Scoring
    ) -> EvalCaseResult | None:
        config = EvaluateConfig(eval_metrics=scoring.metrics)
        request = EvaluateRequest(inference_results=[inference], evaluate_config=config)
        [result] = [each async for each in service.evaluate(request)]
        self._outcome.scores = scoring.scores(self._unscored)
        return result

    def _tell(self) -> None:
        """What it all comes to."""
        outcome, seen = self._outcome, self._seen
        outcome.replayed = self._answers.replayed
        outcome.turns, outcome.tokens = seen.turns, seen.tokens
        outcome.duration_s, outcome.cost_usd = seen.duration_s, seen.cost_usd
        beside = self._answers.beside
        outcome.eval_tokens, outcome.eval_cost_usd = beside.tokens, beside.usd
        outcome.state = plain(seen.state)
        if outcome.error is not None:
            outcome.stop_reason = "error" if self._played is not None else ""
        outcome.status, outcome.reasons = _verdict(outcome)
        if (why := self._case.xfail) is not None:
            outcome.note = why
            if outcome.status is Status.PASSED:
                outcome.status = Status.FAILED
                outcome.reasons = [f"it is expected to fail ({why}), and passed"]
            elif outcome.status is Status.FAILED:  # of a run that broke, nobody knows what it is
                outcome.status = Status.XFAILED
        clean(outcome)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, such as branches of ADK 1.x raise; any other error as it is."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(each)


def _verdict(outcome: CaseOutcome) -> tuple[Status, list[str]]:
    if outcome.error is not None:
        return Status.ERROR, [outcome.error]
    reasons = [line for score in outcome.scores for line in _reasons(score)]
    statuses = {score.status for score in outcome.scores} - {MetricStatus.INFORMATIONAL}
    if not statuses or MetricStatus.NOT_EVALUATED in statuses:
        return Status.ERROR, reasons or ["nothing was evaluated"]
    return (Status.FAILED if MetricStatus.FAILED in statuses else Status.PASSED), reasons


def _reasons(score: MetricScore) -> list[str]:
    """Why a metric stands in the way of a pass."""
    if score.ok:
        return []
    if score.status is MetricStatus.NOT_EVALUATED:
        return [f"{score.name} could not be evaluated: {score.reason or 'no score'}"]
    found = [
        f"{each.what}{f' of turn {each.turn}' if each.turn else ''}: {each.reason}"
        for each in score.findings
        if not each.ok
    ]
    if found:
        return found
    sign = ">" if score.lower_is_better else "<"
    told = f": {score.reason}" if score.reason else ""
    return [f"{score.name} {score.score:.3g} {sign} {score.threshold:.3g}{told}"]


def _is_vertex(service: object) -> bool:
    """Whether a session service takes an app for the engine of Google's that has its name.

    It keeps the whole state with the session, so nothing is shared there.
    """
    return any(kind.__name__ == "VertexAiSessionService" for kind in type(service).__mro__)
