"""The example `support_desk`: its cases hold, and each seeded defect is found by its cases."""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA

from adk_fluent.eval import FluentCase, FluentEvalReport, FluentEvalSuite, Status, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.eval import CaseOutcome

pytestmark = pytest.mark.adk

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
FOLDER: Final = EXAMPLES / "support_desk"


def _module(name: str) -> Any:
    sys.path.insert(0, str(EXAMPLES))
    try:
        return import_module(f"support_desk.{name}")
    finally:
        sys.path.remove(str(EXAMPLES))


CASES: Final[tuple[FluentCase, ...]] = _module("cases").CASES
DEFECTS: Final[Mapping[str, tuple[str, ...]]] = _module("suite").DEFECTS
KINDS: Final[Mapping[str, str]] = _module("defects").KINDS
suite_of: Final[Callable[..., FluentEvalSuite]] = _module("suite").suite_of
desk: Final[Callable[..., Any]] = _module("desk").desk

#: A desk with these fails cases of every kind: of tools, answers, state, budgets, and with errors.
SEVERAL: Final = ("cuts_cents", "ticket_unnamed", "endless_review", "no_offline_tracker")


def _missed(report: FluentEvalReport) -> set[str]:
    return {each.id for each in report.outcomes if each.status in {Status.FAILED, Status.ERROR}}


def _seen(outcome: CaseOutcome) -> dict[str, Any]:
    """All that is to be the same, however a case is run: not times, and not identities."""
    return {
        "status": outcome.status,
        "reasons": outcome.reasons,
        "responses": [turn.response for turn in outcome.turns],
        "tools": [
            (use.name, use.args, use.response, use.error, use.mocked, use.agent)
            for turn in outcome.turns
            for use in turn.tool_uses
        ],
        "state": outcome.state,
        "tokens": outcome.tokens,
        "scores": [(each.name, each.score, each.status) for each in outcome.scores],
        "stop_reason": outcome.stop_reason,
    }


def _by_id(outcomes: Iterable[CaseOutcome]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(each.id, each.run): _seen(each) for each in outcomes}


# --- what it holds -------------------------------------------------------------------------------


def test_there_are_as_many_cases_and_defects_as_promised() -> None:
    assert len(CASES) >= 60
    assert len(DEFECTS) >= 12
    assert DEFECTS.keys() == KINDS.keys()
    assert len(set(KINDS.values())) == len(KINDS)
    known = {case.name for case in CASES}
    assert len(known) == len(CASES)
    for defect, cases in DEFECTS.items():
        assert cases, defect
        assert set(cases) <= known, defect


def _turns(case: FluentCase) -> list[Turn]:
    return list(case.turns)


def _mocks(case: FluentCase) -> list[Any]:
    found: list[Any] = []
    for each in (case.mock_tool_outputs or {}).values():
        found += each if isinstance(each, list) else [each]
    return found


USES: Final[dict[str, Callable[[FluentCase], object]]] = {
    "exact": lambda case: case.expected_trajectory and case.trajectory_match == "exact",
    "in_order": lambda case: case.trajectory_match == "in_order",
    "any_order": lambda case: case.trajectory_match == "any_order",
    "subset": lambda case: case.trajectory_match == "subset",
    "f1": lambda case: case.trajectory_match == "f1",
    "no tools": lambda case: case.expected_trajectory == [],
    "a predicate of an argument": lambda case: any(
        callable(value)
        for turn in _turns(case)
        for call in turn.trajectory or ()
        for value in (call.args or {}).values()
    ),
    "a text": lambda case: any(isinstance(t, str) for turn in _turns(case) for t in turn.contains),
    "a pattern": lambda case: any(
        isinstance(t, re.Pattern) for turn in _turns(case) for t in turn.contains
    ),
    "a reference": lambda case: case.reference_response,
    "state in the end": lambda case: case.state_assertions,
    "state of a step": lambda case: any("." in str(k) for k in case.state_assertions or {}),
    "a typed key": lambda case: any(not isinstance(k, str) for k in case.state_assertions or {}),
    "a predicate of state": lambda case: any(map(callable, (case.state_assertions or {}).values())),
    "state after a turn": lambda case: any(turn.state_assertions for turn in _turns(case)),
    "state at the start": lambda case: case.initial_state,
    "a mocked value": lambda case: any(isinstance(each, Mapping) for each in _mocks(case)),
    "a mocking function": lambda case: any(map(callable, _mocks(case))),
    "a mocked exception": lambda case: any(isinstance(each, Exception) for each in _mocks(case)),
    "a mocked sequence": lambda case: any(
        isinstance(each, list) for each in (case.mock_tool_outputs or {}).values()
    ),
    "several turns": lambda case: len(case.turns) > 1,
    "a picture": lambda case: any(isinstance(turn.input, list) for turn in _turns(case)),
    "a script for the user": lambda case: case.simulation and case.simulation.script,
    "a model for the user": lambda case: case.simulation and case.simulation.model,
    "a part": lambda case: case.target_node,
    "max_tokens": lambda case: case.max_tokens,
    "max_tool_calls": lambda case: case.max_tool_calls,
    "max_latency_s": lambda case: case.max_latency_s,
    "rubrics": lambda case: case.rubrics,
    "rubrics of a turn": lambda case: any(turn.rubrics for turn in _turns(case)),
    "an expected failure": lambda case: case.xfail,
    "a case of a file": lambda case: (case.place or "").partition(":")[0].endswith(".yaml"),
}


@pytest.mark.parametrize("what", USES)
def test_it_shows(what: str) -> None:
    assert any(USES[what](case) for case in CASES)


def test_it_imports_what_is_public() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
                continue
            if node.module.startswith("adk_fluent"):
                assert not any(part.startswith("_") for part in node.module.split("."))
                public = import_module(node.module)
                for alias in node.names:
                    assert alias.name in public.__all__, f"{path.name}: {alias.name}"


# --- as it should be -----------------------------------------------------------------------------


def test_nothing_is_wrong_with_the_desk() -> None:
    assert not list(desk().check())
    _module("suite").suite.check()


async def test_without_defects_every_case_passes_in_every_run() -> None:
    report = await suite_of().run(num_runs=3)
    expected = {case.name: Status.XFAILED if case.xfail else Status.PASSED for case in CASES}
    assert {(each.id, each.run): each.status for each in report.outcomes} == {
        (name, run): status for name, status in expected.items() for run in (1, 2, 3)
    }
    assert report.ok
    assert report.exit_code == 0
    assert report.failures == []
    assert report.flaky == ()
    assert report.pass_hat(3) == 1.0


# --- with defects --------------------------------------------------------------------------------


@pytest.mark.parametrize("defect", KINDS)
async def test_a_defect_is_found_by_its_cases_and_no_others(defect: str) -> None:
    report = await suite_of({defect}).run()
    assert _missed(report) == set(DEFECTS[defect])
    assert not report.ok
    assert report.exit_code != 0
    for each in report.outcomes:
        assert bool(each.reasons) == (each.status is not Status.PASSED), each.id


def test_a_defect_that_there_is_not() -> None:
    with pytest.raises(ValueError, match=r"there is no defect no_gard$"):
        desk({"no_guard", "no_gard"})


async def test_a_regression_is_told_from_what_was_there_before() -> None:
    tags = ("money", "german")
    before = await suite_of({"cuts_cents"}).run(filter_tags=tags)
    after = await suite_of({"cuts_cents", "english_only"}).run(filter_tags=tags, baseline=before)
    comparison = after.compare(before)
    assert {each.id for each in comparison.regressed} == set(DEFECTS["english_only"])
    assert not comparison.improved
    mended = await suite_of({"english_only"}).run(filter_tags=tags)
    assert {each.id for each in mended.compare(after).improved} == set(DEFECTS["cuts_cents"])


# --- no case has an effect on another ------------------------------------------------------------


async def test_cases_have_no_effect_on_each_other() -> None:
    expected = _by_id((await suite_of(SEVERAL).run(parallelism=1)).outcomes)
    statuses = {Status.PASSED, Status.FAILED, Status.ERROR, Status.XFAILED}
    assert {seen["status"] for seen in expected.values()} == statuses
    for parallelism in (1, 16):
        suite = suite_of(SEVERAL)
        random.Random(parallelism).shuffle(suite.cases)
        assert _by_id((await suite.run(parallelism=parallelism)).outcomes) == expected


async def test_a_desk_for_each_run_comes_to_the_same() -> None:
    tags = ("refund", "human")
    expected = _by_id((await suite_of(SEVERAL).run(filter_tags=tags)).outcomes)
    suite = suite_of(SEVERAL)
    suite.pipeline = lambda: desk(SEVERAL)
    assert _by_id((await suite.run(filter_tags=tags)).outcomes) == expected


async def test_shards_are_the_whole() -> None:
    tags = ("refund", "technical")
    expected = _by_id((await suite_of(SEVERAL).run(filter_tags=tags)).outcomes)
    shards = [await suite_of(SEVERAL).run(filter_tags=tags, shard=(part, 3)) for part in (1, 2, 3)]
    assert _by_id(FluentEvalReport.merge(*shards).outcomes) == expected


@pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA)
async def test_adks_own_service_comes_to_the_same() -> None:
    from google.adk.version import __version__

    if __version__.startswith("1."):
        pytest.skip("ADK's service of 1.x runs no App")
    expected = _by_id((await suite_of(SEVERAL).run()).outcomes)
    assert _by_id((await suite_of(SEVERAL).run(engine="local")).outcomes) == expected
