"""Reports and comparisons as Markdown, safe to show whatever a model said."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._text import (
    NONE,
    dollars,
    interval,
    measured,
    one_line,
    percent,
    plural,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._compare import CaseChange, RegressionReport
    from adk_fluent.eval._report._report import FluentEvalReport

#: What has a meaning in Markdown, HTML or on GitHub; ``_`` inside a word has none.
_SPECIAL: Final = re.compile(r"[\\`*~<>&|\[\]$#@!]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|://|www\.")
#: GitHub links names, numbers and addresses after Markdown; a zero-width space prevents it.
_SEPARATED: Final = {"@": "@&#8203;", "#": "#&#8203;", "://": ":&#8203;//", "www.": "www&#8203;."}
_PLAIN: Final = re.compile(r"[\w.,:;/()+=%-]+( [\w.,:;/()+=%-]+)*")
_ROWS, _CELL, _LINE = 100, 120, 500
_OUTCOMES, _REASONS = 50, 5
_SIGNS: Final = {Status.ERROR: "💥", Status.FAILED: "❌"}


def _escape(value: str, limit: int = _LINE) -> str:
    """A text in one line without markup, HTML, mentions or links."""
    return _SPECIAL.sub(
        lambda found: _SEPARATED.get(found[0]) or f"&#{ord(found[0])};", one_line(value, limit)
    )


def _code(value: str) -> str:
    line = one_line(value, _CELL)
    return f"`{line}`" if _PLAIN.fullmatch(line) else f"<code>{_escape(line)}</code>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of escaped cells; a head that ends in ``:`` aligns to the right."""
    every = list(rows)
    lines = [
        f"| {' | '.join(head.removesuffix(':') for head in heads)} |",
        f"| {' | '.join('---:' if head.endswith(':') else '---' for head in heads)} |",
        *(f"| {' | '.join(row)} |" for row in every[:_ROWS]),
    ]
    if (more := len(every) - _ROWS) > 0:
        lines += ["", f"*and {more:,} more*"]
    return [*lines, ""]


def report_page(report: FluentEvalReport) -> str:
    """Return the page of a report, with the comparison if it has a baseline."""
    failures = report.failures
    lines = [
        f"# {'❌' if failures else '✅'} Evaluation: {_escape(report.suite, _CELL)}",
        "",
        *(f"- **{_escape(each)}**" for each in failures),
        *(f"- {_escape(each)}" for each in report.notes),
        *([""] if failures or report.notes else []),
        *_figures(report),
        *_not_passed(report),
        *_flaky(report),
        *_tags(report),
        *_metrics(report),
    ]
    if report.baseline is not None:
        lines += ["## Comparison", "", *_comparison(report.compare(report.baseline))]
    return "\n".join(lines).rstrip() + "\n"


def _figures(report: FluentEvalReport) -> list[str]:
    counts, tokens = report.counts, report.tokens
    rate = f"**{percent(report.pass_rate)}** ({interval(report.pass_rate_ci())}, 95% confidence)"
    return _table(
        ("Summary", ""),
        [
            ("Pass rate", rate),
            ("Passed", f"{counts[Status.PASSED]:,} of {plural(report.counting, 'run')}"),
            ("Failed", f"{counts[Status.FAILED]:,}"),
            ("Errors", f"{counts[Status.ERROR]:,}"),
            ("Skipped", f"{counts[Status.SKIPPED]:,}"),
            ("Failed as expected", f"{counts[Status.XFAILED]:,}"),
            ("Tokens", f"{tokens.total:,} ({tokens.prompt:,} prompt, {tokens.output:,} output)"),
            ("Cost", dollars(report.cost_usd)),
            ("Duration", seconds(report.duration_s)),
            (
                "Run",
                f"{report.started_at:%Y-%m-%d %H:%M} UTC, engine {_code(report.engine or NONE)}, "
                f"google-adk {_code(report.adk_version or NONE)}",
            ),
        ],
    )


def _not_passed(report: FluentEvalReport) -> Iterator[str]:
    missed = [each for each in report.outcomes if each.status in _SIGNS]
    if not missed:
        return
    yield f"## {plural(len(missed), 'run')} not passed"
    yield ""
    for each in missed[:_OUTCOMES]:
        yield from _outcome(each)
    if (more := len(missed) - _OUTCOMES) > 0:
        yield f"- *and {more:,} more*"
    yield ""


def _outcome(outcome: CaseOutcome) -> Iterator[str]:
    run = f" run {outcome.run}" if outcome.run > 1 else ""
    yield f"- {_SIGNS[outcome.status]} {_code(outcome.id)}{run}: {_escape(outcome.input, _CELL)}"
    yield from (f"  - {_escape(each)}" for each in outcome.reasons[:_REASONS])
    if (more := len(outcome.reasons) - _REASONS) > 0:
        yield f"  - *and {plural(more, 'more reason')}*"


def _flaky(report: FluentEvalReport) -> Iterator[str]:
    if flaky := report.flaky:
        yield f"## {plural(len(flaky), 'flaky case')}"
        yield ""
        yield from (f"- {_code(id)}" for id in flaky[:_OUTCOMES])
        yield ""


def _tags(report: FluentEvalReport) -> Iterator[str]:
    if not (tags := report.per_tag):
        return
    yield "## Tags"
    yield ""
    yield from _table(
        ("Tag", "Pass rate:", "95%:", "Passed:", "Failed:", "Errors:"),
        (
            (
                _code(each.tag),
                percent(each.pass_rate if each.counting else None),
                interval(each.ci),
                f"{each.passed:,}",
                f"{each.failed:,}",
                f"{each.errors:,}",
            )
            for each in tags.values()
        ),
    )


def _metrics(report: FluentEvalReport) -> Iterator[str]:
    if not (metrics := report.per_metric):
        return
    yield "## Metrics"
    yield ""
    yield from _table(
        ("Metric", "Mean:", "Min:", "Max:", "Threshold:", "Passed:", "Failed:", "No score:"),
        (
            (
                _code(each.name),
                *(measured(value, each.unit) for value in (each.mean, each.min, each.max)),
                measured(each.threshold, each.unit),
                f"{each.passed:,}",
                f"{each.failed:,}",
                f"{each.not_evaluated:,}",
            )
            for each in metrics.values()
        ),
    )


def comparison_page(comparison: RegressionReport) -> str:
    """Return the page of a comparison."""
    sign = "✅" if comparison.ok else "❌"
    head = f"# {sign} {_escape(comparison.suite, _CELL)} compared with its baseline"
    return "\n".join([head, "", *_comparison(comparison)]).rstrip() + "\n"


def _comparison(comparison: RegressionReport) -> Iterator[str]:
    if not comparison.compared:
        yield "**No case could be compared.** Cases are matched by id."
        yield ""
    else:
        drop = comparison.detectable
        yield from _table(
            ("Comparison", ""),
            [
                ("Compared", plural(comparison.compared, "case")),
                ("Regressed", f"**{len(comparison.regressed):,}**"),
                ("Improved", f"{len(comparison.improved):,}"),
                ("Still passing", f"{len(comparison.still_passing):,}"),
                ("Still failing", f"{len(comparison.still_failing):,}"),
                ("Pass rate", f"{percent(comparison.before)} -&gt; {percent(comparison.now)}"),
                (
                    "McNemar's test",
                    f"p = {comparison.p_value:.3g}: "
                    f"{'significant' if comparison.significant else 'not significant'}",
                ),
                (
                    "Minimum detectable drop",
                    percent(drop) if math.isfinite(drop) else "none: too few passing cases",
                ),
            ],
        )
        yield from _changes("Regressed", comparison.regressed)
        yield from _changes("Improved", comparison.improved)
        moved = [each for each in comparison.metric_deltas.values() if each.better is not None]
        if moved:
            yield from _table(
                ("Metric", "Before:", "Now:", ""),
                (
                    (
                        _code(each.name),
                        measured(each.before, each.unit),
                        measured(each.now, each.unit),
                        "better" if each.better else "worse",
                    )
                    for each in moved
                ),
            )
    for title, ids in (
        ("Added", comparison.added),
        ("Removed", comparison.removed),
        ("Not compared (skipped or expected to fail)", comparison.not_compared),
    ):
        if ids:
            more = f", and {len(ids) - _OUTCOMES:,} more" if len(ids) > _OUTCOMES else ""
            yield f"{title}: {', '.join(map(_code, ids[:_OUTCOMES]))}{more}"
            yield ""


def _changes(title: str, changes: Sequence[CaseChange]) -> Iterator[str]:
    if not changes:
        return
    yield f"### {title}: {plural(len(changes), 'case')}"
    yield ""
    yield from _table(
        ("Case", "Before", "Now", "Reason"),
        (
            (
                _code(each.id),
                f"{each.before} ({each.passed_before} of {each.runs_before})",
                f"{each.now} ({each.passed_now} of {each.runs_now})",
                _escape("; ".join(each.reasons[:3]), 300) or NONE,
            )
            for each in changes
        ),
    )
