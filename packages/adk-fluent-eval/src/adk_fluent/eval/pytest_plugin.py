"""The pytest plugin: one test for each run of each case.

A test with the mark of a suite takes the outcome of a case as the fixture `adk_eval`::

    @suite.to_pytest()
    def test_desk(adk_eval):
        adk_eval.assert_passed()

Nothing is loaded until a test has the mark. ``-p no:adk_fluent_eval`` disables the plugin.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.eval import CaseOutcome, FluentCase, FluentEvalReport, FluentEvalSuite
    from adk_fluent.eval._running._suite_run_adk import SuiteRun

__all__ = ["EvaluatedCase", "adk_eval"]

_MARK: Final = "adk_eval"
_FORMS: Final = {".json": "json", ".md": "markdown", ".xml": "junit", ".html": "html"}
_SUFFIXES: Final = ", ".join(_FORMS)
#: Options that pytest has its own ways for: -k, -x, pytest-xdist.
_REFUSED: Final = {
    *("filter_tags", "case_ids", "fail_fast", "parallelism", "progress"),
    *("baseline", "shard", "journal"),
}


@dataclass(slots=True)
class _Group:
    """The runs of a suite that one mark asks for."""

    suite: FluentEvalSuite
    options: dict[str, Any]
    _run: SuiteRun | Exception | None = None

    @property
    def suite_run(self) -> SuiteRun:
        """The suite, which is checked once; an invalid one raises the same for each test."""
        from adk_fluent.eval._running._suite_run_adk import SuiteRun  # noqa: PLC0415  # imports ADK

        if self._run is None:
            try:
                self._run = SuiteRun(self.suite, cast("Any", self.options))
            except Exception as error:  # noqa: BLE001  # raised below
                self._run = error
        if isinstance(self._run, Exception):
            raise self._run
        return self._run


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
        return cast("CaseOutcome", self._item.outcome)

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
            pytest.fail("\n".join(_explanation(outcome, self.case)), pytrace=False)


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
    item.outcome, item.seen = outcome, False
    return EvaluatedCase(item)


def _explanation(outcome: CaseOutcome, case: FluentCase) -> Generator[str]:
    """Why a case did not pass, and the conversation."""
    from adk_fluent.eval._text import one_line, shown  # noqa: PLC0415  # of failures alone

    yield f"case {outcome.id!r}, run {outcome.run}: {outcome.status}"
    yield from (f"  {one_line(each, 2_000)}" for each in outcome.reasons)
    for number, turn in enumerate(outcome.turns, 1):
        yield f"turn {number}:"
        yield f"  user: {one_line(turn.input, 2_000)}"
        for step in turn.steps[:60]:
            if step.text:
                yield f"  {step.author}: {one_line(step.text, 2_000)}"
            if (use := step.tool) is not None:
                answer = f"raised {use.error}" if use.error else shown(use.response)
                yield f"  {step.author}: {use.name}({shown(use.args)}) -> {one_line(answer, 300)}"
            if step.state:
                yield f"  {step.author} writes {shown(step.state)}"
    if case.place is not None:
        yield f"the case is at {case.place}"


# --- hooks ---------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("adk-fluent", "evaluation of agents")
    help = f"write the report of the evaluated cases ({_SUFFIXES})"
    group.addoption("--adk-eval-report", metavar="FILE", help=help)


def pytest_configure(config: pytest.Config) -> None:
    what = "one test for each run of each case of a FluentEvalSuite."
    config.addinivalue_line("markers", f"{_MARK}(suite, **options): {what}")
    file: str | None = config.getoption("adk_eval_report")
    if file is not None and Path(file).suffix.lower() not in _FORMS:
        raise pytest.UsageError(f"--adk-eval-report={file}: a file ends in {_SUFFIXES}")
    config.stash[_GROUPS] = {}
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist send their outcomes
        config.pluginmanager.register(_Reporter(config, file), "adk_fluent_eval_reporter")


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
    if (one := _item_of(item)) is not None:
        item.extra_keyword_matches.update(one.case.tags)  # for -k


def _item_of(item: pytest.Item) -> _Item | None:
    one = getattr(getattr(item, "callspec", None), "params", {}).get(_MARK)
    return one if isinstance(one, _Item) else None


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    __tracebackhide__ = True
    result = yield
    one = _item_of(pyfuncitem)
    # no test decides about an error: it would pass an agent that does not run
    if one is not None and one.outcome and (not one.seen or one.outcome.status == "error"):
        EvaluatedCase(one).assert_passed()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    one = _item_of(item)
    if one is None or (report.when != "call" and (report.when != "setup" or report.passed)):
        return report
    from adk_fluent.eval import CaseOutcome, Status  # noqa: PLC0415  # of tests of suites alone
    from adk_fluent.eval._report._json import json_line  # noqa: PLC0415

    why = call.excinfo.exconly(tryshort=True) if call.excinfo is not None else ""
    outcome = one.outcome
    if outcome is None:
        status = Status.SKIPPED if report.skipped else Status.ERROR
        outcome = CaseOutcome(one.case.name, one.run, status, note=one.case.skip or "")
        outcome.tags, outcome.reasons = list(one.case.tags), [] if report.skipped else [why]
    elif report.failed and outcome.passed:
        outcome.status, outcome.reasons = Status.FAILED, [f"the test failed: {why}"]
    vars(report)[_MARK] = (one.group.suite.name, json_line(outcome))
    return report


class _Reporter:
    """Collects the outcomes of all tests, also those of workers, and reports at the end."""

    def __init__(self, config: pytest.Config, file: str | None) -> None:
        self._path = None if file is None else config.invocation_params.dir / file
        self._records: dict[str, list[str]] = {}
        self._lines: list[str] = []
        self._lost = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record: tuple[str, str] | None = vars(report).get(_MARK)
        if record is not None:
            self._records.setdefault(record[0], []).append(record[1])
        elif report.failed and report.when not in {"setup", "call", "teardown"}:
            self._lost = True  # a worker of pytest-xdist crashed, and its outcome is not here

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        for suite, texts in self._records.items():
            report = _report(suite, texts)
            stopped = self._lost or bool(session.shouldfail or session.shouldstop)  # as by -x
            report.interrupted = stopped or exitstatus == pytest.ExitCode.INTERRUPTED
            self._lines.append(repr(report))
            if self._path is None:
                continue
            from adk_fluent.eval import EvalFileError  # noqa: PLC0415  # of reports alone
            from adk_fluent.eval._files._source import Source, with_suite  # noqa: PLC0415
            from adk_fluent.eval._report._report import in_form  # noqa: PLC0415
            from adk_fluent.eval._text import encodable  # noqa: PLC0415

            path = with_suite(str(self._path), suite if len(self._records) > 1 else "")
            form = _FORMS[self._path.suffix.lower()]
            try:
                Source.write(path, [encodable(in_form(report, form))])
            except EvalFileError as error:
                self._lines.append(f"error: {error}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            terminalreporter.section("adk-fluent eval")
        for line in self._lines:
            terminalreporter.write_line(line)


def _report(suite: str, texts: list[str]) -> FluentEvalReport:
    """The report of the outcomes of a suite, which several tests may have."""
    from adk_fluent.eval import CaseOutcome, FluentEvalReport  # noqa: PLC0415
    from adk_fluent.eval._files._source import Source  # noqa: PLC0415

    found: dict[tuple[str, int], CaseOutcome] = {}
    for text in texts:
        source, held = Source(suite), json.loads(text)
        outcome: CaseOutcome = source.validated(CaseOutcome, held, strict=True)
        while outcome.key in found:
            outcome.id += " (again)"
        found[outcome.key] = outcome
    return FluentEvalReport(list(found.values()), suite, engine="light")
