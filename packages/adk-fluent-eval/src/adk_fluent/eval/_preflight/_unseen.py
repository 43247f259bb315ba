"""What cases say that no metric looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.eval._cases._simulation import player_of
from adk_fluent.eval._metrics import METRICS, PrebuiltMetrics
from adk_fluent.eval._report._words import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._scoring._wanted import Metrics

_P: Final = PrebuiltMetrics
#: The metrics that look at what a case says, for those that ask for none.
_FOR_REFERENCES: Final = (_P.RESPONSE_MATCH_SCORE, _P.FINAL_RESPONSE_MATCH_V2)
_FOR_RUBRICS: Final = (
    _P.RUBRIC_BASED_FINAL_RESPONSE_QUALITY_V1,
    _P.RUBRIC_BASED_TOOL_USE_QUALITY_V1,
)
_FOR_CRITERIA: Final = (_P.PER_TURN_USER_SIMULATOR_QUALITY_V1, _P.MULTI_TURN_TASK_SUCCESS_V1)


def unseen(
    cases: Sequence[FluentCase],
    metrics: Metrics,
    judges: Iterable[FluentJudge],
    simulation: UserSimulation | None,
) -> list[str]:
    """What cases say that nothing of the suite looks at, a line for each kind.

    Functions that judge see the whole case, so where there is one, nothing is said.
    """
    if any(True for _ in judges):
        return []

    def has_criteria(case: FluentCase) -> bool:
        played = player_of(case, simulation)
        return played is not None and bool(played.success_criteria)

    needs = {METRICS[name].needs for name in metrics.names if name in METRICS}
    judged = {str(_P.MULTI_TURN_TASK_SUCCESS_V1)} & {*metrics.names}
    found: list[str] = []
    for what, has, is_seen, add in (
        ("a reference_response", _has_reference, "reference" in needs, _FOR_REFERENCES),
        ("rubrics", _has_rubrics, "rubrics" in needs, _FOR_RUBRICS),
        ("success_criteria", has_criteria, "simulation" in needs or judged, _FOR_CRITERIA),
    ):
        count = 0 if is_seen else sum(map(has, cases))
        if count:
            have = "has" if count == 1 else "have"
            names = " or ".join(map(str, add))
            found.append(
                f"{plural(count, 'case')} {have} {what} that no metric looks at: add {names}"
            )
    return found


def _has_reference(case: FluentCase) -> bool:
    return any(turn.reference_response is not None for turn in case.turns)


def _has_rubrics(case: FluentCase) -> bool:
    return bool(case.rubrics) or any(turn.rubrics for turn in case.turns)
