"""What a suite has to reach."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError


@dataclass(frozen=True, slots=True)
class Gate:
    """What a suite has to reach to pass; errors and metrics without a score never count as passed.

    Attributes:
        min_pass_rate: Share of the runs that pass, 0 to 1.
        min_tag_pass_rate: The same for the runs of a tag.
        min_metric: Metric to the mean score that it reaches at least (at most, where lower is
            better).
        max_regressions: Cases that may have got worse than the baseline; None asks for none.
        significant_only: Regressions count only where the paired test says that they are no
            accident; each on its own counts otherwise.
        allow_flaky: Whether a case may pass in one run and fail in another.
        max_cost_usd: US dollars that the whole suite may cost, judges and played users included;
            None asks for none.
    """

    min_pass_rate: float = 1.0
    min_tag_pass_rate: Mapping[str, float] = field(default_factory=dict[str, float])
    min_metric: Mapping[str, float] = field(default_factory=dict[str, float])
    max_regressions: int | None = 0
    significant_only: bool = False
    allow_flaky: bool = True
    max_cost_usd: float | None = None

    def __post_init__(self) -> None:
        _share("min_pass_rate", self.min_pass_rate)
        for tag, share in _items("min_tag_pass_rate", self.min_tag_pass_rate, "tags to shares"):
            _share(f"min_tag_pass_rate[{tag!r}]", share)
        for name, score in _items("min_metric", self.min_metric, "metrics to scores"):
            if not _is_number(score):
                raise EvalError(f"min_metric[{name!r}] is no number", found=describe(score))
        number: Any = self.max_regressions
        if number is not None and not (
            _is_number(number) and isinstance(number, int) and number >= 0
        ):
            raise EvalError("max_regressions= is no whole number from 0 up", found=describe(number))
        cost: Any = self.max_cost_usd
        if cost is not None and not (_is_number(cost) and cost >= 0):
            raise EvalError("max_cost_usd= is no number from 0 up", found=describe(cost))
        for name in ("significant_only", "allow_flaky"):
            if not isinstance(value := getattr(self, name), bool):
                raise EvalError(f"{name}= is neither True nor False", found=describe(value))


def _items(name: str, value: Any, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise EvalError(f"{name}= is no mapping of {what}", found=describe(value))
    return list(cast("Mapping[str, Any]", value).items())


def _share(name: str, value: Any) -> None:
    if not _is_number(value) or not 0 <= value <= 1:
        raise EvalError(f"{name}= is no share from 0 to 1", found=describe(value))


def _is_number(value: Any) -> bool:
    """Whether it is a number, and neither NaN nor infinite, which nothing could be held against."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
