"""What a run of a case did, and checks of what the case expects of it.

Each check takes an observation and returns a `MetricScore`, or None if the case expects nothing of
the kind.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.errors import nearest_name
from adk_fluent.eval import _metrics
from adk_fluent.eval._cases._turn import StateMap, Turn, key_of
from adk_fluent.eval._checks._matching import compare_calls, mismatch
from adk_fluent.eval._metrics import METRICS, PrebuiltMetrics
from adk_fluent.eval._outcome import Finding, MetricScore, MetricStatus, TurnOutcome
from adk_fluent.eval._text import measured, plain, shown
from adk_fluent.extend import error_line
from adk_fluent.ir import UNSET
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.protocol import FieldRef


@dataclass(slots=True)
class Observation:
    """One run of a case.

    Attributes:
        case: The case.
        expected: Its turns, with their expectations.
        turns: The observed turns, with plain values.
        events: ADK's events of each turn.
        invocations: ADK's eval invocations.
        state: Session state at the end.
        states: Session state after each turn.
        written: Step to the keys that it wrote, and the last values.
        writes: The same after each turn.
        answered: Name of a gate or tool to how often it was answered.
        cost_usd: US dollars of all model calls; None if it is not known.
        cost_unknown: Why the cost is not known; empty if it is.
        tokens_unknown: Why the tokens are incomplete; empty if they are complete.
        tools_unknown: The same of the tool calls.
        simulated: Whether the user was simulated.
        failure: What ended the run, if something was raised or reported.
    """

    case: FluentCase
    expected: Sequence[Turn]
    turns: list[TurnOutcome] = field(default_factory=list[TurnOutcome])
    events: list[list[Any]] = field(default_factory=list[list[Any]])
    invocations: list[Any] = field(default_factory=list[Any])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    states: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    written: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    writes: list[Mapping[str, Mapping[str, Any]]] = field(
        default_factory=list["Mapping[str, Mapping[str, Any]]"]
    )
    answered: Counter[str] = field(default_factory=Counter[str])
    cost_usd: float | None = None
    cost_unknown: str = ""
    tokens_unknown: str = ""
    tools_unknown: str = ""
    simulated: bool = False
    failure: BaseException | None = None

    @property
    def tokens(self) -> Usage:
        """Tokens of all model calls."""
        return sum((turn.tokens for turn in self.turns), Usage())

    @property
    def duration_s(self) -> float:
        """Seconds of all turns."""
        return sum(turn.duration_s for turn in self.turns)


#: Limits of a case, and their units.
_UNITS = {"max_cost_usd": "USD", "max_tokens": "tokens", "max_latency_s": "s", "max_tool_calls": ""}


def scored(name: str, score: float | None, threshold: float, **rest: Any) -> MetricScore:
    """Compare a score with its threshold; None is not evaluated, and never a pass.

    Args:
        name: The metric.
        score: Its score.
        threshold: The threshold.
        **rest: Other fields of the result.
    """
    if score is None:
        status = MetricStatus.NOT_EVALUATED
    elif score <= threshold if rest.get("lower_is_better") else score >= threshold:
        status = MetricStatus.PASSED
    else:
        status = MetricStatus.FAILED
    return MetricScore(name, status, score, threshold, **rest)


def expectations(case: FluentCase) -> list[str]:
    """Return the checks that a case asks for by its expectations."""
    turns = case.turns
    asked = {
        _metrics.TRAJECTORY: any(turn.expected_trajectory is not None for turn in turns),
        _metrics.RESPONSE: any(turn.contains for turn in turns),
        _metrics.STATE: bool(case.state_assertions) or any(turn.state_assertions for turn in turns),
        _metrics.BUDGET: any(getattr(case, name) is not None for name in _UNITS),
        _metrics.STATUS: any(turn.expected_status is not None for turn in turns),
        _metrics.ANSWERS: bool(case.answers),
    }
    return [name for name, is_asked in asked.items() if is_asked]


def _share(findings: list[Finding]) -> float:
    """The share of expectations that are met."""
    return sum(each.ok for each in findings) / len(findings)


def _by_turn(
    seen: Observation,
    name: str,
    check: Callable[[Turn, int], tuple[float, list[Finding]] | None],
    *,
    threshold: float = 1.0,
    reached: int | None = None,
) -> MetricScore | None:
    """Return the mean score of the turns of which something is expected; None if of none.

    Args:
        seen: The run.
        name: The metric.
        check: Returns the score of the turn at a place, and what was expected of it.
        threshold: The threshold.
        reached: How many turns can be checked; those after them have 0. None is those observed.
    """
    if reached is None:
        reached = len(seen.turns)
    findings: list[Finding] = []
    turns: list[float | None] = []
    for at, expected in enumerate(seen.expected):
        score, found = check(expected, at) or (None, [])
        if score is not None and at >= reached:
            score = 0.0
            ended = f"the conversation ended after turn {reached}" if reached else "no turn ran"
            for each in found:
                each.ok, each.reason = False, ended
        elif score is not None and score >= threshold:
            for each in found:
                each.ok, each.reason = True, ""
        turns.append(score)
        findings += found
    known = [each for each in turns if each is not None]
    if not known:
        return None
    return scored(name, sum(known) / len(known), threshold, findings=findings, turns=turns)


def _turn(seen: Observation, at: int) -> TurnOutcome:
    """A turn; one without anything if it was not reached."""
    return seen.turns[at] if at < len(seen.turns) else TurnOutcome("")


def check_trajectory(seen: Observation, threshold: float = 1.0) -> MetricScore | None:
    """Check the tool calls of each turn; the score is the mean over turns that expect some."""

    def check(turn: Turn, at: int) -> tuple[float, list[Finding]] | None:
        if turn.trajectory is None:
            return None
        # of a simulated user, the case expects them of the whole conversation
        turns = seen.turns if seen.simulated else seen.turns[at : at + 1]
        uses = [use for each in turns for use in each.tool_uses]
        score, found = compare_calls(turn.trajectory, uses, seen.case.trajectory_match, at + 1)
        return score, [found]

    return _by_turn(seen, _metrics.TRAJECTORY, check, threshold=threshold)


def check_response(seen: Observation) -> MetricScore | None:
    """Check the texts and patterns that the answers must contain."""

    def check(turn: Turn, at: int) -> tuple[float, list[Finding]] | None:
        answer = _turn(seen, at).response
        found = [_contains(each, answer, at + 1) for each in turn.contains]
        return (_share(found), found) if found else None

    return _by_turn(seen, _metrics.RESPONSE, check)


def _contains(expected: str | re.Pattern[str], answer: str, turn: int) -> Finding:
    if isinstance(expected, re.Pattern):
        text, what = f"/{expected.pattern}/", "the answer does not match"
        ok = expected.search(answer) is not None
    else:
        text, what = expected, "the answer does not contain"
        ok = expected.casefold() in answer.casefold()
    reason = "" if ok else f"{what} {shown(text)}: {shown(answer)}"
    return Finding("answer contains", ok, text, answer, reason, turn)


def check_state(seen: Observation) -> MetricScore | None:
    """Check state after each turn that asserts some, and at the end."""
    last = len(seen.expected) - 1
    reached = len(seen.states)

    def check(turn: Turn, at: int) -> tuple[float, list[Finding]] | None:
        state: Mapping[str, Any] = seen.states[at] if at < reached else {}
        writes: Mapping[str, Mapping[str, Any]] = seen.writes[at] if at < reached else {}
        found = _check_keys(turn.state_assertions or {}, state, writes, at + 1)
        if at == last:
            found += _check_keys(seen.case.state_assertions or {}, seen.state, seen.written, None)
        return (_share(found), found) if found else None

    return _by_turn(seen, _metrics.STATE, check, reached=reached)


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
        unit = _UNITS[name]
        reason = "" if ok else f"{measured(actual, unit)} of {measured(limit, unit)}"
        findings.append(Finding(name, ok, limit, actual, reason))
    if not findings:
        return None
    only_unknown = bool(unknown) and sum(not each.ok for each in findings) == len(unknown)
    score, reason = (None, "; ".join(unknown)) if only_unknown else (_share(findings), "")
    return scored(_metrics.BUDGET, score, 1.0, findings=findings, reason=reason)


def check_status(seen: Observation) -> MetricScore | None:
    """Check what became of the run of each turn that expects something of it."""

    def check(turn: Turn, at: int) -> tuple[float, list[Finding]] | None:
        if (wanted := turn.expected_status) is None:
            return None
        found, why = _turn(seen, at).status, _turn(seen, at).ended
        ok = found == wanted
        reason = "" if ok else f"expected {wanted}, found {found}{why and f': {why}'}"
        return float(ok), [Finding("status", ok, wanted, found, reason, at + 1)]

    return _by_turn(seen, _metrics.STATUS, check)


def check_answers(seen: Observation) -> MetricScore | None:
    """Check that every answer was asked for."""
    findings: list[Finding] = []
    for name, given in (seen.case.answers or {}).items():
        count = len(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else 1
        asked = seen.answered[name]
        ok = asked >= count
        told = f"only {asked} of {count} were asked for" if asked else "nothing has asked for it"
        reason = "" if ok else told
        findings.append(Finding(f"answer to {name}", ok, plain(given), asked, reason))
    return scored(_metrics.ANSWERS, _share(findings), 1.0, findings=findings) if findings else None


def check_match(seen: Observation, threshold: float) -> MetricScore | None:
    """Compute ROUGE-1 of the answers with their references."""
    from adk_fluent.eval._checks._rouge import rouge1  # noqa: PLC0415  # rarely needed

    def check(turn: Turn, at: int) -> tuple[float, list[Finding]] | None:
        if (reference := turn.reference_response) is None:
            return None
        answer = _turn(seen, at).response
        score = rouge1(answer, reference)
        why = f"ROUGE-1 is {score:.2f}"
        return score, [Finding("answer matches", False, reference, answer, why, at + 1)]

    return _by_turn(seen, _metrics.MATCH, check, threshold=threshold)


#: What computes each metric of ours that decides.
OWN: Final[dict[str, Callable[[Observation, float], MetricScore | None]]] = {
    _metrics.TRAJECTORY: check_trajectory,
    _metrics.RESPONSE: lambda seen, _: check_response(seen),
    _metrics.STATE: lambda seen, _: check_state(seen),
    _metrics.BUDGET: lambda seen, _: check_budget(seen),
    _metrics.STATUS: lambda seen, _: check_status(seen),
    _metrics.ANSWERS: lambda seen, _: check_answers(seen),
    _metrics.MATCH: check_match,
}


#: What counts each metric of ours that informs.
_COUNTS: dict[str, Callable[[TurnOutcome], float | None]] = {
    PrebuiltMetrics.TOOL_CALL_COUNT_V1: lambda turn: len(turn.tool_uses),
    PrebuiltMetrics.INFERENCE_CALL_COUNT_V1: lambda turn: turn.model_calls,
    # a model that reports no usage has not used zero tokens
    PrebuiltMetrics.TOKEN_USAGE_V1: lambda turn: turn.tokens.total or None,
    PrebuiltMetrics.INVOCATION_DURATION_V1: lambda turn: turn.duration_s,
}


def _informational(name: str, seen: Observation) -> MetricScore:
    """A metric that decides nothing: the mean over turns, as ADK computes it."""
    turns = [_COUNTS[name](turn) for turn in seen.turns]
    known = [each for each in turns if each is not None]
    mean, why = (sum(known) / len(turns), "") if known else (None, "not reported")
    unit, informs = METRICS[name].unit, MetricStatus.INFORMATIONAL
    return MetricScore(name, informs, mean, reason=why, turns=turns, unit=unit)


def compute(name: str, seen: Observation, threshold: float | None) -> MetricScore:
    """Compute a metric of ours; one without a threshold informs."""
    if threshold is None:
        return _informational(name, seen)
    score = OWN[name](seen, threshold)
    return score or MetricScore(name, MetricStatus.NOT_EVALUATED, reason="nothing to evaluate")


# --- state ---------------------------------------------------------------------------------------

_KEYS_SHOWN: Final = 12


def _check_keys(
    expected: StateMap,
    state: Mapping[str, Any],
    written: Mapping[str, Mapping[str, Any]],
    turn: int | None,
) -> list[Finding]:
    """Check each asserted key.

    An absent key is None, and of a typed reference its default; it meets no condition.
    """
    findings: list[Finding] = []
    for ref, value in expected.items():
        key = key_of(ref)
        what, name, source = f"state {key}", key, state
        step, dot, rest = key.partition(".")
        if dot and key not in state and step in written:
            what, name, source = f"state {rest} as {step} wrote it", rest, written[step]
        stored = source.get(name)
        actual, problem = (stored, "") if value is None else _read(ref, stored)
        if actual is None and not problem and value is not None:
            reason = _no_such_key(name, source)
        else:
            reason = problem or mismatch(value, actual)
        findings.append(Finding(what, not reason, plain(value), plain(actual), reason, turn))
    return findings


def _read(ref: str | FieldRef, stored: Any) -> tuple[Any, str]:
    """The value that a reader of a reference gets, and why it cannot be read; empty if it can."""
    try:
        if stored is None:
            default = getattr(ref, "default", UNSET)
            return (None if default is UNSET else default), ""
        decode = getattr(ref, "decode", None)
        return (stored if decode is None else decode(stored)), ""
    except Exception as error:  # noqa: BLE001  # stored values may be anything
        what = "its default" if stored is None else shown(stored)
        return stored, f"{what} is not a value of {key_of(ref)}: {error_line(error)}"


def _no_such_key(name: str, source: Mapping[str, Any]) -> str:
    keys = sorted(key for key, value in source.items() if value is not None)
    if near := nearest_name(name, keys):
        return f"the key is absent; did you mean {near!r}?"
    rest = ", ..." if len(keys) > _KEYS_SHOWN else ""
    return f"the key is absent; state has {', '.join(keys[:_KEYS_SHOWN]) or 'no keys'}{rest}"
