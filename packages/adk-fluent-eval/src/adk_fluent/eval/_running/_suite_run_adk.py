"""A run of a suite: checked first, then all runs of all cases with bounded concurrency."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from inspect import signature
from typing import TYPE_CHECKING, Any

from google.adk.evaluation.eval_result import EvalCaseResult
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.version import __version__

from adk_fluent.backends.adk import resolve_model, to_content
from adk_fluent.errors import AdkFluentError, UsageError
from adk_fluent.eval._arguments import check_known, did_you_mean, require, require_type
from adk_fluent.eval._cases._case import FluentCase, check_cases, initial_state, simulation_of
from adk_fluent.eval._cases._turn import key_of
from adk_fluent.eval._digest import digest_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.eval._running._case_run_adk import CaseRun, RunSettings, new_outcome
from adk_fluent.eval._running._kept import Journal, ResponseCache
from adk_fluent.eval._running._light_adk import LightEvalService
from adk_fluent.eval._running._mocks import check_arguments, check_mocks
from adk_fluent.eval._running._options import Progress, RunOptions, check_options, select
from adk_fluent.eval._running._pace import Pace, refusal_in
from adk_fluent.eval._running._pipeline_adk import BUILT_IN, Target, Targets
from adk_fluent.eval._running._plan import MetricPlan, check_gate
from adk_fluent.eval._running._recorder_adk import PLUGIN
from adk_fluent.extend import error_line, price_book

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.eval._cases._suite import Suite


class SuiteRun:
    """A run of a suite of which everything was checked.

    Attributes:
        cases: The selected cases.
        notes: What is worth knowing beyond the outcomes.
        interrupted: Whether it ended before all runs were done.
    """

    def __init__(self, suite: Suite, options: RunOptions) -> None:
        options = check_options(options)
        service = _service_of(options.get("engine"))
        self.engine: str = service.engine
        check_cases(suite.cases)  # the list may have changed
        self.cases: list[FluentCase] = select(suite.name, suite.cases, options)
        help = "give FluentEvalSuite(pipeline=...), or --pipeline to the command"
        require(suite.pipeline is not None, f"suite {suite.name!r} has no pipeline", help=help)
        plan = MetricPlan(suite)
        check_gate(suite, plan)
        settings = self._settings = RunSettings(
            *(suite, options, plan, Targets(suite.pipeline), service),
            *(price_book(options.get("prices")), _model_of(options.get("model"), "model=")),
            *(_cache_of(options.get("cache")), _model_of(suite.judge_model, "judge_model=")),
        )
        self._unknown_tools: list[tuple[str, str]] = _check_suite(self.cases, settings)
        runs = options.get("num_runs") or suite.num_runs
        self._units = [(case, run) for case in self.cases for run in range(1, runs + 1)]
        self._told: list[CaseOutcome] = []
        self._progress = options.get("progress")
        self._stopped = False
        #: What results depend on beside the case and the pipeline.
        self._conditions: list[Any] = [
            *(suite.metrics, suite.thresholds, suite.custom_judges),
            *(suite.judge_model, suite.judge_samples, suite.simulation),
            *(options.get("model"), options.get("timeout_s"), __version__, self.engine),
            [type(each) for each in settings.plugins],
        ]
        path = options.get("journal")
        self._journal = None if path is None else Journal(path, suite.name)
        self._results: dict[tuple[str, int], EvalCaseResult] = {}
        self.notes: list[str] = plan.unused(self.cases)
        if settings.model is not None:
            self.notes.append(f"every model was replaced by {settings.model.model}")
        if (shard := options.get("shard")) is not None:
            self.notes.append(f"shard {shard[0]} of {shard[1]}")
        before = None if (given := options.get("baseline")) is None else given.shard
        if before is not None and before != shard:
            self.notes.append(f"the baseline is of shard {before[0]} of {before[1]} alone")
        self.interrupted: bool = False
        self._began, self._clock = datetime.now(UTC), time.monotonic()

    async def report(self) -> FluentEvalReport:
        """Run everything, and return the report."""
        async for _ in self.outcomes():
            pass
        return self._report(self.notes, interrupted=self.interrupted)

    def interrupted_report(self) -> FluentEvalReport:
        """Return the report of what was done until now."""
        return self._report([], interrupted=True)

    def _report(self, notes: list[str], *, interrupted: bool) -> FluentEvalReport:
        suite, keys = self._settings.suite, ((case.name, run) for case, run in self._units)
        results = {key: self._results[key] for key in keys if key in self._results}
        return FluentEvalReport(
            *(self._told, suite.name, suite.gate, suite.metrics, self.engine, __version__),
            *(self._began, time.monotonic() - self._clock, notes, interrupted),
            *(self._settings.options.get("baseline"), self.cases, results),
            shard=self._settings.options.get("shard"),
        )

    async def outcomes(self) -> AsyncGenerator[CaseOutcome]:
        """Run everything, and yield each outcome when it is there."""
        pace = Pace(self._settings.options.get("parallelism", 10))

        async def told(case: FluentCase, run: int) -> CaseOutcome | None:
            outcome = await self._journaled(case, run, pace)
            if outcome is not None:  # told here, for nobody may read on
                self._told.append(outcome)
                self._tell(Progress(outcome, len(self._told), len(self._units)))
            return outcome

        async with aclosing(self._settings.targets):
            with nullcontext() if self._journal is None else self._journal.held():
                tasks = [asyncio.create_task(told(*unit)) for unit in self._units]
                try:
                    for done in asyncio.as_completed(tasks):
                        if (outcome := await done) is not None:
                            yield outcome
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
        if self._journal is not None and self._journal.problem:
            self.notes.append(self._journal.problem)
        self.notes += self._unused_mocks()
        if len(self._told) < len(self._units):
            self.interrupted = True
            self.notes.append("stopped after the first case that did not pass")

    def _unused_mocks(self) -> Iterator[str]:
        """Note mocks of tools that no run has called, and that were not known before."""
        ran = {each.id for each in self._told if each.status is not Status.SKIPPED}
        turns = [turn for outcome in self._told for turn in outcome.turns]
        called = {use.name for turn in turns for use in turn.all_tool_uses}
        for case, name in self._unknown_tools:
            if case in ran and name not in called:
                yield f"case {case!r} mocks tool {name!r}, which no run has called"

    async def run_one(self, case: FluentCase, run: int) -> CaseOutcome:
        """Run one case once, and close what it used."""
        async with aclosing(self._settings.targets):
            return await self._journaled(case, run, Pace(1)) or new_outcome(case, run)

    def _tell(self, progress: Progress) -> None:
        try:
            if self._progress is not None:
                self._progress(progress)
        except Exception as error:  # noqa: BLE001  # user code must not cost the results
            self._progress = None
            self.notes.append(f"progress= raised {error_line(error)} and was not called again")

    async def _journaled(self, case: FluentCase, run: int, pace: Pace) -> CaseOutcome | None:
        """Run a case, unless the journal has it; None if the suite is stopped."""
        if case.skip is not None:
            return new_outcome(case, run, Status.SKIPPED, case.skip)
        if (journal := self._journal) is None:
            return await self._paced(case, run, pace)
        digest = digest_of([case, self._settings.targets.identity(case), *self._conditions])
        if (kept := journal.of(case.name, run, digest)) is not None:
            outcome, result = kept
            if result is not None:
                self._results[outcome.key] = EvalCaseResult.model_validate(result)
            return outcome
        outcome = await self._paced(case, run, pace)
        if outcome is not None:
            made = self._results.get(outcome.key)
            journal.add(outcome, digest, None if made is None else made.model_dump_json())
        return outcome

    async def _paced(self, case: FluentCase, run: int, pace: Pace) -> CaseOutcome | None:
        """Run a case in its turn, and again after a pause if a service refused it."""
        attempt = 0
        while True:
            attempt += 1
            async with pace.turn() as began:
                if self._stopped:
                    return None
                outcome, failure = await self._run(case, run)
                # an error from which the pipeline recovered is none of the run
                refusal = None if outcome.error is None else refusal_in(failure)
                if refusal is None:
                    pace.succeeded()
                elif pace.refused(refusal, attempt, began):
                    continue
                if self._settings.options.get("fail_fast", False):
                    self._stopped |= outcome.status in {Status.FAILED, Status.ERROR}
                return outcome

    async def _run(self, case: FluentCase, run: int) -> tuple[CaseOutcome, BaseException | None]:
        one = CaseRun(case, run, self._settings)
        result = await one.go()
        if (problem := one.models.problem) and problem not in self.notes:
            self.notes.append(problem)
        if result is not None:
            self._results[one.outcome.key] = result
        return one.outcome, one.seen.failure


def _model_of(given: str | BaseLlm | None, name: str) -> BaseLlm | None:
    try:
        return None if given is None else resolve_model(given)
    except (AdkFluentError, ValueError) as error:
        raise EvalError(f"{name} cannot be used", found=error_line(error)) from error


def _service_of(engine: str | None) -> type[LightEvalService]:
    """What runs cases."""
    if engine != "local":
        return LightEvalService
    try:
        from adk_fluent.eval._running._local_adk import LocalCaseService  # noqa: PLC0415  # needs the extra
    except ImportError as error:
        what = 'engine="local" needs google-adk[eval]'
        help = 'pip install "adk-fluent-eval[adk]", or use engine="light"'
        raise EvalError(what, found=error_line(error), help=help) from error
    return LocalCaseService


def _cache_of(given: Any) -> ResponseCache | None:
    return given if given is None or isinstance(given, ResponseCache) else ResponseCache(given)


# --- checks before any model call ----------------------------------------------------------------


def _check_suite(cases: Sequence[FluentCase], settings: RunSettings) -> list[tuple[str, str]]:
    """Check everything that the cases name; no model is called.

    Returns:
        The mocks, by case and tool, of which a run has to tell whether there is such a tool.
    """
    unknown: list[tuple[str, str]] = []
    for judge in settings.suite.custom_judges:
        _model_of(judge.model, f"the model of judge {judge.name!r}")
    for each in settings.plugins:
        require_type(each, BasePlugin, "plugins= takes plugins of ADK")
    for case in cases:
        if case.skip is None:
            settings.plan.of(case)
        check_mocks(case)
        if (user := simulation_of(case, settings.suite.simulation)) is not None:
            _model_of(user.model, "the model of a simulated user")
        initial_state(case)
        for turn in case.turns:
            try:
                to_content(turn.input)
            except UsageError as error:
                raise case.error(error.what, found=error.found, help=error.help) from error
        target = settings.targets.of(case)
        _check_plugins(target, settings)
        _check_tools(case, target)
        mocks = (case.mock_tool_outputs or {}) if target.open else ()
        unknown += [(case.name, name) for name in mocks if name not in target.tools]
        _check_steps(case, target)
        _check_answers(case, target, settings)
        _check_engine(case, settings)
        if case.max_cost_usd is not None and settings.prices is None:
            what = "max_cost_usd= needs prices, and there is no price book"
            raise case.error(what, help="give run(prices=...), or: pip install adk-fluent-cost")
    return unknown


def _check_plugins(target: Target, settings: RunSettings) -> None:
    names = [PLUGIN, *(each.name for each in (*target.app.plugins, *settings.plugins))]
    for name in names:
        require(names.count(name) == 1, f"two plugins are called {name!r}", help="rename one")


def _check_tools(case: FluentCase, target: Target) -> None:
    """Check that tools that a case names exist, and can be mocked and seen."""
    mocks = case.mock_tool_outputs or {}
    expected = [call.name for turn in case.turns for call in turn.trajectory or ()]
    if not target.open:
        inside = target.tools - target.own_tools - BUILT_IN
        for name in (each for each in expected if each in inside):
            what = f"it expects a call of tool {name!r}, which an agent inside a tool makes"
            found = f"tools in the case's session: {', '.join(sorted(target.own_tools))}"
            help = "expect the call of the agent's tool: a trajectory has no others"
            raise case.error(what, found=found, help=help)
        for what, names, known, kind in (
            ("expects a call of", expected, target.own_tools, "tools in the case's session"),
            ("mocks", mocks, target.tools, "tools"),
        ):
            named = [each for each in names if each not in BUILT_IN]
            check_known(named, known, f"it {what} unknown tool", kind, case.error)
    for name in mocks:
        if name in target.hidden_tools or (name not in target.tools and "" in target.hidden_tools):
            what = f"it mocks tool {name!r}, which an agent calls that runs without plugins"
            found = f"agents inside tools: {', '.join(sorted(target.hidden))}"
            help = "give its AgentTool include_plugins=True, or mock that tool"
            raise case.error(what, found=found, help=help)
        asked = [_arguments(tool) for tool in target.held_tools.get(name, ())]
        if not target.open and asked and None not in asked:
            check_arguments(case, name, sorted({each for names in asked for each in names or ()}))


def _check_steps(case: FluentCase, target: Target) -> None:
    """Check that steps in ``step.key`` exist; a key of state may have a dot, too."""
    if target.open:
        return
    given = {key_of(ref) for ref in case.initial_state or {}}
    for turn in (case, *case.turns):
        for ref in turn.state_assertions or {}:
            step, dot, _ = (key := key_of(ref)).partition(".")
            if not dot or step in target.steps or key in given:
                continue
            if not isinstance(ref, str) or ":" in step:
                continue  # typed references and scoped keys are keys
            found = f"steps: {', '.join(sorted(target.steps))}"
            help = f"of a key with a dot, say so by initial_state={{{key!r}: None}}"
            help = did_you_mean(step, target.steps, help)
            what = f"it expects state of unknown step {step!r}"
            raise case.error(what, found=found, help=help)


def _check_answers(case: FluentCase, target: Target, settings: RunSettings) -> None:
    """Check that what a case answers may ask."""
    if not target.open:
        known = (target.steps - target.models.keys()) | target.tools  # agents ask nothing
        what, kind = "it answers unknown gate or tool", "steps and tools"
        # questions of middlewares, such as a budget's, have no name but their kind
        named = [each for each in case.answers or () if each != "input"]
        check_known(named, known, what, kind, case.error)
    if case.answers and settings.service.engine == "local":
        what = 'questions cannot be answered with engine="local"'
        found = "ADK's LocalEvalService takes an answer for a turn of its own"
        raise case.error(what, found=found, help='use engine="light"')


def _check_engine(case: FluentCase, settings: RunSettings) -> None:
    """Check that the service of ADK that is asked for can do what a case needs."""
    if settings.service.adk_runs or settings.service.engine != "local" or case.skip is not None:
        return
    what = "tools cannot be mocked" if case.mock_tool_outputs else ""
    if any(each.state_assertions for each in (case, *case.turns)):
        what = what or "state cannot be asserted"
    if what:
        found = "its LocalEvalService runs the agent alone, without an App and its plugins"
        what = f'{what} with engine="local" on google-adk {__version__}'
        raise case.error(what, found=found, help='use engine="light"')


def _arguments(tool: Any) -> Iterable[str] | None:
    """The names of a tool's arguments; None if they are not known."""
    if not isinstance(tool, BaseTool):
        tool = FunctionTool(tool)
    try:
        if isinstance(tool, FunctionTool) and any(
            each.kind is each.VAR_KEYWORD for each in signature(tool.func).parameters.values()
        ):
            return None
        declared = tool._get_declaration()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # as ADK asks it
    except Exception:  # noqa: BLE001  # a broken tool is reported when it is used
        return None
    if declared is None:
        return None
    if declared.parameters_json_schema is not None:
        return tuple(declared.parameters_json_schema.get("properties") or ())
    return tuple((declared.parameters and declared.parameters.properties) or ())
