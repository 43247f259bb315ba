"""A suite on its way to being run."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.adk.version import __version__

from adk_fluent._keys import without_keys
from adk_fluent._registry import provided
from adk_fluent.eval._checks._same import told as because
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._journal._identity import what_counts
from adk_fluent.eval._journal._journal import Journal
from adk_fluent.eval._journal._pipeline_adk import digest_of_pipeline
from adk_fluent.eval._preflight._gate import check_gate
from adk_fluent.eval._preflight._suite_adk import check_suite
from adk_fluent.eval._preflight._unseen import unseen
from adk_fluent.eval._running._names import name_of_model
from adk_fluent.eval._running._options import check_options, chosen
from adk_fluent.eval._running._schedule_adk import Schedule
from adk_fluent.eval._running._settings import Settings
from adk_fluent.eval._running._shared_adk import Shared
from adk_fluent.eval._running._target_adk import Targets
from adk_fluent.eval._scoring._wanted import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._running._options import RunOptions
    from adk_fluent.eval._suite import FluentEvalSuite
    from adk_fluent.protocol import PriceBook


class Prepared:
    """A run of a suite of which everything was looked at.

    Args:
        suite: The suite.
        options: How it is run.

    Attributes:
        adk_version: The version of google-adk.
        app_name: The App that is run.
        cases: The cases that are run.
        journal: Where what is done is noted; None notes nothing.
        metrics: What they are scored by.
        schedule: The runs of the cases.
        settings: What they share.

    Raises:
        EvalError: Something that the suite names is not there.
    """

    def __init__(self, suite: FluentEvalSuite, options: RunOptions) -> None:
        options = check_options(options)
        self._suite = suite
        self._options = options
        self.adk_version: str = __version__
        self.cases = chosen(suite.name, suite.cases, options)
        self.settings = _settings(suite, options)
        self.metrics = Metrics(
            suite.metrics, suite.thresholds, suite.custom_judges, suite.cases, suite.simulation
        )
        if suite.pipeline is None:
            raise EvalError(
                f"suite {suite.name!r} has no pipeline", help="give FluentEvalSuite(pipeline=...)"
            )
        targets = Targets(suite.pipeline)
        check_gate(suite.gate, suite.cases, self.metrics, suite.custom_judges)
        check_suite(self.cases, targets, self.metrics, self.settings, suite.pipeline)
        self._notes = unseen(self.cases, self.metrics, suite.custom_judges, suite.simulation)
        self._first = (self.cases or suite.cases)[0]  # a shard may have none
        self.app_name = targets.of(self._first).app.name
        self.journal = self._journal(targets)
        self.schedule = self._schedule(targets)

    @property
    def notes(self) -> list[str]:
        """What people should know beside the outcomes."""
        stopped = "it was stopped after the first case that did not pass"
        return [
            *self._notes,
            *self.schedule.notes,
            *([stopped] if self.schedule.stopped else []),
        ]

    @property
    def model_name(self) -> str:
        """The model that stands in for all others; empty for none."""
        return name_of_model(self.settings.model)

    async def outcomes(self) -> AsyncGenerator[CaseOutcome, None]:
        """The outcomes as they come."""
        told = self._options.get("progress")
        async with aclosing(self.schedule.go()) as going:
            async for each in going:
                if told is not None:
                    try:
                        told(each)
                    except Exception as error:  # noqa: BLE001  # it must not cost the results
                        told = None
                        what = f"progress= was told nothing after case {each.outcome.id!r}"
                        self._notes.append(without_keys(f"{what}: it raised {because(error)}"))
                yield each.outcome

    def _journal(self, targets: Targets) -> Journal | None:
        path, suite = self._options.get("journal"), self._suite
        if path is None:
            return None
        counted = what_counts(self.settings, suite.metrics, suite.thresholds, suite.custom_judges)
        pipeline = digest_of_pipeline(targets.of(self._first).given)
        return Journal(path, suite.name, counted.told, self.cases, pipeline, unsure=counted.unsure)

    def _schedule(self, targets: Targets) -> Schedule:
        options = self._options
        runs = options.get("num_runs") or self._suite.num_runs
        return Schedule(
            Shared(targets, self.metrics, self.settings),
            [(case, run) for case in self.cases for run in range(1, runs + 1)],
            parallelism=options.get("parallelism", 10),
            journal=self.journal,
            fail_fast=options.get("fail_fast", False),
        )


def _settings(suite: FluentEvalSuite, options: RunOptions) -> Settings:
    engine = options.get("engine", "auto")
    return Settings(
        suite.name,
        engine="light" if engine == "auto" else engine,
        session_service=options.get("session_service"),
        artifact_service=options.get("artifact_service"),
        memory_service=options.get("memory_service"),
        plugins=options.get("plugins") or (),
        cache=options.get("cache"),
        model=options.get("model"),
        judge_model=suite.judge_model,
        judge_samples=suite.judge_samples,
        simulation=suite.simulation,
        prices=options.get("prices") or _installed_prices(),
        timeout_s=options.get("timeout_s"),
    )


def _installed_prices() -> PriceBook | None:
    """The first price book of an installed layer."""
    for each in provided("price_books"):
        found: Any = each.object
        return found if hasattr(found, "price") else found()
    return None
