"""Metrics that evaluators of ADK's compute: asked for what they can tell, and held to it.

ADK passes over what a judge did not tell: a turn without a verdict, a rubric that it forgot, an
answer that nobody can read. What is left then looks like a score. Here it is none.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.evaluator import EvaluationResult, Evaluator, PerInvocationResult

from adk_fluent.eval._checks._checks import judged
from adk_fluent.eval._metrics import PrebuiltMetrics
from adk_fluent.eval._outcome import Finding, MetricScore, MetricStatus
from adk_fluent.eval._scoring._judges_adk import JUDGE, Hearing
from adk_fluent.eval._scoring._metrics_adk import (
    TO_ADK,
    adk_evaluator,
    adk_rubrics,
    as_expected,
    eval_metric,
)
from adk_fluent.eval._scoring._verdicts_adk import (
    Verdict,
    all_said,
    by_rubrics,
    of_user,
    reason_for,
    unread,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_rubrics import Rubric

    from adk_fluent.eval._checks._observed import Observed
    from adk_fluent.eval._metrics import Metric
    from adk_fluent.eval._scoring._wanted import Wanted

_WHOLE: Final = frozenset(
    {
        PrebuiltMetrics.PER_TURN_USER_SIMULATOR_QUALITY_V1,
        PrebuiltMetrics.RUBRIC_BASED_MULTI_TURN_TRAJECTORY_QUALITY_V1,
    }
)


class JudgedEvaluator(Evaluator):
    """A metric that a model judges, through ADK's evaluator of it.

    Args:
        wanted: The metric.
        seen: What was observed.
        hear: Begins a new hearing of the judge.
        samples: How often the judge is asked for each turn.
        stop_signal: What a user who is played ends with.
        told: Where the score is kept, by name: ADK has no place for reasons and findings.
    """

    def __init__(
        self,
        wanted: Wanted,
        seen: Observed,
        hear: Callable[[], Hearing],
        *,
        samples: int,
        stop_signal: str,
        told: dict[str, MetricScore],
    ) -> None:
        self._wanted = wanted
        self._metric = cast("Metric", wanted.metric)
        self._seen = seen
        self._hear = hear
        self._samples = samples
        self._stop_signal = stop_signal
        self._told = told

    async def evaluate_invocations(
        self,
        actual_invocations: list[Invocation],
        expected_invocations: list[Invocation] | None = None,
        conversation_scenario: Any = None,
    ) -> EvaluationResult:
        """The score, with what the judge said of each turn."""
        actual = actual_invocations
        if self._metric.name in _WHOLE:
            verdicts = await self._whole(actual, expected_invocations, conversation_scenario)
        else:
            verdicts = {
                at: await self._turn(at, actual[at]) for at in self._turns() if at < len(actual)
            }
        score = self._score(verdicts, len(actual))
        self._told[score.name] = score
        if score.status is MetricStatus.NOT_EVALUATED:
            return EvaluationResult(overall_eval_status=EvalStatus.NOT_EVALUATED)
        results = [
            (verdicts[at].result if at in verdicts else None)
            or PerInvocationResult(actual_invocation=each)
            for at, each in enumerate(actual)
        ]
        rubrics = [rubric for each in results for rubric in each.rubric_scores or ()]
        return EvaluationResult(
            overall_score=score.score,
            overall_eval_status=TO_ADK[score.status],
            per_invocation_results=results,
            overall_rubric_scores=rubrics or None,
        )

    def _score(self, verdicts: dict[int, Verdict], turns: int) -> MetricScore:
        found = list(verdicts.values())
        scores = [score for each in found for score in each.scores]
        problem = next((each.problem for each in found if each.problem), "")
        by_turn = {at: each.score for at, each in verdicts.items()}
        several = len([each for each in found if each.reason]) > 1
        reasons = (
            f"turn {at + 1}: {each.reason}" if several else each.reason
            for at, each in verdicts.items()
            if each.reason
        )
        return judged(
            self._wanted.name,
            None if problem or not scores else sum(scores) / len(scores),
            self._wanted.threshold or 0.0,
            reason=problem or "\n".join(reasons) or ("" if scores else "nothing was judged"),
            findings=[] if problem else [finding for each in found for finding in each.findings],
            turns=[by_turn.get(at) for at in range(turns)],
        )

    # --- turn by turn --------------------------------------------------------------------------

    def _turns(self) -> list[int]:
        """The turns of which there is something to judge."""
        seen = self._seen
        every = range(len(seen.turns))
        if self._metric.needs == "reference":
            if seen.is_played:  # what is expected is expected of the last answer
                return [len(every) - 1] if every else []
            return [at for at in every if seen.expected[at].reference_response is not None]
        if self._metric.needs == "rubrics":
            return [at for at in every if self._rubrics(at)]
        return list(every)

    async def _turn(self, at: int, actual: Invocation) -> Verdict:
        rubrics = self._rubrics(at) if self._metric.needs == "rubrics" else []
        evaluator = self._evaluator(rubrics)
        expected = None
        if self._metric.needs == "reference":
            expected = [as_expected(actual, self._reference(at))]
        hearing = self._hear()
        with hearing.begin():
            found = await _found(evaluator, [actual], expected, None)
        result = found.per_invocation_results[0] if found.per_invocation_results else None
        score = None if result is None else result.score
        if rubrics:
            return by_rubrics(rubrics, result, hearing, at)
        verdict = Verdict(score=score, result=result)
        if score is None:
            silent = not self._seen.turns[at].response.strip()
            if self._metric.needs == "reference" or not silent:
                verdict.problem = unread(all_said(hearing), hearing, f"of turn {at + 1}")
            return verdict  # of a turn without an answer there is nothing to say
        if hearing.unanswered:
            verdict.problem = hearing.failed
        verdict.scores = [score]
        verdict.reason = reason_for(evaluator, hearing, score)
        ok = score >= (self._wanted.threshold or 0.0)
        verdict.findings = [
            Finding(
                "answer agrees with the reference" if expected else "answer is grounded",
                ok,
                self._reference(at) if expected else None,
                self._seen.turns[at].response,
                "" if ok else verdict.reason,
                at + 1,
            )
        ]
        return verdict

    def _reference(self, at: int) -> str:
        expected = self._seen.expected
        if not self._seen.is_played:
            return expected[at].reference_response or ""
        given = [each.reference_response for each in expected]
        return next(each for each in reversed(given) if each is not None)

    def _rubrics(self, at: int) -> list[Rubric]:
        """What the judge looks for in a turn: the rubrics of the case, and its own."""
        seen = self._seen
        made = adk_rubrics(seen.case.rubrics, "")
        if seen.is_played or at >= len(seen.expected):
            return made
        return made + adk_rubrics(seen.expected[at].rubrics, f"_of_turn_{at + 1}")

    # --- the whole conversation ----------------------------------------------------------------

    async def _whole(
        self, actual: list[Invocation], expected: list[Invocation] | None, scenario: Any
    ) -> dict[int, Verdict]:
        rubrics = self._all_rubrics() if self._metric.needs == "rubrics" else []
        evaluator, hearing = self._evaluator(rubrics), self._hear()
        with hearing.begin():
            found = await _found(evaluator, actual, expected, scenario)
        results = found.per_invocation_results
        if rubrics:
            last = results[-1] if results else None
            return {len(actual) - 1: by_rubrics(rubrics, last, hearing, None)}
        return of_user(results, hearing, evaluator, self._seen)

    def _all_rubrics(self) -> list[Rubric]:
        made = adk_rubrics(self._seen.case.rubrics, "")
        for at, turn in enumerate(self._seen.expected):
            made += adk_rubrics(turn.rubrics, f"_of_turn_{at + 1}")
        return made

    def _evaluator(self, rubrics: Sequence[Rubric]) -> Evaluator:
        """ADK's evaluator, with our model for the judge."""
        wanted = eval_metric(
            self._wanted.name,
            self._wanted.threshold,
            self._metric,
            judge=JUDGE,
            samples=self._samples,
            rubrics=rubrics,
            stop_signal=self._stop_signal,
        )
        return adk_evaluator(self._metric, wanted)


async def _found(
    evaluator: Evaluator,
    actual: list[Invocation],
    expected: list[Invocation] | None,
    scenario: Any,
) -> EvaluationResult:
    try:
        found: Any = evaluator.evaluate_invocations(
            actual_invocations=actual,
            expected_invocations=expected,
            conversation_scenario=scenario,
        )
        return await found if isawaitable(found) else found
    except ZeroDivisionError:  # what google-adk 1.25 makes of no verdict at all
        return EvaluationResult()
