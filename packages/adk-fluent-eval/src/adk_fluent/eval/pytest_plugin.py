"""The pytest plugin: one test for each run of each case.

A test with the mark of a suite takes the outcome of a case as the fixture `adk_eval`::

    @suite.to_pytest()
    def test_desk(adk_eval):
        adk_eval.assert_passed()

Nothing is loaded until a test has the mark. ``-p no:adk_fluent_eval`` disables the plugin.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.eval import CaseOutcome, FluentCase, FluentEvalReport, FluentEvalSuite
    from adk_fluent.eval._running._suite_run_adk import SuiteRun

__all__ = ["EvaluatedCase", "adk_eval"]

_MARK: Final = "adk_eval"
_OPTION: Final = "adk_eval_report"
_SUFFIXES: Final = (".json", ".md", ".xml")
#: Options that pytest has its own ways for.
_REFUSED: Final = {
    "filter_tags": "select tests with -k",
    "case_ids": "select tests with -k",
    "fail_fast": "stop with -x",
    "parallelism": "run in parallel with pytest-xdist",
    "progress": "see -v",
    "baseline": "compare --adk-eval-report with adk-fluent eval compare",
}


@dataclass(slots=True)
class _Group:
    """The runs of a suite that one mark asks for."""

    suite: FluentEvalSuite
    options: dict[str, Any]
    suite_run: SuiteRun | None = None
    problem: Exception | None = None


@dataclass(slots=True)
class _Item:
    """One run of one case, which is one test."""

    group: _Group
    case: FluentCase
    run: int
    outcome: CaseOutcome | None = field(default=None, repr=False)
    seen: bool = False


_GROUPS: Final = pytest.StashKey[dict[int, _Group]]()


class EvaluatedCase:
    """The outcome of one run of a case, as a test gets it.

    A test that neither asserts nor looks at the outcome fails if the case did not pass.

    Attributes:
        case: The case.
    """

    def __init__(self, item: _Item) -> None:
        self._item = item
        self.case: FluentCase = item.case

    @property
    def outcome(self) -> CaseOutcome:
        """The outcome; a test that looks at it decides itself, except about errors."""
        self._item.seen = True
        assert self._item.outcome is not None  # noqa: S101  # the fixture ran it
        return self._item.outcome

    @property
    def passed(self) -> bool:
        """Whether every expectation is met."""
        return self.outcome.passed

    def assert_passed(self) -> None:
        """Fail the test with the reasons, unless the case passed."""
        __tracebackhide__ = True
        outcome = self.outcome
        if outcome.status == "xfailed":
            pytest.xfail(outcome.note)
        if not outcome.passed:
            pytest.fail(_explanation(outcome, self.case), pytrace=False)


@pytest.fixture
def adk_eval(request: pytest.FixtureRequest) -> EvaluatedCase:
    """The outcome of a case, which runs before the test; see `EvaluatedCase`."""
    item: _Item | None = getattr(request, "param", None)
    if item is None:
        pytest.fail(
            "adk_eval needs the mark of a suite: write @suite.to_pytest() above the test",
            pytrace=False,
        )
    item.outcome = _run(item)
    item.seen = False
    return EvaluatedCase(item)


def _run(item: _Item) -> CaseOutcome:
    import asyncio  # noqa: PLC0415  # of tests of suites alone
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK
    from adk_fluent.extend import run_sync  # noqa: PLC0415

    group = item.group
    if group.problem is not None:
        raise group.problem
    if group.suite_run is None:
        try:
            group.suite_run = SuiteRun(group.suite, {**group.options})  # pyright: ignore[reportArgumentType]  # checked by name
        except Exception as error:
            group.problem = error
            raise
    suite_run = group.suite_run
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_sync("adk_eval", lambda: suite_run.run_one(item.case, item.run))
    with ThreadPoolExecutor(1) as thread:  # a plugin keeps a loop running
        return thread.submit(asyncio.run, suite_run.run_one(item.case, item.run)).result()


def _explanation(outcome: CaseOutcome, case: FluentCase) -> str:
    """Why a case did not pass, and the conversation."""
    from adk_fluent.eval._text import clean, one_line, shorten  # noqa: PLC0415  # of failures alone
    from adk_fluent.eval._values import shown  # noqa: PLC0415

    what = "ended in an error" if outcome.status == "error" else "did not pass"
    lines = [f"case {outcome.id!r}, run {outcome.run}, {what}"]
    lines += [f"  {one_line(each, 2_000)}" for each in outcome.reasons]
    for number, turn in enumerate(outcome.turns, 1):
        lines += ["", f"turn {number}:", f"  user: {one_line(turn.input, 2_000)}"]
        for step in turn.steps[:60]:
            if step.text:
                lines.append(f"  {step.author}: {clean(shorten(step.text, 2_000))}")
            if (use := step.tool) is not None:
                answer = f"raised {use.error}" if use.error else shown(use.response)
                mocked = " (mocked)" if use.mocked else ""
                call = f"{use.name}({shown(use.args)})"
                lines.append(f"  {step.author} calls {call} -> {one_line(answer, 300)}{mocked}")
            if step.state:
                lines.append(f"  {step.author} writes {shown(step.state)}")
    if case.place is not None:
        lines += ["", f"the case is at {case.place}"]
    return "\n".join(lines)


# --- hooks ---------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("adk-fluent", "evaluation of agents").addoption(
        "--adk-eval-report",
        action="append",
        default=[],
        dest=_OPTION,
        metavar="FILE",
        help=f"write the report of the evaluated cases ({', '.join(_SUFFIXES)}); repeatable",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(suite, **options): one test for each run of each case of a FluentEvalSuite.",
    )
    for each in config.getoption(_OPTION) or []:
        if Path(each).suffix.lower() not in _SUFFIXES:
            raise pytest.UsageError(
                f"--adk-eval-report={each}: a file ends in {', '.join(_SUFFIXES)}"
            )
    config.stash[_GROUPS] = {}
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist send their outcomes
        config.pluginmanager.register(_Reporter(config), "adk_fluent_eval_reporter")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker(_MARK)
    if mark is None:
        return
    name = metafunc.definition.nodeid
    if _MARK not in metafunc.fixturenames:
        if mark in metafunc.definition.own_markers:
            pytest.fail(f"{name} has a suite and takes no argument {_MARK}", pytrace=False)
        return
    from adk_fluent.eval import FluentEvalSuite  # noqa: PLC0415  # of tests of suites alone

    if len(mark.args) != 1 or not isinstance(mark.args[0], FluentEvalSuite):
        pytest.fail(f"{name}: write @suite.to_pytest()", pytrace=False)
    for option in mark.kwargs.keys() & _REFUSED.keys():
        pytest.fail(f"{name}: {option}= is not for tests; {_REFUSED[option]}", pytrace=False)
    groups = metafunc.config.stash[_GROUPS]
    group = groups.setdefault(id(mark), _Group(mark.args[0], dict(mark.kwargs)))
    runs: int = group.options.get("num_runs") or group.suite.num_runs
    metafunc.parametrize(
        _MARK,
        [
            pytest.param(
                _Item(group, case, run),
                id=case.name if runs == 1 else f"{case.name}-run{run}",
                marks=() if case.skip is None else pytest.mark.skip(reason=case.skip),
            )
            for case in group.suite.cases
            for run in range(1, runs + 1)
        ],
        indirect=True,
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    if (one := _item_of(item)) is not None:
        item.extra_keyword_matches.update(one.case.tags)  # for -k


def _item_of(item: pytest.Item) -> _Item | None:
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    one = params.get(_MARK)
    return one if isinstance(one, _Item) else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    __tracebackhide__ = True
    result = yield
    one = _item_of(pyfuncitem)
    # no test decides about an error: it would pass an agent that does not run
    if one is not None and one.outcome is not None:
        if not one.seen or one.outcome.status == "error":
            EvaluatedCase(one).assert_passed()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    one = _item_of(item)
    if one is not None and (
        report.when == "call" or (report.when == "setup" and not report.passed)
    ):
        from adk_fluent.eval._report._json import outcome_text  # noqa: PLC0415

        why = call.excinfo.exconly(tryshort=True) if call.excinfo is not None else ""
        vars(report)[_MARK] = (one.group.suite.name, outcome_text(_final(one, report, why)))
    return report


def _final(one: _Item, report: pytest.TestReport, why: str) -> CaseOutcome:
    """The outcome as the test left it."""
    from adk_fluent.eval import CaseOutcome, Status  # noqa: PLC0415  # of tests of suites alone

    outcome = one.outcome
    if outcome is None:
        status = Status.SKIPPED if report.skipped else Status.ERROR
        outcome = CaseOutcome(one.case.name, one.run, status, note=one.case.skip or "")
        outcome.tags = list(one.case.tags)
        if status is Status.ERROR:
            outcome.error, outcome.reasons = why, [why]
    elif report.failed and outcome.passed:
        outcome.status, outcome.reasons = Status.FAILED, [f"the test failed: {why}"]
    return outcome


class _Reporter:
    """Collects the outcomes of all tests, also those of workers, and reports at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._records: dict[str, list[str]] = {}
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record: tuple[str, str] | None = vars(report).get(_MARK)
        if record is not None:
            self._records.setdefault(record[0], []).append(record[1])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._records:
            return
        from adk_fluent.eval import CaseOutcome, EvalFileError, FluentEvalReport  # noqa: PLC0415
        from adk_fluent.eval._cli._output import with_suite  # noqa: PLC0415
        from adk_fluent.eval._files._source import write_whole  # noqa: PLC0415
        from adk_fluent.eval._report._json import validated  # noqa: PLC0415
        from adk_fluent.eval._text import encodable, interval, percent, plural  # noqa: PLC0415

        for suite, texts in self._records.items():
            found: dict[tuple[str, int], CaseOutcome] = {}
            for text in texts:
                outcome: CaseOutcome = validated(CaseOutcome, text, suite)
                while outcome.key in found:  # several tests of one suite
                    outcome.id += " (again)"
                found[outcome.key] = outcome
            report = FluentEvalReport(
                found.values(),
                suite=suite,
                engine="light",
                started_at=self._began,
                duration_s=time.monotonic() - self._clock,
                interrupted=exitstatus == pytest.ExitCode.INTERRUPTED,
            )
            rate = f"{percent(report.pass_rate)} of {plural(report.counting, 'run')} passed"
            self._lines.append(f"{suite}: {rate} ({interval(report.pass_rate_ci())})")
            for each in self._config.getoption(_OPTION) or []:
                path = self._config.invocation_params.dir / each
                name = with_suite(str(path), suite if len(self._records) > 1 else "")
                try:
                    write_whole(name, [encodable(_document(report, path.suffix.lower()))])
                except EvalFileError as error:
                    self._lines.append(f"error: {error}")
                    if session.exitstatus == pytest.ExitCode.OK:
                        session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("adk-fluent eval")
        for line in self._lines:
            terminalreporter.write_line(line)


def _document(report: FluentEvalReport, suffix: str) -> str:
    if suffix == ".md":
        return report.to_markdown()
    return report.to_junit() if suffix == ".xml" else report.to_json()
