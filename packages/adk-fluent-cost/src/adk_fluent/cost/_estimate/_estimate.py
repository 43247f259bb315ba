"""What a pipeline will cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil, inf, isclose, nan
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.cost._errors import must_be
from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
from adk_fluent.cost._estimate._measured import Measured
from adk_fluent.cost._estimate._sampling import percentiles_of
from adk_fluent.cost._estimate._walk import Walk
from adk_fluent.cost._prices._books import price_books
from adk_fluent.cost._report import in_table
from adk_fluent.ir import AgentNode, Node
from adk_fluent.protocol import Unknown, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adk_fluent.cost._estimate._walk import Position
    from adk_fluent.cost._prices._books import PriceBooks, Prices
    from adk_fluent.cost._report import CostReport

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
            "mean_usd": self.mean,
            "lo_usd": self.lo,
            "hi_usd": None if self.hi == inf else self.hi,
            "daily_usd": self.daily,
            "per_agent": self.per_agent,
            "per_model": self.per_model,
            "calls": self.calls,
            "unpriced_models": self.unpriced,
            "opaque": list(self.opaque),
            "unbounded": list(self.unbounded),
            "percentiles": {f"p{each:g}": usd for each, usd in self.percentiles.items()},
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
        text = self._text(seen)
        return text + ("\n\n" + "\n".join(table) if names else "")

    def to_html(self, measured: Iterable[CostReport] | None = None) -> str:
        """Return a page with the picture of the pipeline, and the money in the box of each step.

        A step that stands in several places has in each what all of them cost.

        Args:
            measured: Reports of runs, one for each: what agents cost stands beside the estimate.
        """
        seen = None if measured is None else Measured.of(measured)
        from adk_fluent.cost._estimate._measured import picture  # noqa: PLC0415  # few draw

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
    must_be(Node, root, "estimate_cost takes a pipeline")
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
