"""Runs of single cases, each with what the whole suite says."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from adk_fluent.builders._execution import run_now
from adk_fluent.eval._running._prepared_adk import Prepared
from adk_fluent.eval._running._schedule_adk import Schedule
from adk_fluent.eval._running._shared_adk import Shared
from adk_fluent.eval._running._target_adk import Targets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._suite import FluentEvalSuite


class Runs:
    """Runs cases of a suite of which everything was looked at.

    Args:
        suite: The suite.
        options: How it is run.

    Attributes:
        engine: What runs it.
        adk_version: The version of google-adk.
        model: The model that stands in for all others; empty for none.

    Raises:
        EvalError: Something that the suite names is not there.
    """

    def __init__(self, suite: FluentEvalSuite, options: Mapping[str, Any]) -> None:
        prepared = Prepared(suite, {**options})  # pyright: ignore[reportArgumentType]  # checked by name
        self._pipeline = suite.pipeline
        self._settings = prepared.settings
        self._metrics = prepared.metrics
        self.engine: str = prepared.settings.engine
        self.adk_version: str = prepared.adk_version
        self.model: str = prepared.model_name

    def run(self, case: FluentCase, run: int) -> CaseOutcome:
        """Run a case, on an event loop that this thread keeps."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_now("run_sync", lambda: self._run(case, run))
        # a notebook, or a plugin that leaves its loop running
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._run(case, run)).result()

    async def _run(self, case: FluentCase, run: int) -> CaseOutcome:
        shared = Shared(Targets(self._pipeline), self._metrics, self._settings)
        schedule = Schedule(shared, [(case, run)], parallelism=1, journal=None, fail_fast=False)
        (outcome,) = [each.outcome async for each in schedule.go()]
        return outcome
