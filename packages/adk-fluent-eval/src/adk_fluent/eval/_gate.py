"""The conditions under which a suite passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adk_fluent.eval import _arguments as check


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
            check.require(valid, f"{name} must be between 0 and 1", value)
        for name, value in self._named("min_metric").items():
            check.require(check.is_number(value), f"{name} must be a number", value)
        limit = self.max_regressions
        valid = limit is None or check.is_whole(limit, 0)
        check.require(valid, "max_regressions= must be a whole number >= 0", limit)
        for name in ("significant_only", "allow_flaky"):
            check.require_type(getattr(self, name), bool, f"{name}= must be True or False")

    def _named(self, field: str) -> dict[str, Any]:
        held = getattr(self, field)
        check.require_type(held, Mapping, f"{field}= must be a mapping of names to numbers")
        return {f"{field}[{name!r}]": value for name, value in held.items()}
