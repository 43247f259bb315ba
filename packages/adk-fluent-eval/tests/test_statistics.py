"""Statistics: known values, and what holds for every count."""

from __future__ import annotations

from itertools import product
from math import comb, inf

import pytest
from eval_desk import outcome, report

from adk_fluent.eval import EvalError
from adk_fluent.eval._report._statistics import (
    detectable_drop,
    mcnemar,
    pass_at_k,
    pass_hat_k,
    wilson,
)


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (5, 10, 0.2366, 0.7634),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (95, 100, 0.8882, 0.9785),
    ],
)
def test_wilson(passed: int, total: int, low: float, high: float) -> None:
    assert wilson(passed / total, total) == pytest.approx((low, high), abs=1e-4)
    assert wilson(0.0, 0) == (0.0, 1.0)
    with pytest.raises(EvalError):
        wilson(0.5, total, 1.0)


def test_cases_count_for_the_interval_and_not_their_runs() -> None:
    once = [outcome("a"), outcome("b", "failed"), outcome("c")]
    again = [outcome(each.id, each.status, run) for each in once for run in (1, 2, 3)]
    assert report(*again).pass_rate_ci() == report(*once).pass_rate_ci() == wilson(2 / 3, 3)


def test_pass_at_k_and_pass_hat_k_are_unbiased() -> None:
    for n, k in product(range(1, 6), range(1, 6)):
        for c in range(n + 1) if k <= n else ():
            draws = comb(n, k)
            assert pass_at_k(n, c, k) == pytest.approx(1 - comb(n - c, k) / draws)
            assert pass_hat_k(n, c, k) == pytest.approx(comb(c, k) / draws)


@pytest.mark.parametrize(
    ("regressed", "improved", "p"),
    [(0, 0, 1.0), (6, 0, 0.03125), (5, 0, 0.0625), (5, 2, 0.453125), (3, 3, 1.0)],
)
def test_mcnemar_is_exact(regressed: int, improved: int, p: float) -> None:
    assert mcnemar(regressed, improved) == pytest.approx(p)
    assert mcnemar(improved, regressed) == pytest.approx(p)


def test_the_detectable_drop() -> None:
    assert detectable_drop(5, 1.0) == inf  # six regressions are needed
    drop = detectable_drop(100, 1.0)
    missed = sum(comb(100, i) * drop**i * (1 - drop) ** (100 - i) for i in range(6))
    assert 1 - missed == pytest.approx(0.8, abs=0.01)
    assert detectable_drop(1000, 1.0) < drop < detectable_drop(20, 1.0)
