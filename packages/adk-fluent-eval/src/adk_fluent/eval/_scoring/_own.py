"""Metrics that are computed here, from what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.eval._checks._checks import (
    check_budget,
    check_response,
    check_state,
    check_trajectory,
    judged,
)
from adk_fluent.eval._metrics import BUDGET, RESPONSE, STATE, TRAJECTORY, PrebuiltMetrics
from adk_fluent.eval._outcome import Finding, MetricScore, MetricStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adk_fluent.eval._checks._observed import Observed
    from adk_fluent.eval._outcome import TurnOutcome
    from adk_fluent.eval._scoring._wanted import Wanted


def own_score(wanted: Wanted, seen: Observed) -> MetricScore | Awaitable[MetricScore]:
    """The score of a metric that is computed here."""
    if wanted.judge is not None:
        return wanted.judge.score(seen)
    return _SCORES[wanted.name](seen, wanted) or MetricScore(
        wanted.name, MetricStatus.NOT_EVALUATED, reason="there was nothing to look at"
    )


def is_own(wanted: Wanted) -> bool:
    """Whether a metric is computed here."""
    return wanted.judge is not None or wanted.name in _SCORES


def _trajectory(seen: Observed, wanted: Wanted) -> MetricScore | None:
    return check_trajectory(seen, wanted.threshold or 0.0)


def _response_match(seen: Observed, wanted: Wanted) -> MetricScore | None:
    from adk_fluent.eval._checks._rouge import rouge1  # noqa: PLC0415  # seldom needed

    turns: list[float | None] = [None] * len(seen.turns)
    found: list[Finding] = []
    for at, turn in enumerate(seen.expected):
        reference = turn.reference_response
        where = len(seen.turns) - 1 if seen.is_played else at
        if reference is None or not 0 <= where < len(seen.turns):
            continue
        answer = seen.turns[where].response
        score = turns[where] = rouge1(answer, reference)
        ok = score >= (wanted.threshold or 0.0)
        reason = "" if ok else f"ROUGE-1 is {score:.2f}"
        found.append(Finding("answer matches", ok, reference, answer, reason, where + 1))
    scores = [each for each in turns if each is not None]
    if not scores:
        return None
    mean = sum(scores) / len(scores)
    return judged(wanted.name, mean, wanted.threshold or 0.0, findings=found, turns=turns)


def _informs(
    count: Callable[[TurnOutcome], float | None], unit: str, *, of_all: bool = False
) -> Callable[[Observed, Wanted], MetricScore]:
    """A metric that only informs: the mean of its turns, as ADK's are.

    Args:
        count: The figure of a turn; None if nobody said.
        unit: What it is counted in.
        of_all: Whether turns of which nobody said count as 0, as ADK's tokens do, once one has one.
    """

    def score(seen: Observed, wanted: Wanted) -> MetricScore:
        turns = [count(turn) for turn in seen.turns]
        known = [each for each in turns if each is not None]
        return MetricScore(
            wanted.name,
            MetricStatus.INFORMATIONAL,
            sum(known) / len(turns if of_all else known) if known else None,
            reason="" if known else "nobody said",
            turns=turns,
            unit=unit,
        )

    return score


_P: Final = PrebuiltMetrics
_SCORES: Final[dict[str, Callable[[Observed, Wanted], MetricScore | None]]] = {
    TRAJECTORY: _trajectory,
    RESPONSE: lambda seen, _: check_response(seen),
    STATE: lambda seen, _: check_state(seen),
    BUDGET: lambda seen, _: check_budget(seen),
    _P.RESPONSE_MATCH_SCORE: _response_match,
    _P.TOOL_CALL_COUNT_V1: _informs(lambda turn: len(turn.tool_uses), "calls"),
    _P.INFERENCE_CALL_COUNT_V1: _informs(lambda turn: turn.model_calls, "calls"),
    # models that do not say what they took have not taken nothing
    _P.TOKEN_USAGE_V1: _informs(lambda turn: turn.tokens.total or None, "tokens", of_all=True),
    _P.INVOCATION_DURATION_V1: _informs(lambda turn: turn.duration_s, "s"),
}
