"""What a suite refuses when it is made, before anything is paid for."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent.eval import EvalError, FluentCase, FluentEvalSuite, FluentJudge


def polite(actual_response: str) -> float:
    """A judge who likes everything."""
    return 1.0


class Polite:
    """A judge that is no function, and no FluentJudge."""

    def __call__(self, actual_response: str) -> float:
        return 1.0


def refused(**fields: Any) -> EvalError:
    with pytest.raises(EvalError) as caught:
        FluentEvalSuite("s", **fields)
    return caught.value


# --- cases ---------------------------------------------------------------------------------------


def test_a_case_is_in_a_suite_once() -> None:
    case, other = FluentCase("Hi", id="hi"), FluentCase("Bye")
    error = refused(cases=[case, other, case])
    assert error.what == "case 'hi': the suite has it twice"
    assert error.help == "to run each case twice: num_runs=2"
    assert __file__ in str(error.location)
    assert refused(cases=[other] * 3).help == error.help  # without an id, too


def test_a_case_is_added_once() -> None:
    case = FluentCase("Hi", id="hi")
    suite = FluentEvalSuite("s", cases=[case])
    with pytest.raises(EvalError, match="the suite has it twice"):
        suite.add(case)
    assert suite.cases == [case]
    assert FluentEvalSuite("other", cases=[case]).cases == [case]  # of another suite, it may be


def test_two_cases_have_two_ids() -> None:
    error = refused(cases=[FluentCase("Hi", id="hi"), FluentCase("Bye", id="hi")])
    assert error.what == "case 'hi': there are two cases with the id 'hi'"
    assert "the other is at" in str(error.found)


# --- metrics -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"response_match_score": 0.95}, {}])
def test_metrics_have_no_thresholds_in_them(given: dict[str, float]) -> None:
    error = refused(metrics=given)
    assert error.what == "metrics= takes a list"
    assert error.found == "a dict"
    assert error.help == "thresholds have an argument of their own: metrics=[...], thresholds={...}"


def test_metrics_are_anything_that_can_be_gone_through() -> None:
    thresholds = {"response_match_score": 0.95}
    suite = FluentEvalSuite("s", metrics=thresholds.keys(), thresholds=thresholds)
    assert suite.metrics == ("response_match_score",)
    assert FluentEvalSuite("s", metrics=iter(["safety_v1"])).metrics == ("safety_v1",)
    assert refused(metrics="safety_v1").help == "metrics=[...]"


# --- judges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "found", "help"),
    [
        (polite, "the function ", 'write FluentJudge("polite", polite)'),
        (lambda: 1.0, "the function ", 'write FluentJudge("name", the_function)'),
        (Polite(), "a Polite", 'write FluentJudge("name", the_function)'),
        (FluentJudge, "the class FluentJudge", 'write FluentJudge("name", the_function)'),
        ("polite", "a str", 'write FluentJudge("name", the_function)'),
        (None, "None", 'write FluentJudge("name", the_function)'),
    ],
)
def test_a_judge_is_a_fluent_judge(given: Any, found: str, help: str) -> None:
    error = refused(custom_judges=[FluentJudge("well", polite), given])
    assert error.what == "custom_judges= takes FluentJudges"
    assert str(error.found).startswith(found)
    assert error.help == help


def test_judges_are_a_list() -> None:
    judge = FluentJudge("polite", polite)
    for given in (judge, polite, "polite", None):
        error = refused(custom_judges=given)
        assert error.what == "custom_judges= takes a list"
        assert error.help == "custom_judges=[...]"
    assert refused(custom_judges={"polite": polite}).what == "custom_judges= takes FluentJudges"
    assert FluentEvalSuite("s", custom_judges=iter([judge])).custom_judges == (judge,)
