"""Cases as tests of pytest, in processes of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.adk

TESTS = """
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import ScriptedModel

desk = Agent("desk", ScriptedModel(default="good morning"))
suite = FluentEvalSuite("desk", desk, [
    FluentCase("hello", id="good", expected_response_contains="morning", tags=["talk"]),
    FluentCase("hi", id="bad", expected_response_contains="night"),
    FluentCase("later", id="later", expected_response_contains="x", skip="not yet"),
    FluentCase("hello", id="known", expected_response_contains="bye", xfail="issue 7"),
])

@suite.to_pytest()
def test_desk(adk_eval):
    adk_eval.assert_passed()
"""
INI = """
[pytest]
addopts = --strict-markers -p no:cacheprovider
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore::DeprecationWarning:google\\..*
    ignore:You should use `.*Logger.*` instead:DeprecationWarning
"""


@pytest.fixture(autouse=True)
def ini(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ini", pytest=INI)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_one_test_for_each_case(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-v", *workers)
    result.assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*case 'bad', run 1: failed*", "*answer contains*", "*user: hi*"])


def test_selection_runs_and_tests_that_look_themselves(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TESTS
        + """
@suite.to_pytest(num_runs=2)
def test_own(adk_eval):
    assert adk_eval.outcome.response == "good morning"

@suite.to_pytest()
def test_lazy(adk_eval):
    pass
"""
    )
    # by tag: 1 + 2 + 1 tests of the case "good"
    chosen = "talk or (test_own and bad) or (test_lazy and bad)"
    result = pytester.runpytest_subprocess("-k", chosen)
    result.assert_outcomes(passed=6, failed=1)


MISTAKES = {
    "takes no argument adk_eval": "@suite.to_pytest()\ndef test_a(): pass",
    "needs @suite.to_pytest()": "def test_a(adk_eval): pass",
    "its own way for fail_fast": "@suite.to_pytest(fail_fast=True)\ndef test_a(adk_eval): pass",
    "suite 'none' has no cases": "@FluentEvalSuite('none', desk).to_pytest()\n"
    "def test_a(adk_eval): pass",
    "write @suite.to_pytest()": "import pytest\n@pytest.mark.adk_eval(3)\n"
    "def test_a(adk_eval): pass",
    "did you mean 'desk'": "wrong = FluentCase('a', expected_trajectory=[], target_node='dsk')\n"
    "@FluentEvalSuite('x', desk, [wrong]).to_pytest()\ndef test_a(adk_eval): pass",
}


def test_mistakes_are_explained(pytester: pytest.Pytester) -> None:
    for number, test in enumerate(MISTAKES.values()):
        text = TESTS.partition("@suite")[0] + test
        pytester.makepyfile(**{f"test_{number}": text})
    result = pytester.runpytest_subprocess("--continue-on-collection-errors")
    assert result.ret != 0
    for what in MISTAKES:
        assert what in result.stdout.str()
