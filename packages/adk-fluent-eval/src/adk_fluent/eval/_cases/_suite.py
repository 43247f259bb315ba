"""Suites as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._turn import UserSimulation
    from adk_fluent.eval._gate import Gate

SAMPLES: Final = 5  # ADK's default


@dataclass(repr=False, eq=False)
class Suite:
    """What a suite says; `FluentEvalSuite` runs it."""

    name: str
    description: str
    pipeline: Any
    cases: list[FluentCase]
    metrics: tuple[str, ...]
    thresholds: dict[str, float]
    num_runs: int
    custom_judges: tuple[FluentJudge, ...]
    gate: Gate
    judge_model: Any
    judge_samples: int
    simulation: UserSimulation | None
