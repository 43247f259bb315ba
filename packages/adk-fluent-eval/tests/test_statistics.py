"""Figures that say how much a pass rate is worth."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adk_fluent.eval import EvalError
from adk_fluent.eval._report._statistics import (
    clustered_wilson,
    detectable_drop,
    effective_runs,
    mcnemar,
    pass_at_k,
    pass_hat_k,
    wilson,
)

LEVELS = st.floats(0.01, 0.999)


@st.composite
def parts(draw: st.DrawFn, most: int = 400) -> tuple[int, int]:
    total = draw(st.integers(1, most))
    return draw(st.integers(0, total)), total


# --- wilson --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (29, 29, 0.8830, 1.0),
    ],
)
def test_wilson_gives_published_intervals(passed: int, total: int, low: float, high: float) -> None:
    assert wilson(passed, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_wilson_of_nothing_leaves_everything_possible() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(parts(), LEVELS)
def test_wilson_holds_the_share_and_stays_a_share(part: tuple[int, int], level: float) -> None:
    passed, total = part
    low, high = wilson(passed, total, level)
    assert 0 <= low <= passed / total + 1e-12
    assert passed / total - 1e-12 <= high <= 1
    assert (low == 0) == (passed == 0)
    assert (high == 1) == (passed == total)


@given(parts(), LEVELS)
def test_wilson_mirrors(part: tuple[int, int], level: float) -> None:
    passed, total = part
    low, high = wilson(passed, total, level)
    other_low, other_high = wilson(total - passed, total, level)
    assert (low, high) == (pytest.approx(1 - other_high), pytest.approx(1 - other_low))


@given(parts(), st.tuples(LEVELS, LEVELS))
def test_wilson_is_wider_the_surer_it_is(
    part: tuple[int, int], levels: tuple[float, float]
) -> None:
    less, more = sorted(levels)
    assume(more - less > 1e-6)
    narrow, wide = wilson(*part, less), wilson(*part, more)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]
    assert wide[1] - wide[0] > narrow[1] - narrow[0]


@pytest.mark.parametrize(
    "arguments",
    [(2, 1), (-1, 3), (0, -1), (1, 2, 0.0), (1, 2, 1.0), (1, 2, math.nan), (1, 2, "x"), (1.0, 2)],
)
def test_wilson_refuses(arguments: Any) -> None:
    with pytest.raises(EvalError):
        wilson(*arguments)


# --- several runs of a case ----------------------------------------------------------------------

CLUSTERS = st.lists(parts(12), min_size=1, max_size=12)


@given(st.lists(st.booleans(), min_size=1, max_size=50), LEVELS)
def test_one_run_of_each_case_is_wilsons_interval(passed: list[bool], level: float) -> None:
    cases = [(int(each), 1) for each in passed]
    assert effective_runs(cases) == len(cases)
    assert clustered_wilson(cases, level) == wilson(sum(passed), len(passed), level)


@given(st.lists(st.booleans(), min_size=1, max_size=50), st.integers(1, 20))
def test_runs_that_all_end_alike_are_worth_one(passed: list[bool], runs: int) -> None:
    cases = [(runs if each else 0, runs) for each in passed]
    assert effective_runs(cases) == pytest.approx(len(cases))


def test_runs_that_have_nothing_to_do_with_their_case_are_worth_all() -> None:
    assert effective_runs([(1, 2)] * 10) == 20


def test_runs_that_are_somewhat_alike_are_worth_what_they_add() -> None:
    # mean squares 1/3 between and 2/9 within, so a correlation of (1/9) / (1/3 + 2 * 2/9) = 1/7
    assert effective_runs([(3, 3), (1, 3), (2, 3)]) == pytest.approx(9 / (1 + 2 / 7))
    # 1 between and 1/9 within, so (8/9) / (1 + 3 * 1/9) = 2/3
    assert effective_runs([(4, 4), (0, 4), (2, 4)]) == pytest.approx(12 / (1 + 3 * 2 / 3))


def test_one_case_tells_nothing_of_others() -> None:
    assert effective_runs([(3, 4)]) == 1


def test_cases_without_runs_tell_nothing() -> None:
    assert effective_runs([]) == effective_runs([(0, 0)]) == 0
    assert clustered_wilson([(0, 0)]) == (0.0, 1.0)
    assert clustered_wilson([(0, 0), (1, 1), (0, 1)]) == wilson(1, 2)


@given(CLUSTERS, LEVELS)
def test_runs_are_worth_no_more_than_they_are(cases: list[tuple[int, int]], level: float) -> None:
    runs = sum(total for _, total in cases)
    worth = effective_runs(cases)
    assert worth >= 1 - 1e-12
    assert worth <= runs * (1 + 1e-12)
    passed = sum(each for each, _ in cases)
    low, high = clustered_wilson(cases, level)
    assert 0 <= low <= passed / runs <= high <= 1
    narrow = wilson(passed, runs, level)
    assert low <= narrow[0] + 1e-9
    assert high >= narrow[1] - 1e-9


@pytest.mark.parametrize("alike", [0.5, 2.0, 10.0])
def test_the_interval_holds_what_it_says(alike: float) -> None:
    random = Random(str(alike))

    def case() -> tuple[int, int]:
        share = random.betavariate(0.7 * alike, 0.3 * alike)
        return sum(random.random() < share for _ in range(10)), 10

    trials = 400
    intervals = [clustered_wilson([case() for _ in range(20)]) for _ in range(trials)]
    assert sum(low <= 0.7 <= high for low, high in intervals) >= 0.9 * trials


@pytest.mark.parametrize("arguments", [([(2, 1)],), ([(1, -1)],), ([(1, 1)], 1), ([], 0)])
def test_an_interval_over_cases_refuses(arguments: Any) -> None:
    with pytest.raises(EvalError):
        clustered_wilson(*arguments)


# --- pass@k and pass^k ---------------------------------------------------------------------------


@given(parts(7), st.integers(1, 7))
def test_pass_at_and_hat_count_every_choice_of_runs(part: tuple[int, int], k: int) -> None:
    c, n = part
    assume(k <= n)
    runs = [index < c for index in range(n)]
    choices = list(combinations(runs, k))
    assert pass_at_k(n, c, k) == pytest.approx(
        float(Fraction(sum(any(each) for each in choices), len(choices)))
    )
    assert pass_hat_k(n, c, k) == pytest.approx(
        float(Fraction(sum(all(each) for each in choices), len(choices)))
    )


@given(parts(3_000), st.integers(1, 3_000))
def test_pass_at_and_hat_surround_the_share(part: tuple[int, int], k: int) -> None:
    c, n = part
    assume(k <= n)
    assert 0 <= pass_hat_k(n, c, k) <= c / n + 1e-12
    assert c / n - 1e-12 <= pass_at_k(n, c, k) <= 1
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k))


@pytest.mark.parametrize("figure", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize("arguments", [(3, 1, 4), (3, 1, 0), (3, 4, 1), (0, 0, 1), (3, -1, 1)])
def test_pass_at_and_hat_refuse(figure: Any, arguments: tuple[int, int, int]) -> None:
    with pytest.raises(EvalError):
        figure(*arguments)


def test_too_large_a_k_says_how_many_runs_it_needs() -> None:
    with pytest.raises(EvalError, match=r"(?s)k=4 needs 4 runs.*num_runs=4"):
        pass_at_k(3, 1, 4)


# --- mcnemar -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regressed", "improved", "p"),
    [(6, 0, 0.03125), (5, 2, 0.453125), (0, 0, 1.0), (1, 0, 1.0), (5, 0, 0.0625), (3, 3, 1.0)],
)
def test_mcnemar_gives_known_values(regressed: int, improved: int, p: float) -> None:
    assert mcnemar(regressed, improved) == p


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_sums_the_tails_of_the_binomial(regressed: int, improved: int) -> None:
    n, fewer = regressed + improved, min(regressed, improved)
    tail = Fraction(sum(math.comb(n, i) for i in range(fewer + 1)), 2**n)
    assert mcnemar(regressed, improved) == float(min(Fraction(1), 2 * tail))
    assert mcnemar(regressed, improved) == mcnemar(improved, regressed)


def test_mcnemar_of_thousands_of_flips_is_no_overflow() -> None:
    assert mcnemar(5_000, 5_000) == 1.0
    assert 0 < mcnemar(2_600, 2_400) < 0.01
    assert mcnemar(5_000, 0) >= 0


@pytest.mark.parametrize("arguments", [(-1, 0), (0, -1), (1.5, 0), (True, 0)])
def test_mcnemar_refuses(arguments: Any) -> None:
    with pytest.raises(EvalError):
        mcnemar(*arguments)


# --- detectable_drop -----------------------------------------------------------------------------


def test_a_drop_is_found_as_often_as_was_asked() -> None:
    drop = detectable_drop(100, 0.9)
    share = drop / 0.9  # of the 90 that pass
    fewer_than_six = sum(
        math.comb(90, i) * share**i * (1 - share) ** (90 - i) for i in range(6)
    )  # six regressions and no improvement: p = .031; five: .0625
    assert 1 - fewer_than_six == pytest.approx(0.8)
    assert drop == pytest.approx(0.078, abs=0.001)


@pytest.mark.parametrize(("n", "rate"), [(0, 0.0), (5, 1.0), (100, 0.0), (100, 0.05)])
def test_too_few_cases_that_pass_tell_no_drop(n: int, rate: float) -> None:
    assert detectable_drop(n, rate) == math.inf


def test_six_cases_tell_only_that_all_of_them_fail_nearly_always() -> None:
    assert detectable_drop(6, 1.0) == pytest.approx(0.8 ** (1 / 6))


@given(st.integers(6, 3_000), st.floats(0.0, 1.0))
def test_more_cases_tell_smaller_drops(n: int, rate: float) -> None:
    drop = detectable_drop(n, rate)
    assert drop == math.inf or 0 < drop <= rate
    assert detectable_drop(2 * n, rate) <= drop


@given(st.integers(30, 500), st.tuples(st.floats(0.1, 0.99), st.floats(0.1, 0.99)))
def test_more_power_and_more_level_ask_for_larger_drops(n: int, pair: tuple[float, float]) -> None:
    less, more = sorted(pair)
    assert detectable_drop(n, 0.9, power=less) <= detectable_drop(n, 0.9, power=more)
    assert detectable_drop(n, 0.9, level=less) <= detectable_drop(n, 0.9, level=more)


@pytest.mark.parametrize(
    "arguments",
    [(-1, 0.5), (9, 1.1), (9, math.nan), (9, 0.5, 1.0), (9, 0.5, 0.95, 0.0), (9, 0.5, 0.95, 1.0)],
)
def test_detectable_drop_refuses(arguments: Any) -> None:
    with pytest.raises(EvalError):
        detectable_drop(*arguments)
