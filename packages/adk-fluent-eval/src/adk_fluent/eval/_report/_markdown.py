"""Reports as text for people, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._compare import comparison_lines
from adk_fluent.eval._report._lines import LISTED, Escape, escaped, listed, table
from adk_fluent.eval._text import dollars, interval, measured, percent, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._report._report import FluentEvalReport

_REASONS: Final = 5  # that each run lists


def report_page(report: FluentEvalReport) -> str:
    """Return a report as Markdown, with the comparison if it has a baseline."""
    sign = "✅" if report.ok else "❌"
    lines = [f"# {sign} Evaluation: {escaped(report.suite)}", "", *report_lines(report, escaped)]
    if report.baseline is not None:
        lines += ["", "## Comparison with the baseline", ""]
        lines += comparison_lines(report.compare(report.baseline), escaped)
    return "\n".join(lines).rstrip() + "\n"


def report_lines(report: FluentEvalReport, text: Escape) -> Iterator[str]:
    """Yield a report as lines."""
    counts = report.counts
    yield (
        f"{percent(report.pass_rate)} of {plural(report.counting, 'run')} passed "
        f"({interval(report.pass_rate_ci())}, 95% confidence)"
        if report.counting
        else "No run counts."
    )
    yield ""
    yield from (f"- gate: {text(each)}" for each in report.failures)
    yield from (f"- note: {text(each)}" for each in report.notes)
    figures = [f"{count:,} {status}" for status, count in counts.items() if count]
    figures += [seconds(report.duration_s), f"{report.tokens.total:,} tokens"]
    if report.cost_usd is not None:
        figures.append(dollars(report.cost_usd))
    figures.append(f"engine {text(report.engine)}, google-adk {text(report.adk_version)}")
    yield f"- {', '.join(figures)}"
    if flaky := report.flaky:
        yield f"- {plural(len(flaky), 'flaky case')}: {listed(flaky, text)}"
    yield from _not_passed(report, text)
    yield from table(
        ("tag", "pass rate", "95%", "passed", "failed", "errors"),
        [
            (
                text(each.tag),
                percent(each.pass_rate if each.counting else None),
                interval(each.ci),
                *(f"{count:,}" for count in (each.passed, each.failed, each.errors)),
            )
            for each in report.per_tag.values()
        ],
    )
    yield from table(
        ("metric", "mean", "threshold", "passed", "failed", "no score"),
        [
            (
                text(each.name),
                measured(each.mean, each.unit),
                measured(each.threshold, each.unit),
                *(f"{count:,}" for count in (each.passed, each.failed, each.not_evaluated)),
            )
            for each in report.per_metric.values()
        ],
    )


def _not_passed(report: FluentEvalReport, text: Escape) -> Iterator[str]:
    missed = [each for each in report.outcomes if each.status.counts and not each.passed]
    if missed:
        yield ""
        yield f"{plural(len(missed), 'run')} not passed:"
        yield ""
    for each in missed[:LISTED]:
        sign = "💥" if each.status is Status.ERROR else "❌"
        yield f"- {sign} {text(each.id)} (run {each.run}): {text(each.input)}"
        yield from (f"  - {text(reason)}" for reason in each.reasons[:_REASONS])
        if (more := len(each.reasons) - _REASONS) > 0:
            yield f"  - and {plural(more, 'more reason')}"
    if (more := len(missed) - LISTED) > 0:
        yield f"- and {plural(more, 'more run')}"
