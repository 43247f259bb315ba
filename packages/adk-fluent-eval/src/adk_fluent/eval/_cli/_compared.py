"""A comparison as a person reads it at a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import click

from adk_fluent.eval._cli._columns import columns
from adk_fluent.eval._report._compare import change_line
from adk_fluent.eval._report._text import one_line
from adk_fluent.eval._report._words import measured, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.eval._report._compare import CaseChange, Delta, RegressionReport

#: Cases, and ids, that are told; the rest is counted.
_TOLD, _NAME = 20, 80
_COLORS: Final = {"better": "green", "worse": "red", "same": "white"}


def comparison_lines(comparison: RegressionReport) -> Iterator[str]:
    """A comparison, without a verdict."""
    worse, better = comparison.regressed, comparison.improved
    if not comparison.compared:
        yield "no case could be compared: cases are matched by id"
    else:
        yield (
            f"{plural(comparison.compared, 'case')} compared: {len(worse):,} got worse, "
            f"{len(better):,} better, {comparison.still_passing:,} still pass, "
            f"{comparison.still_failing:,} still fail"
        )
        yield f"pass rate of cases {percent(comparison.before)} -> {percent(comparison.now)}"
        yield from _test(comparison)
        yield from _changes(click.style("got worse", fg="red", bold=True), worse)
        yield from _changes(click.style("got better", fg="green", bold=True), better)
        yield from _deltas("tag", comparison.tag_deltas)
        yield from _deltas("metric", comparison.metric_deltas)
    yield from _ids("only here", comparison.added)
    yield from _ids("only in the baseline", comparison.removed)
    yield from _ids("skipped or expected to fail, and so not compared", comparison.not_compared)


def _test(comparison: RegressionReport) -> Iterator[str]:
    if comparison.regressed or comparison.improved:
        what = "no accident" if comparison.significant else "may be accident"
        yield f"paired test: p = {comparison.p_value:.3g}, {what}"
    drop = comparison.detectable
    yield (
        f"so many cases tell a drop of {percent(drop)} or more"
        if math.isfinite(drop)
        else "there are too few cases to tell any drop from accident"
    )


def _changes(title: str, changes: Sequence[CaseChange]) -> Iterator[str]:
    if not changes:
        return
    yield ""
    yield f"{title}:"
    yield from (f"  {change_line(each, 200)}" for each in changes[:_TOLD])
    if (more := len(changes) - _TOLD) > 0:
        yield f"  and {more:,} more"


def _deltas(what: str, deltas: Mapping[str, Delta]) -> Iterator[str]:
    moved = [each for each in deltas.values() if each.direction != "same"]
    if not moved:
        return

    def shown(value: float, unit: str) -> str:
        return percent(value) if what == "tag" else measured(value, unit)

    yield ""
    rows = [
        [
            one_line(each.name, _NAME),
            shown(each.before, each.unit),
            shown(each.now, each.unit),
            click.style(each.direction, fg=_COLORS[each.direction]),
        ]
        for each in moved[:_TOLD]
    ]
    yield from columns((what, "before:", "now:", ""), rows)
    if (more := len(moved) - _TOLD) > 0:
        yield f"and {more:,} more"


def _ids(title: str, ids: Sequence[str]) -> Iterator[str]:
    if not ids:
        return
    more = f", and {len(ids) - _TOLD:,} more" if len(ids) > _TOLD else ""
    yield f"{title}: {', '.join(one_line(each, _NAME) for each in ids[:_TOLD])}{more}"
