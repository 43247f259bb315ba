"""What a case expects, held against what was observed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import pytest

from adk_fluent.eval import FluentCase, ToolCall, Turn
from adk_fluent.eval._checks._checks import (
    check_budget,
    check_response,
    check_state,
    check_trajectory,
    expects,
    judged,
)
from adk_fluent.eval._checks._observed import Observed
from adk_fluent.eval._metrics import BUDGET, RESPONSE, STATE, TRAJECTORY
from adk_fluent.eval._outcome import (
    MetricScore,
    MetricStatus,
    Step,
    Tokens,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.ir import UNSET, StateFieldRef


def above_one(value: Any) -> bool:
    return value > 1


def absent(value: Any) -> bool:
    return value is None


def anything(value: Any) -> bool:
    return True


def truth(value: Any) -> bool:
    return bool(value)


def of_x(value: Any) -> bool:
    return value["x"]


PASSED, FAILED = MetricStatus.PASSED, MetricStatus.FAILED
NOT_EVALUATED = MetricStatus.NOT_EVALUATED


def observed(case: FluentCase, *turns: TurnOutcome, played: bool = False, **rest: Any) -> Observed:
    """A run; turns that the user said, unless the user is played."""
    return Observed(
        case, case.turns, list(turns), expected_invocations=None if played else [], **rest
    )


def turn(response: str = "", *tools: str, **rest: Any) -> TurnOutcome:
    return TurnOutcome("hi", response, [Step("a", tool=ToolUse(name)) for name in tools], **rest)


def status(score: MetricScore | None) -> MetricStatus:
    assert score is not None
    return score.status


def reasons(score: MetricScore | None) -> list[str]:
    assert score is not None
    for each in score.findings:
        assert bool(each.reason) != each.ok
    return [each.reason for each in score.findings if not each.ok]


# --- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "threshold", "lower", "found"),
    [
        (0.5, 0.5, False, PASSED),
        (0.4, 0.5, False, FAILED),
        (0.5, 0.5, True, PASSED),
        (0.6, 0.5, True, FAILED),
        (None, 0.0, False, NOT_EVALUATED),
        (None, 0.0, True, NOT_EVALUATED),
        (math.nan, 0.0, False, NOT_EVALUATED),
        (math.nan, 0.0, True, NOT_EVALUATED),
        (math.inf, 0.0, False, NOT_EVALUATED),
        (1.0, math.nan, False, FAILED),
        (1.0, math.nan, True, FAILED),
    ],
)
def test_scores_and_thresholds(
    score: float | None, threshold: float, lower: bool, found: MetricStatus
) -> None:
    made = judged("m", score, threshold, lower_is_better=lower)
    assert made.status is found
    assert made.ok == (found is PASSED)
    assert made.score is None or math.isfinite(made.score)  # JSON has no word for it


def test_why_there_is_no_score() -> None:
    assert judged("m", math.nan, 0.5).reason == "the score is nan"
    assert judged("m", math.nan, 0.5, reason="because").reason == "because"


# --- tools ---------------------------------------------------------------------------------------


def test_tools_of_one_turn() -> None:
    case = FluentCase("hi", expected_trajectory=["a", ToolCall("b")])
    right = check_trajectory(observed(case, turn("", "a", "b")))
    assert right is not None
    assert (right.name, right.status, right.score, right.turns) == (TRAJECTORY, PASSED, 1.0, [1.0])
    assert reasons(right) == []
    wrong = check_trajectory(observed(case, turn("", "b", "a")))
    assert reasons(wrong) == ["call 1: expected a, found b"]
    assert status(wrong) is FAILED


def test_tools_that_nobody_expects_are_not_looked_at() -> None:
    assert check_trajectory(observed(FluentCase("hi"), turn("", "a"))) is None


def test_no_tools_can_be_expected() -> None:
    case = FluentCase("hi", expected_trajectory=[])
    assert status(check_trajectory(observed(case, turn()))) is PASSED
    assert reasons(check_trajectory(observed(case, turn("", "a")))) == [
        "a was called, and not expected"
    ]


def test_the_score_is_the_mean_of_the_turns_that_expect_something() -> None:
    case = FluentCase([Turn("1", ["a"]), "2", Turn("3", [])])
    score = check_trajectory(observed(case, turn("", "a"), turn("", "x"), turn("", "y")), 0.5)
    assert score is not None
    assert (score.score, score.status) == (0.5, PASSED)
    assert score.turns == [1.0, None, 0.0]
    assert [(each.turn, each.ok) for each in score.findings] == [(1, True), (3, False)]


def test_what_reaches_the_threshold_is_found_well() -> None:
    case = FluentCase("hi", expected_trajectory=["a", "b"], trajectory_match="f1")
    seen = observed(case, turn("", "a", "x"))
    assert reasons(check_trajectory(seen, 0.5)) == []
    assert status(check_trajectory(seen, 0.5)) is PASSED
    assert reasons(check_trajectory(seen, 0.6)) == ["1 of 2 expected calls, and 1 others"]


@pytest.mark.parametrize("match", ["exact", "in_order", "any_order", "subset", "f1"])
@pytest.mark.parametrize("expected", [[], ["a"]])
def test_tools_of_a_turn_that_never_came(match: Any, expected: list[str]) -> None:
    case = FluentCase([Turn("1", ["a"]), Turn("2", expected)], trajectory_match=match)
    score = check_trajectory(observed(case, turn("", "a")), 0.0)
    assert reasons(score) == ["the conversation ended after turn 1"]
    assert status(score) is FAILED
    assert score is not None
    assert (score.score, score.turns) == (0.5, [1.0])
    assert reasons(check_trajectory(observed(case))) == ["there was no turn"] * 2


def test_tools_of_a_whole_conversation() -> None:
    case = FluentCase("hi", expected_trajectory=["a", "b"])
    score = check_trajectory(observed(case, turn("", "a"), turn("", "b"), played=True))
    assert score is not None
    assert (score.status, score.turns) == (PASSED, [1.0, 1.0])
    assert [(each.what, each.turn) for each in score.findings] == [
        ("tools of the conversation", None)
    ]
    none = FluentCase("hi", expected_trajectory=[])
    assert reasons(check_trajectory(observed(none, played=True))) == ["there was no turn"]


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "answer", "holds"),
    [
        ("ticket", "Your TICKET is open", True),
        ("TICKET", "your ticket", True),
        ("straße", "STRASSE", True),
        ("ticket", "no such thing", False),
        (["ticket", "open"], "ticket, open", True),
        (["ticket", "open"], "ticket", False),
        (("a",), "b", False),
        (re.compile(r"T-\d+"), "it is T-42", True),
        (re.compile(r"T-\d+"), "it is t-42", False),
        (re.compile("t-42", re.IGNORECASE), "T-42", True),
        (re.compile("^$"), "", True),
        (["ticket", re.compile("x$")], "ticket x", True),
        ("a.c", "abc", False),  # a text is no pattern
    ],
)
def test_what_an_answer_contains(expected: Any, answer: str, holds: bool) -> None:
    case = FluentCase("hi", expected_response_contains=expected)
    score = check_response(observed(case, turn(answer)))
    assert score is not None
    assert (score.name, score.status is PASSED, score.turns) == (RESPONSE, holds, [float(holds)])
    assert bool(reasons(score)) != holds


def test_why_an_answer_is_not_enough() -> None:
    case = FluentCase("hi", expected_response_contains=["yes", re.compile("T-[0-9]")])
    assert reasons(check_response(observed(case, turn("no")))) == [
        'the answer does not contain "yes": "no"',
        'the answer does not match "/T-[0-9]/": "no"',
    ]


def test_answers_of_every_turn_and_a_share_of_them() -> None:
    case = FluentCase(
        [Turn("1", expected_response_contains="a"), "2", "3"], expected_response_contains=["c", "d"]
    )
    score = check_response(observed(case, turn("A"), turn(""), turn("c")))
    assert score is not None
    assert (score.score, score.status) == (pytest.approx(2 / 3), FAILED)
    assert score.turns == [1.0, None, 0.0]
    assert [each.turn for each in score.findings] == [1, 3, 3]


def test_an_answer_that_never_came_matches_nothing() -> None:
    anything = re.compile(".*")
    case = FluentCase(["1", "2"], expected_response_contains=anything)
    assert reasons(check_response(observed(case, turn("a")))) == [
        "the conversation ended after turn 1"
    ]
    case = FluentCase("1", expected_response_contains=anything)
    assert reasons(check_response(observed(case, played=True))) == ["there was no turn"]


def test_of_a_user_who_is_played_the_last_answer_counts() -> None:
    case = FluentCase("hi", expected_response_contains="bye")
    score = check_response(observed(case, turn("hello"), turn("bye"), played=True))
    assert score is not None
    assert (score.status, score.turns, score.findings[0].turn) == (PASSED, [None, 1.0], 2)
    assert status(check_response(observed(case, turn("bye"), turn("x"), played=True))) is FAILED


def test_answers_of_which_nothing_is_expected() -> None:
    assert check_response(observed(FluentCase("hi"), turn("a"))) is None


# --- state ---------------------------------------------------------------------------------------


def state(expected: dict[Any, Any], /, **held: Any) -> MetricScore:
    case = FluentCase("hi", state_assertions=expected)
    score = check_state(observed(case, turn(), state=held))
    assert score is not None
    return score


@pytest.mark.parametrize(
    ("expected", "held"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": None}, {}),
        ({"a": None}, {"a": None}),
        ({"a": above_one}, {"a": 2}),
        ({"a": {"x": [1]}}, {"a": {"x": (1,)}}),
        ({"a.b": 1}, {"a.b": 1}),
    ],
)
def test_state_that_holds(expected: dict[str, Any], held: dict[str, Any]) -> None:
    score = state(expected, **held)
    assert (score.name, score.status, score.score) == (STATE, PASSED, 1.0)
    assert reasons(score) == []


@pytest.mark.parametrize(
    ("expected", "held", "reason"),
    [
        ({"a": 1}, {"a": 2}, "expected 1, found 2"),
        ({"a": True}, {"a": 1}, "expected true, found 1"),
        ({"a": None}, {"a": 0}, "expected null, found 0"),
        ({"a": 1}, {}, "there is no such key"),
        ({"a": 1}, {"a": None}, "there is no such key"),
        ({"a": 1}, {"x": 1, "b": None, "c": 2}, "there is no such key; there are c, x"),
        ({"intent": 1}, {"intents": 1, "x": 2}, "there is no such key; did you mean 'intents'?"),
        ({"a": math.nan}, {"a": math.nan}, 'expected "nan" (float), found "nan" (float)'),
        ({"a": above_one}, {"a": 1}, "above_one() says no to 1"),
        ({"a": above_one}, {"x": 1}, "there is no such key; there are x"),
        ({"a": absent}, {}, "there is no such key"),
        ({"a": absent}, {"a": None}, "there is no such key"),
        ({"a": truth}, {"a": 0}, "truth() says no to 0"),
        ({"a": of_x}, {"a": {}}, "of_x() raised KeyError: 'x'"),
    ],
)
def test_state_that_does_not_hold(
    expected: dict[str, Any], held: dict[str, Any], reason: str
) -> None:
    score = state(expected, **held)
    assert score.status is FAILED
    assert reasons(score) == [reason]


def test_of_many_keys_a_few_are_named() -> None:
    held = {f"key_{n:02}": n for n in range(13)}
    [reason] = reasons(state({"zzz": 1}, **held))
    assert reason.endswith("key_10, key_11...")
    del held["key_12"]
    [reason] = reasons(state({"zzz": 1}, **held))
    assert reason.endswith("key_10, key_11")


def test_a_share_of_the_keys() -> None:
    score = state({"a": 1, "b": 2}, a=1, b=3)
    assert (score.score, score.status) == (0.5, FAILED)
    assert [(each.what, each.expected, each.actual) for each in score.findings] == [
        ("state a", 1, 1),
        ("state b", 2, 3),
    ]


@dataclass
class Typed:
    """A typed reference of another layer, known by what it has alone."""

    key: str
    type: Any = None
    scope: str = "session"
    default: Any = UNSET

    def __hash__(self) -> int:
        return hash(self.key)

    def decode(self, stored: Any) -> Any:
        return self.type(stored)


class Untold(Typed):
    @property
    def default(self) -> Any:
        raise RuntimeError("no default today")

    @default.setter
    def default(self, value: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("expected", "held"),
    [
        ({Typed("n", int): 3}, {"n": "3"}),  # as a reader gets it
        ({Typed("n", int): above_one}, {"n": "3"}),
        ({Typed("user:n", int): 3}, {"user:n": "3"}),
        ({Typed("n", int, default=3): 3}, {}),
        ({Typed("n", int, default=3): 3}, {"n": None}),
        ({Typed("n", int, default=3): None}, {}),  # nobody wrote it
        ({Typed("n", int): None}, {}),
        ({StateFieldRef("n"): 3}, {"n": 3}),  # one that decodes nothing
        ({StateFieldRef("n", default=3): 3}, {}),
    ],
)
def test_typed_references(expected: dict[Any, Any], held: dict[str, Any]) -> None:
    assert reasons(state(expected, **held)) == []


@pytest.mark.parametrize(
    ("expected", "held", "reason"),
    [
        ({Typed("n", int): 3}, {"n": "x"}, '"x" is no value of n: ValueError: invalid literal'),
        ({Typed("n", int): 3}, {"n": "4"}, "expected 3, found 4"),
        ({Typed("n", int): "3"}, {"n": "3"}, 'expected "3", found 3'),
        ({Typed("n", int): 3}, {}, "there is no such key"),
        ({Typed("n", int, default=4): 3}, {}, "expected 3, found 4"),
        ({Typed("n", int, default=4): None}, {"n": "4"}, 'expected null, found "4"'),
        ({Untold("n", int): 3}, {}, "its default is no value of n: RuntimeError: no default"),
        ({Untold("n", int): anything}, {}, "its default is no value of n: RuntimeError"),
    ],
)
def test_typed_references_that_do_not_hold(
    expected: dict[Any, Any], held: dict[str, Any], reason: str
) -> None:
    score = state(expected, **held)
    assert score.status is FAILED
    assert reasons(score)[0].startswith(reason)


def test_what_a_step_wrote() -> None:
    expected = {"first.n": 1, "second.n": 2, "n": 2, "first.user:x": above_one}
    case = FluentCase("hi", state_assertions=expected)
    written = {"first": {"n": 1, "user:x": 3}, "second": {"n": 2}}
    score = check_state(observed(case, turn(), state={"n": 2}, written=written))
    assert reasons(score) == []
    assert score is not None
    assert score.findings[0].what == "state n as first wrote it"


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ({"first.n": 2}, "expected 2, found 1"),
        ({"first.x": 2}, "there is no such key; there are n"),
        ({"third.n": 1}, "there is no such key; there are n"),  # it wrote nothing
    ],
)
def test_what_a_step_did_not_write(expected: dict[str, Any], reason: str) -> None:
    case = FluentCase("hi", state_assertions=expected)
    seen = observed(case, turn(), state={"n": 2}, written={"first": {"n": 1}})
    assert reasons(check_state(seen)) == [reason]


def two_turns(**rest: Any) -> Observed:
    case = FluentCase(
        [
            Turn("1", state_assertions={"n": 1, "step.n": 1}),
            Turn("2", state_assertions={"n": None}),
        ],
        state_assertions={"m": 5},
    )
    return observed(case, *rest.pop("turns", (turn(), turn())), **rest)


def test_state_after_each_turn() -> None:
    score = check_state(
        two_turns(
            state={"m": 5},
            state_after=[{"n": 1}, {"m": 5}],
            written={"step": {"n": None, "m": 5}},
            written_after=[{"step": {"n": 1}}, {"step": {"n": None, "m": 5}}],
        )
    )
    assert reasons(score) == []
    assert score is not None
    assert score.turns == [1.0, 1.0]
    assert [each.turn for each in score.findings] == [1, 1, 2, None]


def test_state_of_a_later_turn_is_not_that_of_an_earlier_one() -> None:
    score = check_state(
        two_turns(
            state={"m": 5, "n": 1},
            state_after=[{}, {"m": 5, "n": 1}],
            written={"step": {"n": 1}},
            written_after=[{}, {"step": {"n": 1}}],
        )
    )
    assert [(each.turn, each.ok) for each in (score.findings if score else ())] == [
        (1, False),
        (1, False),
        (2, False),
        (None, True),
    ]
    assert score is not None
    assert score.turns == [0.0, 0.0]


def test_state_after_turns_that_never_came() -> None:
    """Also where nothing is expected to be there, and in the end, which never came."""
    score = check_state(
        two_turns(
            turns=[turn()],
            state={"n": 1, "m": 5},
            state_after=[{"n": 1}],
            written_after=[{"step": {"n": 1}}],
        )
    )
    assert reasons(score) == ["the conversation ended after turn 1"] * 2
    assert score is not None
    assert score.turns == [1.0]


def test_where_a_user_is_played_all_state_is_that_of_the_end() -> None:
    case = FluentCase(Turn("hi", state_assertions={"n": 2}), state_assertions={"m": 3})
    held = {"state": {"n": 2, "m": 3}, "state_after": [{"n": 1}]}
    score = check_state(observed(case, turn(), turn(), played=True, **held))
    assert reasons(score) == []
    assert len(score.findings if score else ()) == 2
    assert status(check_state(observed(case, turn(), played=True))) is FAILED
    assert status(check_state(observed(case, played=True, **held))) is FAILED


def test_state_of_which_nothing_is_expected() -> None:
    assert check_state(observed(FluentCase("hi"), turn(), state={"a": 1})) is None
    assert check_state(observed(FluentCase("hi", state_assertions={}), turn())) is None


# --- budgets -------------------------------------------------------------------------------------


def spent(cost: float | None = 0.5, seconds: float = 2.0, **limits: Any) -> MetricScore | None:
    return check_budget(
        observed(
            FluentCase("hi", **limits),
            turn("", "a", "b", tokens=Tokens(100, 10, 20, 5)),
            turn("", "c", tokens=Tokens(1)),
            cost_usd=cost,
            duration_s=seconds,
            unpriced="" if cost is not None else "model x has no price",
        )
    )


@pytest.mark.parametrize(
    "limits",
    [
        {"max_cost_usd": 0.5},
        {"max_tokens": 126},
        {"max_latency_s": 2},
        {"max_tool_calls": 3},
        {"max_cost_usd": 1, "max_tokens": 200, "max_latency_s": 3.0, "max_tool_calls": 4},
    ],
)
def test_within_its_budgets(limits: dict[str, Any]) -> None:
    score = spent(**limits)
    assert status(score) is PASSED
    assert [each.what for each in (score.findings if score else ())] == list(limits)
    assert reasons(score) == []
    assert score is not None
    assert score.name == BUDGET


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_cost_usd": 0.25}, "0.5 USD of 0.25 USD"),
        ({"max_cost_usd": 0}, "0.5 USD of 0 USD"),
        ({"max_tokens": 125}, "126 tokens of 125 tokens"),
        ({"max_latency_s": 1.5}, "2 s of 1.5 s"),
        ({"max_tool_calls": 2}, "3 of 2"),
    ],
)
def test_beyond_its_budgets(limits: dict[str, Any], reason: str) -> None:
    score = spent(**limits)
    assert status(score) is FAILED
    assert reasons(score) == [reason]


def test_large_numbers_are_told_in_full() -> None:
    seen = observed(FluentCase("hi", max_tokens=1_234_567), turn(tokens=Tokens(1_234_568)))
    assert reasons(check_budget(seen)) == ["1234568 tokens of 1234567 tokens"]


def test_a_sum_of_prices_may_be_a_little_off() -> None:
    assert status(spent(0.1 + 0.2, max_cost_usd=0.3)) is PASSED


def test_without_a_price_nobody_can_tell() -> None:
    score = spent(None, max_cost_usd=1, max_tokens=1000)
    assert score is not None
    assert (score.status, score.score) == (NOT_EVALUATED, None)
    assert score.reason == "max_cost_usd: model x has no price"
    assert not score.ok


def test_what_is_too_much_for_certain_fails_also_without_a_price() -> None:
    score = spent(None, max_cost_usd=1, max_tokens=1)
    assert status(score) is FAILED
    assert reasons(score) == ["max_cost_usd: model x has no price", "126 tokens of 1 tokens"]


def test_a_price_that_is_no_number_passes_nothing() -> None:
    score = spent(math.nan, max_cost_usd=1)
    assert status(score) is FAILED
    assert reasons(score) == ["nan USD of 1 USD"]
    assert status(spent(seconds=math.nan, max_latency_s=1)) is FAILED


def test_without_budgets() -> None:
    assert spent() is None


# --- what is asked for ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({}, []),
        ({"expected_trajectory": []}, [TRAJECTORY]),
        ({"input": [Turn("1", []), "2"]}, [TRAJECTORY]),
        ({"expected_response_contains": "x"}, [RESPONSE]),
        ({"input": [Turn("1", expected_response_contains="x"), "2"]}, [RESPONSE]),
        ({"expected_response_contains": []}, []),
        ({"state_assertions": {"a": None}}, [STATE]),
        ({"input": Turn("1", state_assertions={"a": 1})}, [STATE]),
        ({"max_cost_usd": 0}, [BUDGET]),
        ({"max_tokens": 0}, [BUDGET]),
        ({"max_latency_s": 0}, [BUDGET]),
        ({"max_tool_calls": 0}, [BUDGET]),
        (
            {
                "max_tokens": 1,
                "state_assertions": {"a": 1},
                "expected_response_contains": "x",
                "expected_trajectory": ["a"],
            },
            [TRAJECTORY, RESPONSE, STATE, BUDGET],
        ),
    ],
)
def test_what_a_case_asks_for(fields: dict[str, Any], names: list[str]) -> None:
    given: dict[str, Any] = {"input": "hi", **fields}
    case = FluentCase(**given)
    assert expects(case) == names
    seen = observed(case, turn(), turn())
    checks = (check_trajectory, check_response, check_state, check_budget)
    assert [score.name for check in checks if (score := check(seen))] == names
