"""The conditions under which a suite passes, and why a report does not meet them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._arguments import is_number, is_whole, require, require_type
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._text import dollars, measured, one_line, percent, plural

if TYPE_CHECKING:
    from adk_fluent.eval._report._report import FluentEvalReport

_NAMES: Final = 10  # ids that a line lists
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions under which a suite passes.

    Runs that end in an error or without a score never count as passed.

    Attributes:
        min_pass_rate: Share of runs that must pass, 0 to 1.
        min_tag_pass_rate: Tag to the share of its runs that must pass.
        min_metric: Metric to the mean score it must reach (stay below, where lower is better). A
            run without a score counts as 0, and fails where lower is better.
        max_regressions: Cases that may be worse than in the baseline; None ignores regressions.
        significant_only: Count regressions only if McNemar's test finds the change significant.
        allow_flaky: Whether a case may pass in one run and fail in another.
        max_cost_usd: US dollars that the suite may cost; None sets no limit.
    """

    min_pass_rate: float = 1.0
    min_tag_pass_rate: Mapping[str, float] = field(default_factory=dict[str, float])
    min_metric: Mapping[str, float] = field(default_factory=dict[str, float])
    max_regressions: int | None = 0
    significant_only: bool = False
    allow_flaky: bool = True
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
        _check_share("min_pass_rate", self.min_pass_rate)
        for tag, share in _pairs("min_tag_pass_rate", self.min_tag_pass_rate):
            _check_share(f"min_tag_pass_rate[{tag!r}]", share)
        for name, score in _pairs("min_metric", self.min_metric):
            require(is_number(score), f"min_metric[{name!r}] must be a number", score)
        limit, cost = self.max_regressions, self.max_cost_usd
        whole = limit is None or is_whole(limit, 0)
        require(whole, "max_regressions= must be a whole number >= 0", limit)
        valid = cost is None or (is_number(cost) and cost >= 0)
        require(valid, "max_cost_usd= must be a number >= 0", cost)
        for name in ("significant_only", "allow_flaky"):
            require_type(getattr(self, name), bool, f"{name}= must be True or False")


def _pairs(name: str, value: Any) -> list[tuple[str, Any]]:
    require_type(value, Mapping, f"{name}= must be a mapping of names to numbers")
    return list(cast("Mapping[str, Any]", value).items())


def _check_share(name: str, value: Any) -> None:
    valid = is_number(value) and 0 <= value <= 1
    require(valid, f"{name}= must be between 0 and 1", value)


# --- what a report misses -------------------------------------------------------------------------


def failures_of(report: FluentEvalReport) -> list[str]:
    """Return every reason why a report does not meet its gate; empty if it does."""
    return [*_completeness(report), *_rates(report), *_limits(report), *report.regressions]


def _completeness(report: FluentEvalReport) -> Iterator[str]:
    counts = report.counts
    if not report.outcomes:
        yield "no case was run"
    elif not report.counting:
        yield (
            f"no run counts: {counts[Status.SKIPPED]:,} skipped, "
            f"{counts[Status.XFAILED]:,} failed as expected"
        )
    if report.interrupted:
        yield f"the run was interrupted after {plural(len(report.outcomes), 'run')} of cases"


def _rates(report: FluentEvalReport) -> Iterator[str]:
    gate, counting = report.gate, report.counting
    if counting and report.pass_rate < gate.min_pass_rate - _ROUNDING:
        yield (
            f"pass rate {percent(report.pass_rate)} ({report.counts[Status.PASSED]:,} of "
            f"{counting:,} runs) is below {percent(gate.min_pass_rate)}"
        )
    tags = report.per_tag if gate.min_tag_pass_rate else {}
    for tag, share in gate.min_tag_pass_rate.items():
        found = tags.get(tag)
        if found is None or not found.counting:
            yield f"no run of tag {tag!r} counts"
        elif found.pass_rate < share - _ROUNDING:
            yield (
                f"pass rate of tag {tag!r}, {percent(found.pass_rate)} ({found.passed:,} of "
                f"{found.counting:,} runs), is below {percent(share)}"
            )
    metrics = report.per_metric if gate.min_metric else {}
    for name, limit in gate.min_metric.items():
        metric = metrics.get(str(name))
        if metric is None or metric.mean is None:
            yield f"metric {str(name)!r} has no score"
            continue
        missing = metric.not_evaluated
        if missing and metric.lower_is_better:  # no score is the worst
            yield f"metric {str(name)!r} has no score in {plural(missing, 'run')}"
            continue
        average = min(metric.mean, metric.mean * metric.evaluated / (metric.evaluated + missing))
        over = average - limit
        if (over if metric.lower_is_better else -over) > _ROUNDING:
            side = "above" if metric.lower_is_better else "below"
            value = measured(average, metric.unit)
            value += f" with {plural(missing, 'run')} without a score as 0" if missing else ""
            yield f"mean of metric {str(name)!r}, {value}, is {side} {measured(limit, metric.unit)}"


def _limits(report: FluentEvalReport) -> Iterator[str]:
    gate = report.gate
    if not gate.allow_flaky and (flaky := report.flaky):
        yield f"{plural(len(flaky), 'case')} flaky: {ids_line(flaky)}"
    if gate.max_cost_usd is None:
        return
    cost = report.cost_usd
    if cost is not None and cost > gate.max_cost_usd + _ROUNDING:
        yield f"the cost, {dollars(cost)}, is above {dollars(gate.max_cost_usd)}"
    unknown = sum(
        each.eval_calls > 0
        or (each.cost_usd is None and (bool(each.turns) or each.tokens.total > 0))
        for each in report.outcomes
    )
    if unknown or cost is None:
        yield f"the cost of {plural(unknown or report.counting, 'run')} is not known"


def ids_line(ids: Iterable[str]) -> str:
    """Return the first ids in a line."""
    every = [one_line(each, 80) for each in ids]
    more = len(every) - _NAMES
    return ", ".join([*every[:_NAMES], *([f"and {more:,} more"] if more > 0 else [])])
