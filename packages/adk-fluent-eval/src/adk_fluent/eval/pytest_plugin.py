"""Cases as tests: one for each run of each case. pytest finds this by itself.

A test with the mark of a suite takes what came of a case as `adk_eval`::

    @suite.to_pytest()
    def test_desk(adk_eval):
        adk_eval.assert_passed()

Nothing is loaded until a test has the mark. ``-p no:adk_fluent_eval`` leaves it out.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from adk_fluent.eval import CaseOutcome, FluentCase, FluentEvalReport
    from adk_fluent.eval._items._collect import Group, One

__all__ = ["EvaluatedCase", "adk_eval"]

_MARK: Final = "adk_eval"
_OPTION: Final = "adk_eval_report"
_SUFFIXES: Final = (".json", ".html", ".md", ".xml")

_GROUPS: Final = pytest.StashKey[dict[int, "Group"]]()
_KEPT: Final = pytest.StashKey["_Kept"]()


@dataclass(slots=True)
class _Kept:
    """What a test is given, and whether it has looked at it."""

    outcome: CaseOutcome
    seen: bool = False


class EvaluatedCase:
    """What one run of a case came to, as a test sees it.

    A test that neither asserts nor looks fails all the same where the case did not pass.

    Attributes:
        case: The case.
    """

    def __init__(self, case: FluentCase, kept: _Kept) -> None:
        self.case = case
        self._kept = kept

    @property
    def outcome(self) -> CaseOutcome:
        """All that is known; a test that looks at it decides for itself, but not about an error."""
        self._kept.seen = True
        return self._kept.outcome

    @property
    def passed(self) -> bool:
        """Whether everything that was expected is so."""
        return self.outcome.passed

    def assert_passed(self) -> None:
        """Does nothing if the case passed; else the test fails, and says why."""
        __tracebackhide__ = True
        from adk_fluent.eval._items._told import told  # noqa: PLC0415  # of failures alone

        outcome = self.outcome
        if outcome.status == "xfailed":
            pytest.xfail(outcome.note)
        if not outcome.passed:
            pytest.fail(told(outcome, self.case), pytrace=False)

    def __repr__(self) -> str:
        outcome = self._kept.outcome
        return f"<EvaluatedCase {outcome.id!r} run {outcome.run}: {outcome.status}>"


@pytest.fixture
def adk_eval(request: pytest.FixtureRequest) -> EvaluatedCase:
    """What came of a case, which is run before the test; see `EvaluatedCase`."""
    one: One | None = getattr(request, "param", None)
    if one is None:
        pytest.fail(
            "adk_eval is of tests of a suite: write @suite.to_pytest() above the test",
            pytrace=False,
        )
    kept = request.node.stash[_KEPT] = _Kept(_outcome(one))
    return EvaluatedCase(one.case, kept)


def _outcome(one: One) -> CaseOutcome:
    from adk_fluent.errors import AdkFluentError  # noqa: PLC0415  # of tests of suites alone
    from adk_fluent.eval import Status  # noqa: PLC0415  # the same

    try:
        return one.group.runs.run(one.case, one.run)
    except AdkFluentError as error:
        return one.outcome(Status.ERROR, f"{type(error).__name__}: {error}")


# --- hooks ---------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("adk-fluent", "evaluation of agents")
    group.addoption(
        "--adk-eval-report",
        action="append",
        default=[],
        dest=_OPTION,
        metavar="FILE",
        help="write what came of cases, with statistics, to a .json, .html, .md or .xml (JUnit); "
        "may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARK}(suite, **options): one test for each run of each case of a FluentEvalSuite.",
    )
    for each in _files(config):
        if Path(each).suffix.lower() not in _SUFFIXES:
            raise pytest.UsageError(
                f"--adk-eval-report={each}: a file ends in {', '.join(_SUFFIXES)}"
            )
    config.stash[_GROUPS] = {}
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist tell the one that reports
        config.pluginmanager.register(_Reporting(config), "adk_fluent_eval_reporting")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if marks := list(metafunc.definition.iter_markers(_MARK)):
        from adk_fluent.eval._items._collect import parametrize  # noqa: PLC0415  # seldom wanted

        parametrize(metafunc, marks, metafunc.config.stash[_GROUPS])


def pytest_itemcollected(item: pytest.Item) -> None:
    if (one := _one_of(item)) is not None:
        item.extra_keyword_matches.update(one.tags)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _is_of_unittest(item) and any(_marks_of_unittest(item)):
        pytest.fail(
            f"{_MARK} is for functions and for methods of plain classes: pytest gives those of "
            "unittest.TestCase no case; write a function, or take the TestCase off the class",
            pytrace=False,
        )


def _is_of_unittest(item: pytest.Item) -> bool:
    loaded = sys.modules.get("unittest")  # has been imported where somebody stands on it
    kind = getattr(item, "cls", None)
    return loaded is not None and isinstance(kind, type) and issubclass(kind, loaded.TestCase)


def _marks_of_unittest(item: pytest.Item) -> Iterator[pytest.Mark]:
    """Marks of a method and of its class; one of the module is for others."""
    parents = [each for each in item.listchain() if not isinstance(each, pytest.Module)]
    return (mark for each in parents for mark in each.own_markers if mark.name == _MARK)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    __tracebackhide__ = True
    result = yield
    kept, one = pyfuncitem.stash.get(_KEPT, None), _one_of(pyfuncitem)
    # what could not be told is no test's to decide: it would pass an agent that does not run
    if kept is not None and one is not None and not (kept.seen and kept.outcome.status != "error"):
        EvaluatedCase(one.case, kept).assert_passed()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if (one := _one_of(item)) is None:
        return report
    if report.when == "call" or (report.when == "setup" and not report.passed):
        vars(report)[_MARK] = _packed(item, one, report, call)
    return report


def _packed(
    item: pytest.Item, one: One, report: pytest.TestReport, call: pytest.CallInfo[None]
) -> str:
    """What goes from a worker to the process that reports."""
    from adk_fluent.eval import Status  # noqa: PLC0415  # of tests of suites alone
    from adk_fluent.eval._items._merge import failed_as_test, packed  # noqa: PLC0415  # the same
    from adk_fluent.eval._items._parameters import parameters_of  # noqa: PLC0415  # the same

    kept = item.stash.get(_KEPT, None)
    why = call.excinfo.exconly(tryshort=True) if call.excinfo is not None else ""
    if kept is None:
        skipped = report.skipped
        outcome = one.outcome(Status.SKIPPED) if skipped else one.outcome(Status.ERROR, why)
    else:
        outcome = kept.outcome
    if report.failed and outcome.passed:
        outcome = failed_as_test(outcome, why)
    spec: Any = getattr(item, "callspec")  # noqa: B009  # of tests with parameters alone
    test = item.nodeid.removesuffix(f"[{spec.id}]")
    return packed(one, outcome, test, parameters_of(spec, one), whole=bool(_files(item.config)))


def _files(config: pytest.Config) -> list[str]:
    """The files of reports that are asked for."""
    return config.getoption(_OPTION) or []


def _one_of(item: pytest.Item) -> One | None:
    """The run of a case that a test is; None for any other."""
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    one: Any = params.get(_MARK)
    return one if hasattr(one, "group") and hasattr(one, "case") else None


class _Reporting:
    """Takes what all tests of cases came to, and reports it at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._records: list[str] = []
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        self._reports: dict[str, FluentEvalReport] = {}
        self._lines: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record: str | None = vars(report).get(_MARK)
        if record is not None:
            self._records.append(record)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self._records:
            return
        from adk_fluent.eval import EvalFileError  # noqa: PLC0415  # of tests of suites alone
        from adk_fluent.eval._items._merge import reports_of, write  # noqa: PLC0415  # the same

        self._reports = reports_of(
            self._records,
            self._began,
            time.monotonic() - self._clock,
            interrupted=exitstatus in {pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR}
            or bool(session.shouldfail or session.shouldstop),
        )
        for each in _files(self._config):
            try:
                files = write(self._reports, self._config.invocation_params.dir / each)
            except EvalFileError as error:
                self._lines.append(f"error: {error}")
                if session.exitstatus == pytest.ExitCode.OK:
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED
            else:
                self._lines += [f"written: {file}" for file in files]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._reports:
            return
        from adk_fluent.eval._items._told import summary  # noqa: PLC0415  # of tests of suites alone

        terminalreporter.section("adk-fluent eval")
        for label, report in self._reports.items():
            terminalreporter.write_line(summary(label, report))
        for line in self._lines:
            terminalreporter.write_line(line)
