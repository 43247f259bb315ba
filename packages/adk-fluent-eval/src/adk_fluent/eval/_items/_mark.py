"""The mark that makes a test into one for each run of each case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from adk_fluent.eval._suite import FluentEvalSuite

#: Options of a run that pytest has a way of its own for, and which that is.
_PYTESTS: Final = {
    "case_ids": "choose tests with -k or ::",
    "fail_fast": "pytest -x does that",
    "filter_tags": "choose tests by tag with -k",
    "journal": "pytest --last-failed goes on where it was",
    "parallelism": "pytest -n does that, with pytest-xdist",
    "progress": "pytest shows it",
    "results_manager": "use adk-fluent eval run --results",
    "shard": "plugins of pytest's do that",
    "baseline": "save a report with --adk-eval-report, and use adk-fluent eval compare",
}


def mark_of(suite: FluentEvalSuite, options: Mapping[str, Any]) -> pytest.MarkDecorator:
    """The mark of a suite.

    Raises:
        EvalError: An option has no meaning for tests.
    """
    import pytest  # noqa: PLC0415  # of tests alone

    check_options(options)
    return pytest.mark.adk_eval(suite, **options)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that tests have no place for.

    Raises:
        EvalError: There is one.
    """
    from adk_fluent.eval._running._options import RunOptions  # noqa: PLC0415  # which imports this

    taken = [name for name in RunOptions.__annotations__ if name not in _PYTESTS]
    for name in options:
        if name in _PYTESTS:
            raise EvalError(f"tests of a suite take no {name}=", help=_PYTESTS[name])
        if name not in taken:
            near = nearest_name(name, taken)
            raise EvalError(
                f"tests of a suite have no option {name!r}",
                help=f"did you mean {near!r}?" if near else f"there are {', '.join(taken)}",
            )
    runs = options.get("num_runs")
    if runs is not None and (not isinstance(runs, int) or isinstance(runs, bool) or runs < 1):
        raise EvalError("num_runs= is no number from 1 up", found=describe(runs))
