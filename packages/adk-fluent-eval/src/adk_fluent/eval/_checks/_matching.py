"""Whether values and tool calls are the expected ones."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._outcome import Finding, ToolUse
from adk_fluent.eval._text import is_condition, name_of, plain, shown
from adk_fluent.extend import error_line

if TYPE_CHECKING:
    from adk_fluent.eval._cases._turn import ToolCall

_DEPTH: Final = 60  # of containers, in which a difference is sought


def mismatch(expected: Any, actual: Any) -> str:
    """Return why a value does not meet an expectation; empty if it does."""
    if is_condition(expected):
        return _rejection(expected, actual)
    if equal(expected, actual):
        return ""
    want, have, place = shown(expected), shown(actual), ""
    if want == have:  # such as a Decimal and its text
        place, expected, actual = _differing(expected, actual)
        want = f"{shown(expected)} ({type(expected).__name__})"
        have = f"{shown(actual)} ({type(actual).__name__})"
    return f"{place and f'at {place}: '}expected {want}, found {have}"


def _differing(expected: Any, actual: Any) -> tuple[str, Any, Any]:
    """The place in two values at which they differ, such as ``['due']``, and what is there."""
    place = ""
    for _ in range(_DEPTH):
        pairs: Iterable[tuple[Any, Any, Any]] = ()
        if isinstance(expected, Mapping) and isinstance(actual, Mapping):
            left, right = cast("Mapping[Any, Any]", expected), cast("Mapping[Any, Any]", actual)
            pairs = ((key, each, right[key]) for key, each in left.items() if key in right)
        elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
            pairs = zip(
                count(), cast("list[Any]", expected), cast("list[Any]", actual), strict=False
            )
        found = next((each for each in pairs if not equal(*each[1:])), None)
        if found is None:
            break
        place, expected, actual = f"{place}[{found[0]!r}]", *found[1:]
    return place, cast("Any", expected), cast("Any", actual)


def _rejection(condition: Any, actual: Any) -> str:
    name = name_of(condition)
    try:
        verdict: Any = condition(actual)
        if isinstance(verdict, Awaitable):
            if isinstance(verdict, Coroutine):
                verdict.close()  # avoids the warning that it was never awaited
            return f"{name} is async; a condition must be a plain function"
        if verdict is None:
            return f"{name} returned None for {shown(actual)}, expected True or False"
        accepted = bool(verdict) and not (isinstance(verdict, float) and math.isnan(verdict))
    except Exception as error:  # noqa: BLE001  # user code
        return f"{name} raised {error_line(error)}"
    return "" if accepted else f"{name} rejected {shown(actual)}"


def equal(expected: Any, actual: Any) -> bool:
    """Whether two values are equal, where True is not 1 and a tuple equals a list.

    NaN and values that cannot be compared equal nothing.
    """
    try:
        return _equal(expected, actual)
    except Exception:  # noqa: BLE001  # arrays, or structures nested too deeply
        return False


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        left, right = cast("Mapping[Any, Any]", expected), cast("Mapping[Any, Any]", actual)
        return _typed(left) == _typed(right) and all(_equal(left[key], right[key]) for key in left)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        first, second = cast("list[Any]", expected), cast("list[Any]", actual)
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(expected, AbstractSet) and isinstance(actual, AbstractSet):
        wanted, found = cast("AbstractSet[Any]", expected), cast("AbstractSet[Any]", actual)
        return _typed(wanted) == _typed(found) and all(map(_equal, wanted, wanted))  # no NaN
    return bool(expected == actual)


def _typed(items: Iterable[Any]) -> set[tuple[bool, Any]]:
    """Items of a set or mapping, with bools told from numbers."""
    return {(isinstance(each, bool), each) for each in items}


# --- tool calls ----------------------------------------------------------------------------------


def compare_calls(
    expected: Sequence[ToolCall], actual: Sequence[ToolUse], match: str, turn: int
) -> tuple[float, Finding]:
    """Compare the tool calls of a turn."""
    # an empty trajectory allows no calls, whatever the match
    score, reason = _MATCHERS[match if expected else "exact"](expected, actual)
    want = [_expected(each) for each in expected]
    have = [{"name": each.name, "args": plain(each.args)} for each in actual]
    return score, Finding("tools", score == 1.0, want, have, reason, turn)


def _expected(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name} | (
        {} if call.args is None else {"args": {k: plain(v) for k, v in call.args.items()}}
    )


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
    taken: dict[int, int] = {}  # observed -> expected
    pairs: dict[int, int] = {}  # expected -> observed
    for first in range(len(expected)):
        asked: dict[int, int] = {}  # observed -> the expected call that would take it
        todo = [first]
        for call in todo:  # which grows
            fresh = [use for use in candidates[call] if use not in asked]
            asked |= dict.fromkeys(fresh, call)
            free: int | None = next((use for use in fresh if use not in taken), None)
            if free is None:
                todo += [taken[use] for use in fresh]
                continue
            while free is not None:  # each hands on what it had
                taker = taken[free] = asked[free]
                pairs[taker], free = free, pairs.get(taker)
            break
    return pairs


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
