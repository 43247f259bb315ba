"""Reports of what tests have run, in this process or in several."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._gate import Gate
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._json import line_of
from adk_fluent.eval._report._read import outcome_of
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._running._names import journal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from pathlib import Path

    from adk_fluent.eval._items._collect import Group, One
    from adk_fluent.eval._items._parameters import Parameters


def packed(one: One, outcome: CaseOutcome, test: str, given: Parameters, *, whole: bool) -> str:
    """What came of a test, as text that goes from a worker to the process that reports.

    Args:
        one: The run of the case.
        outcome: What it came to.
        test: The test function.
        given: Its parameters, beside the case.
        whole: Whether a report of it will be written, and not only counted.
    """
    if not whole:
        outcome = replace(outcome, turns=[], scores=[], state={}, metadata={})
    head = {**_head(one.group), "test": test, "given": given.key, "place": one.place}
    if given.label:
        head["suite"] = f"{head['suite']}[{given.label}]"
    return json.dumps([head, line_of(outcome)])


def _head(group: Group) -> dict[str, Any]:
    suite, gate = group.suite, group.suite.gate
    runs = group.known
    return {
        "suite": suite.name,
        "metrics": list(suite.metrics),
        "gate": {
            **asdict(replace(gate, min_tag_pass_rate={}, min_metric={})),
            "min_tag_pass_rate": dict(gate.min_tag_pass_rate),
            "min_metric": dict(gate.min_metric),
        },
        "total": len(suite.cases) * group.num_runs,
        "engine": runs.engine if runs else "",
        "adk_version": runs.adk_version if runs else "",
        "model": runs.model if runs else "",
    }


@dataclass(slots=True)
class _Part:
    head: dict[str, Any]
    outcomes: dict[tuple[str, int], tuple[int, CaseOutcome]]


def reports_of(
    records: Iterable[str], began: datetime, duration_s: float, *, interrupted: bool
) -> dict[str, FluentEvalReport]:
    """A report for each marked test and each set of its parameters, by what tells it from others.

    Args:
        records: What tests came to; of a test that ran again, the last counts.
        began: When the tests were begun.
        duration_s: Seconds that they took.
        interrupted: Whether they were ended before their end.
    """
    parts: dict[tuple[str, str], _Part] = {}
    for number, record in enumerate(records, 1):
        head, line = json.loads(record)
        outcome = outcome_of(json.loads(line), head["test"], number)
        part = parts.setdefault((head["test"], head["given"]), _Part(head, {}))
        if not part.head["engine"]:
            part.head = head  # the others were skipped
        part.outcomes[outcome.key] = (head["place"], outcome)
    labels = _labels([(part.head["suite"], part.head["test"]) for part in parts.values()])
    return {
        label: _report(part, began, duration_s, interrupted=interrupted)
        for label, part in zip(labels, parts.values(), strict=True)
    }


def _labels(reports: Sequence[tuple[str, str]]) -> list[str]:
    """What each report is told from others by: its suite, and what else that takes.

    Args:
        reports: The suite and the test of each.
    """
    names = Counter(suite for suite, _ in reports)
    short = Counter(f"{suite} {_function(test)}" for suite, test in reports)
    made: list[str] = []
    for suite, test in reports:
        label = suite if names[suite] == 1 else f"{suite} {_function(test)}"
        if names[suite] > 1 and short[label] > 1:
            label = f"{suite} {test}"
        told, number = label, 1
        while told in made:  # two sets of parameters may look alike
            number += 1
            told = f"{label} {number}"
        made.append(told)
    return made


def _function(test: str) -> str:
    return test.rpartition("::")[2]


def _report(
    part: _Part, began: datetime, duration_s: float, *, interrupted: bool
) -> FluentEvalReport:
    head = part.head
    total, done = head["total"], len(part.outcomes)
    in_order = sorted(part.outcomes.values(), key=lambda each: (each[0], each[1].run))
    return FluentEvalReport(
        (outcome for _, outcome in in_order),
        suite=head["suite"],
        gate=Gate(**head["gate"]),
        metrics=head["metrics"],
        engine=head["engine"],
        adk_version=head["adk_version"],
        started_at=began,
        duration_s=duration_s,
        notes=[f"{done:,} of the suite's {total:,} runs; pytest ran no others"]
        if done < total
        else [],
        interrupted=interrupted and done < total,
        model=head["model"],
    )


def failed_as_test(outcome: CaseOutcome, why: str) -> CaseOutcome:
    """A run that passed, in a test that did not, which expects more of it."""
    return replace(outcome, status=Status.FAILED, reasons=[f"the test failed: {why}"])


def write(reports: dict[str, FluentEvalReport], path: Path) -> list[Path]:
    """Write reports, each to its own file where there are several.

    Raises:
        EvalFileError: One cannot be written.
    """
    from adk_fluent.eval._report._text import encodable  # noqa: PLC0415  # of files alone
    from adk_fluent.eval._write import write_whole  # noqa: PLC0415  # of files alone

    files: list[Path] = []
    for label, report in reports.items():
        file = path if len(reports) == 1 else journal_of(path, label)
        match file.suffix.lower():
            case ".json":
                report.save(file)
            case ".html":
                report.save_html(file)
            case ".md":
                write_whole(file, [encodable(report.to_markdown())])
            case _:
                write_whole(file, [encodable(report.to_junit())])
        files.append(file)
    return files
