"""The metrics of each case, decided before any model call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from adk_fluent.eval import _arguments as check
from adk_fluent.eval import _metrics
from adk_fluent.eval._cases._case import FluentCase, simulation_of
from adk_fluent.eval._checks._checks import expectations
from adk_fluent.eval._errors import EvalError, MetricUnavailableError
from adk_fluent.eval._metrics import METRICS, Metric
from adk_fluent.eval._outcome import MetricScore, MetricStatus
from adk_fluent.extend import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._suite import Suite


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
