"""The checks of what a case itself expects: tools, answers, state and budgets.

Each takes what was observed and gives a `MetricScore`, or None where the case expects nothing of
the kind.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from adk_fluent.eval._checks._same import shown
from adk_fluent.eval._checks._state import look_at_state
from adk_fluent.eval._checks._trajectory import look_at
from adk_fluent.eval._metrics import BUDGET, RESPONSE, STATE, TRAJECTORY
from adk_fluent.eval._outcome import Finding, MetricScore, MetricStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._checks._observed import Observed

_UNITS = {"max_cost_usd": " USD", "max_tokens": " tokens", "max_latency_s": " s"}


def judged(
    name: str,
    score: float | None,
    threshold: float,
    *,
    lower_is_better: bool = False,
    reason: str = "",
    **rest: Any,
) -> MetricScore:
    """A score held against its threshold; None is no score, and no pass, and so is NaN."""
    if score is not None and not math.isfinite(score):
        reason = reason or f"the score is {score}"
        score = None  # JSON has no word for it
    if score is None:
        status = MetricStatus.NOT_EVALUATED
    elif score <= threshold if lower_is_better else score >= threshold:
        status = MetricStatus.PASSED
    else:
        status = MetricStatus.FAILED
    return MetricScore(name, status, score, threshold, lower_is_better, reason, **rest)


# --- turns ---------------------------------------------------------------------------------------


def _is_reached(seen: Observed, at: int) -> bool:
    """Whether there is something to look at: a turn that never came passes nothing."""
    return bool(seen.turns) if seen.is_played else at < len(seen.turns)


def _unreached(seen: Observed) -> str:
    turns = len(seen.turns)
    return f"the conversation ended after turn {turns}" if turns else "there was no turn"


# --- tools ---------------------------------------------------------------------------------------


def check_trajectory(seen: Observed, threshold: float = 1.0) -> MetricScore | None:
    """The calls of tools in each turn; of a user who is played, in the whole conversation."""
    found: list[Finding] = []
    scores: list[float] = []
    turns: list[float | None] = [None] * len(seen.turns)
    missed = False
    for at, turn in enumerate(seen.expected):
        if turn.trajectory is None:
            continue
        score, finding = _tools_of(seen, at)
        if not _is_reached(seen, at):
            missed = True
            score, finding.ok, finding.reason = 0.0, False, _unreached(seen)
        elif score >= threshold:
            finding.ok, finding.reason = True, ""
        scores.append(score)
        found.append(finding)
        if seen.is_played:
            turns = [score] * len(turns)
        elif at < len(turns):
            turns[at] = score
    if not found:
        return None
    judgement = judged(
        TRAJECTORY, sum(scores) / len(scores), threshold, findings=found, turns=turns
    )
    if missed:
        judgement.status = MetricStatus.FAILED  # whatever the mean is
    return judgement


def _tools_of(seen: Observed, at: int) -> tuple[float, Finding]:
    expected, match = seen.expected[at].trajectory or (), seen.case.trajectory_match
    if seen.is_played:
        uses = [use for each in seen.turns for use in each.tool_uses]
        return look_at(expected, uses, match, "tools of the conversation", None)
    uses = seen.turns[at].tool_uses if at < len(seen.turns) else []
    return look_at(expected, uses, match, "tools", at + 1)


# --- answers -------------------------------------------------------------------------------------


def check_response(seen: Observed) -> MetricScore | None:
    """What the answers have to contain; of a user who is played, the last of them."""
    found: list[Finding] = []
    turns: list[float | None] = [None] * len(seen.turns)
    for at, turn in enumerate(seen.expected):
        if not turn.contains:
            continue
        if not _is_reached(seen, at):
            found += [
                Finding("answer contains", False, _told(each), None, _unreached(seen), at + 1)
                for each in turn.contains
            ]
            continue
        where = len(turns) - 1 if seen.is_played else at
        here = [_contains(each, seen.turns[where].response, where + 1) for each in turn.contains]
        found += here
        turns[where] = float(all(each.ok for each in here))
    return _all_of(RESPONSE, found, turns)


def _contains(expected: str | re.Pattern[str], answer: str, turn: int) -> Finding:
    if isinstance(expected, re.Pattern):
        ok, what = expected.search(answer) is not None, "the answer does not match"
    else:
        ok, what = expected.casefold() in answer.casefold(), "the answer does not contain"
    told = _told(expected)
    reason = "" if ok else f"{what} {shown(told)}: {shown(answer)}"
    return Finding("answer contains", ok, told, answer, reason, turn)


def _told(expected: str | re.Pattern[str]) -> str:
    return f"/{expected.pattern}/" if isinstance(expected, re.Pattern) else expected


# --- state ---------------------------------------------------------------------------------------


def check_state(seen: Observed) -> MetricScore | None:
    """What state holds in the end, and after each turn that says so.

    Where a user is played, all of it is looked at in the end.
    """
    turns: list[float | None] = [None] * len(seen.turns)
    found: list[Finding] = []
    for at, turn in enumerate(seen.expected):
        if not turn.state_assertions:
            continue
        if seen.is_played:
            here = look_at_state(turn.state_assertions, seen.state, seen.written, None)
        else:
            after, written = _at(seen.state_after, at), _at(seen.written_after, at)
            here = look_at_state(turn.state_assertions, after, written, at + 1)
        if not _is_reached(seen, at):
            _fail(here, _unreached(seen))
        elif not seen.is_played:
            turns[at] = float(all(each.ok for each in here))
        found += here
    in_the_end = look_at_state(seen.case.state_assertions or {}, seen.state, seen.written, None)
    if not _is_reached(seen, len(seen.expected) - 1):
        _fail(in_the_end, _unreached(seen))
    return _all_of(STATE, [*found, *in_the_end], turns)


def _at(noted: Sequence[Mapping[str, Any]], at: int) -> Mapping[str, Any]:
    return noted[at] if at < len(noted) else {}


def _fail(findings: Sequence[Finding], reason: str) -> None:
    for each in findings:
        each.ok, each.reason = False, each.reason or reason


# --- budgets -------------------------------------------------------------------------------------


def check_budget(seen: Observed) -> MetricScore | None:
    """What the run took, held against what it may take."""
    case = seen.case
    tokens = seen.tokens.total
    too_many = case.max_tokens is not None and tokens > case.max_tokens
    took = {
        "max_cost_usd": seen.cost_usd,
        "max_tokens": None if seen.untold and not too_many else tokens,
        "max_latency_s": seen.duration_s,
        "max_tool_calls": sum(len(turn.all_tool_uses) for turn in seen.turns),
    }
    found: list[Finding] = []
    unknown = ""
    for name, actual in took.items():
        limit = getattr(case, name)
        if limit is None:
            continue
        if actual is None:
            why = seen.untold if name == "max_tokens" else seen.unpriced
            unknown = f"{name}: {why or 'the run has no price'}"
            found.append(Finding(name, False, limit, None, unknown))
        else:
            found.append(_spent(name, actual, limit))
    score = _all_of(BUDGET, found, [])
    if score is not None and unknown and sum(not each.ok for each in found) == 1:
        # nothing that is known stands in the way
        score.status, score.score, score.reason = MetricStatus.NOT_EVALUATED, None, unknown
    return score


def _spent(name: str, actual: float, limit: float) -> Finding:
    # a sum of many prices is not exact
    ok = actual <= limit or math.isclose(actual, limit)
    unit = _UNITS.get(name, "")
    reason = "" if ok else f"{_number(actual)}{unit} of {_number(limit)}{unit}"
    return Finding(name, ok, limit, actual if math.isfinite(actual) else str(actual), reason)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.10g}"


def _all_of(name: str, found: Sequence[Finding], turns: list[float | None]) -> MetricScore | None:
    if not found:
        return None
    share = sum(each.ok for each in found) / len(found)
    return judged(name, share, 1.0, findings=list(found), turns=turns)


def expects(case: FluentCase) -> list[str]:
    """The checks that a case asks for by what it expects."""
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
    return [name for name, wanted in asked.items() if wanted]
