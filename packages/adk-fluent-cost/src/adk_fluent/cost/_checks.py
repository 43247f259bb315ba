"""What ``adk-fluent check`` finds about money: prices, budgets, and models chosen at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from adk_fluent import ir
from adk_fluent.contracts import Diagnostic, Graph, Severity, middleware_stacks
from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.cost._budget import Budget
from adk_fluent.cost._errors import PriceError
from adk_fluent.cost._prices._books import PriceTable, default_prices
from adk_fluent.cost._report import shown
from adk_fluent.cost._requests import OfRequests, Spent, name_of, quoted
from adk_fluent.cost._selecting._choice import table_of
from adk_fluent.errors import AdkFluentError
from adk_fluent.extend import find_middleware
from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from decimal import Decimal


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


class InvalidCandidatePrice(Diagnostic, code="CST001", severity=_ERROR):
    """A candidate's price is none, or off by orders of magnitude from the one that is known."""


class UnknownPrice(Diagnostic, code="CST002", severity=_ERROR):
    """A model is held to a budget, or its cost is counted, and nobody knows its price."""


class MissingBudget(Diagnostic, code="CST003", severity=_WARNING):
    """A model is chosen by what is left of a budget, and there is none."""


class UnboundedCost(Diagnostic, code="CST004", severity=_WARNING):
    """Nothing bounds how often models are called, nor what that costs."""


class UnreachableCandidate(Diagnostic, code="CST005", severity=_WARNING):
    """A candidate that is never asked, since another one takes each call before it."""


class DearFallback(Diagnostic, code="CST006", severity=_WARNING):
    """A fallback for want of money that is no cheaper, or that the budget has no room for."""


class SmallBudget(Diagnostic, code="CST007", severity=_WARNING):
    """A budget that not even one call of a model fits into."""


class UndeclaredBudgetKey(Diagnostic, code="CST008", severity=_ERROR):
    """A key that what is left of a budget is copied to, and that a state schema does not have."""


#: A middleware that holds calls to a budget, or counts what they cost.
Around = Budget | CostAttributionMiddleware
_NAMES: Final = ("budget", "cost_attribution", "price_limit")
_Kind = TypeVar("_Kind")
_FACT: Final = "cost.money"


class Counted:
    """The money of a pipeline: use `money_of`, which makes it once a check.

    Attributes:
        agents: Agents that ask a model.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.agents = [each for each in graph.of(ir.AgentNode) if each.mock is None]
        own: dict[int, list[Around | ir.Contract]] = {}
        for holder, stack in middleware_stacks(graph):
            made = [each for value in stack if (each := _made(value)) is not None]
            own.setdefault(id(holder), []).extend(made)
        root = graph.root
        execution = root.execution if isinstance(root, ir.AppNode) else None
        telemetry = execution.telemetry if execution else None
        if telemetry is not None and telemetry.enable_cost_metrics:
            own.setdefault(id(root), []).append(CostAttributionMiddleware())
        if any(own.values()):
            for node in graph.nodes:
                contract = node.contract
                if contract is None or contract.schema is None:
                    continue
                if hasattr(contract.schema.value, "__state_fields__"):
                    own.setdefault(id(node), []).append(contract)
        self._own = own

    @cached_property
    def _all(self) -> dict[int, tuple[Around | ir.Contract, ...]]:
        found: dict[int, tuple[Around | ir.Contract, ...]] = {}
        if not any(self._own.values()):
            return found
        for node in self._graph.downwards():
            above = [found[id(each)] for each in self._graph.parents(node)]
            own = self._own.get(id(node), ())
            if len(above) == 1 and not own:
                found[id(node)] = above[0]
            else:
                each_once = {id(each): each for row in (*above, own) for each in row}
                found[id(node)] = tuple(each_once.values())
        return found

    def around(self, node: ir.Node, kind: type[_Kind]) -> list[_Kind]:
        """What of a kind stands around a node, in all of its places: budgets, state schemas."""
        return [each for each in self._all.get(id(node), ()) if isinstance(each, kind)]

    @cached_property
    def _models(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in self._graph.downwards():
            above = (found[id(each)] for each in self._graph.parents(node))
            model = next(filter(None, above), "")
            if isinstance(node, ir.AppNode) and node.execution:
                model = name_of(node.execution.default_model) or model
            if isinstance(node, ir.AgentNode):
                model = name_of(node.model) or model
            found[id(node)] = model
        return found

    def model(self, agent: ir.AgentNode) -> str:
        """The name of an agent's model; "" where nothing here says which, or it is chosen."""
        return "" if agent.selector is not None else self._models[id(agent)]


def money_of(graph: Graph) -> Counted:
    """Return the money of a pipeline."""
    known = graph.facts.get(_FACT)
    if not isinstance(known, Counted):
        known = graph.facts[_FACT] = Counted(graph)
    return known


def output_limit(agent: ir.AgentNode) -> int | None:
    """Return the ``max_output_tokens`` that an agent sets; None is none."""
    given: Any = dict(agent.settings).get("generate_content_config")
    config: Any = given.value if isinstance(given, ir.Ref) else given
    if isinstance(config, Mapping):
        most: Any = cast("Mapping[str, Any]", config).get("max_output_tokens")
    else:
        most = getattr(config, "max_output_tokens", None)
    return most if isinstance(most, int) else None


def _made(given: Any) -> Around | None:
    """The middleware that stands in a stack, if it has to do with money."""
    value = given.value if isinstance(given, ir.Ref) else given
    if isinstance(value, ir.MiddlewareRef) and value.name in _NAMES:
        try:
            value = find_middleware(value.name).factory(**(value.config or {}))
        except (AdkFluentError, TypeError):
            return None  # core says what is wrong with it
    return value if isinstance(value, Around) else None


#: A call that tells which of two models is the dearer one.
_PROMPT: Final = 500


def check_budgets(graph: Graph) -> Iterator[Diagnostic]:
    """Find agents whose costs cannot be counted, and budgets that do not do what they seem to."""
    money = money_of(graph)
    for agent in money.agents:
        if not money.around(agent, OfRequests):
            continue
        try:
            names, table = _models(money, agent)
        except PriceError:
            continue  # check_selectors says so
        yield from _unknown(graph, money, agent, names, table)
        for budget in money.around(agent, Budget):
            yield from _fit(graph, agent, budget, names, table)
        yield from _undeclared(graph, money, agent)
    yield from _unbounded(graph, money)


def _models(money: Counted, agent: ir.AgentNode) -> tuple[list[str], PriceTable | None]:
    """The models that an agent may ask, and the prices that they bring."""
    if agent.selector is not None:
        candidates = agent.selector.candidates
        return [each.name for each in candidates], table_of(candidates)
    model = money.model(agent)
    return [model] if model else [], None


def _unknown(
    graph: Graph, money: Counted, agent: ir.AgentNode, names: list[str], table: PriceTable | None
) -> Iterator[Diagnostic]:
    call, now = Usage(prompt=_PROMPT, output=_PROMPT), datetime.now(UTC)
    strict = [each for each in money.around(agent, Budget) if not each.allows_unknown]
    counting = money.around(agent, CostAttributionMiddleware)
    for name in names:
        prices = f'prices={{"{name}": {{"input": ..., "output": ...}}}}), USD per million tokens'
        refusing = [each for each in strict if isinstance(each.price(name, call, table), Unknown)]
        told = [quoted(each.prices, name, Spent(call), now, table).money for each in counting]
        if refusing:
            yield UnknownPrice.at(
                graph,
                agent,
                f"`{agent.name}` is held to {refusing[0].name} of {refusing[0].limit}, and nobody "
                f"knows the price of '{name}': its calls fail",
                # a candidate may never be chosen
                severity=_ERROR if agent.selector is None else _WARNING,
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
    graph: Graph, agent: ir.AgentNode, budget: Budget, names: list[str], table: PriceTable | None
) -> Iterator[Diagnostic]:
    """Whether one call of an agent has room in a budget, or one of the model in its place."""
    limit = output_limit(agent)
    output = budget.reserve_output if limit is None else limit

    def least(model: str, prompt: int = 1) -> Money | None:
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
        if not names or instead is None or any(e is None or instead < e for e in costs):
            return
        what = f"it is no cheaper than '{names[0]}', which it stands in for"
    yield DearFallback.at(
        graph,
        agent,
        f"'{fallback}', the fallback_model of {where}, is of no use to `{agent.name}`: {what}",
        help="give a cheaper fallback_model",
    )


def _undeclared(graph: Graph, money: Counted, agent: ir.AgentNode) -> Iterator[Diagnostic]:
    """Look for keys that what is left is copied to, and that no schema around an agent has."""
    schemas = money.around(agent, ir.Contract)
    rules: list[Any] = [each.schema.value for each in schemas if each.schema is not None]
    known = {key for each in rules for key in each.__state_fields__}
    stops = any(each.enforce == "error" for each in schemas)
    if not stops or any(each.extra != "forbid" for each in schemas):
        return
    for key in dict.fromkeys(each.budget_key for each in money.around(agent, Budget)):
        if key is not None and key not in known:
            yield UndeclaredBudgetKey.at(
                graph,
                agent,
                f"what is left of a budget is copied to `{key}`, which the state schema around "
                f"`{agent.name}` does not declare: the run ends after its first call",
                help=f"declare `{key}: float`, let other keys pass, or leave budget_key out",
            )


def _unbounded(graph: Graph, money: Counted) -> Iterator[Diagnostic]:
    """Look for loops and maps of any length, where money is concerned and no budget ends it."""
    endless = [each for each in graph.of(ir.LoopNode) if each.max_iterations <= 0]
    repeating = [*endless, *graph.of(ir.MapOverNode)]
    if not repeating:
        return
    costly = [
        each
        for each in money.agents
        if (money.around(each, OfRequests) or each.selector is not None)
        and all(budget.on_exceed == "warn" for budget in money.around(each, Budget))
    ]
    above = graph.above(costly)
    for node in repeating:
        if id(node) not in above:
            continue
        warned = bool(money.around(node, Budget))
        is_map = isinstance(node, ir.MapOverNode)
        times = "once for each item of any list" if is_map else "without end"
        yield UnboundedCost.at(
            graph,
            node,
            f"nothing bounds what `{node.name}` costs: it calls models {times}"
            + (", and the budget around it only warns" if warned else ""),
            severity=Severity.WARNING if warned else Severity.INFO,
            help=".middleware(Budget(1.00)) stops it there",
        )


#: Calls that tell which of two models is the cheaper one whatever is asked: prices change with
#: the length of a prompt, and an answer is taken for 500 tokens at most.
_PROMPTS: Final = (1, 1_000, 100_000, 150_000, 250_000, 1_000_000)
_CALLS: Final = tuple(Usage(prompt=each, output=out) for each in _PROMPTS for out in (0, 500))


def check_selectors(graph: Graph) -> Iterator[Diagnostic]:
    """Find what is wrong with the models that selectors choose among."""
    for node in graph.of(ir.ModelSelectorNode):
        try:
            table = table_of(node.candidates)
        except PriceError as error:
            what = f"`{node.name}`: {error.what}" + (f": {error.found}" if error.found else "")
            yield InvalidCandidatePrice.at(graph, node, what, help=error.help)
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
                    f"and {_REASONS.get(node.strategy, 'never costs more')}",
                    help=f"give '{before.name}' a condition=, or leave '{each.name}' out",
                )
        yield from _fallback(graph, node, reached, table)
        yield from _budget(graph, node)


def _budget(graph: Graph, node: ir.ModelSelectorNode) -> Iterator[Diagnostic]:
    if node.strategy != "budget_bounded" and node.budget_key is None:
        return
    money = money_of(graph)
    agents = [each for each in graph.parents(node) if isinstance(each, ir.AgentNode)]
    if all(money.around(each, Budget) for each in agents):
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
    node: ir.ModelSelectorNode,
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
    node: ir.ModelSelectorNode, costs: Sequence[tuple[Decimal, ...] | None], at: int
) -> ir.ModelCandidate | None:
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


#: Why one candidate takes all calls of another, by the strategy.
_REASONS: Final = {
    "quality_optimized": "is better, or as good for less",
    "adaptive": "is better, for no more",
}
