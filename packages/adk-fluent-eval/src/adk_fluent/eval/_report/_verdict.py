"""Whether a report meets its gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._text import dollars, measured, one_line, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.eval._report._report import FluentEvalReport

_NAMES: Final = 10  # ids that a line lists
_ROUNDING: Final = 1e-9


def failures(report: FluentEvalReport) -> list[str]:
    """Return every reason why a report does not meet its gate; empty if it does."""
    return [*_completeness(report), *_rates(report), *_limits(report), *regressions(report)]


def regressions(report: FluentEvalReport) -> list[str]:
    """Return what the gate says of regressions against the baseline."""
    allowed = report.gate.max_regressions
    if report.baseline is None or allowed is None:
        return list(report.saved_regressions) if report.baseline is None else []
    comparison = report.compare(report.baseline)
    if not comparison.compared:
        return ["no case could be compared with the baseline"] if report.outcomes else []
    worse = comparison.regressed
    if len(worse) <= allowed:
        return []
    overall = comparison.significant and len(worse) > len(comparison.improved)
    if report.gate.significant_only and not overall:
        return []
    count = f"{len(worse):,} of {plural(comparison.compared, 'case')}"
    what = f"{count} regressed, {allowed:,} allowed (p={comparison.p_value:.3g})"
    return [f"{what}: {_ids(each.id for each in worse)}"]


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
        yield f"{plural(len(flaky), 'case')} flaky: {_ids(flaky)}"
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


def _ids(ids: Iterable[str]) -> str:
    every = [one_line(each, 80) for each in ids]
    more = len(every) - _NAMES
    return ", ".join([*every[:_NAMES], *([f"and {more:,} more"] if more > 0 else [])])
