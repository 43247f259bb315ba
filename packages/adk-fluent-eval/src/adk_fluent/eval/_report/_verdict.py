"""Whether a report meets its gate, and every reason why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import nearest_name
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._compare import compare
from adk_fluent.eval._report._kept import held_against
from adk_fluent.eval._report._summaries import has_known_cost
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import dollars, measured, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.eval._report._compare import RegressionReport
    from adk_fluent.eval._report._report import FluentEvalReport

#: Ids that a line names before it counts the rest.
_NAMED = 10

#: Rounding of means is no reason to fail.
_ROUNDING = 1e-9


def failures(report: FluentEvalReport) -> list[str]:
    """Every reason why a report does not meet its gate, a line each; empty if it does."""
    return [*_complete(report), *_rates(report), *_rest(report), *regressions(report)]


def regressions(report: FluentEvalReport) -> list[str]:
    """What the gate says of the cases that got worse than the baseline."""
    kept = list(report.kept_regressions) if report.baseline is None else []
    before, allowed = held_against(report), report.gate.max_regressions
    if before is None or allowed is None:
        return kept
    return [*kept, *_regressed(report, compare(report, before), allowed)]


def names(found: Iterable[str]) -> str:
    """Ids in a line, the first of them if they are many."""
    every = [one_line(each, 80) for each in found]
    more = len(every) - _NAMED
    return ", ".join([*every[:_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def _complete(report: FluentEvalReport) -> Iterator[str]:
    counts = report.counts
    if not report.outcomes:
        yield "no case was run"
    elif not report.counting:
        yield (
            f"no run counts: {counts[Status.SKIPPED]:,} skipped, "
            f"{counts[Status.XFAILED]:,} expected to fail"
        )
    if report.interrupted:
        yield f"the run was interrupted after {plural(len(report.outcomes), 'run')} of cases"
    if missing := report.missing_shards:
        which = "shard" if len(missing) == 1 else "shards"
        yield f"{which} {', '.join(map(str, missing))} of {report.shard_count} missing"


def _rates(report: FluentEvalReport) -> Iterator[str]:
    gate, counting = report.gate, report.counting
    if counting and report.pass_rate < gate.min_pass_rate - _ROUNDING:
        yield (
            f"pass rate {percent(report.pass_rate)} ({report.counts[Status.PASSED]:,} of "
            f"{counting:,} runs) is below {percent(gate.min_pass_rate)}"
        )
    tags = report.per_tag if gate.min_tag_pass_rate else {}
    for tag, wanted in gate.min_tag_pass_rate.items():
        found = tags.get(tag)
        if found is None or not found.counting:
            if report.shard is not None:  # the others may have some; the whole tells
                continue
            yield f"no run of tag {tag!r} counts{_near(tag, tags if found is None else ())}"
        elif found.pass_rate < wanted - _ROUNDING:
            yield (
                f"pass rate of tag {tag!r}, {percent(found.pass_rate)} ({found.passed:,} of "
                f"{found.counting:,} runs), is below {percent(wanted)}"
            )
    metrics = report.per_metric if gate.min_metric else {}
    for name, wanted in gate.min_metric.items():
        metric = metrics.get(name)
        if metric is None or metric.mean is None:
            asked = metric is not None and metric.not_evaluated > 0
            if report.shard is not None and not asked:
                continue
            near = _near(name, metrics if metric is None else ())
            yield f"metric {str(name)!r} has no score{near}"
            continue
        over = metric.mean - wanted
        if (over if metric.lower_is_better else -over) > _ROUNDING:
            side = "above" if metric.lower_is_better else "below"
            shown = measured(metric.mean, metric.unit), measured(wanted, metric.unit)
            yield f"mean of metric {str(name)!r}, {shown[0]}, is {side} {shown[1]}"


def _near(name: str, known: Iterable[str]) -> str:
    near = nearest_name(name, known)
    return f"; did you mean {near!r}?" if near else ""


def _rest(report: FluentEvalReport) -> Iterator[str]:
    gate = report.gate
    if not gate.allow_flaky and (flaky := report.flaky):
        yield f"{plural(len(flaky), 'case')} passed in one run and not in another: {names(flaky)}"
    if gate.max_cost_usd is None:
        return
    cost, beside = report.cost_usd, report.eval_cost_usd or 0.0
    if cost is not None and cost + beside > gate.max_cost_usd + _ROUNDING:
        told = f" (judges and the like: {dollars(beside)})" if beside else ""
        yield f"the cost, {dollars(cost + beside)}{told}, is above {dollars(gate.max_cost_usd)}"
    unknown = [each for each in report.outcomes if not has_known_cost(each)]
    if unknown or cost is None:
        yield f"the cost of {plural(len(unknown) or report.counting, 'run')} is not known"


def _regressed(
    report: FluentEvalReport, comparison: RegressionReport, allowed: int
) -> Iterator[str]:
    if not comparison.compared:
        if report.outcomes and report.shard is None:
            yield "no case could be compared with the baseline"
        return
    worse = comparison.regressed
    if len(worse) <= allowed:
        return
    overall = comparison.significant and len(worse) > len(comparison.improved)
    if report.gate.significant_only and not overall:
        return
    yield (
        f"{plural(len(worse), 'case')} got worse than the baseline, of "
        f"{comparison.compared:,} (p={comparison.p_value:.3g}), {allowed:,} allowed: "
        f"{names(each.id for each in worse)}"
    )
