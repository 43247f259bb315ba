"""What files hold of a suite, apart from the pipeline that is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adk_fluent.eval._metrics import JUDGE_SAMPLES

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase


@dataclass(frozen=True)
class SuiteData:
    """A suite without its pipeline and its judges that are functions.

    Attributes:
        name: The suite's name.
        cases: The cases, in order.
        metrics: Names of metrics.
        thresholds: Metric to the score that it has to reach.
        num_runs: How often each case is run.
        description: What the suite is for.
        app_name: The app that ADK's files name; None leaves it to the file.
        judge_model: The name of the model that judges; None if it has none.
        judge_samples: How often it is asked about each turn.
    """

    name: str
    cases: tuple[FluentCase, ...] = ()
    metrics: tuple[str, ...] = ()
    thresholds: dict[str, float] = field(default_factory=dict[str, float])
    num_runs: int = 1
    description: str = ""
    app_name: str | None = None
    judge_model: str | None = None
    judge_samples: int = JUDGE_SAMPLES
