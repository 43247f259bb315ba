"""What a pipeline will cost."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from math import ceil, floor, inf, isclose, log, nan, sqrt
from random import Random
from typing import Any, Final

from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._measured import Measured, picture
from adk_fluent.cost._estimate._walk import Position, Range, Walk
from adk_fluent.cost._prices._books import PriceBooks, Prices, price_books
from adk_fluent.cost._report import CostReport, in_table
from adk_fluent.extend import must_be, must_be_number
from adk_fluent.ir import AgentNode, FallbackNode, LoopNode, Node, RouteNode
from adk_fluent.protocol import Unknown, Usage

#: Sampled runs; of large pipelines fewer.
MOST: Final = 10_000
LEAST: Final = 1_000
_DRAWS: Final = 300_000
_SEED: Final = 2026
_WHOLE: Final = 100
#: Of so many repetitions in one run, the sum is drawn or taken at its average, not each of them.
_MANY: Final = 100
_MOST_ENDS: Final = 1_000


def percentiles_of(positions: Sequence[Position], wanted: Iterable[float]) -> dict[float, float]:
    """Return what so many percent of the runs cost at most: by the nearest rank of the samples.

    Drawn at random are the branches of routes, the iterations of loops that may end early, the
    attempts of fallbacks, hand-overs, and the answers that a judge rejects. Tokens, tool rounds and
    the items of maps are as assumed, and prompts as long as on average.

    Args:
        positions: The pipeline, each position before those inside it.
        wanted: Percentiles above 0 and up to 100.

    Raises:
        UsageError: A percentile is none.
    """
    what = "estimate_cost(percentiles=...) takes numbers above 0 and up to 100"
    must_be(Iterable, wanted, what, "percentiles=(50, 90, 99)")
    wanted = tuple(wanted)
    for each in wanted:
        must_be_number(each, what, "percentiles=(50, 90, 99)", most=_WHOLE, above_0=True)
    if not wanted:
        return {}
    fixed = _fixed(positions)
    number = max(LEAST, min(MOST, _DRAWS // max(1, fixed.count(False))))
    costs = sorted(_sampled(positions, fixed, number))
    ranks = {each: max(0, ceil(each / _WHOLE * number) - 1) for each in sorted(wanted)}
    return {each: costs[rank] for each, rank in ranks.items()}


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
    if isinstance(here.node, LoopNode) and not all(e.mean in (e.lo, e.hi) for e in shares):
        return False
    return all(share.mean == floor(share.mean) for share in shares)


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


#: What agents without a model are called in reports.
DEFAULT: Final = "(default model)"
_MILLION: Final = 1_000_000
_CENT: Final = 0.01
_CHANGING: Final = (nan, nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """What a pipeline will cost, in USD, if the assumptions hold.

    Attributes:
        mean: One run, on average.
        lo: One run, at least, as the structure bounds it.
        hi: One run, at most; infinite where nothing bounds it.
        daily: All runs of a day, on average.
        per_agent: Average cost of each agent in a run, the dearest first.
        per_model: The same of each model.
        calls: Average model calls of each agent in a run.
        unpriced: Model calls in a run of each model without a known price; they are in no amount.
        opaque: Steps whose model calls nobody knows: remote agents, and agents built with ADK.
        unbounded: Loops and maps that nothing bounds.
        assumptions: What was assumed.
        percentiles: What so many percent of the runs cost at most, by percentile, if asked for.
    """

    mean: float
    lo: float
    hi: float
    daily: float
    per_agent: dict[str, float]
    per_model: dict[str, float]
    calls: dict[str, float]
    unpriced: dict[str, float]
    opaque: tuple[str, ...]
    unbounded: tuple[str, ...]
    assumptions: TrafficAssumptions
    percentiles: dict[float, float] = field(default_factory=dict[float, float])
    _positions: Sequence[Position] = field(default=(), repr=False, compare=False)

    @property
    def total_estimated(self) -> float:
        """All runs of a day, on average; the spec's name of `daily`."""
        return self.daily

    def to_dict(self, measured: Iterable[CostReport] | None = None) -> dict[str, Any]:
        """Return the estimate as JSON data; an infinite bound is None.

        Args:
            measured: Reports of runs, one for each: what they cost stands under ``measured``.
        """
        beside = {} if measured is None else {"measured": Measured.of(measured).to_dict()}
        return {
            "mean_usd": _usd(self.mean),
            "lo_usd": _usd(self.lo),
            "hi_usd": None if self.hi == inf else _usd(self.hi),
            "daily_usd": _usd(self.daily),
            "per_agent": {name: _usd(each) for name, each in self.per_agent.items()},
            "per_model": {name: _usd(each) for name, each in self.per_model.items()},
            "calls": self.calls,
            "unpriced_models": self.unpriced,
            "opaque": list(self.opaque),
            "unbounded": list(self.unbounded),
            "percentiles": {f"p{each:g}": _usd(usd) for each, usd in self.percentiles.items()},
            **beside,
        }

    def summary(self) -> str:
        """Return what a run and a day cost, and what is not in it, in some lines of text."""
        high = "without a bound" if self.hi == inf else f"at most ${self.hi:.6f}"
        day = f"{self.daily:.6f}" if 0 < self.daily < _CENT else f"{self.daily:.2f}"
        daily = self.assumptions.invocations_per_day
        lines = [
            f"${self.mean:.6f} a run, at least ${self.lo:.6f}, {high}",
            f"${day} a day of {daily:g} {'run' if daily == 1 else 'runs'}",
        ]
        if self.percentiles:
            rows = (f"p{each:g} ${usd:.6f}" for each, usd in self.percentiles.items())
            lines.append(f"percentiles of a run: {', '.join(rows)}")
        if self.unpriced:
            lines.append(f"not in it, since no price is known: {', '.join(self.unpriced)}")
        if self.opaque:
            lines.append(f"not in it, since nobody sees their models: {', '.join(self.opaque)}")
        if self.unbounded:
            lines.append(f"nothing bounds: {', '.join(self.unbounded)}")
        return "\n".join(lines)

    def to_markdown(self, measured: Iterable[CostReport] | None = None) -> str:
        """Return the estimate as text with a table of agents in Markdown.

        Args:
            measured: Reports of runs, one for each: what they cost stands beside the estimate.
        """
        seen = None if measured is None else Measured.of(measured)
        names = dict.fromkeys((*self.per_agent, *(seen.agents if seen else ())))
        table = ["| agent | calls a run | a run |", "|---|---:|---:|"]
        for name in names:
            usd = f"${self.per_agent[name]:.6f}" if name in self.per_agent else "-"
            table.append(f"| {in_table(name)} | {self.calls.get(name, 0):.2f} | {usd} |")
        if seen is not None:
            table[0] += " measured calls | measured |"
            table[1] += "---:|---:|"
            for row, name in enumerate(names, 2):
                table[row] += f" {seen.calls(name):.2f} | {seen.said(name)} |"
        return self._text(seen) + ("\n\n" + "\n".join(table) if names else "")

    def to_html(self, measured: Iterable[CostReport] | None = None) -> str:
        """Return a page with the picture of the pipeline, and the money in the box of each step.

        A step that stands in several places has in each what all of them cost.

        Args:
            measured: Reports of runs, one for each: what agents cost stands beside the estimate.
        """
        seen = None if measured is None else Measured.of(measured)
        return picture(self._positions, self._text(seen), seen)

    def _text(self, measured: Measured | None) -> str:
        return self.summary() + (f"\n{measured.summary()}" if measured else "")

    def __str__(self) -> str:
        return self.summary()


def estimate_cost(
    pipeline: Any,
    assumptions: TrafficAssumptions | None = None,
    *,
    prices: Prices | None = None,
    default_model: str = "",
    percentiles: Iterable[float] = (),
) -> CostModel:
    """Return what a pipeline will cost, without running anything.

    One walk over the structure: routes by the probabilities of their branches, loops by their
    iterations, fallbacks by failures, tools by their rounds, and prompts that grow by what earlier
    steps said, as far as an agent's history shows it. Bounds hold for the structure; tokens and
    tool rounds are as assumed there, too.

    Args:
        pipeline: A builder, or its IR.
        assumptions: What a run is like; measured ones are better
            (`TrafficAssumptions.from_results`).
        prices: As in `cost_attribution`.
        default_model: The model of agents that name none.
        percentiles: Such as ``(50, 90, 99)``; above 0 and up to 100. They are those of 10 000 runs
            (of large pipelines 1 000 at least) drawn at random with a fixed seed: branches,
            iterations of loops that end early, failures, hand-overs and rejected answers; tokens,
            tool rounds and items of maps are as assumed.

    Raises:
        UsageError: It is no pipeline, a percentile is none, or the assumptions contradict it.
        PriceError: The prices are none.
    """
    is_builder = hasattr(pipeline.__class__, "to_ir")  # a class of builders is none
    root = pipeline.to_ir() if is_builder else pipeline
    help = "a builder or IR; Pipeline(agent) makes one of an agent of ADK"
    must_be(Node, root, "estimate_cost takes a pipeline", help)
    traffic = TrafficAssumptions() if assumptions is None else assumptions
    must_be(TrafficAssumptions, traffic, "estimate_cost takes TrafficAssumptions")
    must_be(str, default_model, "estimate_cost(default_model=...) takes a name")
    books = price_books(prices)
    walk = Walk(
        root,
        traffic,
        default_model,
        lambda own: _pricing(books if own is None else books.with_own(own)),
    )
    agents, models, calls, unpriced = (defaultdict[str, float](float) for _ in range(4))
    for each in walk.positions:
        if not isinstance(each.node, AgentNode) or each.node.mock:
            continue
        name, number = each.node.name, each.calls.mean * each.runs.mean
        calls[name] += number
        if each.own is not None:
            agents[name] += each.own.mean * each.runs.mean
        for asked, share, usd in each.asked:
            if usd is None:
                unpriced[asked or DEFAULT] += number * share
            else:
                models[asked or DEFAULT] += usd * each.runs.mean
    total = walk.positions[0].cost
    return CostModel(
        mean=total.mean,
        lo=total.lo,
        hi=total.hi,
        daily=total.mean * traffic.invocations_per_day,
        per_agent=_dearest(agents),
        per_model=_dearest(models),
        calls=dict(calls),
        unpriced=dict(unpriced),
        opaque=tuple(dict.fromkeys(walk.opaque)),
        unbounded=tuple(dict.fromkeys(walk.unbounded)),
        assumptions=traffic,
        percentiles=percentiles_of(walk.positions, percentiles),
        _positions=walk.positions,
    )


def _usd(amount: float) -> float:
    return round(amount, 12)  # a millionth of a millionth: without what is left of binary fractions


def _dearest(costs: dict[str, float]) -> dict[str, float]:
    return dict(sorted(costs.items(), key=lambda row: (-row[1], row[0])))


def _pricing(books: PriceBooks) -> Callable[[str, float, float], float | None]:
    """What a call costs, by the price of a token.

    Books are asked once for all prompts between two powers of 2, unless prices change in between.
    """
    now = datetime.now(UTC)
    known: dict[tuple[str, int], tuple[float, float] | None] = {}

    def price(model: str, prompt: int, output: int) -> float | None:
        cost = books.price(model, Usage(prompt=prompt, output=output), now)
        return None if isinstance(cost, Unknown) else float(cost.usd)

    def rates(model: str, prompt: int) -> tuple[float, float] | None:
        alone, both = price(model, prompt, 0), price(model, prompt, _MILLION)
        if alone is None or both is None:
            return None
        return alone / prompt, (both - alone) / _MILLION

    def cost(model: str, prompt: float, output: float) -> float | None:
        if not model:
            return None
        tokens = max(1, ceil(prompt))
        length = (tokens - 1).bit_length()
        if (model, length) not in known:
            low, high = rates(model, 2**length // 2 + 1), rates(model, 2**length)
            same = low is None or high is None or all(map(isclose, low, high))
            known[model, length] = high if same else _CHANGING
        rate = known[model, length]
        if rate is _CHANGING:
            rate = rates(model, tokens)
        return None if rate is None else prompt * rate[0] + output * rate[1]

    return cost
