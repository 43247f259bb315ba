"""Reports and comparisons as text for people, and as Markdown that is safe to show.

Whatever a model said stays text: it makes no markup, HTML, mentions or links.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._text import dollars, interval, measured, one_line, percent, plural, seconds

if TYPE_CHECKING:
    from adk_fluent.eval import FluentEvalReport, RegressionReport

#: Makes a text of a model safe where it is shown.
Escape: TypeAlias = Callable[[str], str]

_REASONS: Final = 5  # that each run lists
#: What has a meaning in Markdown, HTML or on GitHub; ``_`` inside a word has none.
_SPECIAL: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")
#: GitHub links names, numbers and addresses after Markdown; a zero-width space prevents it.
_SEPARATED: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}
_LINE: Final = 500
LISTED: Final = 50  # items that a page lists


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


def comparison_lines(comparison: RegressionReport, text: Escape) -> Iterator[str]:
    """Yield a comparison as lines."""
    if not comparison.compared:
        yield "No case could be compared; cases are matched by id."
    else:
        drop = comparison.detectable
        significant = "significant" if comparison.significant else "not significant"
        yield (
            f"{plural(comparison.compared, 'case')} compared: {len(comparison.regressed):,} "
            f"regressed, {len(comparison.improved):,} improved"
        )
        yield ""
        yield f"- pass rate: {percent(comparison.before)} to {percent(comparison.now)}"
        yield f"- McNemar's test: p = {comparison.p_value:.3g}, {significant}"
        least = percent(drop) if math.isfinite(drop) else "none, with so few passing cases"
        yield f"- minimum detectable drop: {least}"
        changed = {"regressed": comparison.regressed, "improved": comparison.improved}
        for what, changes in changed.items():
            yield from (f"- {what}: {text(str(each))}" for each in changes[:LISTED])
            if (more := len(changes) - LISTED) > 0:
                yield f"- and {more:,} more {what}"
        for name, (before, now) in comparison.metric_deltas.items():
            if not math.isclose(before, now):
                yield f"- metric {text(name)}: {measured(before)} to {measured(now)}"
    unchanged = {
        "added": comparison.added,
        "removed": comparison.removed,
        "not compared (skipped or expected to fail)": comparison.not_compared,
    }
    for what, ids in unchanged.items():
        if ids:
            yield f"- {what}: {listed(ids, text)}"


# --- lines and tables ----------------------------------------------------------------------------


def plain_line(text: str) -> str:
    """Return a text in one line, for a terminal."""
    return one_line(text, _LINE)


def escaped(text: str) -> str:
    """Return a text in one line without markup, HTML, mentions or links."""
    return _SPECIAL.sub(
        lambda found: _SEPARATED.get(found[0]) or f"&#{ord(found[0])};", one_line(text, _LINE)
    )


def listed(ids: Sequence[str], text: Escape) -> str:
    """Return the first ids in a line."""
    more = f", and {len(ids) - LISTED:,} more" if len(ids) > LISTED else ""
    return f"{', '.join(map(text, ids[:LISTED]))}{more}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table that reads well as Markdown and as text."""
    if not rows:
        return
    shown = rows[: 2 * LISTED]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    yield ""
    for row in (heads, ["-" * width for width in widths], *shown):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"| {' | '.join(cells)} |"
    if (more := len(rows) - len(shown)) > 0:
        yield f"\nand {more:,} more"
