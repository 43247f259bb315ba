"""A report as Markdown, for people and for GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._markdown_compare import comparison_lines
from adk_fluent.eval._report._markdown_words import CELL, code, table, text
from adk_fluent.eval._report._summaries import has_known_cost
from adk_fluent.eval._report._words import (
    NONE,
    count,
    dollars,
    measured,
    percent,
    plural,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport

#: Outcomes that are told, and reasons of each; the rest is counted.
_OUTCOMES, _REASONS = 50, 5

_SIGNS: Final = {Status.ERROR: "💥", Status.FAILED: "❌"}


def report_page(report: FluentEvalReport, baseline: FluentEvalReport | None = None) -> str:
    """The page of a report.

    Args:
        report: The report.
        baseline: What it is held against; None leaves that out.
    """
    lines = [
        *_verdict(report),
        *_summary(report),
        *_missed(report),
        *_flaky(report),
        *_tags(report),
        *_metrics(report),
    ]
    if baseline is not None:
        lines += ["## Compared with the baseline", "", *comparison_lines(report.compare(baseline))]
    return "\n".join(lines).rstrip() + "\n"


def _verdict(report: FluentEvalReport) -> Iterator[str]:
    failures = report.failures
    yield f"# {'❌' if failures else '✅'} Evaluation: {text(report.suite, CELL)}"
    yield ""
    yield from (f"- **{text(each)}**" for each in failures)
    yield from (f"- {text(each)}" for each in report.notes)
    if failures or report.notes:
        yield ""


def _summary(report: FluentEvalReport) -> Iterator[str]:
    counts, tokens = report.counts, report.tokens
    low, high = report.pass_rate_ci()
    passed = f"{counts[Status.PASSED]:,} of {plural(report.counting, 'run')}"
    figures = {
        "Pass rate": f"**{percent(report.pass_rate)}** ({percent(low)} to {percent(high)} "
        "with 95% confidence)",
        "Passed": passed,
        "Failed": count(counts[Status.FAILED]),
        "Errors": count(counts[Status.ERROR]),
        "Skipped": count(counts[Status.SKIPPED]),
        "Failed as expected": count(counts[Status.XFAILED]),
        "Cases": count(len({each.id for each in report.outcomes})),
        "Tokens": f"{tokens.total:,} ({tokens.prompt:,} prompt, {tokens.cached:,} of them cached; "
        f"{tokens.output:,} output; {tokens.thoughts:,} thoughts)",
        "Cost": _cost(report),
        "Duration": seconds(report.duration_s),
        "Model": code(report.model) if report.model else "as in the pipeline",
        "Run": " ".join(
            filter(
                None,
                (
                    report.started_at.strftime("%Y-%m-%d %H:%M UTC"),
                    report.engine and f"engine {code(report.engine)}",
                    report.adk_version and f"google-adk {code(report.adk_version)}",
                ),
            )
        ),
    }
    yield from table(("Summary", ""), figures.items())


def _cost(report: FluentEvalReport) -> str:
    if (cost := report.cost_usd) is None:
        return "not known"
    beside = f", and {dollars(taken)} beside" if (taken := report.eval_cost_usd) else ""
    unknown = sum(not has_known_cost(each) for each in report.outcomes)
    return dollars(cost) + beside + (f", {plural(unknown, 'run')} not known" if unknown else "")


def _missed(report: FluentEvalReport) -> Iterator[str]:
    missed = [each for each in report.outcomes if each.status in _SIGNS]
    if not missed:
        return
    yield f"## {plural(len(missed), 'run')} not passed"
    yield ""
    several = {each.id for each in report.outcomes if each.run > 1}
    for each in missed[:_OUTCOMES]:
        yield from _outcome(each, several=each.id in several)
    if (more := len(missed) - _OUTCOMES) > 0:
        yield f"- *and {more:,} more*"
    yield ""


def _outcome(outcome: CaseOutcome, *, several: bool) -> Iterator[str]:
    run = f" run {outcome.run}" if several else ""
    said = f": {text(outcome.input, 120)}" if outcome.input else ""
    yield f"- {_SIGNS[outcome.status]} {code(outcome.id)}{run}{said}"
    reasons = outcome.reasons or [outcome.error or "no reason is known"]
    yield from (f"  - {text(each)}" for each in reasons[:_REASONS])
    if (more := len(reasons) - _REASONS) > 0:
        yield f"  - *and {plural(more, 'more reason')}*"


def _flaky(report: FluentEvalReport) -> Iterator[str]:
    if not (flaky := report.flaky):
        return
    runs: dict[str, list[bool]] = {id: [] for id in flaky}
    for each in report.outcomes:
        if each.id in runs and each.status.counts:
            runs[each.id].append(each.passed)
    yield f"## {plural(len(flaky), 'flaky case')}"
    yield ""
    yield from table(
        ("Case", "Passed:"),
        ((code(id), f"{sum(passed)} of {len(passed)}") for id, passed in runs.items()),
    )


def _tags(report: FluentEvalReport) -> Iterator[str]:
    if not (tags := report.per_tag):
        return
    yield "## Tags"
    yield ""
    heads = ("Tag", "Pass rate:", "95%:", "Passed:", "Failed:", "Errors:", "Tokens:", "Cost:")
    yield from table(
        heads,
        (
            (
                code(each.tag),
                percent(each.pass_rate if each.counting else None),
                _interval(each.ci) if each.counting else NONE,
                count(each.passed),
                count(each.failed),
                count(each.errors),
                count(each.tokens.total),
                dollars(each.cost_usd),
            )
            for each in tags.values()
        ),
    )


def _metrics(report: FluentEvalReport) -> Iterator[str]:
    if not (metrics := report.per_metric):
        return
    yield "## Metrics"
    yield ""
    heads = ("Metric", "Mean:", "Min:", "Max:", "Deviation:", "Threshold:", "Passed:", "Failed:")
    yield from table(
        (*heads, "No score:"),
        (
            (
                code(each.name),
                *(measured(value, each.unit) for value in (each.mean, each.min, each.max)),
                measured(each.stdev, each.unit),
                _threshold(each.threshold, each.unit, lower=each.lower_is_better),
                count(each.passed),
                count(each.failed),
                count(each.not_evaluated),
            )
            for each in metrics.values()
        ),
    )


def _threshold(value: float | None, unit: str, *, lower: bool) -> str:
    return NONE if value is None else f"{'≤' if lower else '≥'} {measured(value, unit)}"


def _interval(ci: Sequence[float]) -> str:
    return f"{percent(ci[0])} to {percent(ci[1])}"
