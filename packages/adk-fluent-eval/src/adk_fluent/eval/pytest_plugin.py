"""The pytest plugin: one test for each run of each case.

A test with the mark of a suite takes the outcome of a case as the fixture `adk_eval`::

    @suite.to_pytest()
    def test_desk(adk_eval):
        adk_eval.assert_passed()

Nothing is loaded until a test has the mark. ``-p no:adk_fluent_eval`` disables the plugin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.eval import CaseOutcome, FluentCase, FluentEvalSuite
    from adk_fluent.eval._running._suite_run_adk import SuiteRun

__all__ = ["EvaluatedCase", "adk_eval"]

_MARK: Final = "adk_eval"
#: Options that pytest has its own ways for: -k, -x, pytest-xdist.
_REFUSED: Final = {
    *("filter_tags", "case_ids", "fail_fast", "parallelism", "progress"),
    *("baseline", "shard", "journal"),
}


@dataclass
class _Group:
    """The runs of a suite that one mark asks for."""

    suite: FluentEvalSuite
    options: dict[str, Any]

    @cached_property
    def suite_run(self) -> SuiteRun:
        """The suite, checked; an invalid one raises for each test."""
        from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK

        return SuiteRun(self.suite, cast("Any", self.options))


@dataclass(frozen=True, slots=True)
class _Item:
    """One run of one case, which is one test."""

    group: _Group
    case: FluentCase
    run: int


_GROUPS: Final = pytest.StashKey[dict[int, _Group]]()


class EvaluatedCase:
    """The outcome of one run of a case, as a test gets it.

    A test that neither asserts nor looks at the outcome fails if the case did not pass.

    Attributes:
        case: The case.
    """

    def __init__(self, case: FluentCase, outcome: CaseOutcome) -> None:
        self.case: FluentCase = case
        self._outcome = outcome
        self._seen = False

    @property
    def outcome(self) -> CaseOutcome:
        """The outcome; a test that looks at it decides itself, except about errors."""
        self._seen = True
        return self._outcome

    def assert_passed(self) -> None:
        """Fail the test with the reasons, unless the case passed."""
        __tracebackhide__ = True
        outcome = self.outcome
        if outcome.status == "xfailed":
            pytest.xfail(outcome.note)
        if not outcome.passed:
            pytest.fail("\n".join(_explanation(outcome, self.case)), pytrace=False)

    def assert_decided(self) -> None:
        """Fail the test if it has not looked at the outcome, or that is an error.

        No test decides about an error: it would pass an agent that does not run.
        """
        __tracebackhide__ = True
        if not self._seen or self._outcome.status == "error":
            self.assert_passed()


@pytest.fixture
def adk_eval(request: pytest.FixtureRequest) -> EvaluatedCase:
    """The outcome of a case, which runs before the test; see `EvaluatedCase`."""
    item: _Item | None = getattr(request, "param", None)
    if item is None:
        pytest.fail("adk_eval needs @suite.to_pytest() above the test", pytrace=False)
    import asyncio  # noqa: PLC0415  # of tests of suites alone
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from adk_fluent.extend import run_sync  # noqa: PLC0415

    suite_run = item.group.suite_run
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        outcome = run_sync(_MARK, lambda: suite_run.run_one(item.case, item.run))
    else:  # a plugin keeps a loop running
        with ThreadPoolExecutor(1) as thread:
            work = suite_run.run_one(item.case, item.run)
            outcome = thread.submit(asyncio.run, work).result()
    return EvaluatedCase(item.case, outcome)


def _explanation(outcome: CaseOutcome, case: FluentCase) -> Generator[str]:
    """Why a case did not pass, and the conversation."""
    from adk_fluent.eval._text import shown  # noqa: PLC0415  # of failures alone
    from adk_fluent.extend import one_line  # noqa: PLC0415  # of failures alone

    yield f"case {outcome.id!r}, run {outcome.run}: {outcome.status}"
    yield from (f"  {one_line(each, 2_000)}" for each in outcome.reasons)
    for turn in outcome.turns:
        yield f"  user: {one_line(turn.input, 2_000)}"
        for use in turn.tool_uses:
            answer = f"raised {use.error}" if use.error else shown(use.response)
            yield f"  {use.agent}: {use.name}({shown(use.args)}) -> {one_line(answer, 300)}"
        yield f"  answer: {one_line(turn.response, 2_000)}"
    if case.place is not None:
        yield f"the case is at {case.place}"


# --- hooks ---------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    what = "one test for each run of each case of a FluentEvalSuite."
    config.addinivalue_line("markers", f"{_MARK}(suite, **options): {what}")
    config.stash[_GROUPS] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark, name = metafunc.definition.get_closest_marker(_MARK), metafunc.definition.nodeid
    if mark is None:
        return
    if _MARK not in metafunc.fixturenames:
        if mark in metafunc.definition.own_markers:
            pytest.fail(f"{name} has a suite and takes no argument {_MARK}", pytrace=False)
        return
    from adk_fluent.eval import FluentEvalSuite  # noqa: PLC0415  # of tests of suites alone

    if len(mark.args) != 1 or not isinstance(mark.args[0], FluentEvalSuite):
        pytest.fail(f"{name}: write @suite.to_pytest()", pytrace=False)
    if not mark.args[0].cases:  # pytest would skip it, and an empty suite cannot pass
        pytest.fail(f"{name}: suite {mark.args[0].name!r} has no cases", pytrace=False)
    for option in mark.kwargs.keys() & _REFUSED:
        pytest.fail(f"{name}: pytest has its own way for {option}=", pytrace=False)
    groups = metafunc.config.stash[_GROUPS]
    group = groups.setdefault(id(mark), _Group(mark.args[0], dict(mark.kwargs)))
    runs: int = group.options.get("num_runs") or group.suite.num_runs
    params = [
        pytest.param(
            _Item(group, case, run),
            id=case.name if runs == 1 else f"{case.name}-run{run}",
            marks=() if case.skip is None else pytest.mark.skip(reason=case.skip),
        )
        for case in group.suite.cases
        for run in range(1, runs + 1)
    ]
    metafunc.parametrize(_MARK, params, indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    one = getattr(getattr(item, "callspec", None), "params", {}).get(_MARK)
    if isinstance(one, _Item):
        item.extra_keyword_matches.update(one.case.tags)  # for -k


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    __tracebackhide__ = True
    result = yield
    one = pyfuncitem.funcargs.get(_MARK)
    if isinstance(one, EvaluatedCase):
        one.assert_decided()
    return result
