"""Comparing tool calls with the expected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._outcome import Finding
from adk_fluent.eval._values import mismatch, plain, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adk_fluent.eval._cases._turn import ToolCall
    from adk_fluent.eval._outcome import ToolUse


def compare_calls(
    expected: Sequence[ToolCall], actual: Sequence[ToolUse], match: str, turn: int
) -> tuple[float, Finding]:
    """Compare the tool calls of a turn."""
    # an empty trajectory allows no calls, whatever the match
    score, reason = _MATCHERS[match if expected else "exact"](expected, actual)
    return score, Finding(
        "tools",
        ok=score == 1.0,
        expected=[_expected(each) for each in expected],
        actual=[{"name": each.name, "args": plain(each.args)} for each in actual],
        reason=reason,
        turn=turn,
    )


def _expected(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name} | ({} if call.args is None else {"args": plain(call.args)})


def _difference(expected: ToolCall, actual: ToolUse) -> str:
    """Why a call is not the expected one; empty if it is.

    An absent argument equals None, but meets no condition.
    """
    if expected.name != actual.name:
        return f"expected {expected.name}, found {actual.name}"
    for name, value in (expected.args or {}).items():
        if name not in actual.args and value is not None:
            return f"{expected.name} was called without {name}"
        if reason := mismatch(value, actual.args.get(name)):
            return f"{expected.name}, argument {name}: {reason}"
    return ""


def _exact(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    for number, (call, use) in enumerate(zip(expected, actual, strict=False), 1):
        if reason := _difference(call, use):
            return 0.0, f"call {number}: {reason}"
    if len(expected) > len(actual):
        return 0.0, _were(expected[len(actual) :], "not called")
    if len(actual) > len(expected):
        return 0.0, f"{_were(actual[len(expected) :], 'called')} unexpectedly"
    return 1.0, ""


def _in_order(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    rest = iter(actual)
    for call in expected:
        if not any(not _difference(call, use) for use in rest):
            return 0.0, _absent(call, actual, " after the preceding calls")
    return 1.0, ""


def _any_order(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    pairs = _paired(expected, actual)
    for at, call in enumerate(expected):
        if at not in pairs:
            return 0.0, _absent(call, actual, " as often as expected")
    return 1.0, ""


def _subset(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    taken = set(_paired(expected, actual).values())
    for at, use in enumerate(actual):
        if at not in taken:
            return 0.0, f"{use.name}({shown(use.args)[1:-1]}) was called unexpectedly"
    return 1.0, ""


def _f1(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    if not expected and not actual:
        return 1.0, ""
    hits = len(_paired(expected, actual))
    score = 2 * hits / (len(expected) + len(actual))
    return score, "" if score == 1.0 else (
        f"{hits} of {len(expected)} expected calls made, {len(actual) - hits} others"
    )


def _paired(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> dict[int, int]:
    """A maximum matching of expected to observed calls (Kuhn's algorithm)."""
    candidates = [
        [at for at, use in enumerate(actual) if not _difference(call, use)] for call in expected
    ]
    taken: dict[int, int] = {}  # actual -> expected

    for first in range(len(expected)):
        seen: set[int] = set()
        path: list[tuple[int, int]] = []  # expected call, observed call
        todo = [(first, iter(candidates[first]))]
        while todo:
            asking, options = todo[-1]
            option = next((each for each in options if each not in seen), None)
            if option is None:
                todo.pop()
                if path:
                    path.pop()
                continue
            seen.add(option)
            path.append((asking, option))
            if option not in taken:
                taken.update({use: call for call, use in path})
                break
            todo.append((taken[option], iter(candidates[taken[option]])))
    return {call: use for use, call in taken.items()}


def _absent(call: ToolCall, actual: Sequence[ToolUse], suffix: str) -> str:
    """Why a call is missing."""
    differences = [_difference(call, use) for use in actual if use.name == call.name]
    if not differences:
        return f"{call.name} was not called"
    return f"{call.name} was not called{suffix}" if "" in differences else differences[0]


def _were(calls: Sequence[ToolCall | ToolUse], what: str) -> str:
    names = ", ".join(each.name for each in calls)
    return f"{names} {'was' if len(calls) == 1 else 'were'} {what}"


_MATCHERS: Final[
    dict[str, Callable[[Sequence[ToolCall], Sequence[ToolUse]], tuple[float, str]]]
] = {"exact": _exact, "in_order": _in_order, "any_order": _any_order, "subset": _subset, "f1": _f1}
