"""What judges told, and whether that is a verdict at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent.eval._checks._same import shown
from adk_fluent.eval._outcome import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.evaluation.eval_rubrics import Rubric
    from google.adk.evaluation.evaluator import Evaluator, PerInvocationResult

    from adk_fluent.eval._checks._observed import Observed
    from adk_fluent.eval._scoring._judges_adk import Hearing


@dataclass(slots=True)
class Verdict:
    """What a judge told of one turn, or of the whole conversation.

    Attributes:
        scores: What counts towards the metric: the turn's score, or one for each rubric.
        score: The turn's score; None if there is none.
        reason: What the judge said.
        problem: Why it is no verdict; empty if it is one.
        findings: What it looked at.
        result: The same as ADK has it.
    """

    scores: list[float] = field(default_factory=list[float])
    score: float | None = None
    reason: str = ""
    problem: str = ""
    findings: list[Finding] = field(default_factory=list[Finding])
    result: PerInvocationResult | None = None


def by_rubrics(
    rubrics: Sequence[Rubric], result: PerInvocationResult | None, hearing: Hearing, at: int | None
) -> Verdict:
    """The verdict on rubrics of a turn, counted from 0; None is the whole conversation."""
    scores = {} if result is None else {e.rubric_id: e for e in result.rubric_scores or ()}
    turn = None if at is None else at + 1
    verdict = Verdict(score=None if result is None else result.score, result=result)
    reasons: list[str] = []
    for rubric in rubrics:
        told, text = scores.get(rubric.rubric_id), rubric.rubric_content.text_property or ""
        if told is None or told.score is None:
            verdict.problem = unread(all_said(hearing), hearing, f"on rubric {shown(text)}")
            return verdict
        ok, why = told.score >= 1, (told.rationale or "").strip()
        verdict.scores.append(told.score)
        verdict.findings.append(
            Finding(
                f"rubric {shown(text)}", ok, "yes", "yes" if ok else "no", "" if ok else why, turn
            )
        )
        reasons.append(f"{rubric.rubric_id}: {'yes' if ok else 'no'}" + (f", {why}" if why else ""))
    verdict.reason = "; ".join(reasons)
    return verdict


def unread(said: Sequence[str], hearing: Hearing, what: str) -> str:
    """Why there is no verdict: what the judge said is none, or it said nothing."""
    if not said:
        return hearing.failed or "the judge was not asked"
    return f"the judge gave no verdict {what} that can be read: {shown(said[0].strip())}"


def all_said(hearing: Hearing) -> list[str]:
    """Everything that the judge said, whatever it was asked."""
    return [text for said in hearing.said.values() for text in said]


def reason_for(evaluator: Any, hearing: Hearing, score: float) -> str:
    """What the judge said for a score: of several samples, one that says so."""
    texts = [text.strip() for text in all_said(hearing)]
    read = getattr(evaluator, "convert_auto_rater_response_to_score", None)
    if read is None:  # it takes several questions to come to a score: the last one is of it
        return texts[-1] if texts else ""
    agreeing = [text for text in texts if read(_response(text)).score == score]
    if not agreeing:
        return ""
    of = f"{len(agreeing)} of {len(texts)} samples: " if len(agreeing) < len(texts) else ""
    return of + agreeing[0]


def of_user(
    results: Sequence[PerInvocationResult], hearing: Hearing, evaluator: Evaluator, seen: Observed
) -> dict[int, Verdict]:
    """How the user was played, turn by turn.

    The judge is asked of each turn but the first, and then of the end, of which ADK tells
    nothing unless it was bad.
    """
    convert = getattr(evaluator, "_convert_llm_response_to_score")  # noqa: B009  # private

    def score(text: str) -> float | None:
        return convert(_response(text)).score

    questions = list(hearing.said.values())
    verdicts: dict[int, Verdict] = {}
    for at, result in enumerate(results):
        verdict = verdicts[at] = Verdict(score=result.score, result=result)
        is_last = at == len(results) - 1
        asked = [*questions[max(0, at - 1) : at], *(questions[-1:] if is_last else ())]
        for said in asked:
            if all(score(text) is None for text in said):
                verdict.problem = unread(said, hearing, f"of turn {at + 1}")
        if verdict.problem or result.score is None:
            verdict.problem = verdict.problem or f"turn {at + 1} could not be judged"
            continue
        ok = result.eval_status == EvalStatus.PASSED
        verdict.scores = [result.score if ok else 0.0]  # as ADK counts it
        bad = [text.strip() for said in asked for text in said if not score(text)]
        verdict.reason = bad[0] if bad and not ok else ""
        said_there = seen.turns[at].input
        verdict.findings = [
            Finding("user is played as planned", ok, None, said_there, verdict.reason, at + 1)
        ]
    return verdicts


def _response(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))
