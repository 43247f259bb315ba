"""A report against a baseline: which cases got worse, and whether that is more than accident."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError, EvalFailedError
from adk_fluent.eval._outcome import MetricStatus, Status
from adk_fluent.eval._report._statistics import detectable_drop, mcnemar
from adk_fluent.eval._report._summaries import is_score, mean
from adk_fluent.eval._report._text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.eval._outcome import CaseOutcome, MetricScore
    from adk_fluent.eval._report._report import FluentEvalReport

#: Whether a figure went where it should.
Direction = Literal["better", "worse", "same"]

#: What is counted in these is better the less there is of it.
_SPENT = frozenset({"tokens", "s", "calls", "USD"})


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of which more, or fewer, runs pass than did.

    Attributes:
        id: The case.
        before: The worst status of its runs in the baseline.
        now: The worst status of its runs in this report.
        passed_before: Runs that passed in the baseline.
        runs_before: Runs that count in the baseline.
        passed_now: Runs that passed in this report.
        runs_now: Runs that count in this report.
        reasons: Why its first run that did not pass now did not; empty if all passed.
    """

    id: str
    before: Status
    now: Status
    passed_before: int
    runs_before: int
    passed_now: int
    runs_now: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Delta:
    """How a figure over the cases of both reports moved: a metric's mean, or a tag's pass rate.

    Attributes:
        name: The metric or tag.
        before: The figure of the baseline: a mean over cases of the mean over their runs.
        now: The figure of this report.
        direction: Whether it went where it should; for a metric where lower is better, down.
        cases: Cases that have it in both.
        unit: As `MetricScore.unit`.
    """

    name: str
    before: float
    now: float
    direction: Direction
    cases: int
    unit: str = ""

    @property
    def change(self) -> float:
        """How much more it is now."""
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class RegressionReport:
    """A report against a baseline, case by case.

    A case got worse when fewer of its runs pass, by however little. Where one report has more runs
    of a case than the other, only the first are compared, as many as both have: with one run, a
    case that passes nine times of ten is likely whole, with three, it is likely not. What is
    shown, pass rates and counts of runs, is of all runs that count.

    Attributes:
        suite: The suite's name.
        regressed: Cases that got worse.
        improved: Cases that got better.
        still_passing: Cases whose compared runs all pass, as before.
        still_failing: Cases whose compared runs pass as seldom as before.
        added: Ids of cases that only this report has.
        removed: Ids of cases that only the baseline has.
        not_compared: Ids of cases that were skipped, or expected to fail, on either side.
        metric_deltas: Metric to how its mean moved.
        tag_deltas: Tag to how its pass rate moved.
        before: Pass rate of the compared cases in the baseline: the mean of their shares.
        now: The same in this report.
        alpha: The p-value up to which a change is no accident.
        uneven: How many of the compared cases have more runs in one report than in the other.
    """

    suite: str = "suite"
    regressed: tuple[CaseChange, ...] = ()
    improved: tuple[CaseChange, ...] = ()
    still_passing: int = 0
    still_failing: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    metric_deltas: dict[str, Delta] = field(default_factory=dict[str, Delta])
    tag_deltas: dict[str, Delta] = field(default_factory=dict[str, Delta])
    before: float = 0.0
    now: float = 0.0
    alpha: float = 0.05
    uneven: int = 0

    @property
    def flips(self) -> dict[str, CaseChange]:
        """Id to what changed, for every case that got worse or better."""
        return {each.id: each for each in (*self.regressed, *self.improved)}

    @property
    def compared(self) -> int:
        """How many cases were compared."""
        return len(self.regressed) + len(self.improved) + self.still_passing + self.still_failing

    @property
    def p_value(self) -> float:
        """How likely accident alone splits the changed cases at least this unevenly."""
        return mcnemar(len(self.regressed), len(self.improved))

    @property
    def significant(self) -> bool:
        """Whether the change, for worse or for better, is no accident."""
        return self.p_value <= self.alpha

    @property
    def detectable(self) -> float:
        """The smallest drop of the pass rate that so many cases would tell; see the statistics.

        `math.inf` if there are so few cases that none would be significant.
        """
        return detectable_drop(self.compared, self.before, 1 - self.alpha)

    @property
    def ok(self) -> bool:
        """Whether cases were compared, and none got worse."""
        return self.compared > 0 and not self.regressed

    def assert_ok(self) -> None:
        """Does nothing if no case got worse.

        Raises:
            EvalFailedError: Cases got worse, or none was compared.
        """
        if self.ok:
            return
        if not self.compared:
            raise EvalFailedError(
                f"suite {self.suite!r} shares no case with its baseline",
                help="cases are matched by id: give them ids that stay, or make a new baseline",
            )
        lines = [change_line(each) for each in self.regressed[:10]]
        if (more := len(self.regressed) - len(lines)) > 0:
            lines.append(f"and {more:,} more")
        raise EvalFailedError(
            f"suite {self.suite!r} got worse: {len(self.regressed):,} of {self.compared:,} cases "
            f"regressed (p={self.p_value:.3g})",
            found="\n    ".join(lines),
        )

    def to_json(self) -> str:
        """All of it as JSON."""
        from adk_fluent.eval._report._json import comparison_text  # noqa: PLC0415  # not needed yet

        return comparison_text(self)

    def to_markdown(self) -> str:
        """All of it for people, safe to show whatever the models said."""
        from adk_fluent.eval._report._markdown_compare import comparison_page  # noqa: PLC0415

        return comparison_page(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def compare(
    current: FluentEvalReport, baseline: Iterable[CaseOutcome], alpha: float = 0.05
) -> RegressionReport:
    """A report against a baseline; cases are matched by id, runs by their order.

    Args:
        current: The report.
        baseline: The runs that it is held against, those of a case in order.
        alpha: The p-value up to which a change is no accident, above 0 and below 1.

    Raises:
        EvalError: `alpha` is no such number.
    """
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        raise EvalError("alpha= is no number between 0 and 1", found=describe(alpha))
    now, then = _by_case(current.outcomes), _by_case(baseline)
    shared = [id for id in now if id in then]
    pairs = {id: (_counting(then[id]), _counting(now[id])) for id in shared}
    pairs = {id: pair for id, pair in pairs.items() if pair[0] and pair[1]}
    gains = {id: _gain(*pair) for id, pair in pairs.items()}
    same = [pairs[id] for id, gain in gains.items() if gain == 0]
    passing = sum(all(each.passed for each in _matched(*pair)[1]) for pair in same)
    return RegressionReport(
        suite=current.suite,
        regressed=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain < 0),
        improved=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain > 0),
        still_passing=passing,
        still_failing=len(same) - passing,
        added=tuple(id for id in now if id not in then),
        removed=tuple(id for id in then if id not in now),
        not_compared=tuple(id for id in shared if id not in pairs),
        metric_deltas=_metric_deltas(pairs.values()),
        tag_deltas=_tag_deltas(pairs.values()),
        before=_rate(before for before, _ in pairs.values()),
        now=_rate(runs for _, runs in pairs.values()),
        alpha=alpha,
        uneven=sum(len(before) != len(runs) for before, runs in pairs.values()),
    )


def change_line(change: CaseChange, limit: int = 300) -> str:
    """A changed case in one line."""
    counts = (
        f"{change.passed_before} of {change.runs_before} -> "
        f"{change.passed_now} of {change.runs_now} runs passed"
    )
    why = f": {one_line(change.reasons[0], limit)}" if change.reasons else ""
    return f"{one_line(change.id, limit)} ({counts}){why}"


def _by_case(outcomes: Iterable[CaseOutcome]) -> dict[str, list[CaseOutcome]]:
    found: dict[str, list[CaseOutcome]] = {}
    for each in outcomes:
        found.setdefault(each.id, []).append(each)
    return found


def _counting(outcomes: Iterable[CaseOutcome]) -> list[CaseOutcome]:
    return [each for each in outcomes if each.status.counts]


def _change(id: str, before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]) -> CaseChange:
    missed = next((each for each in now if not each.passed), None)
    return CaseChange(
        id,
        _worst(before),
        _worst(now),
        sum(each.passed for each in before),
        len(before),
        sum(each.passed for each in now),
        len(now),
        tuple(missed.reasons) if missed is not None else (),
    )


def _gain(before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]) -> int:
    """How many more of the compared runs pass."""
    then, runs = _matched(before, now)
    return sum(each.passed for each in runs) - sum(each.passed for each in then)


def _matched(
    before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]
) -> tuple[Sequence[CaseOutcome], Sequence[CaseOutcome]]:
    """The first runs, as many as both have.

    All runs would make changes of what did not change: the more runs, the likelier one of them
    fails, so a case would get worse, rather than better, for being run more often than before.
    """
    least = min(len(before), len(now))
    return before[:least], now[:least]


def _worst(outcomes: Sequence[CaseOutcome]) -> Status:
    found = {each.status for each in outcomes}
    return next(each for each in (Status.ERROR, Status.FAILED, Status.PASSED) if each in found)


def _share(outcomes: Sequence[CaseOutcome]) -> float:
    return sum(each.passed for each in outcomes) / len(outcomes)


def _rate(cases: Iterable[Sequence[CaseOutcome]]) -> float:
    shares = [_share(each) for each in cases]
    return mean(shares) if shares else 0.0


_Pairs = tuple["list[CaseOutcome]", "list[CaseOutcome]"]


def _tag_deltas(pairs: Iterable[_Pairs]) -> dict[str, Delta]:
    tagged: dict[str, list[_Pairs]] = {}
    for pair in pairs:
        for tag in dict.fromkeys(pair[1][0].tags):
            tagged.setdefault(tag, []).append(pair)
    return {
        tag: _delta(tag, [(_share(before), _share(now)) for before, now in of_tag])
        for tag, of_tag in tagged.items()
    }


def _metric_deltas(pairs: Iterable[_Pairs]) -> dict[str, Delta]:
    found: dict[str, list[tuple[float, float]]] = {}
    samples: dict[str, MetricScore] = {}
    for before, now in pairs:
        then = _means(before)
        for name, value in _means(now, samples).items():
            if name in then:
                found.setdefault(name, []).append((then[name], value))
    return {
        name: _delta(name, values, samples[name].unit, lower=_lower_wins(samples[name]))
        for name, values in found.items()
    }


def _means(
    outcomes: Iterable[CaseOutcome], samples: dict[str, MetricScore] | None = None
) -> Mapping[str, float]:
    """Metric to its mean over the runs of a case."""
    values: dict[str, list[float]] = {}
    for outcome in outcomes:
        for each in outcome.scores:
            if each.score is not None and is_score(each):
                values.setdefault(each.name, []).append(each.score)
                if samples is not None:
                    samples.setdefault(each.name, each)
    return {name: mean(each) for name, each in values.items()}


def _lower_wins(score: MetricScore) -> bool:
    informs = score.status is MetricStatus.INFORMATIONAL
    return score.lower_is_better or (informs and score.unit in _SPENT)


def _delta(
    name: str, values: Sequence[tuple[float, float]], unit: str = "", *, lower: bool = False
) -> Delta:
    before, now = mean([each for each, _ in values]), mean([each for _, each in values])
    gain = before - now if lower else now - before
    moved = abs(gain) > 1e-12 * max(1.0, abs(before), abs(now))  # else it is rounding
    direction: Direction = "same" if not moved else "better" if gain > 0 else "worse"
    return Delta(name, before, now, direction, len(values), unit)
