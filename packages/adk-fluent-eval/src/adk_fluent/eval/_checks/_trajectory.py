"""The calls of tools, held against those that are expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._checks._same import fits, plain, shown
from adk_fluent.eval._outcome import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from adk_fluent.eval._cases._case import ToolCall
    from adk_fluent.eval._outcome import ToolUse


def look_at(
    expected: Sequence[ToolCall], actual: Sequence[ToolUse], match: str, what: str, turn: int | None
) -> tuple[float, Finding]:
    """The score of a turn, 0 to 1, and what was found.

    Args:
        expected: The calls as they should be.
        actual: The calls as they were.
        match: See `FluentCase.trajectory_match`.
        what: What is looked at, for the report.
        turn: The turn, counted from 1; None for the whole conversation.
    """
    # no calls are expected: whichever way, none is allowed
    score, reason = _WAYS[match if expected else "exact"](expected, actual)
    return score, Finding(
        what,
        ok=score == 1.0,
        expected=[_expected(each) for each in expected],
        actual=[{"name": each.name, "args": plain(each.args)} for each in actual],
        reason=reason,
        turn=turn,
    )


def _expected(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name} | ({} if call.args is None else {"args": plain(call.args)})


def misfit(expected: ToolCall, actual: ToolUse) -> str:
    """Why a call is not the one that is expected; empty if it is.

    An argument that is absent is None, as it is for most tools; but no condition is met by what is
    not there.
    """
    if expected.name != actual.name:
        return f"expected {expected.name}, found {actual.name}"
    for name, value in (expected.args or {}).items():
        if name not in actual.args and value is not None:
            return f"{expected.name} was called without {name}"
        if reason := fits(value, actual.args.get(name)):
            return f"{expected.name}, argument {name}: {reason}"
    return ""


def _exact(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    for number, (call, use) in enumerate(zip(expected, actual, strict=False), 1):
        if reason := misfit(call, use):
            return 0.0, f"call {number}: {reason}"
    if len(expected) > len(actual):
        return 0.0, _were(expected[len(actual) :], "not called")
    if len(actual) > len(expected):
        return 0.0, f"{_were(actual[len(expected) :], 'called')}, and not expected"
    return 1.0, ""


def _in_order(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    rest = iter(actual)
    for call in expected:
        if not any(not misfit(call, use) for use in rest):
            return 0.0, _absent(call, actual, " after those before it")
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
            return 0.0, f"{use.name}({shown(use.args)[1:-1]}) was called, and not expected"
    return 1.0, ""


def _f1(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> tuple[float, str]:
    if not expected and not actual:
        return 1.0, ""
    hits = len(_paired(expected, actual))
    score = 2 * hits / (len(expected) + len(actual))
    return score, "" if score == 1.0 else (
        f"{hits} of {len(expected)} expected calls, and {len(actual) - hits} others"
    )


def _paired(expected: Sequence[ToolCall], actual: Sequence[ToolUse]) -> dict[int, int]:
    """As many expected calls as can be, each with a call of its own (Kuhn's matching)."""
    fitting = [[at for at, use in enumerate(actual) if not misfit(call, use)] for call in expected]
    taken: dict[int, int] = {}  # actual -> expected

    for first in range(len(expected)):
        seen: set[int] = set()
        path: list[tuple[int, int]] = []  # who asks, and what for
        todo = [(first, iter(fitting[first]))]
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
            todo.append((taken[option], iter(fitting[taken[option]])))
    return {call: use for use, call in taken.items()}


def _absent(call: ToolCall, actual: Sequence[ToolUse], if_there: str) -> str:
    """Why a call is missing.

    Args:
        call: The call.
        actual: The calls that there are.
        if_there: What to say where it is among them.
    """
    misfits = [misfit(call, use) for use in actual if use.name == call.name]
    if not misfits:
        return f"{call.name} was not called"
    return f"{call.name} was not called{if_there}" if "" in misfits else misfits[0]


def _were(calls: Sequence[ToolCall | ToolUse], what: str) -> str:
    names = ", ".join(each.name for each in calls)
    return f"{names} {'was' if len(calls) == 1 else 'were'} {what}"


_WAYS: Final[dict[str, Callable[[Sequence[ToolCall], Sequence[ToolUse]], tuple[float, str]]]] = {
    "exact": _exact,
    "in_order": _in_order,
    "any_order": _any_order,
    "subset": _subset,
    "f1": _f1,
}
