"""Figures that say how much a pass rate is worth. Only the standard library."""

from __future__ import annotations

from math import comb, inf, sqrt
from typing import TYPE_CHECKING

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Sequence


def wilson(passed: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """The interval in which the true pass rate lies, by Wilson's score method.

    It stays within 0 and 1, and holds its level for few runs and for rates near 0 and 1, too
    (Wilson 1927, J. Am. Stat. Assoc. 22). Runs are taken as independent of each other.

    Args:
        passed: Runs that passed.
        total: All runs that count; none leaves everything possible: ``(0.0, 1.0)``.
        level: How sure it is, above 0 and below 1.

    Raises:
        EvalError: There are more that passed than there are, or the level is none.
    """
    _check_count("total", total, 0)
    _check_count("passed", passed, 0, total)
    _check_open_share("level", level)
    return _score_interval(passed / total, total, level) if total else (0.0, 1.0)


def clustered_wilson(cases: Sequence[tuple[int, int]], level: float = 0.95) -> tuple[float, float]:
    """The interval in which the true pass rate lies, from several runs of each case.

    Runs of one case are alike, and tell less than as many runs of other cases. So Wilson's interval
    is that of as many independent runs as they are worth; see `effective_runs`.

    Args:
        cases: Of each case, the runs that passed and all runs that count.
        level: How sure it is, above 0 and below 1.

    Raises:
        EvalError: Of a case, more passed than there are, or the level is none.
    """
    _check_open_share("level", level)
    worth = effective_runs(cases)
    if not worth:
        return (0.0, 1.0)
    share = sum(passed for passed, _ in cases) / sum(total for _, total in cases)
    return _score_interval(share, worth, level)


def effective_runs(cases: Sequence[tuple[int, int]]) -> float:
    """How many independent runs the runs of some cases are worth.

    The n runs over the design effect (Kish 1965, Survey Sampling): ``n / (1 + (m - 1) * icc)``.
    m is how many runs a case has, or where they differ the mean over runs, ``sum(m_i**2) / n``.
    The correlation within cases is estimated by analysis of variance, and held within 0 and 1. It
    is 1 where all runs of every case end alike, and for a single case: it tells nothing of others.

    Args:
        cases: Of each case, the runs that passed and all runs that count.

    Returns:
        The number of runs where each case has one; that of cases where all runs of a case are alike
        and cases have as many; between them else. 0.0 if there are no runs.

    Raises:
        EvalError: Of a case, more passed than there are.
    """
    for passed, total in cases:
        _check_count("total", total, 0)
        _check_count("passed", passed, 0, total)
    taken = [(passed, total) for passed, total in cases if total]
    runs = sum(total for _, total in taken)
    if runs == len(taken):
        return float(runs)
    size = sum(total * total for _, total in taken) / runs
    return runs / (1 + (size - 1) * _correlation(taken, runs, size))


def _correlation(cases: Sequence[tuple[int, int]], runs: int, size: float) -> float:
    """How alike the runs of a case are, from 0, as those of any two cases, to 1, all the same."""
    within = sum(passed * (total - passed) / total for passed, total in cases)
    if len(cases) == 1 or within == 0:
        return 1.0
    share = sum(passed for passed, _ in cases) / runs
    between = sum(total * (passed / total - share) ** 2 for passed, total in cases)
    within, between = within / (runs - len(cases)), between / (len(cases) - 1)
    usual = (runs - size) / (len(cases) - 1)  # runs of a case, less where they differ
    return min(1.0, max(0.0, (between - within) / (between + (usual - 1) * within)))


def _score_interval(share: float, runs: float, level: float) -> tuple[float, float]:
    from statistics import NormalDist  # noqa: PLC0415  # slow to import

    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = 1 + z * z / runs
    middle = (share + z * z / (2 * runs)) / scale
    half = z / scale * sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return (low, high)


def pass_at_k(n: int, c: int, k: int) -> float:
    """How likely at least one of `k` runs passes, from `n` runs of which `c` passed.

    The estimator without bias of Chen et al. 2021 (arXiv:2107.03374): ``1 - C(n-c, k) / C(n, k)``.

    Raises:
        EvalError: `k` is below 1 or above `n`, or `c` is no part of `n`.
    """
    _check_draw(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """How likely all of `k` runs pass ("pass^k"), from `n` runs of which `c` passed.

    The estimator without bias of Yao et al. 2024 (arXiv:2406.12045): ``C(c, k) / C(n, k)``.

    Raises:
        EvalError: `k` is below 1 or above `n`, or `c` is no part of `n`.
    """
    _check_draw(n, c, k)
    return comb(c, k) / comb(n, k)


def mcnemar(regressed: int, improved: int) -> float:
    """How likely accident alone splits the flipped cases at least this unevenly, two-sided.

    McNemar's test of pairs, exact: were nothing changed, each case that flipped would be as likely
    to get worse as to get better, so the smaller count is binomial with one half.

    Args:
        regressed: Cases that got worse.
        improved: Cases that got better.

    Returns:
        The p-value, above 0 up to 1; 1.0 if nothing flipped.

    Raises:
        EvalError: A count is negative.
    """
    _check_count("regressed", regressed, 0)
    _check_count("improved", improved, 0)
    flips, fewer = regressed + improved, min(regressed, improved)
    ways = term = 1
    for taken in range(fewer):
        term = term * (flips - taken) // (taken + 1)
        ways += term
    return min(1.0, 2 * ways / 2**flips)


def detectable_drop(n: int, base_rate: float, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest drop of the pass rate that `mcnemar` would tell from accident.

    For paired cases, each in both reports. The test needs some number r of regressions for
    ``2 * 0.5**r <= 1 - level``. Where none of the other cases improves, the number of regressions
    after a drop d is binomial: ``round(n * base_rate)`` cases that can get worse, each of which
    does so with ``d / base_rate``. The drop sought gives r of them with the power asked for
    (the test: McNemar 1947, Psychometrika 12; the power follows from the two binomials).
    Improvements by accident make the test less sure, so real drops have to be larger than this.

    Args:
        n: Cases that are in both reports.
        base_rate: Pass rate of the baseline, 0 to 1.
        level: One less the p-value that counts as significant, above 0 and below 1.
        power: How often such a drop is to be found, above 0 and below 1.

    Returns:
        The drop, as a share of all cases; `math.inf` if there are so few cases that no drop at all
        would be significant.

    Raises:
        EvalError: An argument is out of its range.
    """
    _check_count("n", n, 0)
    if not 0 <= base_rate <= 1:
        raise EvalError("base_rate= is no share from 0 to 1", found=describe(base_rate))
    _check_open_share("level", level)
    _check_open_share("power", power)
    passing = round(n * base_rate)
    needed = 1
    while 2 * 0.5**needed > (1 - level) * (1 + 1e-9):  # 1 - .95 is a little more than .05
        needed += 1
    if needed > passing:
        return inf
    low, high = 0.0, 1.0
    for _ in range(60):  # halves the interval each time, down to the last bit of a float
        middle = (low + high) / 2
        if _at_least(needed, passing, middle) < power:
            low = middle
        else:
            high = middle
    return high * base_rate


def _at_least(wanted: int, n: int, share: float) -> float:
    """How likely `wanted` or more of `n` happen, each of which does so with `share`."""
    return 1 - sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(wanted))


def _check_draw(n: int, c: int, k: int) -> None:
    _check_count("n", n, 1)
    _check_count("c", c, 0, n)
    _check_count("k", k, 1)
    if k > n:
        raise EvalError(
            f"k={k} needs {k} runs of a case, and there are {n}",
            help=f"run the suite with num_runs={k}, or ask for k={n}",
        )


def _check_count(name: str, value: int, least: int, most: int | None = None) -> None:
    is_number = isinstance(value, int) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
    if not is_number or value < least or (most is not None and value > most):
        upto = "up" if most is None else f"to {most}"
        raise EvalError(f"{name}= is no number from {least} {upto}", found=describe(value))


def _check_open_share(name: str, value: float) -> None:
    is_number = isinstance(value, int | float)  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
    if not is_number or not 0 < value < 1:
        raise EvalError(f"{name}= is no number between 0 and 1", found=describe(value))
