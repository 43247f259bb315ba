"""What a report keeps of its baseline, so that its file, or a merge of several, can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._summaries import passes_by_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._report._report import FluentEvalReport


def held_against(report: FluentEvalReport) -> Sequence[CaseOutcome] | None:
    """The runs of the baseline, as far as they are known; None if there is no baseline."""
    if report.baseline is not None:
        return report.baseline.outcomes
    if report.kept_baseline is None:
        return None
    return [
        CaseOutcome(id, run, Status.PASSED if passed else Status.FAILED)
        for id, passes in report.kept_baseline.items()
        for run, passed in enumerate(passes, 1)
    ]


def baseline_runs(report: FluentEvalReport) -> dict[str, list[bool]] | None:
    """Whether the baseline's runs that count passed, by case; None if there is no baseline.

    Only of the cases that the report has, as the baseline may be that of a whole suite, and the
    report that of a shard.
    """
    if report.baseline is None:
        return report.kept_baseline
    ids = {each.id for each in report.outcomes}
    found = passes_by_case(report.baseline.outcomes)
    return {id: passes for id, passes in found.items() if id in ids}


def merged_baselines(reports: Iterable[FluentEvalReport]) -> dict[str, list[bool]] | None:
    """What all reports know of their baselines; None if none has one."""
    known = [each for each in map(baseline_runs, reports) if each is not None]
    return {id: passes for each in known for id, passes in each.items()} if known else None
