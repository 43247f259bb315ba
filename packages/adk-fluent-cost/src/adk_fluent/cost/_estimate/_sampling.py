"""What single runs cost, as far as chance has a say: seeded samples of a pipeline's structure.

Drawn at random are the branches of routes, the iterations of loops that may end early, attempts of
fallbacks, hand-overs, and the answers that a judge rejects. Tokens, tool rounds and the items of
maps are as assumed, and prompts as long as on average.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor, inf, log, sqrt
from random import Random
from typing import TYPE_CHECKING, Final

from adk_fluent.cost._errors import must_be, must_be_number
from adk_fluent.ir import FallbackNode, LoopNode, RouteNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.cost._estimate._walk import Position, Range

#: Sampled runs; of large pipelines fewer.
MOST: Final = 10_000
LEAST: Final = 1_000
_DRAWS: Final = 300_000
_SEED: Final = 2026
_WHOLE: Final = 100
#: Of so many repetitions in one run, the sum is drawn or taken at its average, not each of them.
_MANY: Final = 100
_MOST_ENDS: Final = 1_000


def checked(percentiles: Iterable[float]) -> tuple[float, ...]:
    """Return percentiles in order.

    Raises:
        UsageError: One is no number above 0 and up to 100.
    """
    what, help = "takes numbers above 0 and up to 100", "percentiles=(50, 90, 99)"
    must_be(Iterable, percentiles, f"estimate_cost(percentiles=...) {what}", help)
    given = tuple(percentiles)
    for each in given:
        must_be_number(
            each, f"estimate_cost(percentiles=...) {what}", help, most=_WHOLE, above_0=True
        )
    return tuple(sorted(set(given)))


def percentiles_of(
    positions: Sequence[Position], percentiles: Iterable[float]
) -> dict[float, float]:
    """Return what so many percent of the runs cost at most: by the nearest rank of the samples.

    Args:
        positions: The pipeline, each position before those inside it.
        percentiles: Above 0 and up to 100.
    """
    wanted = checked(percentiles)
    if not wanted:
        return {}
    fixed = _fixed(positions)
    number = max(LEAST, min(MOST, _DRAWS // max(1, fixed.count(False))))
    costs = sorted(_sampled(positions, fixed, number))
    return {each: costs[max(0, ceil(each / _WHOLE * number) - 1)] for each in wanted}


def _fixed(positions: Sequence[Position]) -> list[bool]:
    """Whether all that is in a position always costs the same."""
    fixed = [True] * len(positions)
    for at in reversed(range(len(positions))):
        here = positions[at]
        one_model = all(share in (0.0, here.asked[0][1]) for _, share, _ in here.asked)
        alike = _repeats_alike(here, [positions[each].share for each in here.inside])
        fixed[at] = one_model and alike and all(fixed[each] for each in here.inside)
    return fixed


def _repeats_alike(here: Position, shares: Sequence[Range]) -> bool:
    """Whether chance has no say in how often things inside a position run."""
    is_loop = isinstance(here.node, LoopNode)
    return all(
        share.mean == floor(share.mean) and (not is_loop or share.mean in (share.lo, share.hi))
        for share in shares
    )


def _sampled(positions: Sequence[Position], fixed: list[bool], number: int) -> list[float]:
    """What each of some runs costs."""
    random = Random(_SEED)  # noqa: S311  # the same estimate always has the same percentiles
    totals = [0.0] * number
    counts: dict[int, list[int]] = {0: [1] * number}
    for at, here in enumerate(positions):
        runs = counts.pop(at, None)
        if runs is None:
            continue
        if fixed[at]:
            usd = here.cost.mean
            totals = [total + usd * n for total, n in zip(totals, runs, strict=True)]
            continue
        for run, n in enumerate(runs):
            if n:
                totals[run] += _asked(here, n, random)
        shares = [positions[each].share for each in here.inside]
        if _repeats_alike(here, shares):
            for each, share in zip(here.inside, shares, strict=True):
                times = int(share.mean)
                counts[each] = runs if times == 1 else [n * times for n in runs]
            continue
        inside = [_inside(here, shares, n, random) if n else () for n in runs]
        for place, each in enumerate(here.inside):
            counts[each] = [row[place] if row else 0 for row in inside]
    return totals


def _asked(here: Position, runs: int, random: Random) -> float:
    """What an agent's own calls cost in some runs of it: it climbs from one model to the next."""
    total, climbed, above = 0.0, runs, 0.0
    for at, (_, share, usd) in enumerate(here.asked):
        first = here.asked[0][1]
        if not first or not share:
            break
        if at:
            climbed = _successes(climbed, share / above, random)
        above = share
        total += climbed * (usd or 0.0) * first / share
    return total


def _inside(here: Position, shares: list[Range], runs: int, random: Random) -> list[int]:
    """How often each position inside another runs, in some runs of that."""
    made, left, rest = list[int](), runs, 1.0
    if isinstance(here.node, LoopNode):
        (share,) = shares
        if runs > _MANY:
            return [round(runs * share.mean)]
        return [sum(_iterations(share, random) for _ in range(runs))]
    if isinstance(here.node, RouteNode):  # one of the branches, or none
        for share in shares:
            made.append(_successes(left, share.mean / rest if rest > 0 else 0.0, random))
            left, rest = left - made[-1], rest - share.mean
        return made
    if isinstance(here.node, FallbackNode):  # those before have failed
        for share in shares:
            left = _successes(left, share.mean / rest if rest > 0 else 0.0, random)
            rest = share.mean
            made.append(left)
        return made
    for share in shares:
        whole = floor(share.mean)
        made.append(runs * whole + _successes(runs, share.mean - whole, random))
    return made


def _successes(number: int, chance: float, random: Random) -> int:
    if chance <= 0:
        return 0
    if chance >= 1:
        return number
    if number > _MANY:
        drawn = random.gauss(number * chance, sqrt(number * chance * (1 - chance)))
        return max(0, min(number, round(drawn)))
    return sum(random.random() < chance for _ in range(number))


# --- loops ---------------------------------------------------------------------------------------


def _iterations(share: Range, random: Random) -> int:
    """Draw how often a loop runs: each time, it ends with the same chance."""
    least = max(0, floor(share.lo))
    mean, most = share.mean - least, share.hi - least
    if mean <= 0 or most <= 0:
        return least
    if most <= _MOST_ENDS:
        ends = _ends(mean, floor(most))
        return least + bisect_right(ends, random.random() * ends[-1])
    many = mean > most / 2
    about = most - mean if many else mean
    drawn = floor(log(1 - random.random()) / log(about / (1 + about))) if about else 0
    drawn = min(drawn, floor(most) if most < inf else drawn)
    return least + (floor(most) - drawn if many else drawn)


@lru_cache(maxsize=256)
def _ends(mean: float, most: int) -> list[float]:
    """Cumulated chances of 0 to `most` with that mean, each so many times that of the one before.

    In the middle all are alike; above it, more is likelier.
    """
    many = mean > most / 2
    if many:
        mean = most - mean
    low, high = 0.0, 1.0
    for _ in range(50):
        times = (low + high) / 2
        chances = [times**n for n in range(most + 1)]
        if sum(n * each for n, each in enumerate(chances)) < mean * sum(chances):
            low = times
        else:
            high = times
    chances = [high**n for n in range(most + 1)]
    return list(accumulate(reversed(chances) if many else chances))
