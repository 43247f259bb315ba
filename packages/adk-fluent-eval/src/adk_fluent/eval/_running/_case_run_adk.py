"""One run of one case, from its first message to its outcome."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.evaluation import base_eval_service as adk_service
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends.adk import call_site, replace_models, replace_tools, resolve_model
from adk_fluent.eval._cases._case import FluentCase, initial_state, simulation_of
from adk_fluent.eval._cases._turn import Turn, text_of
from adk_fluent.eval._checks._checks import Observation, compute
from adk_fluent.eval._files._cases_adk import to_eval_case
from adk_fluent.eval._metrics import METRICS
from adk_fluent.eval._outcome import CaseOutcome, MetricScore, MetricStatus, Status
from adk_fluent.eval._running._judged_adk import AdkMetric
from adk_fluent.eval._running._mocks import Mocks
from adk_fluent.eval._running._models_adk import Models, prompt_of, user_of
from adk_fluent.eval._running._pipeline_adk import agent_tree
from adk_fluent.eval._running._recorder_adk import Recorder
from adk_fluent.eval._text import plain, replace_secrets
from adk_fluent.extend import error_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.models.base_llm import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin

    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._suite import Suite
    from adk_fluent.eval._running._kept import ResponseCache
    from adk_fluent.eval._running._light_adk import LightEvalService
    from adk_fluent.eval._running._options import RunOptions
    from adk_fluent.eval._running._pipeline_adk import Target, Targets
    from adk_fluent.eval._running._plan import MetricPlan, PlannedMetric
    from adk_fluent.protocol import PriceBook

_SET: Final = "adk_fluent"
_NAME: Final = 60  # characters of an app's name; databases hold 128, with the run's id


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What all runs of a suite share: what its options name, made or found."""

    suite: Suite
    options: RunOptions
    plan: MetricPlan
    targets: Targets
    service: type[LightEvalService]
    prices: PriceBook | None
    model: BaseLlm | None
    cache: ResponseCache | None
    judge_model: BaseLlm | None

    @property
    def plugins(self) -> Sequence[BasePlugin]:
        """The plugins of the options."""
        return self.options.get("plugins") or ()


class CaseRun:
    """One run of a case; whatever goes wrong becomes its outcome.

    Attributes:
        outcome: The outcome.
        seen: What the run did.
        models: What models say.
    """

    def __init__(self, case: FluentCase, run: int, settings: RunSettings) -> None:
        self._case = case
        self._settings = settings
        self.seen: Observation = Observation(case, case.turns)
        self._simulation = simulation_of(case, settings.suite.simulation)
        self.seen.simulated = self._simulation is not None
        self._mocks = Mocks(case.mock_tool_outputs or {})
        self.outcome: CaseOutcome = new_outcome(case, run)
        self.models: Models = Models(settings.model, settings.cache, self.outcome)
        self.outcome.user_id = f"adk-fluent-eval-{uuid.uuid4()}"
        self.outcome.session_id = f"adk-fluent-eval-{uuid.uuid4()}"

    async def go(self) -> EvalCaseResult | None:
        """Run the case, and return ADK's result if it was evaluated."""
        outcome, result = self.outcome, None
        limit = self._case.timeout_s or self._settings.options.get("timeout_s")
        clock = asyncio.timeout(limit)
        try:
            async with self._settings.targets.used(self._case) as target, clock:
                result = await self._run(target)
        except TimeoutError as error:
            outcome.error = error_line(error, None)
            if clock.expired():
                outcome.error = f"TimeoutError: the run took longer than {limit} s"
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the whole suite is cancelled
                raise
            outcome.error = "CancelledError: something in the pipeline cancelled the run"
        except (Exception, SystemExit) as error:  # noqa: BLE001  # user code
            outcome.error = error_line(error, None)
            self.seen.failure = error
        self._finish()
        return result

    async def _run(self, target: Target) -> EvalCaseResult | None:
        settings, outcome = self._settings, self.outcome
        shared = settings.options.get("session_service")
        sessions = shared or InMemorySessionService()
        state = initial_state(self._case)
        if settings.model is not None or settings.cache is not None:
            for agent in agent_tree(target.app.root_agent):
                if isinstance(agent, LlmAgent):
                    call_site(agent)
        named = None if settings.model is None else settings.model.model
        own = target.prices if settings.options.get("prices") is None else None
        prices = own or settings.prices
        of_run = (self.seen, state, target, self._mocks, prices, named)
        recorder = Recorder(*of_run, records_all=settings.service.adk_runs)
        name = target.app.name
        if shared is not None and not _is_vertex(sessions):
            # a shared service keeps one ``app:`` state for all sessions of an app
            name = f"{name[:_NAME]}_{outcome.user_id.replace('-', '_')}"
        # first: other plugins may hide things from those after them
        plugins = [recorder, *target.app.plugins, *settings.plugins]
        app = target.app.model_copy(update={"name": name, "plugins": plugins})
        given = settings.options.get
        services: dict[str, Any] = {
            "session_service": sessions,
            "artifact_service": given("artifact_service") or InMemoryArtifactService(),
            "memory_service": given("memory_service") or InMemoryMemoryService(),
        }
        user_id, simulation = outcome.user_id, settings.suite.simulation
        case = to_eval_case(self._case, app_name=name, user_id=user_id, simulation=simulation)
        user = user_of(self._case, self._simulation, self.models)
        planned = settings.plan.of(self._case)
        parts = (app, self._case, case, outcome.session_id, recorder, user, planned)
        service = settings.service(*parts, self._compute, services)
        request = adk_service.InferenceRequest(
            app_name=name, eval_set_id=_SET, inference_config=adk_service.InferenceConfig()
        )
        with replace_tools(self._mocks), replace_models(self.models):
            [inference] = [each async for each in service.perform_inference(request)]
        outcome.error, outcome.stop_reason = inference.error_message, user.stop_reason
        if shared is not None and self.seen.turns:
            who: Any = {"user_id": user_id, "session_id": outcome.session_id}
            session = await sessions.get_session(app_name=name, **who)
            if session is not None:  # some services merge dicts
                recorder.set_state(session.state)
        if outcome.error is None and not any(self.seen.events):
            outcome.error = "the run gave no events"
        if outcome.error is not None:
            return None
        config = adk_service.EvaluateConfig(eval_metrics=service.metrics)
        results = [inference]
        evaluation = adk_service.EvaluateRequest(inference_results=results, evaluate_config=config)
        self.seen.invocations = inference.inferences or []
        if self.seen.simulated:  # what is expected of an answer is expected of the last one
            earlier = [Turn(turn.input) for turn in self.seen.turns[:-1]]
            self.seen.expected = [*earlier, *self._case.turns]
        [result] = [each async for each in service.evaluate(evaluation)]
        outcome.scores = service.scores(result)
        return result

    async def _compute(self, planned: PlannedMetric) -> MetricScore:
        name, threshold = planned.name, planned.threshold
        if planned.judge is not None:
            return await planned.judge.score(self.seen, self._ask(planned.judge))
        if threshold is None or name not in METRICS or METRICS[name].by == "own":
            return compute(name, self.seen, threshold)
        judge, samples = self._settings.judge_model, self._settings.suite.judge_samples
        by_adk = AdkMetric(planned, self.seen, self.models, judge, samples, self._simulation)
        return await by_adk.score()

    def _ask(self, judge: FluentJudge) -> Callable[[str], Awaitable[str]] | None:
        """The function by which a judge asks its model."""
        if judge.model is None:
            return None
        model = resolve_model(judge.model)
        return lambda prompt: self.models.ask(model, prompt_of(prompt))

    def _finish(self) -> None:
        outcome, seen = self.outcome, self.seen
        outcome.turns, outcome.tokens = seen.turns, seen.tokens
        outcome.duration_s, outcome.cost_usd = seen.duration_s, seen.cost_usd
        outcome.state = plain(seen.state)
        outcome.status, outcome.reasons = _verdict(outcome)
        if outcome.error is not None:  # means must not leave metrics out
            planned, why = self._settings.plan.of(self._case), "the run ended in an error"
            absent = [each for each in planned if outcome.score(each.name) is None]
            outcome.scores += [each.without_score(why) for each in absent]
        if (why := self._case.xfail) is not None:
            outcome.note = why
            if outcome.status is Status.PASSED:
                outcome.status = Status.FAILED
                outcome.reasons = [f"expected to fail ({why}), but passed"]
            elif outcome.status is Status.FAILED:  # an error is not the expected failure
                outcome.status = Status.XFAILED
        replace_secrets(outcome)


def new_outcome(
    case: FluentCase, run: int, status: Status = Status.ERROR, note: str = ""
) -> CaseOutcome:
    """Return the outcome of a case before it is run."""
    made = CaseOutcome(case.name, run, status, note=note, target_node=case.target_node or "")
    made.input, made.tags = text_of(case.turns[0].input), list(case.tags)
    made.metadata = plain(dict(case.metadata))
    return made


def _is_vertex(service: object) -> bool:
    """Whether a session service addresses engines of Google Cloud by the app's name."""
    return any(kind.__name__ == "VertexAiSessionService" for kind in type(service).__mro__)


def _verdict(outcome: CaseOutcome) -> tuple[Status, list[str]]:
    if outcome.error is not None:
        return Status.ERROR, [outcome.error]
    reasons = [line for score in outcome.scores for line in _reasons(score)]
    statuses = {score.status for score in outcome.scores} - {MetricStatus.INFORMATIONAL}
    if not statuses or MetricStatus.NOT_EVALUATED in statuses:
        return Status.ERROR, reasons or ["nothing was evaluated"]
    return (Status.FAILED if MetricStatus.FAILED in statuses else Status.PASSED), reasons


def _reasons(score: MetricScore) -> list[str]:
    """Why a metric prevents a pass."""
    if score.ok:
        return []
    if score.status is MetricStatus.NOT_EVALUATED:
        return [f"{score.name} was not evaluated: {score.reason or 'no score'}"]
    found = [
        f"{each.what}{f' of turn {each.turn}' if each.turn else ''}: {each.reason}"
        for each in score.findings
        if not each.ok
    ]
    sign = ">" if score.lower_is_better else "<"
    why = f": {score.reason}" if score.reason else ""
    return found or [f"{score.name} {score.score:.3g} {sign} {score.threshold:.3g}{why}"]
