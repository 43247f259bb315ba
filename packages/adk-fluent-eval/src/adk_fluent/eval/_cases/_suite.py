"""Suites and their gates as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._arguments import require, require_type
from adk_fluent.eval._cases._case import FluentCase, check_cases
from adk_fluent.eval._cases._turn import UserSimulation

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from adk_fluent.eval._cases._judge import FluentJudge


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions under which a suite passes.

    Runs that end in an error or without a score never count as passed.

    Attributes:
        min_pass_rate: Share of runs that must pass, 0 to 1.
        min_tag_pass_rate: Tag to the share of its runs that must pass.
        min_metric: Metric to the mean score it must reach (stay below, where lower is better); one
            without a score in some run does not.
        max_regressions: Cases that may be worse than in the baseline; None ignores regressions.
        significant_only: Count regressions only if McNemar's test finds the change significant.
        allow_flaky: Whether a case may pass in one run and fail in another.
    """

    min_pass_rate: float = 1.0
    min_tag_pass_rate: Mapping[str, float] = field(default_factory=dict[str, float])
    min_metric: Mapping[str, float] = field(default_factory=dict[str, float])
    max_regressions: int | None = 0
    significant_only: bool = False
    allow_flaky: bool = True

    def __post_init__(self) -> None:
        shares = {"min_pass_rate=": self.min_pass_rate, **self._named("min_tag_pass_rate")}
        for name, value in shares.items():
            valid = check.is_number(value) and 0 <= value <= 1
            require(valid, f"{name} must be between 0 and 1", value)
        for name, value in self._named("min_metric").items():
            require(check.is_number(value), f"{name} must be a number", value)
        limit = self.max_regressions
        valid = limit is None or check.is_whole(limit, 0)
        require(valid, "max_regressions= must be a whole number >= 0", limit)
        for name in ("significant_only", "allow_flaky"):
            require_type(getattr(self, name), bool, f"{name}= must be True or False")

    def _named(self, field: str) -> dict[str, Any]:
        held = getattr(self, field)
        require_type(held, Mapping, f"{field}= must be a mapping of names to numbers")
        return {f"{field}[{name!r}]": value for name, value in held.items()}


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
        what = "name= of a suite, its first argument, must be a text that is not empty"
        help = 'FluentEvalSuite("name", pipeline, cases)'
        require(check.is_text(self.name), what, self.name, help=help)
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
