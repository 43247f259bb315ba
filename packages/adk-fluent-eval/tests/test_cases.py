"""Cases, turns and judges: what they accept, and what they are called."""

# Lambdas in parameters of tests have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
import re
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    Gate,
    ToolCall,
    Turn,
)
from adk_fluent.eval._digest import digest_of

HERE = Path(__file__).name


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"input": ""}, "input= is empty"),
        ({"input": []}, "input= is empty"),
        ({"input": 3}, "a user message is a text"),
        ({"input": ["a", 3]}, "turn 2: a user message is a text"),
        ({"expected_trajectory": "a"}, "expected_trajectory= must be a list"),
        ({"expected_trajectory": [3]}, "takes names of tools and ToolCalls"),
        ({"trajectory_match": "fuzzy"}, "unknown trajectory_match='fuzzy'"),
        ({"expected_response_contains": ["a", ""]}, "takes non-empty texts and patterns"),
        ({"expected_response_contains": re.compile(b"x")}, "takes non-empty texts and patterns"),
        ({"reference_response": 3}, "reference_response= must be a text"),
        ({"mock_tool_outputs": []}, "must be a mapping of tools to mocks"),
        ({"mock_tool_outputs": {3: 1}}, "names of tools"),
        ({"initial_state": {"temp:x": 1}}, "no session keeps"),
        ({"state_assertions": {"step.temp:x": 1}}, "no session keeps"),
        ({"state_assertions": {3: 1}}, "texts and typed references"),
        ({"tags": "a"}, r"write tags=\['a'\]"),
        ({"tags": [" "]}, "tags= takes texts"),
        ({"metadata": []}, "metadata= must be a mapping"),
        ({"id": ""}, "id= must be a name"),
        ({"target_node": 3}, "target_node= must be the name of a step"),
        ({"max_tokens": 1.5}, "max_tokens= must be a whole number >= 0"),
        ({"max_cost_usd": -1}, "max_cost_usd= must be a number >= 0"),
        ({"max_latency_s": float("nan")}, "max_latency_s= must be a number >= 0"),
        ({"timeout_s": 0}, "timeout_s= must be a number above 0"),
        (
            {"input": [Turn("a", expected_trajectory=[])], "expected_trajectory": []},
            "is set on the case and on its last turn",
        ),
    ],
)
def test_an_invalid_field_is_refused_where_it_is_written(fields: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what) as caught:
        FluentCase(**cast("dict[str, Any]", {"input": "hello", **fields}))
    assert HERE in str(caught.value)


def test_the_id_is_stable_and_differs_by_what_is_said() -> None:
    case = FluentCase("My bill is too high!")
    assert re.fullmatch("my-bill-is-too-high-[0-9a-f]{8}", case.name)
    assert case.name == FluentCase("My bill is too high!", tags=["x"]).name
    names = {
        FluentCase(each, **cast("Any", more)).name
        for each, more in [
            ("My bill is too high!", {}),
            (["My bill is too high!", "well?"], {}),
            ("My bill is too high!", {"target_node": "a"}),
            ("My bill is too high!", {"initial_state": {"a": 1}}),
        ]
    }
    assert len(names) == 4
    assert FluentCase("x", metadata={"id": "named"}).name == "named"


def test_expectations_of_the_case_are_those_of_its_last_turn() -> None:
    case = FluentCase(
        ["a", Turn("b", expected_response_contains="x")],
        expected_trajectory=["t"],
        reference_response="r",
        expected_response_contains=["y"],
    )
    first, last = case.turns
    assert (first.trajectory, first.contains) == (None, ())
    assert last.trajectory == (ToolCall("t"),)
    assert (last.contains, last.reference_response) == (("x", "y"), "r")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"name": " "}, "name= of a suite"),
        ({"name": len, "pipeline": "desk"}, r'FluentEvalSuite\("name", pipeline, cases\)'),
        ({"gate": 0.5}, "gate= takes a Gate"),
        ({"metrics": {"a": 1}}, "metrics= must be a list"),
        ({"metrics": "response_match_score"}, "metrics= must be a list"),
        ({"thresholds": [1]}, "thresholds= takes a mapping"),
        ({"num_runs": 0}, "num_runs= must be a whole number >= 1"),
        ({"cases": ["a"]}, "cases= takes FluentCases"),
        ({"cases": [FluentCase("a", id="x"), FluentCase("b", id="x")]}, "two cases have the id"),
        ({"custom_judges": [len]}, "custom_judges= takes FluentJudges"),
    ],
)
def test_an_invalid_suite_is_refused(fields: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what):
        FluentEvalSuite(**fields)


def test_a_field_that_a_case_does_not_have_is_named() -> None:
    fields: Any = {"expected_trajektory": []}
    with pytest.raises(EvalError, match="did you mean 'expected_trajectory'"):
        FluentEvalSuite().case("a", **fields)


def test_a_suite_may_have_no_thresholds() -> None:
    given: Any = None
    assert FluentEvalSuite(thresholds=given).thresholds == {}


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (lambda actual: 1, "unknown parameter 'actual'"),
        (lambda ask: 1, "give the judge a model"),
        (3, "fn= of judge 'j' must be a function"),
    ],
)
def test_a_judge_asks_for_what_there_is(fn: Any, what: str) -> None:
    with pytest.raises(EvalError, match=what):
        FluentJudge("j", fn)


@pytest.mark.parametrize(
    "fields",
    [
        {"min_pass_rate": 2},
        {"min_tag_pass_rate": {"a": -1}},
        {"min_metric": {"a": "x"}},
        {"max_regressions": 1.5},
        {"allow_flaky": 1},
    ],
)
def test_a_gate_takes_figures_that_can_be_met(fields: Any) -> None:
    with pytest.raises(EvalError, match="must be"):
        Gate(**fields)


class Box:
    def __init__(self, held: Any) -> None:
        self.held = held

    def __repr__(self) -> str:
        return f"<Box of {self.held} at 0x{id(self):x}>"


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (re.compile("a"), re.compile("b")),
        (re.compile("a" * 300 + "a"), re.compile("a" * 300 + "b")),
        (re.compile("a"), re.compile("a", re.IGNORECASE)),
        (ValueError("a"), ValueError("b")),
        (ValueError("a"), KeyError("a")),
        (Box(1), Box(2)),
        ([{"x": Box(1)}], [{"x": Box(2)}]),
        (partial(len, "a"), partial(len, "b")),
        (len, max),
        (str, bytes),
        (b"ab", b"cd"),
        (1j, 2j),
        (Decimal(1), "1"),
        ({"a", "b"}, {"a", "c"}),
        (True, 1),
    ],
)
def test_values_that_differ_have_different_digests(left: Any, right: Any) -> None:
    def case(value: Any) -> FluentCase:
        return FluentCase("hi", initial_state={"x": value}, mock_tool_outputs={"t": value})

    assert digest_of(case(left)) != digest_of(case(right))
    assert digest_of(case(left)) == digest_of(case(copy.copy(left)))
    # so two cases that differ in it have different ids
    assert FluentEvalSuite(cases=[case(left), case(right)]).cases[0].name == case(left).name
