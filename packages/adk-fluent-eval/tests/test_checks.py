"""The checks of what cases expect, over observations made by hand."""

# Lambdas in parameters of tests have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from adk_fluent.eval import FluentCase, MetricStatus, ToolCall, ToolUse, Turn, TurnOutcome
from adk_fluent.eval._checks._checks import (
    Observation,
    check_budget,
    check_match,
    check_response,
    check_state,
    check_trajectory,
    scored,
)
from adk_fluent.eval._checks._matching import equal, mismatch
from adk_fluent.eval._checks._rouge import rouge1
from adk_fluent.eval._outcome import Step
from adk_fluent.eval._text import plain, shown
from adk_fluent.protocol import Usage


def observed(case: FluentCase, *turns: TurnOutcome, **fields: Any) -> Observation:
    return Observation(case, case.turns, list(turns), **fields)


def said(answer: str = "", *calls: tuple[str, dict[str, Any]]) -> TurnOutcome:
    steps = [Step("a", tool=ToolUse(name, args)) for name, args in calls]
    return TurnOutcome("x", answer, steps, tokens=Usage(prompt=10))


A, B = ("a", {"n": 1}), ("b", {"n": 2})
C: tuple[str, dict[str, Any]] = ("c", {})


@pytest.mark.parametrize(
    ("match", "expected", "actual", "score"),
    [
        ("exact", ["a", "b"], [A, B], 1),
        ("exact", ["a", "b"], [B, A], 0),
        ("exact", ["a"], [A, B], 0),
        ("exact", ["a", "b"], [A], 0),
        ("exact", [], [], 1),
        ("exact", [], [A], 0),
        ("subset", [], [A], 0),  # an empty list allows none, whatever the match
        ("in_order", ["a", "c"], [A, B, C], 1),
        ("in_order", ["c", "a"], [A, B, C], 0),
        ("any_order", ["c", "a"], [A, B, C], 1),
        ("any_order", ["a", "a"], [A, B], 0),
        ("subset", ["a", "b", "c"], [B], 1),
        ("subset", ["a"], [A, A], 0),
        ("f1", ["a", "b"], [A, C], 0.5),
        ("f1", ["a", "b"], [], 0),
        # a maximum matching, not a greedy one
        ("any_order", [ToolCall("a"), ToolCall("a", {"n": 1})], [A, ("a", {"n": 2})], 1),
        ("exact", [ToolCall("a", {"n": lambda n: n > 0})], [A], 1),
        ("exact", [ToolCall("a", {"n": lambda n: n > 1})], [A], 0),
        ("exact", [ToolCall("a", {"m": lambda m: True})], [A], 0),  # absent meets no condition
        ("exact", [ToolCall("a", {"m": None})], [A], 1),
        ("exact", [ToolCall("a", {"n": True})], [A], 0),  # True is not 1
    ],
)
def test_trajectories(match: Any, expected: Any, actual: Any, score: float) -> None:
    case = FluentCase("x", expected_trajectory=expected, trajectory_match=match)
    made = check_trajectory(observed(case, said("", *actual)))
    assert made
    assert made.score == score
    assert made.ok is (score == 1)
    assert made.findings[0].ok is made.ok
    assert bool(made.findings[0].reason) is not made.ok


def test_reasons_say_what_differs() -> None:
    case = FluentCase("x", expected_trajectory=[ToolCall("a", {"n": 7})])
    made = check_trajectory(observed(case, said("", A)))
    assert made
    assert made.findings[0].reason == "call 1: a, argument n: expected 7, found 1"


def test_the_threshold_decides_about_f1() -> None:
    case = FluentCase("x", expected_trajectory=["a", "b"], trajectory_match="f1")
    made = check_trajectory(observed(case, said("", A, C)), 0.5)
    assert made
    assert made.ok
    assert made.findings[0].ok


def test_a_turn_that_was_not_reached_fails() -> None:
    case = FluentCase(
        ["x", "y"],
        expected_trajectory=[],
        expected_response_contains="a",
        reference_response="a",
        state_assertions={"k": None},
    )
    seen = observed(case, said("a"), states=[{}], writes=[{}])
    for made in (
        check_trajectory(seen),
        check_response(seen),
        check_state(seen),
        check_match(seen, 0.5),
    ):
        assert made
        assert not made.ok
        assert "the conversation ended after turn 1" in made.findings[-1].reason


def test_answers_contain_texts_in_any_case_and_match_patterns() -> None:
    case = FluentCase("x", expected_response_contains=["TICKET", re.compile(r"T-\d+$"), "refund"])
    made = check_response(observed(case, said("Your ticket is T-12")))
    assert made
    assert [each.ok for each in made.findings] == [True, True, False]
    assert made.score == pytest.approx(2 / 3)


class Ref:
    """A typed reference."""

    key, scope, type, default = "n", "session", int, 5

    def decode(self, value: Any) -> int:
        return int(value)


@pytest.mark.parametrize(
    ("expected", "state", "ok"),
    [
        ({"k": 1}, {"k": 1}, True),
        ({"k": 1}, {"k": True}, False),
        ({"k": None}, {}, True),
        ({"k": lambda v: v > 1}, {"k": 2}, True),
        ({"k": lambda v: True}, {}, False),
        ({"k": lambda v: None}, {"k": 2}, False),
        ({"k": lambda v: v.x}, {"k": 2}, False),
        ({"step.k": 3}, {"k": 1}, True),
        ({"step.k": 3}, {"step.k": 4}, False),  # a key with a dot is a key
        ({Ref(): 5}, {}, True),  # the default
        ({Ref(): 7}, {"n": "7"}, True),
        ({Ref(): 7}, {"n": "seven"}, False),
    ],
)
def test_state(expected: Any, state: dict[str, Any], ok: bool) -> None:
    seen = observed(
        FluentCase("x", state_assertions=expected),
        said(),
        state=state,
        written={"step": {"k": 3}},
        states=[state],
        writes=[{}],
    )
    made = check_state(seen)
    assert made
    assert made.ok is ok


def test_state_after_a_turn() -> None:
    case = FluentCase([Turn("a", state_assertions={"k": 1}), "b"], state_assertions={"k": 2})
    seen = observed(
        case, said(), said(), state={"k": 2}, states=[{"k": 1}, {"k": 2}], writes=[{}, {}]
    )
    made = check_state(seen)
    assert made
    assert made.ok


def test_budgets() -> None:
    case = FluentCase("x", max_tokens=10, max_tool_calls=1, max_latency_s=9, max_cost_usd=0.1)
    seen = observed(case, said("", A), cost_usd=0.1)
    made = check_budget(seen)
    assert made
    assert made.ok
    seen.turns[0].tokens = Usage(prompt=11)
    made = check_budget(seen)
    assert made
    assert made.status is MetricStatus.FAILED
    seen.turns[0].tokens = Usage(prompt=1)
    seen.tokens_unknown, seen.cost_usd, seen.cost_unknown = "no usage", None, "no price"
    case.max_cost_usd = None
    made = check_budget(seen)
    assert made
    assert (made.status, made.reason) == (MetricStatus.NOT_EVALUATED, "max_tokens: no usage")


def test_no_score_is_no_pass() -> None:
    assert scored("m", None, 0.0).status is MetricStatus.NOT_EVALUATED
    assert scored("m", 1.0, 2.0, lower_is_better=True).ok
    assert not scored("m", 3.0, 2.0, lower_is_better=True).ok


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        ((1, 2), [1, 2], True),
        ({"a": [True]}, {"a": [1]}, False),
        ({1}, {True}, False),
        (float("nan"), float("nan"), False),
        (Decimal("1.0"), Decimal(1), True),
    ],
)
def test_equality(left: Any, right: Any, same: bool) -> None:
    assert equal(left, right) is same
    assert bool(mismatch(left, right)) is not same


def test_of_values_that_look_the_same_the_part_that_differs_is_told() -> None:
    wanted = {"order": "A1", "parts": [{"due": "2026-12-01"}]}
    found = {"order": "A1", "parts": [{"due": date(2026, 12, 1)}]}
    told = """at ['parts'][0]['due']: expected "2026-12-01" (str), found "2026-12-01" (date)"""
    assert mismatch(wanted, found) == told


def test_values_become_plain() -> None:
    nested: list[Any] = []
    nested.append(nested)
    made = plain({"a": {2, 1}, "b": b"xx", "c": float("inf"), "d": Decimal(1), "e": nested, 3: 4})
    assert (made["a"], made["b"], made["c"], made["d"]) == ([1, 2], "<2 bytes>", "inf", "1")
    assert made["3"] == 4
    assert "..." in str(made["e"])
    assert plain(10**5000) == hex(10**5000)  # Python refuses to print so long an integer
    assert len(json.dumps(plain({"file": b"x" * 5_000_000}))) < 100


def test_objects_become_what_people_know_them_by() -> None:
    assert plain({"f": [len, lambda: 1, int]}) == {"f": ["len()", "the condition", repr(int)]}
    assert plain({"x": 1j, "y": re.compile("a")}) == {"x": "1j", "y": "re.compile('a')"}
    assert mismatch({"x": 1j}, {"x": 2j}) == 'expected {"x": "1j"}, found {"x": "2j"}'
    assert plain(SimpleNamespace(x="y" * 1_000)).endswith("… (715 more characters)")


def test_no_part_of_a_secret_is_left_where_a_value_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-key")
    text = "y" * 280 + "very-secret-key"
    for value in (text, [text], SimpleNamespace(x=text)):
        assert "very" not in shown(value)


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        ("The CAT, sat!", "sat the cat", 1.0),
        ("", "word", 0.0),
        ("?!", "?!", 0.0),
        ("a a a b", "a b", 2 * 0.5 / 1.5),
        ("connection", "connected", 1.0),
        ("refunds were issued", "refund was issuing", 2 / 3),
        ("bus", "bu", 0.0),
        ("退款已处理", "退款处理", 8 / 9),
        ("กี", "ก", 0.0),
        ("ﬁnding", "finds", 1.0),
        ("crêpes", "crêpe", 0.0),
        ("agreed tied skies hopping motoring conflated", "agree tie sky hop motor conflate", 1.0),
        ("relational conditional valenci", "relate condition valence", 1.0),
    ],
)
def test_rouge(candidate: str, reference: str, score: float) -> None:
    assert rouge1(candidate, reference) == pytest.approx(score)
    assert rouge1(reference, candidate) == pytest.approx(score)
