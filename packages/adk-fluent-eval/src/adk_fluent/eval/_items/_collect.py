"""From the mark of a test to one test for each run of each case."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import text_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._items._mark import check_options
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._suite import FluentEvalSuite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._items._runs_adk import Runs

FIXTURE: Final = "adk_eval"
_HOW: Final = "write @suite.to_pytest(), or @pytest.mark.adk_eval(suite)"


@dataclass(slots=True)
class Group:
    """The runs of a suite that one mark asks for.

    Attributes:
        suite: The suite.
        options: How it is run.
        mark: The mark itself.
    """

    suite: FluentEvalSuite
    options: dict[str, Any]
    mark: pytest.Mark
    _runs: Runs | None = field(default=None, repr=False)

    @property
    def num_runs(self) -> int:
        """How often each case is run."""
        return self.options.get("num_runs") or self.suite.num_runs

    @property
    def runs(self) -> Runs:
        """What runs cases, made once in a process.

        Raises:
            EvalError: Something that the suite names is not there; the same each time.
        """
        if self._runs is None:
            from adk_fluent.eval._items._runs_adk import Runs  # noqa: PLC0415  # imports ADK

            self._runs = Runs(self.suite, self.options)
        return self._runs

    @property
    def known(self) -> Runs | None:
        """The same if it was made already."""
        return self._runs

    def each(self) -> Iterator[One]:
        """Every run of every case, in the suite's order."""
        for place, case in enumerate(self.suite.cases):
            for run in range(1, self.num_runs + 1):
                yield One(self, case, run, place)


@dataclass(frozen=True, slots=True)
class One:
    """One run of one case, which is one test.

    Attributes:
        group: What it belongs to.
        case: The case.
        run: Which run of it, counted from 1.
        place: The case's place in the suite, counted from 0.
    """

    group: Group
    case: FluentCase
    run: int
    place: int

    @property
    def id(self) -> str:
        """What the test is called: the case, and which run if there are several."""
        return self.case.name if self.group.num_runs == 1 else f"{self.case.name}-run{self.run}"

    @property
    def tags(self) -> Sequence[str]:
        """What ``-k`` finds it by, beside its name."""
        return self.case.tags

    def outcome(self, status: Status, error: str | None = None) -> CaseOutcome:
        """What came of it where it could not be run."""
        case = self.case
        return CaseOutcome(
            case.name,
            self.run,
            status,
            reasons=[] if error is None else [error],
            error=error,
            input=text_of(case.turns[0].input),
            tags=list(case.tags),
            note=case.skip or "",
            target_node=case.target_node or "",
        )


def parametrize(
    metafunc: pytest.Metafunc, marks: Sequence[pytest.Mark], groups: dict[int, Group]
) -> None:
    """Make a test into one for each run of each case.

    Args:
        metafunc: The test.
        marks: Its marks of this kind, the closest first.
        groups: What other tests have made of the same marks.
    """
    own = [each for each in metafunc.definition.own_markers if each.name == FIXTURE]
    if FIXTURE not in metafunc.fixturenames:
        if own:
            _refuse(metafunc, f"it takes no argument {FIXTURE}, which the case is told by")
        return  # a mark of its class or module is for others
    if len(own) > 1:
        _refuse(metafunc, "it has several suites; write a test for each")
    mark = marks[0]
    group = groups.get(id(mark))
    if group is None:
        group = groups[id(mark)] = _group(metafunc, mark)
    params = [
        pytest.param(
            each,
            id=each.id,
            marks=() if each.case.skip is None else pytest.mark.skip(reason=each.case.skip),
        )
        for each in group.each()
    ]
    metafunc.parametrize(FIXTURE, params, indirect=True)


def _group(metafunc: pytest.Metafunc, mark: pytest.Mark) -> Group:
    suite: Any = mark.args[0] if len(mark.args) == 1 else None
    if not isinstance(suite, FluentEvalSuite):
        found = describe(suite) if len(mark.args) == 1 else f"{len(mark.args)} arguments"
        _refuse(metafunc, f"mark {FIXTURE} takes one FluentEvalSuite, found {found}; {_HOW}")
    try:
        check_options(mark.kwargs)
    except EvalError as error:
        _refuse(metafunc, str(error))
    if not suite.cases:
        _refuse(metafunc, f"suite {suite.name!r} has no cases; an empty suite passes nothing")
    return Group(suite, dict(mark.kwargs), mark)


def _refuse(metafunc: pytest.Metafunc, why: str) -> NoReturn:
    pytest.fail(f"{metafunc.definition.nodeid}: {why}", pytrace=False)
