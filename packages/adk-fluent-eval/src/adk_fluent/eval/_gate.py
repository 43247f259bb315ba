"""The conditions under which a suite passes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe


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
            if not is_number(score):
                raise EvalError(f"min_metric[{name!r}] must be a number", found=describe(score))
        limit: Any = self.max_regressions
        if limit is not None and not (is_number(limit) and isinstance(limit, int) and limit >= 0):
            raise EvalError("max_regressions= must be a whole number >= 0", found=describe(limit))
        cost: Any = self.max_cost_usd
        if cost is not None and not (is_number(cost) and cost >= 0):
            raise EvalError("max_cost_usd= must be a number >= 0", found=describe(cost))
        for name in ("significant_only", "allow_flaky"):
            if not isinstance(value := getattr(self, name), bool):
                raise EvalError(f"{name}= must be True or False", found=describe(value))


def is_number(value: Any) -> bool:
    """Whether a value is a finite int or float (not a bool)."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def _pairs(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise EvalError(f"{name}= must be a mapping of names to numbers", found=describe(value))
    return list(cast("Mapping[str, Any]", value).items())


def _check_share(name: str, value: Any) -> None:
    if not is_number(value) or not 0 <= value <= 1:
        raise EvalError(f"{name}= must be between 0 and 1", found=describe(value))
