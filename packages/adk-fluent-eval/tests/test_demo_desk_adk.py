"""The example over the demo's support desk: it passes, and each defect is found as it says."""

from __future__ import annotations

import asyncio
import runpy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from adk_fluent.eval import FluentEvalReport, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.eval import FluentEvalSuite

pytestmark = pytest.mark.adk

EXAMPLE: Final = Path(__file__).parents[1] / "examples" / "demo_desk" / "suite.py"
NAMES: Final[dict[str, Any]] = runpy.run_path(str(EXAMPLE))
DEFECTS: Final[dict[str, Any]] = NAMES["DEFECTS"]
suite_of: Final[Callable[..., FluentEvalSuite]] = NAMES["suite_of"]


def _missed(report: FluentEvalReport) -> set[str]:
    return {each.id for each in report.outcomes if each.status is not Status.PASSED}


async def test_no_case_fails_without_a_defect() -> None:
    suite = suite_of()
    assert len(suite.cases) >= 60
    report = await suite.run()
    assert [(each.id, each.reasons) for each in report.outcomes if not each.passed] == []
    assert len(report.outcomes) == len(suite.cases)
    assert report.ok


async def test_each_defect_is_found_by_the_cases_that_it_names() -> None:
    assert len(DEFECTS) >= 10
    found = await asyncio.gather(
        *(suite_of(name).run(case_ids=each.found_by) for name, each in DEFECTS.items())
    )
    missed = {name: _missed(report) for name, report in zip(DEFECTS, found, strict=True)}
    assert missed == {name: set(each.found_by) for name, each in DEFECTS.items()}


@cache
def _without_defect() -> FluentEvalReport:
    return suite_of().run_sync()


@pytest.mark.full
@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_a_regression_that_is_mended(name: str) -> None:
    mended, broken = _without_defect(), suite_of(name).run_sync()
    regressed = {each.id for each in broken.compare(mended).regressed}
    assert regressed == _missed(broken) >= set(DEFECTS[name].found_by)
    assert not broken.ok
    assert {each.id for each in mended.compare(broken).improved} == regressed
