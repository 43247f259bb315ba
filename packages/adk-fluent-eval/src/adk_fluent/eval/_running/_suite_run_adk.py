"""A run of a suite: checked first, then all runs of all cases with bounded concurrency."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.version import __version__

from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._running._case_run_adk import RunSettings, new_outcome, run_case
from adk_fluent.eval._running._options import Progress, check_options, select
from adk_fluent.eval._running._pipeline_adk import Targets
from adk_fluent.eval._running._plan import MetricPlan, check_gate
from adk_fluent.eval._running._preflight_adk import check_suite
from adk_fluent.eval._values import error_line
from adk_fluent.extend import LOG, provided

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator

    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_toolset import BaseToolset

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._running._options import RunOptions
    from adk_fluent.eval._running._pipeline_adk import Target
    from adk_fluent.eval._suite import FluentEvalSuite
    from adk_fluent.protocol import PriceBook

_CLOSING: Final = 10.0  # seconds to close a plugin or toolset
_NOT_PASSED: Final = frozenset({Status.FAILED, Status.ERROR})


class SuiteRun:
    """A run of a suite of which everything was checked.

    Args:
        suite: The suite.
        options: How it is run.

    Attributes:
        adk_version: The version of google-adk.
        cases: The selected cases.
        results: ADK's results, by case id and run.
        notes: What is worth knowing beyond the outcomes.
        interrupted: Whether it ended before all runs were done.

    Raises:
        EvalError: Something that the suite names does not exist.
    """

    def __init__(self, suite: FluentEvalSuite, options: RunOptions) -> None:
        options = check_options(options)
        self.adk_version: str = __version__
        self.cases = select(suite.name, suite.cases, options)
        if suite.pipeline is None:
            raise EvalError(
                f"suite {suite.name!r} has no pipeline", help="give FluentEvalSuite(pipeline=...)"
            )
        judges = suite.custom_judges
        plan = MetricPlan(suite.metrics, suite.thresholds, judges, suite.cases)
        check_gate(suite.gate, suite.cases, plan, judges)
        prices = options.get("prices") or _installed_prices()
        plugins = options.get("plugins") or ()
        self._targets = Targets(suite.pipeline)
        check_suite(self.cases, self._targets, plan, judges=judges, plugins=plugins, prices=prices)
        self._settings = RunSettings(
            plan,
            session_service=options.get("session_service"),
            artifact_service=options.get("artifact_service"),
            memory_service=options.get("memory_service"),
            plugins=plugins,
            prices=prices,
            timeout_s=options.get("timeout_s"),
        )
        runs = options.get("num_runs") or suite.num_runs
        self._units = [(case, run) for case in self.cases for run in range(1, runs + 1)]
        self._parallelism = options.get("parallelism", 10)
        self._fail_fast = options.get("fail_fast", False)
        self._progress = options.get("progress")
        self._stop = False
        self._open: dict[int, BasePlugin | BaseToolset] = {}
        self._used: Counter[int] = Counter()
        self.results: dict[tuple[str, int], EvalCaseResult] = {}
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
            await _close_all(self._open.values())
            self._open.clear()
        if done < len(self._units):
            self.interrupted = True
            self.notes.append("stopped after the first case that did not pass")

    async def run_one(self, case: FluentCase, run: int) -> CaseOutcome:
        """Run one case once, and close what it used."""
        try:
            return await self._run(case, run)
        finally:
            await _close_all(self._open.values())
            self._open.clear()

    def _tell(self, progress: Progress) -> None:
        if self._progress is None:
            return
        try:
            self._progress(progress)
        except Exception as error:  # noqa: BLE001  # user code must not cost the results
            self._progress = None
            self.notes.append(f"progress= raised {error_line(error)} and was not called again")

    async def _go(self) -> AsyncGenerator[CaseOutcome, None]:
        ready: asyncio.Queue[CaseOutcome | BaseException | None] = asyncio.Queue()
        waiting = iter(self._units)
        workers = [
            asyncio.create_task(self._work(waiting, ready))
            for _ in range(min(self._parallelism, len(self._units)))
        ]
        working = len(workers)
        try:
            while working:
                outcome = await ready.get()
                if isinstance(outcome, BaseException):
                    raise outcome
                if outcome is None:
                    working -= 1
                else:
                    yield outcome
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(
        self,
        waiting: Iterator[tuple[FluentCase, int]],
        ready: asyncio.Queue[CaseOutcome | BaseException | None],
    ) -> None:
        """Run cases one after the other, then put None."""
        for case, run in waiting:
            try:
                outcome = await self._run(case, run)
            except asyncio.CancelledError as error:
                ready.put_nowait(error)  # the reader must not wait for ever
                raise
            except BaseException as error:  # noqa: BLE001  # raised by the reader
                ready.put_nowait(error)
                return
            ready.put_nowait(outcome)
            self._stop = self._stop or (self._fail_fast and outcome.status in _NOT_PASSED)
            if self._stop:
                break
        ready.put_nowait(None)

    async def _run(self, case: FluentCase, run: int) -> CaseOutcome:
        if case.skip is not None:
            return new_outcome(case, run, Status.SKIPPED, case.skip)
        try:
            target = self._targets.for_run(case)
        except Exception as error:  # noqa: BLE001  # of the factory, which worked at first
            outcome = new_outcome(case, run)
            outcome.error = error_line(error, None)
            outcome.reasons = [outcome.error]
            return outcome
        held = {id(each): each for each in target.closeable}
        self._open |= held
        self._used.update(held.keys())
        try:
            outcome, result = await run_case(case, run, target, self._settings)
        finally:
            await self._release(target)
        if result is not None:
            self.results[outcome.key] = result
        return outcome

    async def _release(self, target: Target) -> None:
        """Close what a factory made for this run, unless another run uses it, too."""
        ids = {id(each) for each in target.closeable}
        self._used.subtract(ids)
        if self._targets.is_factory:
            await _close_all([self._open.pop(each) for each in ids if not self._used[each]])


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
            name = getattr(each, "name", None) or type(each).__name__
            LOG.exception("%s could not be closed after an evaluation", name)
