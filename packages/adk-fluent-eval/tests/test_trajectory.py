"""The calls of tools, held against those that are expected, in five ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval import ToolCall
from adk_fluent.eval._cases._case import MATCHES
from adk_fluent.eval._checks._trajectory import _paired, look_at, misfit
from adk_fluent.eval._outcome import ToolUse

if TYPE_CHECKING:
    from collections.abc import Sequence

# a call "a" is of the tool a with any arguments, "a1" with n=1, as is a use of it
specs = st.lists(st.sampled_from(["a", "a1", "a2", "b", "b1", "c"]), max_size=5)


def call(spec: str) -> ToolCall:
    return ToolCall(spec[0], {"n": int(spec[1:])} if spec[1:] else None)


def use(spec: str) -> ToolUse:
    return ToolUse(spec[0], {"n": int(spec[1:])} if spec[1:] else {})


def score(match: str, expected: Sequence[str], actual: Sequence[str]) -> float:
    return look(match, expected, actual)[0]


def look(match: str, expected: Sequence[str], actual: Sequence[str]) -> tuple[float, str]:
    found, finding = look_at(
        [call(each) for each in expected], [use(each) for each in actual], match, "tools", 1
    )
    assert finding.ok == (found == 1.0)
    assert bool(finding.reason) != finding.ok
    assert (finding.what, finding.turn) == ("tools", 1)
    return found, finding.reason


# --- known values --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "scores"),
    [
        ("", "", (1, 1, 1, 1, 1)),
        ("", "a", (0, 0, 0, 0, 0)),
        ("a", "", (0, 0, 0, 1, 0)),
        ("a", "a", (1, 1, 1, 1, 1)),
        ("a", "b", (0, 0, 0, 0, 0)),
        ("a b", "a b", (1, 1, 1, 1, 1)),
        ("a b", "b a", (0, 0, 1, 1, 1)),
        ("a b", "a c b", (0, 1, 1, 0, 0.8)),
        ("a b", "b c a", (0, 0, 1, 0, 0.8)),
        ("a b", "a", (0, 0, 0, 1, 2 / 3)),
        ("a b c", "c a", (0, 0, 0, 1, 0.8)),
        ("a", "a a", (0, 1, 1, 0, 2 / 3)),
        ("a a", "a", (0, 0, 0, 1, 2 / 3)),
        ("a1", "a1", (1, 1, 1, 1, 1)),
        ("a1", "a2", (0, 0, 0, 0, 0)),
        ("a", "a1", (1, 1, 1, 1, 1)),  # any arguments
        ("a1", "a", (0, 0, 0, 0, 0)),
        ("a a1", "a1 a2", (0, 0, 1, 1, 1)),  # each has to find its own
        ("a a1 a2", "a2 a1 a1", (0, 0, 1, 1, 1)),
        ("a1 a1", "a1 a2", (0, 0, 0, 0, 0.5)),
    ],
)
def test_known_values(expected: str, actual: str, scores: tuple[float, ...]) -> None:
    found = [score(match, expected.split(), actual.split()) for match in MATCHES]
    assert found == pytest.approx(scores)


@pytest.mark.parametrize(
    ("match", "expected", "actual", "reason"),
    [
        ("exact", "a b", "a c", "call 2: expected b, found c"),
        ("exact", "a b c", "a", "b, c were not called"),
        ("exact", "a b", "a", "b was not called"),
        ("exact", "", "a", "a was called, and not expected"),
        ("exact", "a", "a b c", "b, c were called, and not expected"),
        ("exact", "a1", "a2", "call 1: a, argument n: expected 1, found 2"),
        ("exact", "a1", "a", "call 1: a was called without n"),
        ("in_order", "a b", "b a", "b was not called after those before it"),
        ("in_order", "a b", "a c", "b was not called"),
        ("in_order", "b a1", "b a2", "a, argument n: expected 1, found 2"),
        ("any_order", "a a", "a b", "a was not called as often as expected"),
        ("any_order", "a1", "a2", "a, argument n: expected 1, found 2"),
        ("any_order", "a", "b", "a was not called"),
        ("subset", "a", "b1", 'b("n": 1) was called, and not expected'),
        ("subset", "a", "a b", "b() was called, and not expected"),
        ("f1", "a b", "a c", "1 of 2 expected calls, and 1 others"),
    ],
)
def test_reasons(match: str, expected: str, actual: str, reason: str) -> None:
    assert look(match, expected.split(), actual.split())[1] == reason


def test_what_was_expected_and_what_there_was_is_kept() -> None:
    def small(value: Any) -> bool:
        return value < 5

    calls = [ToolCall("refund", {"amount": small, "id": (1, 2)}), ToolCall("log")]
    uses = [ToolUse("refund", {"amount": 3, "id": [1, 2], "note": "x"})]
    _, finding = look_at(calls, uses, "exact", "tools of the conversation", None)
    assert finding.expected == [
        {"name": "refund", "args": {"amount": "small()", "id": [1, 2]}},
        {"name": "log"},
    ]
    assert finding.actual == [{"name": "refund", "args": {"amount": 3, "id": [1, 2], "note": "x"}}]
    assert finding.turn is None


# --- arguments -----------------------------------------------------------------------------------


def fails(value: Any) -> bool:
    raise LookupError(f"no {value}")


def above_one(value: Any) -> bool:
    return value > 1


def absent(value: Any) -> bool:
    return value is None


ARGUMENTS: list[tuple[dict[str, Any] | None, dict[str, Any], str]] = [
    ({}, {"a": 1}, ""),
    (None, {"a": 1}, ""),
    ({"a": 1}, {"a": 1, "b": 2}, ""),
    ({"a": None}, {}, ""),  # absent is None
    ({"a": None}, {"a": None}, ""),
    ({"a": None}, {"a": 1}, "t, argument a: expected null, found 1"),
    ({"a": 1}, {"a": None}, "t, argument a: expected 1, found null"),
    ({"a": True}, {"a": 1}, "t, argument a: expected true, found 1"),
    ({"a": float("nan")}, {"a": float("nan")}, "t, argument a: expected"),
    ({"a": above_one}, {"a": 2}, ""),
    ({"a": above_one}, {"a": 1}, "t, argument a: above_one() says no to 1"),
    ({"a": above_one}, {}, "t was called without a"),
    ({"a": absent}, {}, "t was called without a"),
    ({"a": fails}, {"a": 7}, "t, argument a: fails() raised LookupError: no 7"),
    ({"a": fails}, {}, "t was called without a"),
    ({"b": 1, "a": fails}, {"b": 2}, "t, argument b: expected 1, found 2"),
    ({"a": {"x": (1,)}}, {"a": {"x": [1]}}, ""),
]


@pytest.mark.parametrize(("expected", "actual", "reason"), ARGUMENTS)
def test_arguments(expected: Any, actual: dict[str, Any], reason: str) -> None:
    found = misfit(ToolCall("t", expected), ToolUse("t", actual))
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize("match", MATCHES)
def test_a_condition_that_raises_never_passes(match: str) -> None:
    score, finding = look_at(
        [ToolCall("t", {"a": fails})], [ToolUse("t", {"a": 1})], match, "tools", 1
    )
    assert score == 0.0
    assert not finding.ok
    if match in {"exact", "in_order", "any_order"}:
        assert "LookupError: no 1" in finding.reason


# --- what holds for all --------------------------------------------------------------------------


@given(specs, specs)
def test_each_way_implies_the_wider_ones(expected: list[str], actual: list[str]) -> None:
    exact, in_order, any_order, subset, f1 = (score(each, expected, actual) for each in MATCHES)
    assert exact <= in_order <= any_order
    assert exact <= subset
    assert (f1 == 1.0) == (any_order == 1.0 and subset == 1.0)
    assert (f1 == 1.0) == (any_order == 1.0 and len(expected) == len(actual))
    assert 0.0 <= f1 <= 1.0


@given(specs, specs, st.data())
def test_order_makes_no_difference(
    expected: list[str], actual: list[str], data: st.DataObject
) -> None:
    mixed_expected = data.draw(st.permutations(expected))
    mixed_actual = data.draw(st.permutations(actual))
    for match in ("any_order", "subset", "f1"):
        assert score(match, expected, actual) == score(match, mixed_expected, mixed_actual)


@given(specs, specs)
def test_f1_is_symmetric(left: list[str], right: list[str]) -> None:
    # with arguments on one side only, a call takes more than a use does
    left = [each[0] + "1" for each in left]
    right = [each[0] + "1" for each in right]
    assert score("f1", left, right) == score("f1", right, left)


@given(specs)
def test_everything_is_as_it_is(calls: list[str]) -> None:
    assert all(score(match, calls, calls) == 1.0 for match in MATCHES)


@given(specs, specs)
def test_no_more_pairs_can_be_made(expected: list[str], actual: list[str]) -> None:
    """Beside trying everything."""
    calls, uses = [call(each) for each in expected], [use(each) for each in actual]
    pairs = _paired(calls, uses)
    assert len(set(pairs.values())) == len(pairs)
    assert all(not misfit(calls[one], uses[other]) for one, other in pairs.items())

    def most(first: int, left: frozenset[int]) -> int:
        if first == len(calls):
            return 0
        mine = [at for at in left if not misfit(calls[first], uses[at])]
        return max([most(first + 1, left), *(1 + most(first + 1, left - {at}) for at in mine)])

    assert len(pairs) == most(0, frozenset(range(len(uses))))


@given(specs, specs)
def test_in_order_is_a_subsequence(expected: list[str], actual: list[str]) -> None:
    """Beside trying everything."""
    uses = [use(each) for each in actual]

    def fits(calls: list[ToolCall], start: int) -> bool:
        return not calls or any(
            not misfit(calls[0], uses[at]) and fits(calls[1:], at + 1)
            for at in range(start, len(uses))
        )

    found = fits([call(e) for e in expected], 0) and (bool(expected) or not actual)
    assert score("in_order", expected, actual) == float(found)


def test_many_calls_are_no_trouble() -> None:
    """Neither for the stack of Python nor for the clock, where every pair has to be made anew."""
    names = [f"a{n}" for n in range(150)]
    expected = [ToolCall("a", {"n": lambda n, most=most: n <= most}) for most in range(150)]
    uses = [use(each) for each in reversed(names)]
    assert look_at(expected, uses, "any_order", "tools", 1)[0] == 1.0
    assert look_at(expected[::-1], uses, "f1", "tools", 1)[0] == 1.0
