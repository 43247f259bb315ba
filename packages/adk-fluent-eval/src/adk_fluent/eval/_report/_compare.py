"""Comparing a report with a baseline."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from adk_fluent.eval._arguments import is_number, require
from adk_fluent.eval._errors import EvalFailedError
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._documents import document, escaped
from adk_fluent.eval._report._statistics import detectable_drop, mcnemar, mean, runs_by_case
from adk_fluent.eval._text import encodable, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case of which more or fewer runs pass than in the baseline.

    Attributes:
        id: The case.
        before: The worst status of its runs in the baseline.
        now: The worst status of its runs in the report.
        passed_before: Runs that passed in the baseline.
        runs_before: Counting runs in the baseline.
        passed_now: Runs that passed in the report.
        runs_now: Counting runs in the report.
        reasons: Why the first run that did not pass now did not.
    """

    id: str
    before: Status
    now: Status
    passed_before: int
    runs_before: int
    passed_now: int
    runs_now: int
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f": {one_line(self.reasons[0], 300)}" if self.reasons else ""
        return (
            f"{one_line(self.id, 120)} ({self.passed_before} of {self.runs_before} -> "
            f"{self.passed_now} of {self.runs_now} runs passed){why}"
        )


@dataclass(frozen=True, slots=True)
class RegressionReport:
    """A report compared with a baseline; cases are matched by id.

    A case regressed if fewer of its runs pass. If one report has more runs of a case, only the
    first are compared, as many as both have.

    Attributes:
        suite: The suite's name.
        regressed: Cases that regressed.
        improved: Cases that improved.
        still_passing: Ids of unchanged cases whose compared runs all pass.
        still_failing: Ids of other unchanged cases.
        added: Ids of cases that only the report has.
        removed: Ids of cases that only the baseline has.
        not_compared: Ids of cases that were skipped, or failed as expected, on either side.
        metric_deltas: Metric to its mean in the baseline and in the report, over the compared
            cases.
        before: Pass rate of the compared cases in the baseline.
        now: Pass rate of the compared cases in the report.
        alpha: The p-value up to which a change is significant.
    """

    suite: str = "suite"
    regressed: tuple[CaseChange, ...] = ()
    improved: tuple[CaseChange, ...] = ()
    still_passing: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    metric_deltas: dict[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    before: float = 0.0
    now: float = 0.0
    alpha: float = 0.05

    @property
    def compared(self) -> int:
        """How many cases were compared."""
        unchanged = len(self.still_passing) + len(self.still_failing)
        return len(self.regressed) + len(self.improved) + unchanged

    @property
    def p_value(self) -> float:
        """The p-value of McNemar's exact test."""
        return mcnemar(len(self.regressed), len(self.improved))

    @property
    def significant(self) -> bool:
        """Whether the change, for worse or better, is significant."""
        return self.p_value <= self.alpha

    @property
    def detectable(self) -> float:
        """The smallest drop of the pass rate that the test detects with 80% power.

        `math.inf` if there are too few passing cases.
        """
        return detectable_drop(self.compared, self.before, 1 - self.alpha)

    @property
    def ok(self) -> bool:
        """Whether cases were compared and none regressed."""
        return self.compared > 0 and not self.regressed

    def assert_ok(self) -> None:
        """Do nothing if no case regressed.

        Raises:
            EvalFailedError: Cases regressed, or none was compared.
        """
        if self.ok:
            return
        if not self.compared:
            raise EvalFailedError(
                f"suite {self.suite!r} shares no case with its baseline",
                help="cases are matched by id: give them ids, or write a new baseline",
            )
        lines = [str(each) for each in self.regressed[:10]]
        if (more := len(self.regressed) - len(lines)) > 0:
            lines.append(f"and {more:,} more")
        raise EvalFailedError(
            f"suite {self.suite!r}: {len(self.regressed):,} of {self.compared:,} cases regressed "
            f"(p={self.p_value:.3g})",
            found="\n    ".join(lines),
        )

    def to_json(self) -> str:
        """Return the comparison as JSON."""
        detectable = self.detectable
        made = {
            "adk_fluent": {"kind": "eval-comparison", "schema": 1},
            **asdict(self),
            "compared": self.compared,
            "p_value": self.p_value,
            "significant": self.significant,
            "detectable": detectable if math.isfinite(detectable) else None,
            "ok": self.ok,
        }
        return encodable(json.dumps(made, ensure_ascii=False, indent=1))

    def to_markdown(self) -> str:
        """Return the comparison as Markdown, with texts of models escaped."""
        return document("comparison.md.j2", escaped, made=self)


def compare(
    suite: str, current: Sequence[CaseOutcome], baseline: Sequence[CaseOutcome], alpha: float
) -> RegressionReport:
    """Compare the outcomes of a suite with a baseline."""
    valid = is_number(alpha) and 0 < alpha < 1
    require(valid, "alpha= must be above 0 and below 1", alpha)
    now, then = runs_by_case(current), runs_by_case(baseline)
    ids = dict.fromkeys(each.id for each in current)
    old_ids = dict.fromkeys(each.id for each in baseline)
    pairs = {id: (then[id], now[id]) for id in ids if id in now and id in then}
    gains = {id: _gain(*pair) for id, pair in pairs.items()}
    same = [id for id, gain in gains.items() if not gain]
    passing = [id for id in same if all(each.passed for each in _matched(*pairs[id])[1])]
    return RegressionReport(
        suite=suite,
        regressed=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain < 0),
        improved=tuple(_change(id, *pairs[id]) for id, gain in gains.items() if gain > 0),
        still_passing=tuple(passing),
        still_failing=tuple(id for id in same if id not in set(passing)),
        added=tuple(id for id in ids if id not in old_ids),
        removed=tuple(id for id in old_ids if id not in ids),
        not_compared=tuple(id for id in ids if id in old_ids and id not in pairs),
        metric_deltas=_metric_deltas(pairs.values()),
        before=_rate([before for before, _ in pairs.values()]),
        now=_rate([after for _, after in pairs.values()]),
        alpha=alpha,
    )


def _matched(
    before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]
) -> tuple[Sequence[CaseOutcome], Sequence[CaseOutcome]]:
    """The first runs, as many as both have: with more runs, one of them is likelier to fail."""
    count = min(len(before), len(now))
    return before[:count], now[:count]


def _gain(before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]) -> int:
    old, new = _matched(before, now)
    return sum(each.passed for each in new) - sum(each.passed for each in old)


def _change(id: str, before: Sequence[CaseOutcome], now: Sequence[CaseOutcome]) -> CaseChange:
    missed = [each.reasons for each in now if not each.passed]
    old, new = (sum(each.passed for each in runs) for runs in (before, now))
    reasons = tuple(missed[0]) if missed else ()
    return CaseChange(id, _worst(before), _worst(now), old, len(before), new, len(now), reasons)


def _worst(outcomes: Sequence[CaseOutcome]) -> Status:
    found = {each.status for each in outcomes}
    return next(each for each in (Status.ERROR, Status.FAILED, Status.PASSED) if each in found)


def _rate(cases: Sequence[Sequence[CaseOutcome]]) -> float:
    return mean([sum(each.passed for each in runs) / len(runs) for runs in cases]) if cases else 0.0


def _metric_deltas(
    pairs: Iterable[tuple[list[CaseOutcome], list[CaseOutcome]]],
) -> dict[str, tuple[float, float]]:
    values: dict[str, list[tuple[float, float]]] = {}
    for before, now in pairs:
        old = _means(before)
        for name, value in _means(now).items():
            if name in old:
                values.setdefault(name, []).append((old[name], value))
    return {
        name: (mean([old for old, _ in each]), mean([new for _, new in each]))
        for name, each in values.items()
    }


def _means(runs: Iterable[CaseOutcome]) -> dict[str, float]:
    """Metric to its mean over the runs of a case."""
    found: dict[str, list[float]] = {}
    for outcome in runs:
        for each in outcome.scores:
            if each.score is not None:
                found.setdefault(each.name, []).append(each.score)
    return {name: mean(each) for name, each in found.items()}
