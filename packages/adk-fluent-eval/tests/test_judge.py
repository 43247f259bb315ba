"""Metrics of the user's own: what they may ask for, and what comes of what they say."""

from __future__ import annotations

import asyncio
import math
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from adk_fluent.eval import EvalError, FluentCase, FluentJudge, Turn
from adk_fluent.eval._cases._judge import _GIVEN
from adk_fluent.eval._checks._observed import Observed
from adk_fluent.eval._outcome import MetricScore, MetricStatus, Step, ToolUse, TurnOutcome

PASSED, FAILED = MetricStatus.PASSED, MetricStatus.FAILED
NOT_EVALUATED = MetricStatus.NOT_EVALUATED

CASE = FluentCase(["hi", Turn("bye", reference_response="ciao")])
SEEN = Observed(
    CASE,
    CASE.turns,
    [
        TurnOutcome("hi", "hello", [Step("a", tool=ToolUse("find"))]),
        TurnOutcome("bye", "see you", [Step("a", tool=ToolUse("log"))]),
    ],
    events=[["e1"], ["e2", "e3"]],
    invocations=["i1"],
    expected_invocations=["x1"],
    state={"n": 1},
    stop_reason="script_end",
)


async def judge(fn: Any, seen: Observed = SEEN, **fields: Any) -> MetricScore:
    return await FluentJudge("mine", fn, **fields).score(seen)


# --- what it is given ----------------------------------------------------------------------------


async def test_a_judge_takes_what_its_parameters_name() -> None:
    given: dict[str, Any] = {}

    def everything(**named: Any) -> float:
        given.update(named)
        return 1.0

    assert (await judge(everything)).status is PASSED
    tools = given.pop("tool_calls")
    assert [each.name for each in tools] == ["find", "log"]
    assert given == {
        "actual_response": "see you",
        "responses": ["hello", "see you"],
        "reference": "ciao",
        "tool_trajectory": ["find", "log"],
        "state": {"n": 1},
        "case": CASE,
        "turns": SEEN.turns,
        "events": ["e1", "e2", "e3"],
        "invocations": ["i1"],
        "expected": ["x1"],
        "stop_reason": "script_end",
    }


async def test_a_judge_of_a_run_in_which_nothing_happened() -> None:
    def all_empty(actual_response: str, responses: Any, reference: Any, state: Any) -> bool:
        return (actual_response, responses, reference, state) == ("", [], None, {})

    assert (await judge(all_empty, Observed(FluentCase("hi")))).status is PASSED


class Method:
    def score(self, actual_response: str) -> float:
        return len(actual_response) / 10

    def __call__(self, reference: str) -> bool:
        return reference == "ciao"


def said_see(actual_response: str) -> bool:
    return "see" in actual_response


def short(most: int, actual_response: str) -> bool:
    return len(actual_response) < most


def by_name(*, state: dict[str, Any]) -> bool:
    return state["n"] == 1


def with_defaults(reference: str, least: float = 0.5) -> float:
    return least


def with_more(state: dict[str, Any], *rest: Any) -> float:
    return 1.0 - len(rest)


@pytest.mark.parametrize(
    "fn",
    [
        lambda: 1,
        said_see,
        by_name,
        with_defaults,
        with_more,
        Method().score,
        Method(),
        partial(short, 100),
    ],
)
async def test_all_kinds_of_functions(fn: Any) -> None:
    assert (await judge(fn)).status is PASSED


def of_unknown(response: str) -> float:
    return 1.0


def of_misspelt(states: Any) -> float:
    return 1.0


def of_anything(x: Any) -> float:
    return 1.0


def by_position(state: Any, /) -> float:
    return 1.0


REFUSED: list[tuple[Any, str, str]] = [
    (of_unknown, "judge 'mine' asks for 'response', which there is not", "did you mean"),
    (of_misspelt, "judge 'mine' asks for 'states'", "did you mean 'state'?"),
    (of_anything, "judge 'mine' asks for 'x'", "there are actual_response, responses"),
    (by_position, "judge 'mine' asks for 'state'", ""),
    (max, "nobody can tell what judge 'mine' takes", "write it as a function"),
    ("fn", "judge 'mine' is no function", "give fn= a function"),
    (None, "judge 'mine' is no function", "give fn= a function"),
]


@pytest.mark.parametrize(("fn", "message", "help"), REFUSED)
def test_functions_that_nobody_can_call(fn: Any, message: str, help: str) -> None:
    with pytest.raises(EvalError, match=f"^{message}") as caught:
        FluentJudge("mine", fn)
    assert f"where: {__file__}:" in str(caught.value)
    assert help in (caught.value.help or "")


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_judge_has_a_name(name: Any) -> None:
    with pytest.raises(EvalError, match="a judge has no name"):
        FluentJudge(name, lambda: 1)


@pytest.mark.parametrize("threshold", [None, "1", True, math.nan, math.inf])
def test_a_threshold_is_a_number(threshold: Any) -> None:
    with pytest.raises(EvalError, match="the threshold of judge 'mine' is no number"):
        FluentJudge("mine", lambda: 1, threshold=threshold)


def test_every_name_is_documented() -> None:
    assert all(f"``{name}``" in (FluentJudge.__doc__ or "") for name in _GIVEN)


# --- what it says --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "status", "score", "reason"),
    [
        (1, PASSED, 1.0, ""),
        (0.5, PASSED, 0.5, ""),
        (0.49, FAILED, 0.49, ""),
        (True, PASSED, 1.0, ""),
        (False, FAILED, 0.0, "the judge says no; it may return (False, why)"),
        ((0.7, "polite"), PASSED, 0.7, "polite"),
        ((0.7, None), PASSED, 0.7, ""),
        ((False, "rude"), FAILED, 0.0, "rude"),
        (Decimal("0.75"), PASSED, 0.75, ""),
        (Fraction(1, 4), FAILED, 0.25, ""),
        (None, NOT_EVALUATED, None, "the judge gave no score"),
        ((None, "nothing to judge"), NOT_EVALUATED, None, "nothing to judge"),
        ((None, None), NOT_EVALUATED, None, "the judge gave no score"),
        (math.nan, NOT_EVALUATED, None, "the score is nan"),
        ((math.nan, "odd"), NOT_EVALUATED, None, "odd"),
        (math.inf, NOT_EVALUATED, None, "the score is inf"),
        ("0.9", NOT_EVALUATED, None, "the judge raised TypeError: a judge returns a number"),
        ([0.9], NOT_EVALUATED, None, "the judge raised TypeError: a judge returns a number"),
        ({"score": 1}, NOT_EVALUATED, None, "the judge raised TypeError: a judge returns a number"),
        ((1, "a", "b"), NOT_EVALUATED, None, "the judge raised TypeError: a judge returns a numb"),
        ((), NOT_EVALUATED, None, "the judge raised TypeError: a judge returns a number"),
    ],
)
async def test_what_a_judge_says(
    said: Any, status: MetricStatus, score: float | None, reason: str
) -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return said

    for fn in (lambda: said, later):
        made = await judge(fn)
        assert (made.name, made.status, made.score, made.threshold) == ("mine", status, score, 0.5)
        assert made.reason.startswith(reason)
        assert bool(made.reason) == bool(reason)


async def test_lower_can_be_better() -> None:
    assert (await judge(lambda: 3, threshold=3, lower_is_better=True)).status is PASSED
    assert (await judge(lambda: 4, threshold=3, lower_is_better=True)).status is FAILED
    nan = await judge(lambda: math.nan, threshold=3, lower_is_better=True)
    assert nan.status is NOT_EVALUATED
    assert nan.lower_is_better


async def test_a_judge_that_raises_gives_no_score() -> None:
    async def later() -> float:
        raise LookupError("later")

    assert (
        await judge(lambda: 1 / 0)
    ).reason == "the judge raised ZeroDivisionError: division by zero"
    made = await judge(later, threshold=0, lower_is_better=True)
    assert (made.status, made.reason) == (NOT_EVALUATED, "the judge raised LookupError: later")
    assert (made.threshold, made.lower_is_better) == (0, True)


async def test_a_judge_that_is_cancelled_is() -> None:
    async def cancelled() -> float:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await judge(cancelled)


async def test_a_result_of_adks() -> None:
    turn = SimpleNamespace
    result = SimpleNamespace(
        overall_score=0.75,
        per_invocation_results=[turn(score=1.0), turn(score=None), turn(score=math.nan)],
        overall_rubric_scores=[
            SimpleNamespace(rationale="polite"),
            SimpleNamespace(rationale=None),
            SimpleNamespace(rationale="brief"),
        ],
    )
    made = await judge(lambda: result)
    assert (made.status, made.score, made.reason) == (PASSED, 0.75, "polite; brief")
    assert made.turns == [1.0, None, None]


async def test_a_result_of_adks_without_a_score() -> None:
    result = SimpleNamespace(overall_score=None, per_invocation_results=None)
    made = await judge(lambda: result)
    assert (made.status, made.reason, made.turns) == (NOT_EVALUATED, "the judge gave no score", [])


async def test_what_a_judge_empties_stays_in_the_report() -> None:
    def judges(turns: Any, invocations: Any, events: Any, state: Any) -> float:
        for each in (turns, invocations, events, state):
            each.clear()
        return 1.0

    before = repr(SEEN)
    await judge(judges)
    assert repr(SEEN) == before
