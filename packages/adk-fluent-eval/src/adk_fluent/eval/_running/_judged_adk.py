"""Metrics that evaluators of ADK compute, with a judge model or Google Cloud.

ADK leaves out what a judge did not say: a turn without a verdict, a rubric that it forgot, an
answer that cannot be read. What is left then looks like a score; here, it is none.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation import eval_metrics
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.evaluator import EvaluationResult
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.genai import types

from adk_fluent.eval._checks._checks import scored
from adk_fluent.eval._files._cases_adk import rubrics_of, scenario_of
from adk_fluent.eval._metrics import METRICS, Metric, PrebuiltMetrics
from adk_fluent.eval._outcome import Finding, MetricScore
from adk_fluent.eval._text import shown
from adk_fluent.extend import chosen_experiment, error_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.evaluation.eval_rubrics import Rubric
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.eval._cases._turn import UserSimulation
    from adk_fluent.eval._checks._checks import Observation
    from adk_fluent.eval._running._models_adk import Models
    from adk_fluent.eval._running._plan import PlannedMetric

#: The name by which ADK's judges find the model of the metric that is computed.
_JUDGE: Final = "adk-fluent-judge"
#: Metrics of the conversation, not of each turn.
_WHOLE: Final = (
    PrebuiltMetrics.PER_TURN_USER_SIMULATOR_QUALITY_V1,
    PrebuiltMetrics.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1,
)


@dataclass(slots=True)
class _Hearing:
    """One question to a judge.

    Attributes:
        model: The model of the judge.
        models: Asks it.
        said: The answers of the judge, one for each sample.
        failed: What its model last failed with; empty if it did not.
    """

    model: BaseLlm
    models: Models
    said: list[str] = field(default_factory=list[str])
    failed: str = ""

    async def ask(self, request: LlmRequest) -> str:
        """Ask the judge; one that fails says nothing, and ADK goes by its other samples."""
        try:
            # the samples share one request, which the model's client may change
            text = await self.models.ask(self.model, request.model_copy())
        except Exception as error:  # noqa: BLE001  # of any model; told in the reason
            self.failed = error_line(error)
            return ""
        self.said.append(text)
        return text


_HEARING: ContextVar[_Hearing | None] = ContextVar("adk_fluent_eval_hearing", default=None)


class JudgeModel(BaseLlm):
    """Stands for the judge model of a suite: ADK's judges take a model by name alone."""

    @classmethod
    def supported_models(cls) -> list[str]:
        """Return its name."""
        return [_JUDGE]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        """Ask the judge model of the metric that is computed."""
        hearing = _HEARING.get()
        text = "" if hearing is None else await hearing.ask(llm_request)
        content = types.Content(role="model", parts=[types.Part(text=text)])
        yield LlmResponse(content=content)


LLMRegistry.register(JudgeModel)


@dataclass(slots=True)
class AdkMetric:
    """Computes a metric of one run through an evaluator of ADK's.

    Attributes:
        planned: The metric, and what it must reach.
        seen: What the run did.
        models: Asks the judge.
        judge: The judge model; None if no metric needs one.
        samples: Answers of the judge to each question.
        simulation: The user of the case, if it is simulated.
    """

    planned: PlannedMetric
    seen: Observation
    models: Models
    judge: BaseLlm | None
    samples: int
    simulation: UserSimulation | None
    _findings: list[Finding] = field(init=False, default_factory=list[Finding])

    @property
    def _metric(self) -> Metric:
        return METRICS[self.planned.name]

    @property
    def _threshold(self) -> float:
        return self.planned.threshold or 0.0

    async def score(self) -> MetricScore:
        """Compute the metric; what goes wrong gives no score, and the reason."""
        name, threshold, found = self.planned.name, self._threshold, self._findings
        turns: list[float | None] = [None] * len(self.seen.turns)
        try:
            if self._metric.by == "cloud":
                return await self._cloud()
            if name in _WHOLE:
                turns = []
                values = await self._conversation()
            else:
                for at in self._turns():
                    turns[at] = await self._turn(at)
                values = [each for each in turns if each is not None]
        except Exception as error:  # noqa: BLE001  # of ADK and of judges
            why = str(error) if isinstance(error, _UnreadError) else error_line(error)
            return scored(name, None, threshold, reason=why)
        mean = sum(values) / len(values) if values else None
        why = "; ".join(each.reason for each in found if not each.ok)
        why = why if values else "there was nothing to judge"
        return scored(name, mean, threshold, reason=why, findings=found, turns=turns)

    def _turns(self) -> list[int]:
        seen, needs = self.seen, self._metric.needs
        every = range(min(len(seen.turns), len(seen.invocations)))
        if needs == "reference_response":
            return [at for at in every if seen.expected[at].reference_response is not None]
        if needs == "rubrics":
            return [at for at in every if self._rubrics(at)]
        return [at for at in every if seen.turns[at].response.strip()]

    async def _turn(self, at: int) -> float:
        rubrics = self._rubrics(at) if self._metric.needs == "rubrics" else []
        actual, expected = self.seen.invocations[at], None
        reference = self.seen.expected[at].reference_response
        if self._metric.needs == "reference_response":
            answer = types.Content(role="model", parts=[types.Part(text=reference)])
            id, asked = actual.invocation_id, actual.user_content
            made = Invocation(invocation_id=id, user_content=asked, final_response=answer)
            expected = [made]
        hearing, result = await self._heard(rubrics, [actual], expected)
        found = result.per_invocation_results[0] if result.per_invocation_results else None
        if rubrics:
            verdicts = _verdicts(rubrics, found, hearing, at + 1)
            self._findings += verdicts
            return sum(each.ok for each in verdicts) / len(verdicts)
        if found is None or found.score is None:
            raise _unread(hearing, f"of turn {at + 1}")
        ok = found.score >= self._threshold
        what = "answer agrees with the reference" if expected else "answer is grounded"
        why = "" if ok else shown(hearing.said[-1] if hearing.said else "")
        response = self.seen.turns[at].response
        wanted = reference if expected else None
        self._findings.append(Finding(what, ok, wanted, response, why, at + 1))
        return found.score

    async def _conversation(self) -> list[float]:
        rubrics: list[Rubric] = []
        if self._metric.needs == "rubrics":
            for at in range(len(self.seen.expected)):
                known = {each.rubric_id for each in rubrics}
                rubrics += [each for each in self._rubrics(at) if each.rubric_id not in known]
        hearing, result = await self._heard(rubrics, self.seen.invocations, None)
        results = result.per_invocation_results
        if rubrics:
            verdicts = _verdicts(rubrics, results[-1] if results else None, hearing, None)
            self._findings += verdicts
            return [float(each.ok) for each in verdicts]
        # the judge is asked about each message but the first, and about the end
        heard = not hearing.failed and len(hearing.said) >= len(results) * self.samples
        if not heard or not results or any(each.score is None for each in results):
            raise _unread(hearing, "of the simulated user")
        scores = [each.score or 0.0 for each in results]
        for at, score in enumerate(scores, 1):
            ok = bool(score)
            why = "" if ok else "the message does not follow the plan"
            said = self.seen.turns[at - 1].input
            self._findings.append(Finding("simulated user", ok, None, said, why, at))
        return scores

    async def _heard(
        self, rubrics: list[Rubric], actual: list[Invocation], expected: list[Invocation] | None
    ) -> tuple[_Hearing, EvaluationResult]:
        assert self.judge is not None  # noqa: S101  # checked before any model call
        options: dict[str, Any] = {"judge_model": _JUDGE, "num_samples": self.samples}
        options["judge_model_config"] = types.GenerateContentConfig()  # google-adk 1.25 needs it
        fields: dict[str, Any] = {"judge_model_options": eval_metrics.JudgeModelOptions(**options)}
        if rubrics:
            fields["rubrics"] = rubrics
        if (user := self.simulation) is not None and self._metric.needs == "simulation":
            fields["stop_signal"] = user.stop_signal
        evaluator = self._evaluator(**fields)
        scenario = None if user is None else scenario_of(self.seen.case, user)
        hearing = _Hearing(self.judge, self.models)
        token = _HEARING.set(hearing)
        try:
            made: Any = evaluator.evaluate_invocations(actual, expected, scenario)
            return hearing, await made if isawaitable(made) else made
        except ZeroDivisionError:  # what google-adk 1.25 makes of no verdict at all
            return hearing, EvaluationResult()
        finally:
            _HEARING.reset(token)

    async def _cloud(self) -> MetricScore:
        evaluator, actual = self._evaluator(), self.seen.invocations
        made: Any = await asyncio.to_thread(evaluator.evaluate_invocations, actual, actual, None)
        result: EvaluationResult = await made if isawaitable(made) else made
        turns = [each.score for each in result.per_invocation_results]
        why = "" if result.overall_score is not None else "Google Cloud gave no score"
        score, least = result.overall_score, self._threshold
        return scored(self.planned.name, score, least, reason=why, turns=turns)

    def _evaluator(self, **fields: Any) -> Any:
        """ADK's evaluator; with threshold and criterion, as versions read either."""
        module, _, name = self._metric.evaluator.partition(":")
        least = self._threshold
        with chosen_experiment():
            kind: Any = getattr(import_module(f"google.adk.evaluation.{module}"), name)
            criterion = kind.criterion_type(threshold=least, **fields)
            asked = EvalMetric(metric_name=self.planned.name, threshold=least, criterion=criterion)
            return kind(eval_metric=asked)

    def _rubrics(self, at: int) -> list[Rubric]:
        """The rubrics of the case, and those of a turn."""
        turn = self.seen.expected[at].rubrics if at < len(self.seen.expected) else ()
        return [*rubrics_of(self.seen.case.rubrics), *rubrics_of(turn, f"turn_{at + 1}_rubric")]


class _UnreadError(Exception):
    """A judge gave no verdict."""


def _unread(hearing: _Hearing, what: str) -> _UnreadError:
    if not hearing.said:
        return _UnreadError(f"the judge failed: {hearing.failed or 'it was not asked'}")
    return _UnreadError(f"the judge gave no readable verdict {what}: {shown(hearing.said[-1])}")


def _verdicts(
    rubrics: list[Rubric], result: Any, hearing: _Hearing, turn: int | None
) -> list[Finding]:
    told = {} if result is None else {each.rubric_id: each for each in result.rubric_scores or ()}
    findings: list[Finding] = []
    for rubric in rubrics:
        text = shown(rubric.rubric_content.text_property)
        verdict = told.get(rubric.rubric_id)
        if verdict is None or verdict.score is None:
            raise _unread(hearing, f"on rubric {text}")
        ok = verdict.score >= 1
        why = "" if ok else (verdict.rationale or "not met").strip()
        findings.append(Finding(f"rubric {text}", ok, True, ok, why, turn))
    return findings
