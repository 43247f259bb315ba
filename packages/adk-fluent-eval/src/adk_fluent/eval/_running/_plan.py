"""What a run is asked for, checked before any model call: options, cases and their metrics."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from adk_fluent.eval import _arguments as check
from adk_fluent.eval import _metrics
from adk_fluent.eval._cases._case import FluentCase, simulation_of
from adk_fluent.eval._checks._checks import expectations
from adk_fluent.eval._errors import EvalError, MetricUnavailableError
from adk_fluent.eval._metrics import METRICS, Metric
from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.eval._text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from google.adk.artifacts import BaseArtifactService
    from google.adk.memory import BaseMemoryService
    from google.adk.models import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import BaseSessionService

    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._suite import Suite
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._running._kept import ResponseCache
    from adk_fluent.protocol import PriceBook

Engine = Literal["auto", "light", "local"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A finished run of a case: its outcome, the number of finished runs, and of all runs."""

    outcome: CaseOutcome
    done: int
    total: int


class RunOptions(TypedDict, total=False):
    """Keyword arguments of everything that runs a suite.

    Attributes:
        engine: ``light``, our own implementation of ADK's eval service; ``local``, ADK's
            LocalEvalService, which needs google-adk's extra; ``auto`` is ``light``.
        parallelism: Runs at the same time, at most; 10 by default. While a service answers that
            there are too many calls, there are fewer, and refused runs are repeated after a pause.
        session_service: ADK's; None gives each run its own in memory.
        artifact_service: ADK's; None gives each run its own in memory.
        memory_service: ADK's; None gives each run its own in memory.
        plugins: Plugins of ADK, after those of the pipeline.
        filter_tags: Run the cases with any of these tags.
        case_ids: Run the cases with these ids.
        progress: Called after each run of a case, with ``outcome``, ``done`` and ``total``.
        fail_fast: Start nothing more after a run that did not pass.
        num_runs: Runs of each case; None is the suite's.
        prices: Prices of tokens: a price book, or what adk-fluent-cost takes, such as
            ``{"model": {"input": 0.30, "output": 2.50}}``; None uses an installed price book.
        timeout_s: Seconds after which a run is cancelled, unless its case says otherwise.
        baseline: A report that the gate compares with.
        shard: ``(2, 5)`` runs the second of five parts of the selected cases.
        model: Answers in place of every model of the pipeline, by name or as a BaseLlm.
        cache: Answers of models that are recorded and replayed; a folder is a `ResponseCache`.
        journal: A file with the finished runs. A run with the same journal takes them over, unless
            they ended in an error or what they depend on changed.
    """

    engine: Engine
    parallelism: int
    session_service: BaseSessionService | None
    artifact_service: BaseArtifactService | None
    memory_service: BaseMemoryService | None
    plugins: Sequence[BasePlugin]
    filter_tags: Iterable[str] | None
    case_ids: Iterable[str] | None
    progress: Callable[[Progress], None] | None
    fail_fast: bool
    num_runs: int | None
    prices: PriceBook | Mapping[str, Any] | str | os.PathLike[str] | None
    timeout_s: float | None
    baseline: FluentEvalReport | None
    shard: tuple[int, int] | None
    model: str | BaseLlm | None
    cache: ResponseCache | str | os.PathLike[str] | None
    journal: str | os.PathLike[str] | None


def check_options(options: RunOptions) -> RunOptions:
    """Check the options of a run, and return them with lists for iterables."""
    known, engines = RunOptions.__annotations__, get_args(Engine)
    check.check_known(options, known, "a run has no option", "options")
    engine = options.get("engine", "auto")
    check.require(engine in engines, f"unknown engine {engine!r}", help=check.one_of(engines))
    check.positive("parallelism", options.get("parallelism", 10))
    if (shard := options.get("shard")) is not None:
        help = "such as (1, 4)"
        check.require(_is_shard(shard), f"shard= must be (part, parts), not {shard!r}", help=help)
    if (runs := options.get("num_runs")) is not None:
        check.positive("num_runs", runs)
    seconds = options.get("timeout_s")
    valid = seconds is None or (check.is_number(seconds) and seconds > 0)
    check.require(valid, "timeout_s= must be above 0", seconds)
    for name, method, what in (
        ("session_service", "create_session", "a session service of ADK"),
        ("artifact_service", "save_artifact", "an artifact service of ADK"),
        ("memory_service", "search_memory", "a memory service of ADK"),
        ("prices", "price", "rows by model, a file of them, or a price book"),
        ("baseline", "compare", "a report, such as FluentEvalReport.load(path)"),
        ("progress", "__call__", "a function that is not async"),
    ):
        value: Any = options.get(name)
        invalid = isinstance(value, type) or inspect.iscoroutinefunction(value)
        fits = not invalid and callable(getattr(value, method, None))
        are_read = name == "prices" and isinstance(value, Mapping | str | os.PathLike)
        valid = fits or are_read or value is None
        check.require(valid, f"{name}= must be {what}", options.get(name))
    checked = options.copy()
    for name in ("filter_tags", "case_ids", "plugins"):
        if (given := options.get(name)) is not None:
            checked[name] = check.listed(name, given)
    return checked


def _is_shard(given: Any) -> bool:
    match given:
        case [part, parts]:
            return check.is_whole(part, 1) and check.is_whole(parts, part)
        case _:
            return False


def select(suite: str, cases: Sequence[FluentCase], options: RunOptions) -> list[FluentCase]:
    """Return the cases that the options select; an unknown tag or id, or no case, is an error."""
    check.require(cases, f"suite {suite!r} has no cases", help="an empty suite cannot pass")
    tags, ids = options.get("filter_tags"), options.get("case_ids")
    known = {tag for case in cases for tag in case.tags}
    check.check_known(tags or (), known, f"suite {suite!r} has no tag", "tags")
    check.check_known(
        ids or (), {case.name for case in cases}, f"suite {suite!r} has no case", "cases"
    )
    selected = [case for case in cases if tags is None or not set(tags).isdisjoint(case.tags)]
    selected = [case for case in selected if ids is None or case.name in ids]
    part, parts = options.get("shard") or (1, 1)
    if not selected[part - 1 :: parts]:
        what = f"no case of suite {suite!r} is selected"
        found = f"shard {part} of {parts}, of {len(selected)} cases" if selected else None
        raise EvalError(what, found=found)
    return selected[part - 1 :: parts]


# --- metrics of cases ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedMetric:
    """A metric of a case.

    Attributes:
        name: The metric.
        threshold: What it must reach; None for an informational metric.
        judge: The user's judge; None for a metric of ours.
    """

    name: str
    threshold: float | None
    judge: FluentJudge | None = None

    def without_score(self, reason: str, unit: str = "") -> MetricScore:
        """Return that there is no score, and why."""
        lower = self.judge is not None and self.judge.lower_is_better
        informs = self.threshold is None
        status = MetricStatus.INFORMATIONAL if informs else MetricStatus.NOT_EVALUATED
        return MetricScore(self.name, status, None, self.threshold, lower, reason, unit=unit)


class MetricPlan:
    """The metrics of a suite."""

    def __init__(self, suite: Suite) -> None:
        judges, cases = suite.custom_judges, suite.cases
        self._simulation = suite.simulation
        self._judges = {judge.name: judge for judge in judges}
        self._thresholds = {str(name): value for name, value in suite.thresholds.items()}
        self.names = list(dict.fromkeys(map(str, suite.metrics)))
        for name in self.names:
            if name in METRICS:
                _check_available(METRICS[name], has_judge_model=suite.judge_model is not None)
            known = {*METRICS, *_metrics.CHECKS, *self._judges}
            check.check_known([name], known, "unknown metric", "metrics")
            if name not in self._judges and not any(self._applies(name, case) for case in cases):
                need = METRICS[name].needs if name in METRICS else "such an expectation"
                raise EvalError(f"metric {name!r} applies to no case", found=f"no case has {need}")
        for judge in judges:
            if judge.name in (*METRICS, *_metrics.CHECKS) or len(self._judges) < len(judges):
                raise EvalError(f"two metrics are called {judge.name!r}", help="rename the judge")
        for name, value in self._thresholds.items():
            self._check_threshold(name, value, cases)

    def of(self, case: FluentCase) -> list[PlannedMetric]:
        """Return the metrics of a case: its own checks, then the suite's."""
        names = dict.fromkeys([*expectations(case), *self.names])
        applying = [name for name in names if self._applies(name, case)]
        planned = [PlannedMetric(name, self._threshold(name)) for name in applying]
        judges = self._judges.items()
        planned += [PlannedMetric(name, judge.threshold, judge) for name, judge in judges]
        if all(each.threshold is None or each.name == _metrics.ANSWERS for each in planned):
            what = "it expects nothing, and no metric of the suite applies to it"
            found = "answers= alone, which is what is said" if case.answers else None
            help = "expect a trajectory, an answer, a status or state, or give the suite a metric"
            raise case.error(what, found=found, help=help)
        return planned

    def unused(self, cases: Sequence[FluentCase]) -> list[str]:
        """Return notes about expectations that no metric uses."""
        needing = (METRICS[name].needs for name in self.names if name in METRICS)
        used = self._judges or "reference_response" in needing
        if used or not (count := sum(self._applies(_metrics.MATCH, case) for case in cases)):
            return []
        what = f"{plural(count, 'case')} with a reference_response that no metric uses"
        return [f"{what}: add metrics=[{_metrics.MATCH!r}]"]

    def _threshold(self, name: str) -> float | None:
        default = METRICS[name].threshold if name in METRICS else 1.0
        return default if default is None else self._thresholds.get(name, default)

    def _check_threshold(self, name: str, value: Any, cases: Sequence[FluentCase]) -> None:
        asked = (METRICS[each] for each in (_metrics.TRAJECTORY, *self.names) if each in METRICS)
        deciding = [each.name for each in asked if each.threshold is not None]
        known = [each for each in deciding if any(self._applies(each, case) for case in cases)]
        check.check_known([name], known, "thresholds= takes none for", "metrics that take one")
        low, high = (1, 5) if METRICS[name].unit == "1-5" else (0, 1)
        what = f"the threshold of {name!r} must be above {low} and at most {high}"
        check.require(check.is_number(value) and low < value <= high, what, value)

    def _applies(self, name: str, case: FluentCase) -> bool:
        if name in _metrics.CHECKS:
            return name in expectations(case)
        match METRICS[name].needs if name in METRICS else "":
            case "reference_response":
                return any(turn.reference_response is not None for turn in case.turns)
            case "rubrics":
                return bool(case.rubrics) or any(turn.rubrics for turn in case.turns)
            case "simulation":
                return simulation_of(case, self._simulation) is not None
            case _:
                return True


def _check_available(metric: Metric, *, has_judge_model: bool) -> None:
    """Check that a metric can be computed here."""
    found, help = "", ""
    if int(version("google-adk").partition(".")[0]) < metric.since:
        found = f"google-adk {version('google-adk')} does not have it"
        help = f'pip install "google-adk>={metric.since}"'
    elif metric.by == "judge" and not has_judge_model:
        found, help = "it needs a judge model", 'FluentEvalSuite(judge_model="gemini-2.5-flash")'
    elif metric.needs == "simulation" and find_spec("jinja2") is None:
        found, help = "ADK fills its prompt with jinja2", "pip install jinja2"
    elif metric.by == "cloud" and find_spec("vertexai") is None:
        found = "it needs google-adk[eval]"
        help = 'pip install "adk-fluent-eval[adk]", and sign in to Google Cloud'
    elif metric.by == "cloud" and not (
        os.environ.get("GOOGLE_API_KEY")
        or (os.environ.get("GOOGLE_CLOUD_PROJECT") and os.environ.get("GOOGLE_CLOUD_LOCATION"))
    ):
        found = "Google Cloud computes it, and no account is set"
        help = "set GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
    if found:
        what = f"metric {metric.name!r} cannot be computed here"
        raise MetricUnavailableError(what, metric=metric.name, found=found, help=help)


def check_gate(suite: Suite, plan: MetricPlan) -> None:
    """Check that a gate names tags and metrics that the suite has, and that decide."""
    gate, cases = suite.gate, suite.cases
    metrics = {*plan.names, *(judge.name for judge in suite.custom_judges)}
    metrics |= {name for case in cases for name in expectations(case)}
    informing = {each.name for each in METRICS.values() if each.threshold is None}
    tags = {tag for case in cases for tag in case.tags}
    check.check_known(gate.min_tag_pass_rate, tags, "the gate names unknown tag", "tags")
    check.check_known(
        gate.min_metric, metrics - informing, "the gate takes no metric", "metrics that decide"
    )
