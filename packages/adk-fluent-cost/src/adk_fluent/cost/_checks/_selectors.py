"""Models that are chosen at run time: prices that are none, and candidates that are never asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adk_fluent.cost._checks._money import (
    DearFallback,
    InvalidCandidatePrice,
    MissingBudget,
    UnreachableCandidate,
    money_of,
)
from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._prices._books import default_prices
from adk_fluent.cost._requests import Spent, name_of, quoted
from adk_fluent.cost._selecting._choice import table_of
from adk_fluent.ir import AgentNode, ModelSelectorNode
from adk_fluent.protocol import Money, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from adk_fluent.contracts import Diagnostic, Graph
    from adk_fluent.cost._prices._books import PriceTable
    from adk_fluent.ir import ModelCandidate

#: Calls that tell which of two models is the cheaper one whatever is asked: prices change with
#: the length of a prompt, and an answer is taken for 500 tokens at most.
_CALLS: Final = tuple(
    Usage(prompt=prompt, output=output)
    for prompt in (1, 1_000, 100_000, 150_000, 250_000, 1_000_000)
    for output in (0, 500)
)


def check_selectors(graph: Graph) -> Iterator[Diagnostic]:
    """Find what is wrong with the models that selectors choose among."""
    for node in graph.of(ModelSelectorNode):
        try:
            table = table_of(node.candidates)
        except PriceError as error:
            found = f": {error.found}" if error.found else ""
            yield InvalidCandidatePrice.at(
                graph, node, f"`{node.name}`: {error.what}{found}", help=error.help
            )
            continue
        costs = [_costs(each.name, table) for each in node.candidates]
        reached: list[tuple[Decimal, ...] | None] = []
        for at, each in enumerate(node.candidates):
            before = _taken_before(node, costs, at)
            if before is None:
                reached.append(costs[at])
            else:
                yield UnreachableCandidate.at(
                    graph,
                    node,
                    f"`{node.name}` never asks '{each.name}': '{before.name}' has no condition, "
                    f"and {_reason(node)}",
                    help=f"give '{before.name}' a condition=, or leave '{each.name}' out",
                )
        yield from _fallback(graph, node, reached, table)
        yield from _budget(graph, node)


def _budget(graph: Graph, node: ModelSelectorNode) -> Iterator[Diagnostic]:
    if node.strategy != "budget_bounded" and node.budget_key is None:
        return
    money = money_of(graph)
    agents = [each for each in graph.parents(node) if isinstance(each, AgentNode)]
    if all(money.budgets(each) for each in agents):
        return
    if node.strategy == "budget_bounded":
        what = "falls back when a budget refuses a call"
    else:
        what = f"shows what is left of a budget as {node.budget_key!r}"
    yield MissingBudget.at(
        graph,
        node,
        f"`{node.name}` {what}, and no budget stands around it",
        help=".middleware(Budget(0.10)), around the agent or the pipeline",
    )


def _fallback(
    graph: Graph,
    node: ModelSelectorNode,
    costs: list[tuple[Decimal, ...] | None],
    table: PriceTable | None,
) -> Iterator[Diagnostic]:
    """A fallback for want of money has to be cheaper than what there is no money for."""
    if node.strategy != "budget_bounded" or node.fallback_model is None:
        return
    name = name_of(node.fallback_model)
    own = _costs(name, table)
    if own is not None and costs and None not in costs and all(_cheaper(e, own) for e in costs):
        yield DearFallback.at(
            graph,
            node,
            f"'{name}', the fallback_model of `{node.name}`, is no cheaper than any of its "
            "candidates: where the money is short for them, it is short for that, too",
            help="give a cheaper fallback_model",
        )


# --- who comes before whom -----------------------------------------------------------------------


def _costs(model: str, table: PriceTable | None) -> tuple[Decimal, ...] | None:
    """What each of the calls costs; None where nobody knows."""
    books, now = default_prices(), datetime.now(UTC)
    costs = [quoted(books, model, Spent(call), now, table).money for call in _CALLS]
    known = tuple(each.usd for each in costs if isinstance(each, Money))
    return known if len(known) == len(costs) else None


def _cheaper(one: tuple[Decimal, ...] | None, other: tuple[Decimal, ...] | None) -> bool:
    """Whether one is never dearer than another; what nobody knows is the dearest."""
    if one is None or other is None:
        return other is None
    return all(a <= b for a, b in zip(one, other, strict=True))


def _taken_before(
    node: ModelSelectorNode, costs: Sequence[tuple[Decimal, ...] | None], at: int
) -> ModelCandidate | None:
    """The candidate that takes each call which one further back could take."""
    this = node.candidates[at]
    for place, each in enumerate(node.candidates):
        takes = each.max_tokens is None or (
            this.max_tokens is not None and each.max_tokens >= this.max_tokens
        )
        if place == at or each.condition is not None or not takes:
            continue
        first = _cheaper(costs[place], costs[at])
        if first and _cheaper(costs[at], costs[place]):
            first = place < at
        better = each.quality_tier - this.quality_tier
        if node.strategy == "quality_optimized":
            first = better > 0 or (not better and first)
        elif node.strategy == "adaptive":  # it climbs to what is as good or better
            first = better > 0 and first
        if first:
            return each
    return None


def _reason(node: ModelSelectorNode) -> str:
    if node.strategy == "quality_optimized":
        return "is better, or as good for less"
    if node.strategy == "adaptive":
        return "is better, for no more"
    return "never costs more"
