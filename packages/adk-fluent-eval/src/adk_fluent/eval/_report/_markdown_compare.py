"""A comparison with a baseline as Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from adk_fluent.eval._report._markdown_words import code, table, text
from adk_fluent.eval._report._words import NONE, change, measured, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.eval._report._compare import CaseChange, Delta, RegressionReport

#: Ids that are named; the rest is counted.
_NAMES = 50


def comparison_page(comparison: RegressionReport) -> str:
    """The page of a comparison."""
    sign = "✅" if comparison.ok else "❌"
    lines = [f"# {sign} {text(comparison.suite, 120)} against its baseline", ""]
    return "\n".join([*lines, *comparison_lines(comparison)]).rstrip() + "\n"


def comparison_lines(comparison: RegressionReport) -> Iterator[str]:
    """A comparison, without a heading of its own."""
    if not comparison.compared:
        yield "**No case could be compared.** Cases are matched by id."
        yield ""
    else:
        yield from _figures(comparison)
        yield from _changes("Got worse", comparison.regressed)
        yield from _changes("Got better", comparison.improved)
        yield from _deltas("Metric", comparison.metric_deltas)
        yield from _deltas("Tag", comparison.tag_deltas)
    yield from _ids("Only here", comparison.added)
    yield from _ids("Only in the baseline", comparison.removed)
    yield from _ids("Not compared, as skipped or expected to fail", comparison.not_compared)


def _figures(comparison: RegressionReport) -> Iterator[str]:
    worse, better = len(comparison.regressed), len(comparison.improved)
    told = "no accident" if comparison.significant else "may be accident"
    drop = comparison.detectable
    tells = (
        f"a drop of {percent(drop)} or more, 4 times of 5, if nothing else flips"
        if math.isfinite(drop)
        else "none: there are too few cases that pass for any drop to be significant"
    )
    uneven = comparison.uneven
    figures = {
        "Cases compared": f"{comparison.compared:,}",
        "Got worse": f"**{worse:,}**",
        "Got better": f"{better:,}",
        "Still passing": f"{comparison.still_passing:,}",
        "Still failing": f"{comparison.still_failing:,}",
        "Pass rate of cases": f"{percent(comparison.before)} -&gt; {percent(comparison.now)}",
        "Paired test": f"p = {comparison.p_value:.3g}: {told if worse + better else 'no change'}",
        "The test would notice": tells,
    }
    if uneven:
        figures["Runs compared"] = (
            "the first of each case, as many as both have: "
            f"{plural(uneven, 'case')} ran more often in one than in the other"
        )
    yield from table(("Comparison", ""), figures.items())


def _changes(title: str, changes: Sequence[CaseChange]) -> Iterator[str]:
    if not changes:
        return
    yield f"### {title}: {plural(len(changes), 'case')}"
    yield ""
    yield from table(
        ("Case", "Before", "Now", "Why"),
        (
            (
                code(each.id),
                f"{each.before} ({each.passed_before} of {each.runs_before})",
                f"{each.now} ({each.passed_now} of {each.runs_now})",
                text("; ".join(each.reasons[:3]), 300) or NONE,
            )
            for each in changes
        ),
    )


def _deltas(what: str, deltas: Mapping[str, Delta]) -> Iterator[str]:
    moved = [each for each in deltas.values() if each.direction != "same"]
    if not moved:
        return

    def shown(value: float, unit: str) -> str:
        return percent(value) if what == "Tag" else measured(value, unit)

    yield from table(
        (what, "Before:", "Now:", "Change:", "", "Cases:"),
        (
            (
                code(each.name),
                shown(each.before, each.unit),
                shown(each.now, each.unit),
                _points(each) if what == "Tag" else change(each.now, each.before, each.unit),
                each.direction,
                f"{each.cases:,}",
            )
            for each in moved
        ),
    )


def _points(delta: Delta) -> str:
    return f"{delta.change * 100:+.1f} points"


def _ids(title: str, ids: Sequence[str]) -> Iterator[str]:
    if not ids:
        return
    more = len(ids) - _NAMES
    shown = ", ".join(code(each) for each in ids[:_NAMES])
    yield f"{title}: {shown}{f', and {more:,} more' if more > 0 else ''}"
    yield ""
