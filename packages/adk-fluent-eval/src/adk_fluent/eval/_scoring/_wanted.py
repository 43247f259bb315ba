"""Which metrics a case is scored by, and what that takes: decided before any model is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._judge import FluentJudge
from adk_fluent.eval._cases._simulation import player_of
from adk_fluent.eval._checks._checks import expects
from adk_fluent.eval._errors import EvalError, MetricUnavailableError
from adk_fluent.eval._metrics import BUDGET, METRICS, RESPONSE, STATE, TRAJECTORY, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._simulation import UserSimulation

_OWN_CHECKS: Final = (TRAJECTORY, RESPONSE, STATE, BUDGET)
#: Checks whose threshold is fixed: everything that is expected is so, or not.
_WHOLE: Final = frozenset({RESPONSE, STATE, BUDGET})
#: What a case has to have for a metric, in words.
_NEEDS: Final = {
    "": "what it looks at",
    "reference": "a reference_response",
    "rubrics": "rubrics",
    "simulation": "a simulation",
    "trajectory": "an expected_trajectory",
}
_RANGES: Final = {"": (0.0, 1.0), "1-5": (1.0, 5.0)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A metric of a suite.

    Attributes:
        name: The metric.
        threshold: What it has to reach; None for one that only informs.
        metric: What is known of one of ADK's; None for a check or a judge of the user's.
        judge: The user's function.
    """

    name: str
    threshold: float | None
    metric: Metric | None = None
    judge: FluentJudge | None = None


class Metrics:
    """The metrics of a suite.

    Args:
        names: The metrics that are asked for, by name.
        thresholds: Metric to what it has to reach.
        judges: Metrics of the user's own.
        cases: The cases.
        simulation: The suite's user, where cases have none.

    Raises:
        EvalError: There is no such metric, or it applies to no case.
    """

    def __init__(
        self,
        names: Iterable[str],
        thresholds: Mapping[str, float],
        judges: Sequence[FluentJudge],
        cases: Sequence[FluentCase],
        simulation: UserSimulation | None,
    ) -> None:
        self._simulation = simulation
        self._thresholds = {str(name): value for name, value in thresholds.items()}
        self._judges = {judge.name: judge for judge in judges}
        self.names: list[str] = []
        for given in names:
            name = str(given)
            if name in self._judges:
                continue  # it is asked for by being there
            if name not in METRICS and name not in _OWN_CHECKS:
                raise _unknown("there is no metric", name, [*METRICS, *self._judges])
            if name not in self.names:
                self.names.append(name)
        self._check_judges(judges)
        self._check_thresholds(cases)
        for name in self.names:
            if not any(self._applies(name, case) for case in cases):
                raise EvalError(
                    f"metric {name!r} applies to no case",
                    found=f"no case has {_NEEDS[METRICS[name].needs if name in METRICS else '']}",
                    help="give cases what it needs, or leave the metric out",
                )

    @property
    def asks_a_judge(self) -> bool:
        """Whether a model judges."""
        return any(METRICS[name].by == "judge" for name in self.names if name in METRICS)

    def of(self, case: FluentCase) -> list[Wanted]:
        """The metrics of a case: what it expects itself, then what the suite asks for.

        Raises:
            EvalError: There is nothing to hold it against.
        """
        expected = expects(case)
        names = [*expected, *(n for n in self.names if n not in expected)]
        wanted = [self._wanted(name) for name in names if self._applies(name, case)]
        wanted += [
            Wanted(name, judge.threshold, judge=judge) for name, judge in self._judges.items()
        ]
        if any(each.metric is not None and each.metric.needs == "rubrics" for each in wanted):
            _check_rubrics(case)
        if all(each.threshold is None for each in wanted):
            raise case.error(
                "it expects nothing, and no metric of the suite applies to it",
                help="expect a trajectory, an answer or state, or give the suite a metric",
            )
        return wanted

    def _wanted(self, name: str) -> Wanted:
        metric = METRICS.get(name)
        if metric is not None and metric.informational:
            return Wanted(name, None, metric)
        default = 1.0 if metric is None else metric.threshold
        return Wanted(name, self._thresholds.get(name, default), metric)

    def _applies(self, name: str, case: FluentCase) -> bool:
        metric = METRICS.get(name)
        if metric is None:
            return name in expects(case)
        turns = case.turns
        match metric.needs:
            case "trajectory":
                return any(turn.expected_trajectory is not None for turn in turns)
            case "reference":
                return any(turn.reference_response is not None for turn in turns)
            case "rubrics":
                return bool(case.rubrics) or any(turn.rubrics for turn in turns)
            case "simulation":
                return player_of(case, self._simulation) is not None
            case _:
                return True

    def _check_judges(self, judges: Sequence[FluentJudge]) -> None:
        seen: set[str] = set()
        for judge in judges:
            if not isinstance(judge, FluentJudge):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
                raise EvalError(
                    "custom_judges= takes FluentJudges",
                    found=describe(judge),
                    help="write FluentJudge(name=..., fn=...)",
                )
            if judge.name in METRICS or judge.name in _OWN_CHECKS or judge.name in seen:
                raise EvalError(f"there are two metrics called {judge.name!r}")
            seen.add(judge.name)

    def _check_thresholds(self, cases: Sequence[FluentCase]) -> None:
        for name, value in self._thresholds.items():
            if name in self._judges:
                raise EvalError(
                    f"the threshold of judge {name!r} is the judge's own",
                    help=f"write FluentJudge(name={name!r}, threshold={value!r}, ...)",
                )
            if name in _WHOLE:
                raise EvalError(
                    f"the threshold of {name!r} is fixed: everything that is expected is so, or not"
                )
            if name not in METRICS:
                raise _unknown("a threshold is given for", name, METRICS)
            if METRICS[name].informational:
                raise EvalError(f"{name!r} only informs and has no threshold")
            if name not in self.names and name != TRAJECTORY:
                raise EvalError(
                    f"a threshold is given for {name!r}, which is no metric of the suite",
                    help=f"add it: metrics=[{name!r}, ...]",
                )
            if name not in self.names and not any(self._applies(name, case) for case in cases):
                raise EvalError(
                    f"a threshold is given for {name!r}, which applies to no case",
                    found=f"no case has {_NEEDS[METRICS[name].needs]}",
                    help="give cases what it needs, or leave the threshold out",
                )
            is_number = isinstance(value, int | float) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            if not is_number:
                raise EvalError(f"the threshold of {name!r} is no number", found=describe(value))
            least, most = _RANGES[METRICS[name].unit]
            if not least <= value <= most:
                raise EvalError(
                    f"the threshold of {name!r} is none that its scores can reach or miss",
                    found=repr(value),
                    help=f"they go from {least:g} to {most:g}",
                )
            if value == least:
                raise EvalError(
                    f"the threshold of {name!r} is one that every score reaches",
                    found=repr(value),
                    help=f"give one above {least:g}, or leave the metric out",
                )


def _check_rubrics(case: FluentCase) -> None:
    """Look whether a judge can tell the rubrics of a case apart.

    Raises:
        EvalError: Two have one id, or one text.
    """
    for turn in case.turns:
        seen: set[str] = set()
        for each in (*case.rubrics, *turn.rubrics):
            texts = [each] if isinstance(each, str) else [each.text, f"id {each.id}"]
            for text in texts:
                if text in seen and text != "id ":
                    raise case.error("two of its rubrics are the same", found=repr(text))
                seen.add(text)


def _unknown(what: str, name: str, known: Iterable[str]) -> EvalError:
    names = list(known)
    near = nearest_name(name, names)
    return EvalError(
        f"{what} {name!r}, which there is not" if "given" in what else f"{what} {name!r}",
        help=f"did you mean {near!r}?" if near else f"there are {', '.join(names)}",
    )


def unavailable(metric: Metric, why: str, help: str) -> MetricUnavailableError:
    """The error for a metric that cannot be computed here."""
    name = str(metric.name)
    return MetricUnavailableError(
        f"metric {name!r} cannot be computed here", metric=name, found=why, help=help
    )
