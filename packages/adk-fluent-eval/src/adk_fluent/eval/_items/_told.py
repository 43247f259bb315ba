"""A run that did not pass, as the person reads it who runs the tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._text import clean, one_line, shorten
from adk_fluent.eval._report._words import percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome, Finding, Step
    from adk_fluent.eval._report._report import FluentEvalReport

#: Characters of a name, of a line, and of a text; steps of a conversation.
_NAME, _LINE, _TEXT = 100, 300, 2_000
_STEPS: Final = 60


def told(outcome: CaseOutcome, case: FluentCase) -> str:
    """Why it did not pass, what was expected and found, and what was said."""
    parts = [_reasons(outcome), _findings(outcome), _conversation(outcome), _place(case)]
    return "\n".join(line for part in parts for line in part)


def _reasons(outcome: CaseOutcome) -> Iterator[str]:
    run = f", run {outcome.run}" if outcome.run > 1 else ""
    what = "ended in an error" if outcome.status is Status.ERROR else "did not pass"
    yield f"case {one_line(outcome.id, _NAME)!r}{run} {what}"
    reasons = outcome.reasons or [outcome.error or "no reason is known"]
    yield from (f"  {line}" for each in reasons for line in _lines(each))


def _findings(outcome: CaseOutcome) -> Iterator[str]:
    missed = [
        each
        for each in outcome.findings
        if not each.ok and (each.expected is not None or each.actual is not None)
    ]
    for each in missed:
        yield ""
        yield f"{_what(each)}:"
        yield f"  expected: {_value(each.expected)}"
        yield f"  actual:   {_value(each.actual)}"


def _conversation(outcome: CaseOutcome) -> Iterator[str]:
    for number, turn in enumerate(outcome.turns, 1):
        yield ""
        yield f"turn {number}:" if len(outcome.turns) > 1 else "conversation:"
        yield f"  user: {_indented(turn.input)}"
        for step in turn.steps[:_STEPS]:
            yield from _step(step)
        if (more := len(turn.steps) - _STEPS) > 0:
            yield f"  and {more:,} more steps"
    if outcome.turns:
        yield ""
        yield f"{outcome.tokens.total:,} tokens, {outcome.duration_s:.2f} s"


def _step(step: Step) -> Iterator[str]:
    author = one_line(step.who, _NAME)
    if step.text:
        yield f"  {author}{' thinks' if step.thought else ''}: {_indented(step.text)}"
    if (use := step.tool) is not None:
        args = ", ".join(f"{one_line(k, _NAME)}={_value(v)}" for k, v in use.args.items())
        answer = f"raised {one_line(use.error, _LINE)}" if use.error else _value(use.response)
        yield f"  {author} calls {one_line(use.name, _NAME)}({args})"
        yield f"    -> {answer}{' (mocked)' if use.mocked else ''}"
    if step.state:
        keys = ", ".join(f"{one_line(k, _NAME)}={_value(v)}" for k, v in step.state.items())
        yield f"  {author} writes {keys}"
    if step.error:
        yield f"  {author} reports {one_line(step.error, _LINE)}"


def _place(case: FluentCase) -> Iterator[str]:
    if case.place is not None:
        yield f"the case is at {case.place}"


def _what(finding: Finding) -> str:
    turn = f" of turn {finding.turn}" if finding.turn else ""
    return one_line(f"{finding.what}{turn}", _NAME)


def _value(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):  # keys of a tuple, holds itself, too deep
        text = f"({type(value).__name__})"
    return one_line(text, _LINE)


def _lines(text: str) -> list[str]:
    return clean(shorten(text, _TEXT)).splitlines() or [""]


def _indented(text: str) -> str:
    return "\n    ".join(_lines(text))


def summary(label: str, report: FluentEvalReport) -> str:
    """What the tests of a suite came to, in one line."""
    if not report.counting:
        return f"{one_line(label, _NAME)}: no run counts"
    low, high = report.pass_rate_ci()
    passed = f"{percent(report.pass_rate)} of {plural(report.counting, 'run')} passed"
    flaky = f", {plural(len(report.flaky), 'case')} flaky" if report.flaky else ""
    return (
        f"{one_line(label, _NAME)}: {passed} ({percent(low)} to {percent(high)} with 95% "
        f"confidence){flaky}"
    )
