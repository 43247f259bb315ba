"""Checks of what a case expects: tools, answers, state and budgets.

Each takes an observation and returns a `MetricScore`, or None if the case expects nothing of the
kind.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._checks._state import check_keys
from adk_fluent.eval._checks._trajectory import compare_calls
from adk_fluent.eval._metrics import BUDGET, MATCH, RESPONSE, STATE, TRAJECTORY
from adk_fluent.eval._outcome import Finding, MetricScore, MetricStatus
from adk_fluent.eval._text import measured
from adk_fluent.eval._values import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._checks._observation import Observation

_UNITS = {"max_cost_usd": "USD", "max_tokens": "tokens", "max_latency_s": "s"}


def scored(
    name: str,
    score: float | None,
    threshold: float,
    *,
    lower_is_better: bool = False,
    reason: str = "",
    **rest: Any,
) -> MetricScore:
    """Compare a score with its threshold; None is not evaluated, and never a pass."""
    if score is None:
        status = MetricStatus.NOT_EVALUATED
    elif score <= threshold if lower_is_better else score >= threshold:
        status = MetricStatus.PASSED
    else:
        status = MetricStatus.FAILED
    return MetricScore(name, status, score, threshold, lower_is_better, reason, **rest)


def expectations(case: FluentCase) -> list[str]:
    """Return the checks that a case asks for by its expectations."""
    turns = case.turns
    asked = {
        TRAJECTORY: any(turn.expected_trajectory is not None for turn in turns),
        RESPONSE: any(turn.contains for turn in turns),
        STATE: bool(case.state_assertions) or any(turn.state_assertions for turn in turns),
        BUDGET: any(
            getattr(case, name) is not None
            for name in ("max_cost_usd", "max_tokens", "max_latency_s", "max_tool_calls")
        ),
    }
    return [name for name, is_asked in asked.items() if is_asked]


def _all_met(
    name: str, findings: Sequence[Finding], turns: list[float | None]
) -> MetricScore | None:
    if not findings:
        return None
    share = sum(each.ok for each in findings) / len(findings)
    return scored(name, share, 1.0, findings=list(findings), turns=turns)


def _unreached(seen: Observation) -> str:
    return f"the conversation ended after turn {len(seen.turns)}" if seen.turns else "no turn ran"


def check_trajectory(seen: Observation, threshold: float = 1.0) -> MetricScore | None:
    """Check the tool calls of each turn; the score is the mean over turns that expect some."""
    findings: list[Finding] = []
    turns: list[float | None] = [None] * len(seen.expected)
    for at, expected in enumerate(seen.expected):
        if expected.trajectory is None:
            continue
        uses = seen.turns[at].tool_uses if at < len(seen.turns) else []
        score, finding = compare_calls(
            expected.trajectory, uses, seen.case.trajectory_match, at + 1
        )
        if at >= len(seen.turns):
            score, finding.ok, finding.reason = 0.0, False, _unreached(seen)
        elif score >= threshold:
            finding.ok, finding.reason = True, ""
        turns[at] = score
        findings.append(finding)
    scores = [each for each in turns if each is not None]
    if not scores:
        return None
    mean = sum(scores) / len(scores)
    return scored(TRAJECTORY, mean, threshold, findings=findings, turns=turns)


def check_response(seen: Observation) -> MetricScore | None:
    """Check the texts and patterns that the answers must contain."""
    findings: list[Finding] = []
    turns: list[float | None] = [None] * len(seen.expected)
    for at, expected in enumerate(seen.expected):
        if not expected.contains:
            continue
        if at < len(seen.turns):
            found = [_contains(each, seen.turns[at].response, at + 1) for each in expected.contains]
        else:
            found = [
                Finding("answer contains", False, _text(each), None, _unreached(seen), at + 1)
                for each in expected.contains
            ]
        findings += found
        turns[at] = float(all(each.ok for each in found))
    return _all_met(RESPONSE, findings, turns)


def _contains(expected: str | re.Pattern[str], answer: str, turn: int) -> Finding:
    if isinstance(expected, re.Pattern):
        ok, what = expected.search(answer) is not None, "the answer does not match"
    else:
        ok, what = expected.casefold() in answer.casefold(), "the answer does not contain"
    text = _text(expected)
    reason = "" if ok else f"{what} {shown(text)}: {shown(answer)}"
    return Finding("answer contains", ok, text, answer, reason, turn)


def _text(expected: str | re.Pattern[str]) -> str:
    return f"/{expected.pattern}/" if isinstance(expected, re.Pattern) else expected


def check_state(seen: Observation) -> MetricScore | None:
    """Check state after each turn that asserts some, and at the end."""
    findings: list[Finding] = []
    turns: list[float | None] = [None] * len(seen.expected)
    for at, expected in enumerate(seen.expected):
        if not expected.state_assertions:
            continue
        reached = at < len(seen.states)
        found = check_keys(
            expected.state_assertions,
            seen.states[at] if reached else {},
            seen.writes[at] if reached else {},
            at + 1,
        )
        if not reached:
            _fail(found, _unreached(seen))
        turns[at] = float(all(each.ok for each in found))
        findings += found
    final = check_keys(seen.case.state_assertions or {}, seen.state, seen.written, None)
    if len(seen.turns) < len(seen.expected):
        _fail(final, _unreached(seen))
    return _all_met(STATE, [*findings, *final], turns)


def _fail(findings: Sequence[Finding], reason: str) -> None:
    for each in findings:
        each.ok, each.reason = False, each.reason or reason


def check_budget(seen: Observation) -> MetricScore | None:
    """Check what the run used against the case's limits; an unknown figure is not a pass."""
    calls = sum(len(turn.all_tool_uses) for turn in seen.turns)
    used = {
        "max_cost_usd": (seen.cost_usd, seen.cost_unknown),
        "max_tokens": (seen.tokens.total, seen.tokens_unknown),
        "max_latency_s": (seen.duration_s, ""),
        "max_tool_calls": (calls, seen.tools_unknown),
    }
    findings: list[Finding] = []
    unknown: list[str] = []
    for name, (actual, why) in used.items():
        limit: float | None = getattr(seen.case, name)
        if limit is None:
            continue
        if actual is None or (why and actual <= limit):  # what is known is a lower bound
            reason = why or "the cost is not known"
            unknown.append(f"{name}: {reason}")
            findings.append(Finding(name, False, limit, None, reason))
            continue
        ok = actual <= limit or math.isclose(actual, limit)  # sums of prices are not exact
        unit = _UNITS.get(name, "")
        reason = "" if ok else f"{measured(actual, unit)} of {measured(limit, unit)}"
        findings.append(Finding(name, ok, limit, actual, reason))
    score = _all_met(BUDGET, findings, [])
    if score is not None and unknown and sum(not each.ok for each in findings) == len(unknown):
        score.status, score.score = MetricStatus.NOT_EVALUATED, None
        score.reason = "; ".join(unknown)
    return score


def check_match(seen: Observation, threshold: float) -> MetricScore | None:
    """Compute ROUGE-1 of the answers with their references."""
    from adk_fluent.eval._checks._rouge import rouge1  # noqa: PLC0415  # rarely needed

    turns: list[float | None] = [None] * len(seen.expected)
    findings: list[Finding] = []
    for at, expected in enumerate(seen.expected):
        reference = expected.reference_response
        if reference is None:
            continue
        reached = at < len(seen.turns)
        answer = seen.turns[at].response if reached else None
        score = turns[at] = rouge1(answer or "", reference)
        ok = reached and score >= threshold
        reason = "" if ok else f"ROUGE-1 is {score:.2f}" if reached else _unreached(seen)
        findings.append(Finding("answer matches", ok, reference, answer, reason, at + 1))
    scores = [each for each in turns if each is not None]
    if not scores:
        return None
    mean = sum(scores) / len(scores)
    return scored(MATCH, mean, threshold, findings=findings, turns=turns)
