"""The metrics of each case, decided before any model call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent.errors import nearest_name
from adk_fluent.eval._checks._checks import (
    check_budget,
    check_match,
    check_response,
    check_state,
    check_trajectory,
    expectations,
)
from adk_fluent.eval._errors import EvalError, MetricUnavailableError
from adk_fluent.eval._gate import is_number
from adk_fluent.eval._metrics import (
    BUDGET,
    CHECKS,
    MATCH,
    METRICS,
    RESPONSE,
    STATE,
    TRAJECTORY,
    UNAVAILABLE,
    PrebuiltMetrics,
)
from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.eval._text import plural
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._checks._observation import Observation
    from adk_fluent.eval._gate import Gate
    from adk_fluent.eval._outcome import TurnOutcome

_ALWAYS_MET = frozenset({RESPONSE, STATE, BUDGET})  # checks with a fixed threshold


@dataclass(frozen=True, slots=True)
class PlannedMetric:
    """A metric of a case.

    Attributes:
        name: The metric.
        threshold: What it must reach; None for an informational metric.
        judge: The user's judge; None for a metric of ours.
    """

    name: str
    threshold: float | None
    judge: FluentJudge | None = None


class MetricPlan:
    """The metrics of a suite."""

    def __init__(
        self,
        metrics: Iterable[str],
        thresholds: Mapping[str, float],
        judges: Sequence[FluentJudge],
        cases: Sequence[FluentCase],
    ) -> None:
        self._judges = {judge.name: judge for judge in judges}
        self._thresholds = {str(name): value for name, value in thresholds.items()}
        self.names = list(dict.fromkeys(map(str, metrics)))
        for name in self.names:
            self._check_known(name)
            if name not in self._judges and not any(_applies(name, case) for case in cases):
                need = {MATCH: "a reference_response", TRAJECTORY: "an expected_trajectory"}
                raise EvalError(
                    f"metric {name!r} applies to no case",
                    found=f"no case has {need.get(name, 'such an expectation')}",
                )
        for judge in judges:
            if judge.name in (*METRICS, *CHECKS) or len(self._judges) < len(judges):
                raise EvalError(f"two metrics are called {judge.name!r}", help="rename the judge")
        for name, value in self._thresholds.items():
            self._check_threshold(name, value, cases)

    def of(self, case: FluentCase) -> list[PlannedMetric]:
        """Return the metrics of a case: its own checks, then the suite's."""
        expected = expectations(case)
        names = [*expected, *(name for name in self.names if name not in expected)]
        planned = [
            PlannedMetric(name, self._threshold(name)) for name in names if _applies(name, case)
        ]
        planned += [
            PlannedMetric(name, judge.threshold, judge) for name, judge in self._judges.items()
        ]
        if all(each.threshold is None for each in planned):
            raise case.error(
                "it expects nothing, and no metric of the suite applies to it",
                help="expect a trajectory, an answer or state, or give the suite a metric",
            )
        return planned

    def unused(self, cases: Sequence[FluentCase]) -> list[str]:
        """Return notes about expectations that no metric uses."""
        if self._judges or MATCH in self.names:
            return []
        count = sum(
            any(turn.reference_response is not None for turn in case.turns) for case in cases
        )
        if not count:
            return []
        what = f"{plural(count, 'case')} with a reference_response that no metric uses"
        return [f"{what}: add metrics=[{MATCH!r}]"]

    def _threshold(self, name: str) -> float | None:
        default = METRICS[name].threshold if name in METRICS else 1.0
        return default if default is None else self._thresholds.get(name, default)

    def _check_known(self, name: str) -> None:
        if name in UNAVAILABLE:
            raise MetricUnavailableError(
                f"metric {name!r} is not supported yet",
                metric=name,
                found=f"it needs ADK's own evaluators and {UNAVAILABLE[name]}",
                help="leave it out, or write a FluentJudge",
            )
        if name not in METRICS and name not in CHECKS and name not in self._judges:
            near = nearest_name(name, [*METRICS, *UNAVAILABLE, *self._judges])
            raise EvalError(
                f"unknown metric {name!r}",
                help=f"did you mean {near!r}?" if near else f"one of {', '.join(METRICS)}",
            )

    def _check_threshold(self, name: str, value: object, cases: Sequence[FluentCase]) -> None:
        if name in self._judges:
            raise EvalError(
                f"the threshold of judge {name!r} belongs to the judge",
                help=f"write FluentJudge(name={name!r}, threshold={value!r}, ...)",
            )
        self._check_known(name)
        if name in _ALWAYS_MET:
            raise EvalError(f"the threshold of {name!r} is fixed: every expectation must be met")
        if METRICS[name].threshold is None:
            raise EvalError(f"{name!r} is informational and takes no threshold")
        if name not in self.names and name != TRAJECTORY:
            raise EvalError(
                f"thresholds= names {name!r}, which is not a metric of the suite",
                help=f"add it: metrics=[{name!r}, ...]",
            )
        if not any(_applies(name, case) for case in cases):
            raise EvalError(f"thresholds= names {name!r}, which applies to no case")
        if not is_number(value):
            raise EvalError(f"the threshold of {name!r} must be a number", found=describe(value))
        if not (isinstance(value, int | float) and 0 < value <= 1):
            raise EvalError(
                f"the threshold of {name!r} must be above 0 and at most 1",
                found=repr(value),
                help="every score reaches 0; leave the metric out instead" if value == 0 else None,
            )


def _applies(name: str, case: FluentCase) -> bool:
    if name == MATCH:
        return any(turn.reference_response is not None for turn in case.turns)
    return name in expectations(case) if name in CHECKS else True


def check_gate(
    gate: Gate, cases: Sequence[FluentCase], plan: MetricPlan, judges: Iterable[FluentJudge]
) -> None:
    """Check that a gate names tags and metrics that the suite has."""
    metrics = {*plan.names, *(judge.name for judge in judges)}
    metrics |= {name for case in cases for name in expectations(case)}
    for field, word, names, known in (
        ("min_tag_pass_rate", "tag", gate.min_tag_pass_rate, {t for c in cases for t in c.tags}),
        ("min_metric", "metric", gate.min_metric, metrics),
    ):
        for name in map(str, names):
            if name not in known:
                near = nearest_name(name, known)
                raise EvalError(
                    f"the gate names {word} {name!r}, which the suite does not have",
                    found=f"Gate({field}=...); {word}s: {', '.join(sorted(known)[:20]) or 'none'}",
                    help=f"did you mean {near!r}?" if near else None,
                )
    for name in map(str, gate.min_metric):
        if name in METRICS and METRICS[name].threshold is None:
            raise EvalError(
                f"the gate names metric {name!r}, which is informational",
                found="Gate(min_metric=...)",
                help="limit cases instead: max_tokens, max_tool_calls, max_latency_s, max_cost_usd",
            )


# --- scores --------------------------------------------------------------------------------------


async def compute(
    planned: PlannedMetric,
    seen: Observation,
    ask: Callable[[FluentJudge], Callable[[str], Awaitable[str]] | None],
) -> MetricScore:
    """Compute a metric."""
    name, threshold = planned.name, planned.threshold
    if planned.judge is not None:
        return await planned.judge.score(seen, ask(planned.judge))
    if threshold is None:
        return _informational(name, seen)
    match name:
        case "adk_fluent_response":
            score = check_response(seen)
        case "adk_fluent_state":
            score = check_state(seen)
        case "adk_fluent_budget":
            score = check_budget(seen)
        case "response_match_score":
            score = check_match(seen, threshold)
        case _:
            score = check_trajectory(seen, threshold)
    return score or MetricScore(name, MetricStatus.NOT_EVALUATED, reason="nothing to evaluate")


_P = PrebuiltMetrics
_COUNTS: dict[str, Callable[[TurnOutcome], float | None]] = {
    _P.TOOL_CALL_COUNT_V1: lambda turn: len(turn.tool_uses),
    _P.INFERENCE_CALL_COUNT_V1: lambda turn: turn.model_calls,
    # a model that reports no usage has not used zero tokens
    _P.TOKEN_USAGE_V1: lambda turn: turn.tokens.total or None,
    _P.INVOCATION_DURATION_V1: lambda turn: turn.duration_s,
}


def _informational(name: str, seen: Observation) -> MetricScore:
    """A metric that decides nothing: the mean over turns, as ADK computes it."""
    turns = [_COUNTS[name](turn) for turn in seen.turns]
    known = [each for each in turns if each is not None]
    return MetricScore(
        name,
        MetricStatus.INFORMATIONAL,
        sum(known) / len(turns) if known else None,
        reason="" if known else "not reported",
        turns=turns,
        unit=METRICS[name].unit,
    )
