"""Budgets, and what is counted: unknown prices, money that nothing bounds, calls that never fit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adk_fluent.contracts import Severity
from adk_fluent.cost._checks._money import (
    DearFallback,
    SmallBudget,
    UnboundedCost,
    UnknownPrice,
    money_of,
    output_limit,
)
from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._report import shown
from adk_fluent.cost._requests import Spent, name_of, quoted
from adk_fluent.cost._selecting._choice import table_of
from adk_fluent.ir import LoopNode, MapOverNode
from adk_fluent.protocol import Money as Amount
from adk_fluent.protocol import Unknown, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Diagnostic, Graph
    from adk_fluent.cost._budget import Budget
    from adk_fluent.cost._checks._money import Money
    from adk_fluent.cost._prices._books import PriceTable
    from adk_fluent.ir import AgentNode

#: A call that tells which of two models is the dearer one.
_PROMPT: Final = 500


def check_budgets(graph: Graph) -> Iterator[Diagnostic]:
    """Find agents whose costs cannot be counted, and budgets that do not do what they seem to."""
    money = money_of(graph)
    for agent in money.agents:
        if not money.around(agent):
            continue
        try:
            names, table = _models(money, agent)
        except PriceError:
            continue  # check_selectors says so
        yield from _unknown(graph, money, agent, names, table)
        for budget in money.budgets(agent):
            yield from _fit(graph, agent, budget, names, table)
    yield from _unbounded(graph, money)


def _models(money: Money, agent: AgentNode) -> tuple[list[str], PriceTable | None]:
    """The models that an agent may ask, and the prices that they bring."""
    if agent.selector is not None:
        candidates = agent.selector.candidates
        return [each.name for each in candidates], table_of(candidates)
    model = money.model(agent)
    return [model] if model else [], None


def _unknown(
    graph: Graph, money: Money, agent: AgentNode, names: list[str], table: PriceTable | None
) -> Iterator[Diagnostic]:
    call = Usage(prompt=_PROMPT, output=_PROMPT)
    strict = [each for each in money.budgets(agent) if not each.allows_unknown]
    for name in names:
        prices = f'prices={{"{name}": {{"input": ..., "output": ...}}}}), USD per million tokens'
        refusing = [each for each in strict if isinstance(each.price(name, call, table), Unknown)]
        told = [
            quoted(each.prices, name, Spent(call), datetime.now(UTC), table).money
            for each in money.counts(agent)
        ]
        if refusing:
            # a candidate may never be chosen
            sure = agent.selector is None
            yield UnknownPrice.at(
                graph,
                agent,
                f"`{agent.name}` is held to {refusing[0].name} of {refusing[0].limit}, and nobody "
                f"knows the price of '{name}': its calls fail",
                severity=Severity.ERROR if sure else Severity.WARNING,
                help=f'Budget({prices}; or on_unknown="allow"',
            )
        elif told and all(isinstance(each, Unknown) for each in told):
            yield UnknownPrice.at(
                graph,
                agent,
                f"nobody knows the price of '{name}': what `{agent.name}` costs is in no total",
                severity=Severity.WARNING,
                help=f"cost_attribution({prices}",
            )


def _fit(
    graph: Graph, agent: AgentNode, budget: Budget, names: list[str], table: PriceTable | None
) -> Iterator[Diagnostic]:
    """Whether one call of an agent has room in a budget, or one of the model in its place."""
    limit = output_limit(agent)
    output = budget.reserve_output if limit is None else limit

    def least(model: str, prompt: int = 1) -> Amount | None:
        cost = budget.price(model, Usage(prompt=prompt, output=output), table)
        return None if isinstance(cost, Unknown) else cost

    where = f"{budget.name} of {budget.limit}"
    held = [(name, cost) for name in names if (cost := least(name)) is not None]
    if budget.on_exceed != "warn" and held and min(cost for _, cost in held) > budget.limit:
        name, cost = min(held, key=lambda each: each[1])
        yield SmallBudget.at(
            graph,
            agent,
            f"no call of `{agent.name}` fits into {where}: for {output} answer tokens of '{name}', "
            f"{shown(cost)} is reserved",
            help="raise the limit, or lower max_output_tokens or reserve_output",
        )
    fallback = name_of(budget.fallback_model)
    if not fallback or (own := least(fallback)) is None:
        return
    if own > budget.limit:
        what = f"for {output} answer tokens of that, {shown(own)} is reserved"
    else:
        instead, costs = least(fallback, _PROMPT), [least(name, _PROMPT) for name in names]
        if not names or instead is None:
            return
        if any(each is None or instead < each for each in costs):
            return
        what = f"it is no cheaper than '{names[0]}', which it stands in for"
    yield DearFallback.at(
        graph,
        agent,
        f"'{fallback}', the fallback_model of {where}, is of no use to `{agent.name}`: {what}",
        help="give a cheaper fallback_model",
    )


def _unbounded(graph: Graph, money: Money) -> Iterator[Diagnostic]:
    """Look for loops and maps of any length, where money is concerned and no budget ends it."""
    repeating = [
        each
        for each in (*graph.of(LoopNode), *graph.of(MapOverNode))
        if isinstance(each, MapOverNode) or each.max_iterations <= 0
    ]
    if not repeating:
        return
    costly = [
        each
        for each in money.agents
        if (money.around(each) or each.selector is not None)
        and all(budget.on_exceed == "warn" for budget in money.budgets(each))
    ]
    above = graph.above(costly)
    for node in repeating:
        if id(node) not in above:
            continue
        warned = bool(money.budgets(node))
        times = "once for each item of any list" if isinstance(node, MapOverNode) else "without end"
        yield UnboundedCost.at(
            graph,
            node,
            f"nothing bounds what `{node.name}` costs: it calls models {times}"
            + (", and the budget around it only warns" if warned else ""),
            severity=Severity.WARNING if warned else Severity.INFO,
            help=".middleware(Budget(1.00)) stops it there",
        )
