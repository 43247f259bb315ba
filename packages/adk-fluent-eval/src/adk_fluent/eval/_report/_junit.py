"""Reports as JUnit XML, as continuous integration reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._text import clean, measured, one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.eval._report._report import FluentEvalReport

_MESSAGE: Final = 300
_REASONS: Final = 10_000
_SAID: Final = 2_000
_TURNS: Final = 10


def junit(report: FluentEvalReport) -> str:
    """Return a test case for each run; failures of the gate are in the suite's `system-err`."""
    counts = report.counts
    figures = {
        "name": clean(report.suite),
        "tests": str(len(report.outcomes)),
        "failures": str(counts[Status.FAILED]),
        "errors": str(counts[Status.ERROR]),
        "skipped": str(counts[Status.SKIPPED] + counts[Status.XFAILED]),
        "time": f"{report.duration_s:.3f}",
    }
    root = ET.Element("testsuites", figures)
    suite = ET.SubElement(
        root, "testsuite", {**figures, "timestamp": report.started_at.strftime("%Y-%m-%dT%H:%M:%S")}
    )
    _add_properties(
        suite,
        [
            ("ok", str(report.ok).lower()),
            ("pass_rate", f"{report.pass_rate:.6g}"),
            ("engine", report.engine),
            ("adk_version", report.adk_version),
        ],
    )
    several = {each.id for each in report.outcomes if each.run > 1}
    for each in report.outcomes:
        _add_case(suite, report, each, several=each.id in several)
    if failures := report.failures:
        ET.SubElement(suite, "system-err").text = clean("\n".join(failures))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _add_case(
    suite: ET.Element, report: FluentEvalReport, outcome: CaseOutcome, *, several: bool
) -> None:
    name = clean(outcome.id)
    test = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": clean(report.suite),
            "name": f"{name} (run {outcome.run})" if several else name,
            "time": f"{outcome.duration_s:.3f}",
        },
    )
    scores = [
        (f"score.{each.name}", f"{measured(each.score)} ({each.status})") for each in outcome.scores
    ]
    _add_properties(
        test, [("tags", ", ".join(outcome.tags)), ("tokens", str(outcome.tokens.total)), *scores]
    )
    reasons = outcome.reasons or [outcome.note or "no reason is known"]
    if outcome.status in {Status.SKIPPED, Status.XFAILED}:
        ET.SubElement(test, "skipped", {"message": one_line(outcome.note, _MESSAGE)})
    elif not outcome.passed:
        kind = outcome.error.partition(":")[0] if outcome.error else "expectation"
        element = ET.SubElement(
            test,
            "error" if outcome.status is Status.ERROR else "failure",
            {"message": one_line(reasons[0], _MESSAGE), "type": one_line(kind, 100)},
        )
        element.text = clean(shorten("\n".join(reasons), _REASONS))
    said = [
        f"user: {shorten(turn.input, _SAID)}\nanswer: {shorten(turn.response, _SAID)}"
        for turn in outcome.turns[:_TURNS]
    ]
    if said:
        ET.SubElement(test, "system-out").text = clean("\n".join(said))


def _add_properties(parent: ET.Element, pairs: Iterable[tuple[str, str]]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in pairs:
        ET.SubElement(
            properties, "property", {"name": one_line(name, 200), "value": one_line(value, 1_000)}
        )
