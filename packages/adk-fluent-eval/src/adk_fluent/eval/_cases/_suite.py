"""Suites as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._arguments import require, require_type
from adk_fluent.eval._cases._case import FluentCase, check_cases
from adk_fluent.eval._cases._turn import UserSimulation
from adk_fluent.eval._gate import Gate

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from adk_fluent.eval._cases._judge import FluentJudge


@dataclass(repr=False, eq=False)
class Suite:
    """What a suite says; `FluentEvalSuite` runs it."""

    name: str = "suite"
    pipeline: Any = None
    cases: Sequence[FluentCase] = ()
    metrics: Sequence[str] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict[str, float])
    num_runs: int = 1
    custom_judges: Sequence[FluentJudge] = ()
    gate: Gate = field(default_factory=Gate)
    _: KW_ONLY
    description: str = ""
    judge_model: str | BaseLlm | None = None
    judge_samples: int = 5  # ADK's default
    simulation: UserSimulation | None = None

    def __post_init__(self) -> None:
        require(check.is_text(self.name), "name= of a suite must not be empty", self.name)
        require_type(self.gate, Gate, "gate= takes a Gate", help="gate=Gate(...)")
        require_type(self.thresholds or {}, Mapping, "thresholds= takes a mapping")
        require_type(self.simulation, UserSimulation | None, "simulation= takes a UserSimulation")
        check.positive("num_runs", self.num_runs)
        check.positive("judge_samples", self.judge_samples)
        self.metrics = tuple(map(str, check.listed("metrics", self.metrics)))
        self.thresholds = {str(key): value for key, value in (self.thresholds or {}).items()}
        self.custom_judges = tuple(check.listed("custom_judges", self.custom_judges))
        if self.custom_judges:
            from adk_fluent.eval._cases._judge import FluentJudge  # noqa: PLC0415  # rarely needed

            for each in self.custom_judges:
                help = 'write FluentJudge("name", fn)'
                require_type(each, FluentJudge, "custom_judges= takes FluentJudges", help=help)
        self.cases = check.listed("cases", self.cases)
        check_cases(self.cases)

    def add(self, *cases: FluentCase) -> Self:
        """Add cases.

        Raises:
            EvalError: One is not a case, or has the id of another.
        """
        every = [*self.cases, *cases]
        check_cases(every)
        self.cases = every
        return self
