"""The conditions under which a suite passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from adk_fluent.eval._arguments import is_count, is_limit, is_number, require, require_type


@dataclass(frozen=True, slots=True)
class Gate:
    """The conditions under which a suite passes.

    Runs that end in an error or without a score never count as passed.

    Attributes:
        min_pass_rate: Share of runs that must pass, 0 to 1.
        min_tag_pass_rate: Tag to the share of its runs that must pass.
        min_metric: Metric to the mean score it must reach (stay below, where lower is better). A
            run without a score counts as 0, and fails where lower is better.
        max_regressions: Cases that may be worse than in the baseline; None ignores regressions.
        significant_only: Count regressions only if McNemar's test finds the change significant.
        allow_flaky: Whether a case may pass in one run and fail in another.
        max_cost_usd: US dollars that the suite may cost; None sets no limit.
    """

    min_pass_rate: float = 1.0
    min_tag_pass_rate: Mapping[str, float] = field(default_factory=dict[str, float])
    min_metric: Mapping[str, float] = field(default_factory=dict[str, float])
    max_regressions: int | None = 0
    significant_only: bool = False
    allow_flaky: bool = True
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
        _check_share("min_pass_rate", self.min_pass_rate)
        for tag, share in _pairs("min_tag_pass_rate", self.min_tag_pass_rate):
            _check_share(f"min_tag_pass_rate[{tag!r}]", share)
        for name, score in _pairs("min_metric", self.min_metric):
            require(is_number(score), f"min_metric[{name!r}] must be a number", score)
        limit, cost = self.max_regressions, self.max_cost_usd
        require(
            limit is None or is_count(limit), "max_regressions= must be a whole number >= 0", limit
        )
        require(cost is None or is_limit(cost), "max_cost_usd= must be a number >= 0", cost)
        for name in ("significant_only", "allow_flaky"):
            require_type(getattr(self, name), bool, f"{name}= must be True or False")


def _pairs(name: str, value: Any) -> list[tuple[str, Any]]:
    require_type(value, Mapping, f"{name}= must be a mapping of names to numbers")
    return list(cast("Mapping[str, Any]", value).items())


def _check_share(name: str, value: Any) -> None:
    valid = is_number(value) and 0 <= value <= 1
    require(valid, f"{name}= must be between 0 and 1", value)
