"""A report in JUnit's XML, as continuous integration reads it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._summaries import is_score
from adk_fluent.eval._report._text import clean, one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport

#: Characters of a message, of all reasons of a run, and of what the user and the model said.
_MESSAGE: Final = 300
_REASONS: Final = 10_000
_SAID: Final = 2_000


def junit(report: FluentEvalReport) -> str:
    """A test for each run of a case; the gate's own failures are in the suite's `system-err`."""
    counts = report.counts
    figures = {
        "name": clean(report.suite),
        "tests": str(len(report.outcomes)),
        "failures": str(counts[Status.FAILED]),
        "errors": str(counts[Status.ERROR]),
        "skipped": str(counts[Status.SKIPPED] + counts[Status.XFAILED]),
        "time": _seconds(report.duration_s),
    }
    root = ET.Element("testsuites", figures)
    suite = ET.SubElement(
        root, "testsuite", {**figures, "timestamp": report.started_at.strftime("%Y-%m-%dT%H:%M:%S")}
    )
    _properties(suite, _of_report(report))
    several = {each.id for each in report.outcomes if each.run > 1}
    for each in report.outcomes:
        _case(suite, report, each, several=each.id in several)
    if failures := report.failures:
        ET.SubElement(suite, "system-err").text = "\n".join(
            one_line(each, _REASONS) for each in failures
        )
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(
    suite: ET.Element, report: FluentEvalReport, outcome: CaseOutcome, *, several: bool
) -> None:
    name = clean(outcome.id)
    test = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": clean(report.suite),
            "name": f"{name} (run {outcome.run})" if several else name,
            "time": _seconds(outcome.duration_s),
        },
    )
    _properties(test, _of_outcome(outcome))
    _verdict(test, outcome)
    said = [
        f"user: {shorten(turn.input, _SAID)}\nanswer: {shorten(turn.response, _SAID)}"
        for turn in outcome.turns[:10]
    ]
    if (more := len(outcome.turns) - len(said)) > 0:
        said.append(f"... and {more:,} more turns")
    if said:
        ET.SubElement(test, "system-out").text = clean("\n".join(said))


def _verdict(test: ET.Element, outcome: CaseOutcome) -> None:
    if outcome.status is Status.PASSED:
        return
    if not outcome.status.counts:
        why = outcome.note or "no reason is given"
        expected = outcome.status is Status.XFAILED
        message = f"failed as expected: {why}" if expected else why
        ET.SubElement(test, "skipped", {"message": one_line(message, _MESSAGE)})
        return
    reasons = outcome.reasons or [outcome.error or "no reason is known"]
    kind = outcome.error.partition(":")[0] if outcome.error else "expectation"
    element = ET.SubElement(
        test,
        "error" if outcome.status is Status.ERROR else "failure",
        {"message": one_line(reasons[0], _MESSAGE), "type": one_line(kind, 100)},
    )
    element.text = clean(shorten("\n".join(reasons), _REASONS))


def _properties(parent: ET.Element, found: Iterator[tuple[str, str]]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in found:
        ET.SubElement(
            properties, "property", {"name": one_line(name, 200), "value": one_line(value, 1_000)}
        )


def _of_report(report: FluentEvalReport) -> Iterator[tuple[str, str]]:
    yield "ok", "true" if report.ok else "false"
    yield "pass_rate", f"{report.pass_rate:.6g}"
    for name in ("engine", "adk_version", "model"):
        if value := getattr(report, name):
            yield name, value
    yield "tokens", str(report.tokens.total)
    if (cost := report.cost_usd) is not None:
        yield "cost_usd", f"{cost:.6g}"
    yield from _beside(report)


def _beside(of: FluentEvalReport | CaseOutcome) -> Iterator[tuple[str, str]]:
    if of.eval_tokens.total:
        yield "eval_tokens", str(of.eval_tokens.total)
        if of.eval_cost_usd is not None:
            yield "eval_cost_usd", f"{of.eval_cost_usd:.6g}"


def _of_outcome(outcome: CaseOutcome) -> Iterator[tuple[str, str]]:
    if outcome.tags:
        yield "tags", ", ".join(outcome.tags)
    yield "tokens", str(outcome.tokens.total)
    if outcome.cost_usd is not None:
        yield "cost_usd", f"{outcome.cost_usd:.6g}"
    yield from _beside(outcome)
    for score in outcome.scores:
        shown = f"{score.score:.6g}" if score.score is not None and is_score(score) else "none"
        yield f"score.{score.name}", f"{shown} ({score.status})"


def _seconds(value: float) -> str:
    return f"{value if isfinite(value) else 0:.3f}"
