"""A run of a suite: checked first, then all runs of all cases with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.version import __version__

from adk_fluent.eval._cases._case import check_cases
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._running._case_run_adk import (
    RunSettings,
    add_absent_scores,
    new_outcome,
    run_case,
)
from adk_fluent.eval._running._options import Progress, check_options, select
from adk_fluent.eval._running._pipeline_adk import Targets
from adk_fluent.eval._running._plan import MetricPlan, check_gate
from adk_fluent.eval._running._preflight_adk import check_suite
from adk_fluent.eval._values import error_line
from adk_fluent.extend import LOG, provided

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_toolset import BaseToolset

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._running._options import RunOptions, Suite
    from adk_fluent.eval._running._pipeline_adk import Target
    from adk_fluent.protocol import PriceBook

_CLOSING: Final = 10.0  # seconds to close a plugin or toolset


class SuiteRun:
    """A run of a suite of which everything was checked.

    Attributes:
        adk_version: The version of google-adk.
        cases: The selected cases.
        notes: What is worth knowing beyond the outcomes.
        interrupted: Whether it ended before all runs were done.
    """

    def __init__(self, suite: Suite, options: RunOptions) -> None:
        options = check_options(options)
        self.adk_version: str = __version__
        check_cases(suite.cases)  # the list may have changed
        self.cases = select(suite.name, suite.cases, options)
        if suite.pipeline is None:
            raise EvalError(
                f"suite {suite.name!r} has no pipeline", help="give FluentEvalSuite(pipeline=...)"
            )
        judges = suite.custom_judges
        plan = MetricPlan(suite.metrics, suite.thresholds, judges, suite.cases)
        check_gate(suite.gate, suite.cases, plan, judges)
        self._settings = RunSettings(
            plan,
            options.get("session_service"),
            options.get("artifact_service"),
            options.get("memory_service"),
            options.get("plugins") or (),
            options.get("prices") or _installed_prices(),
            options.get("timeout_s"),
        )
        self._targets = Targets(suite.pipeline)
        check_suite(self.cases, self._targets, judges, self._settings)
        runs = options.get("num_runs") or suite.num_runs
        self._units = [(case, run) for case in self.cases for run in range(1, runs + 1)]
        self._parallelism = options.get("parallelism", 10)
        self._fail_fast = options.get("fail_fast", False)
        self._progress = options.get("progress")
        self._stopped = False
        self._open: dict[int, BasePlugin | BaseToolset] = {}
        self._used: Counter[int] = Counter()
        self._results: dict[tuple[str, int], EvalCaseResult] = {}
        self.notes: list[str] = plan.unused(self.cases)
        self.interrupted = False

    async def outcomes(self) -> AsyncGenerator[CaseOutcome, None]:
        """Run everything, and yield each outcome when it is there."""
        done = 0
        try:
            async with aclosing(self._go()) as outcomes:
                async for outcome in outcomes:
                    done += 1
                    self._tell(Progress(outcome, done, len(self._units)))
                    yield outcome
        finally:
            await self._close()
        if done < len(self._units):
            self.interrupted = True
            self.notes.append("stopped after the first case that did not pass")

    def results(self) -> list[EvalCaseResult]:
        """Return ADK's results, in the order of the cases and runs."""
        keys = ((case.name, run) for case, run in self._units)
        return [self._results[key] for key in keys if key in self._results]

    async def run_one(self, case: FluentCase, run: int) -> CaseOutcome:
        """Run one case once, and close what it used."""
        try:
            return await self._run(case, run)
        finally:
            await self._close()

    def _tell(self, progress: Progress) -> None:
        try:
            if self._progress is not None:
                self._progress(progress)
        except Exception as error:  # noqa: BLE001  # user code must not cost the results
            self._progress = None
            self.notes.append(f"progress= raised {error_line(error)} and was not called again")

    async def _go(self) -> AsyncGenerator[CaseOutcome, None]:
        limit = asyncio.Semaphore(self._parallelism)

        async def limited(case: FluentCase, run: int) -> CaseOutcome | None:
            async with limit:
                if self._stopped:
                    return None
                outcome = await self._run(case, run)
                self._stopped = self._fail_fast and outcome.status in {Status.FAILED, Status.ERROR}
                return outcome

        tasks = [asyncio.create_task(limited(*unit)) for unit in self._units]
        try:
            for done in asyncio.as_completed(tasks):
                if (outcome := await done) is not None:
                    yield outcome
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, case: FluentCase, run: int) -> CaseOutcome:
        if case.skip is not None:
            return new_outcome(case, run, Status.SKIPPED, case.skip)
        try:
            target = self._targets.for_run(case)
        except Exception as error:  # noqa: BLE001  # of the factory, which worked at first
            outcome = new_outcome(case, run)
            outcome.error = error_line(error, None)
            outcome.reasons = [outcome.error]
            add_absent_scores(outcome, self._settings.plan.of(case))
            return outcome
        held = {id(each): each for each in target.closeable}
        self._open |= held
        self._used.update(held.keys())
        try:
            outcome, result = await run_case(case, run, target, self._settings)
        finally:
            await self._release(target)
        if result is not None:
            self._results[outcome.key] = result
        return outcome

    async def _release(self, target: Target) -> None:
        """Close what a factory made for this run, unless another run uses it, too."""
        ids = {id(each) for each in target.closeable}
        self._used.subtract(ids)
        if self._targets.is_factory:
            await _close_all([self._open.pop(each) for each in ids if not self._used[each]])

    async def _close(self) -> None:
        await _close_all(self._open.values())
        self._open.clear()


def _installed_prices() -> PriceBook | None:
    """The first price book of an installed layer."""
    for each in provided("price_books"):
        found: Any = each.object
        return found if hasattr(found, "price") else found()
    return None


async def _close_all(held: Iterable[BasePlugin | BaseToolset]) -> None:
    for each in list(held):
        try:
            async with asyncio.timeout(_CLOSING):
                await each.close()
        except Exception:  # noqa: BLE001  # user code; the results are kept
            LOG.exception("%r could not be closed after an evaluation", each)
