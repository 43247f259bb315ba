"""One walk over a pipeline: how often each agent is called, on what, and at least and at most.

Three passes over a list of positions, in which each stands before those inside it: what each
position says (upwards), how often it runs and what it sees (downwards), what it costs (upwards).
None is recursive, so depth does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from adk_fluent import ir
from adk_fluent.cost._requests import name_of
from adk_fluent.cost._selecting._choice import table_of
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adk_fluent.cost._estimate._assumptions import TrafficAssumptions
    from adk_fluent.cost._prices._books import PriceTable
    from adk_fluent.ir import ModelCandidate, ModelSelectorNode

    Price: TypeAlias = Callable[[str, float, float], float | None]
    Shares: TypeAlias = Iterable[tuple[ir.Node, "Range"]]


class Range(NamedTuple):
    """A number as expected, at least, and at most."""

    mean: float = 0.0
    lo: float = 0.0
    hi: float = 0.0

    def plus(self, other: Range) -> Range:
        """Return the sum of both."""
        if self is NEVER:
            return other
        return Range(self.mean + other.mean, self.lo + other.lo, self.hi + other.hi)

    def times(self, other: Range) -> Range:
        """Return the product of both; nothing of something endless is nothing."""
        if other is ONCE:
            return self
        hi = self.hi * other.hi if self.hi and other.hi else 0.0
        return Range(self.mean * other.mean, self.lo * other.lo, hi)


ONCE = Range(1.0, 1.0, 1.0)
NEVER = Range()


class Chance(NamedTuple):
    """A model that may be asked.

    Attributes:
        model: The model.
        cost: What all calls cost if it takes them; None where nobody knows.
        share: How often it is asked for each call of the agent, on average.
        most: The same at most.
    """

    model: str
    cost: Range | None
    share: float
    most: float = 1.0


def chances_of(
    selector: ModelSelectorNode, cost: Callable[[str], Range | None], prompt: float, rate: float
) -> list[Chance]:
    """Return the models that may be asked, the one that is preferred first.

    It is assumed that conditions hold. What stands behind a candidate without a condition is asked
    by adaptive selectors alone.

    Args:
        selector: The selector.
        cost: What all calls cost if one model takes them.
        prompt: Tokens of a prompt.
        rate: Share of the answers that a judge rejects.
    """
    costs = {at: cost(each.name) for at, each in enumerate(selector.candidates)}

    def dearness(row: tuple[int, ModelCandidate]) -> tuple[float, bool, float]:
        found = costs[row[0]]
        best = selector.strategy == "quality_optimized"
        return (-row[1].quality_tier if best else 0.0, found is None, found.mean if found else 0.0)

    rows = [row for row in enumerate(selector.candidates) if prompt <= (row[1].max_tokens or inf)]
    chances: list[Chance] = []
    tier = float("-inf")
    for at, each in sorted(rows, key=dearness):
        if selector.strategy != "adaptive":
            share = 0.0 if chances else 1.0
            chances.append(Chance(each.name, costs[at], share, share))
            if each.condition is None:
                break
        elif each.quality_tier >= tier:
            tier = each.quality_tier
            chances.append(Chance(each.name, costs[at], rate ** len(chances)))
    other = selector.fallback_model
    if other is not None:
        name = other if isinstance(other, str) else other.name
        chances.append(Chance(name, cost(name), 0.0 if chances else 1.0, 0.0))
    every = enumerate(selector.candidates)
    return chances or [Chance(each.name, costs[at], float(not at)) for at, each in every]


def total_of(selector: ModelSelectorNode, chances: list[Chance]) -> Range | None:
    """Return what the calls cost; None where nobody knows a price."""
    known = [(each.cost, each.share) for each in chances if each.cost is not None]
    if not known:
        return None
    mean, lo = sum(cost.mean * share for cost, share in known), min(cost.lo for cost, _ in known)
    all_or_one = sum if selector.strategy == "adaptive" else max
    return Range(mean, lo, all_or_one([cost.hi for cost, _ in known]))


#: What has in it steps that know nothing of each other.
_APART = ir.ParallelNode | ir.RaceNode | ir.RouteNode | ir.MapOverNode


@dataclass(slots=True)
class Position:
    """A node in its place; one node may stand in several.

    Attributes:
        node: The node.
        model: The model of an agent; "" where nothing says which.
        inside: Indices of what is inside.
        asked: The models that it asks, with the share of its calls and USD of all by that model.
        share: How often it runs, for each run of what it is inside.
        says: Tokens that it adds to the conversation, each time it runs.
        runs: How often it runs.
        sees: Tokens of earlier steps that are in its prompts.
        before: Tokens of the step before it.
        calls: Model calls of an agent itself, each time it runs.
        own: USD of these; None where nobody knows.
        cost: USD of all that is in it, each time it runs.
    """

    node: ir.Node
    model: str
    inside: list[int]
    asked: list[tuple[str, float, float | None]]
    share: Range = ONCE
    says: Range = NEVER
    runs: Range = NEVER
    sees: Range = NEVER
    before: Range = NEVER
    calls: Range = NEVER
    own: Range | None = NEVER
    cost: Range = NEVER


class Walk:
    """The positions of a pipeline, with all that is known of them.

    Args:
        root: The pipeline.
        traffic: What is assumed.
        default_model: The model of agents that name none.
        pricing: Given the prices that a selector's candidates bring, or None, what a call costs:
            USD by model, prompt tokens and answer tokens; None if unknown.

    Attributes:
        positions: Each before those inside it.
        unbounded: Names of what nothing bounds.
        opaque: Names of steps whose model calls nobody knows.
    """

    def __init__(
        self,
        root: ir.Node,
        traffic: TrafficAssumptions,
        default_model: str,
        pricing: Callable[[PriceTable | None], Price],
    ) -> None:
        self._traffic = traffic
        self._pricing = pricing
        self._price = pricing(None)
        self._prices: dict[int, Price] = {}
        self.unbounded: list[str] = []
        self.opaque: list[str] = []
        self.positions: list[Position] = []
        self._place(root, default_model)
        self._check_names()
        for each in reversed(self.positions):
            each.says = self._says(each)
        self.positions[0].runs = ONCE
        for each in self.positions:
            self._enter(each)
        self._measured = self._places_of_measured()
        for each in reversed(self.positions):
            each.cost = self._cost(each)

    def _check_names(self) -> None:
        nodes = [each.node for each in self.positions]
        routes = [each.children for each in nodes if isinstance(each, ir.RouteNode)]
        agents = [each.delegates for each in nodes if isinstance(each, ir.AgentNode)]
        kinds = {
            "branch_probabilities": [one.name for row in (*routes, *agents) for one in row],
            "loop_iterations": [each.name for each in nodes if isinstance(each, ir.LoopNode)],
            "map_items": [each.name for each in nodes if isinstance(each, ir.MapOverNode)],
        }
        self._traffic.check_names({each.name for each in nodes}, kinds)

    # --- positions -----------------------------------------------------------------------------

    def _place(self, root: ir.Node, default_model: str) -> None:
        todo: list[tuple[ir.Node, str, Range, int]] = [(root, default_model, ONCE, -1)]
        while todo:
            node, model, share, parent = todo.pop()
            if isinstance(node, ir.AppNode) and node.execution and node.execution.default_model:
                model = name_of(node.execution.default_model) or model
            if isinstance(node, ir.AgentNode):
                first = node.selector.candidates[0].model if node.selector else node.model
                model = name_of(first) or model
            at = len(self.positions)
            self.positions.append(Position(node, model, [], [], share))
            if parent >= 0:
                self.positions[parent].inside.append(at)
            if isinstance(node, ir.AdkAgentNode | ir.RemoteAgentNode):
                self.opaque.append(node.name)
            inside = tuple(self._shares(node))
            todo.extend([(each, model, much, at) for each, much in reversed(inside)])

    def _shares(self, node: ir.Node) -> Shares:  # noqa: PLR0911  # one for each kind
        traffic = self._traffic
        if isinstance(node, ir.AgentNode):
            return self._helpers(node) if node.agent_tools or node.delegates else ()
        if isinstance(node, ir.AppNode):
            return [(node.root, ONCE)]
        if isinstance(node, ir.RouteNode):
            return self._branches(node)
        if isinstance(node, ir.LoopNode):
            most = float(node.max_iterations) if node.max_iterations > 0 else inf
            if most == inf:
                self.unbounded.append(node.name)
            ends = node.until is not None
            usual = (1 + most) / 2 if ends and most < inf else most
            mean = traffic.of("loop_iterations", node.name, usual)
            least = 1.0 if ends else 0.0  # it is asked after each iteration
            if not least <= mean <= most and not isinstance(traffic.loop_iterations, int | float):
                what = f"loop {node.name!r} runs {least:g} to {most:g} times"
                raise UsageError(what, node=node, found=f"loop_iterations= has {mean:g}")
            mean = min(most, max(least, mean))  # one number for all loops may be above some
            if mean == inf:
                raise UsageError(
                    f"nothing says how often loop {node.name!r} runs",
                    node=node,
                    help=f"TrafficAssumptions(loop_iterations={{{node.name!r}: 3}})",
                )
            return [(node.body, Range(mean, least or mean, most))]
        if isinstance(node, ir.MapOverNode):
            self.unbounded.append(node.name)
            return [(node.body, Range(traffic.of("map_items", node.name), 0.0, inf))]
        if isinstance(node, ir.FallbackNode):
            rate, tries = traffic.failure_rate, enumerate(node.attempts)
            return [(each, Range(rate**at, 0.0 if at else 1.0, 1.0)) for at, each in tries]
        return [(each, ONCE) for each in node.children]

    def _helpers(self, node: ir.AgentNode) -> Shares:
        """Agents in an agent's tools, and those that it may hand over to."""
        rounds = self._traffic.of("tool_rounds", node.name)
        asked = [(each, Range(rounds, 0.0, rounds)) for each in node.agent_tools]
        return [*asked, *self._ways(node.delegates, or_none=True)]  # it may answer by itself

    def _branches(self, node: ir.RouteNode) -> Shares:
        given = self._traffic.branch_probabilities
        known = {each.name: given[each.name] for each in node.children if each.name in given}
        total = sum(known.values())
        is_all = node.default is not None and all(each.name in known for each in node.children)
        if total > 1.0001 or (is_all and total < 0.9999):
            raise UsageError(
                f"the branches of route {node.name!r} are taken {'more' if total > 1 else 'less'} "
                "often than it runs",
                node=node,
                found=", ".join(f"{name}={share:g}" for name, share in known.items()),
                help="branch_probabilities= are shares of the runs of the route, 1 in all; leave "
                "one out, and it has the rest",
            )
        return self._ways(node.children, or_none=node.default is None)

    def _ways(self, branches: Sequence[ir.Node], *, or_none: bool) -> Shares:
        """Branches with their shares; that none is taken may be a way, too."""
        given = self._traffic.branch_probabilities
        known = [given[each.name] for each in branches if each.name in given]
        ways = len(branches) - len(known) + or_none
        even = max(0.0, 1 - sum(known)) / ways if ways else 0.0
        return [(each, Range(given.get(each.name, even), 0.0, 1.0)) for each in branches]

    # --- what is said --------------------------------------------------------------------------

    def _says(self, here: Position) -> Range:
        node = here.node
        if isinstance(node, ir.AgentNode):
            return _exactly(0.0 if node.mock else self._output(node))
        ways = [self.positions[each].says for each in here.inside]
        if isinstance(node, ir.RaceNode) and ways:
            return Range(*(max(column) for column in zip(*ways, strict=True)))
        if isinstance(node, ir.FallbackNode) and ways:
            return Range(ways[0].mean, min(e.lo for e in ways), max(e.hi for e in ways))
        return self._of_all(here, ways, NEVER)

    def _of_all(self, here: Position, ways: list[Range], total: Range) -> Range:
        """What comes of all that is inside a position, or of one of its ways."""
        shares = (self.positions[each].share for each in here.inside)
        made = [each.times(share) for each, share in zip(ways, shares, strict=True)]
        if isinstance(here.node, ir.RouteNode) and ways:  # without a default, none may be taken
            lo = 0.0 if here.node.default is None else min(each.lo for each in ways)
            return Range(sum(each.mean for each in made), lo, max(each.hi for each in ways))
        for each in made:
            total = total.plus(each)
        return total

    def _output(self, node: ir.AgentNode) -> float:
        return self._traffic.of("avg_output_tokens", node.name)

    # --- how often, and on what ----------------------------------------------------------------

    def _enter(self, here: Position) -> None:
        """Tell what is inside a position how often it runs, and what it sees."""
        node, sees, before = here.node, here.sees, here.before
        for at in here.inside:
            each = self.positions[at]
            each.runs = here.runs.times(each.share)
            each.sees, each.before = sees, before
            if isinstance(node, ir.LoopNode):  # on average, half of the iterations are before
                mean, _, hi = each.share
                again = Range(max(0.0, mean - 1) / 2, 0.0, max(0.0, hi - 1) / 2)
                each.sees = sees.plus(each.says.times(again))
            if isinstance(node, ir.AgentNode):  # it is asked in a conversation of its own
                each.sees = each.before = NEVER
            if isinstance(node, ir.SequenceNode):
                sees, before = sees.plus(each.says), each.says
            elif not isinstance(node, _APART):
                before = each.says

    # --- what it costs -------------------------------------------------------------------------

    def _places_of_measured(self) -> dict[str, float]:
        """How often agents run in all, of those whose calls were measured."""
        runs: dict[str, float] = {}
        for each in self.positions:
            measured = each.node.name in self._traffic.measured_calls
            if measured and isinstance(each.node, ir.AgentNode):  # what is around it has its name
                runs[each.node.name] = runs.get(each.node.name, 0.0) + each.runs.mean
        return runs

    def _calls(self, node: ir.AgentNode, here: Position) -> Range:
        """The model calls of an agent, each time it runs."""
        has_tools = node.tools or node.agent_tools
        rounds = self._traffic.of("tool_rounds", node.name) if has_tools else 0.0
        never = self._traffic.all_measured and here.runs.lo == 0  # as in a branch nobody took
        measured = self._traffic.measured_calls.get(node.name, 0.0 if never else None)
        if measured is None:
            return Range(1 + rounds, 1.0, 1 + rounds) if rounds else ONCE
        runs = self._measured.get(node.name)
        mean = measured / runs if runs else 0.0
        return Range(mean, min(1.0, mean), max(1 + rounds, mean))

    def _own(self, node: ir.AgentNode, here: Position) -> Range | None:
        """What the calls of an agent cost, each time it runs; None if nobody knows."""
        selector = node.selector
        if selector is None:
            own = self._usd(here.model, self._price, node, here)
            here.asked = [(here.model, 1.0, None if own is None else own.mean)]
            return own
        if id(selector) not in self._prices:
            self._prices[id(selector)] = self._pricing(table_of(selector.candidates))
        price, base = self._prices[id(selector)], self._traffic.of("avg_input_tokens", node.name)
        rate = self._traffic.of("escalation_rate", node.name)
        usd = partial(self._usd, price=price, node=node, here=here)
        chances = chances_of(selector, usd, base, rate)
        more = sum(each.share for each in chances)  # an adaptive one asks more than once
        if node.name in self._traffic.measured_calls:  # these are counted there
            chances = [each._replace(share=each.share / more) for each in chances]
        else:
            here.calls = here.calls.times(Range(more, 1.0, max(1.0, sum(e.most for e in chances))))
        here.asked = [(e.model, e.share / more, e.cost and e.share * e.cost.mean) for e in chances]
        return total_of(selector, chances)

    def _usd(self, model: str, price: Price, node: ir.AgentNode, here: Position) -> Range | None:
        """What the calls of an agent cost if all are of one model."""
        traffic, output = self._traffic, self._output(node)
        base = traffic.of("avg_input_tokens", node.name)
        sees = _seen(node, here) if traffic.context_growth else NEVER
        made: list[float] = []
        before = (nan, nan)
        for number, seen in zip(here.calls, sees, strict=True):
            if (number, seen) == before:  # as in most steps: asking for a price is slow
                made.append(made[-1])
                continue
            before, prompt = (number, seen), base + seen
            if traffic.context_growth and number > 1:
                prompt += (output + traffic.tool_tokens) * (number - 1) / 2
            one = price(model, prompt, output) if prompt < inf else inf
            if one is None:
                return None
            made.append(number * one if number else 0.0)
        return Range(*made)

    def _cost(self, here: Position) -> Range:
        node, total = here.node, NEVER
        if isinstance(node, ir.AgentNode) and not node.mock:
            here.calls = self._calls(node, here)
            here.own = self._own(node, here)
            total = here.own or NEVER
        if not here.inside:
            return total
        return self._of_all(here, [self.positions[each].cost for each in here.inside], total)


@lru_cache(maxsize=1024)
def _exactly(number: float) -> Range:
    return Range(number, number, number)


def _seen(node: ir.AgentNode, here: Position) -> Range:
    """What of earlier steps is in an agent's prompt."""
    return {"transcript": here.sees, "input": here.before}.get(node.history, NEVER)
