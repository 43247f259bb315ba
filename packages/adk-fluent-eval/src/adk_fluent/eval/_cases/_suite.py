"""Suites as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._gate import Gate

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._turn import UserSimulation

SAMPLES: Final = 5  # ADK's default


@dataclass(repr=False, eq=False)
class Suite:
    """What a suite says; `FluentEvalSuite` runs it."""

    name: str
    description: str = ""
    pipeline: Any = None
    cases: list[FluentCase] = field(default_factory=list["FluentCase"])
    metrics: tuple[str, ...] = ()
    thresholds: dict[str, float] = field(default_factory=dict[str, float])
    num_runs: int = 1
    custom_judges: tuple[FluentJudge, ...] = ()
    gate: Gate = field(default_factory=Gate)
    judge_model: Any = None
    judge_samples: int = SAMPLES
    simulation: UserSimulation | None = None
