"""What is around agents that has to do with money, and what their models are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts import Diagnostic, Severity, middleware_stacks
from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.cost._budget import Budget
from adk_fluent.cost._requests import name_of
from adk_fluent.errors import AdkFluentError
from adk_fluent.extend import find_middleware
from adk_fluent.ir import AgentNode, AppNode, MiddlewareRef, Ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.contracts import Graph
    from adk_fluent.ir import Node


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


#: A middleware that holds calls to a budget, or counts what they cost.
Around = Budget | CostAttributionMiddleware
_NAMES: Final = ("budget", "cost_attribution", "price_limit")
_FACT: Final = "cost.money"


class Money:
    """The money of a pipeline: use `money_of`, which makes it once a check.

    Attributes:
        agents: Agents that ask a model.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.agents: list[AgentNode] = [each for each in graph.of(AgentNode) if each.mock is None]
        own: dict[int, list[Around]] = {}
        for holder, stack in middleware_stacks(graph):
            made = [each for value in stack if (each := _made(value)) is not None]
            own.setdefault(id(holder), []).extend(made)
        root = graph.root
        telemetry = (
            root.execution.telemetry if isinstance(root, AppNode) and root.execution else None
        )
        if telemetry is not None and telemetry.enable_cost_metrics:
            own.setdefault(id(root), []).append(CostAttributionMiddleware())
        self._own = own

    @cached_property
    def _all(self) -> dict[int, tuple[Around, ...]]:
        found: dict[int, tuple[Around, ...]] = {}
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

    def around(self, node: Node) -> Sequence[Around]:
        """The budgets and cost attributions around a node, in all of its places."""
        return self._all.get(id(node), ())

    def budgets(self, node: Node) -> list[Budget]:
        """The budgets around a node."""
        return [each for each in self.around(node) if isinstance(each, Budget)]

    def counts(self, node: Node) -> list[CostAttributionMiddleware]:
        """The cost attributions around a node."""
        return [each for each in self.around(node) if isinstance(each, CostAttributionMiddleware)]

    @cached_property
    def _models(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for node in self._graph.downwards():
            above = (found[id(each)] for each in self._graph.parents(node))
            model = next(filter(None, above), "")
            if isinstance(node, AppNode) and node.execution:
                model = name_of(node.execution.default_model) or model
            if isinstance(node, AgentNode):
                model = name_of(node.model) or model
            found[id(node)] = model
        return found

    def model(self, agent: AgentNode) -> str:
        """The name of an agent's model; "" where nothing here says which, or it is chosen."""
        return "" if agent.selector is not None else self._models[id(agent)]


def money_of(graph: Graph) -> Money:
    """Return the money of a pipeline."""
    known = graph.facts.get(_FACT)
    if not isinstance(known, Money):
        known = graph.facts[_FACT] = Money(graph)
    return known


def output_limit(agent: AgentNode) -> int | None:
    """Return the ``max_output_tokens`` that an agent sets; None is none."""
    given: Any = dict(agent.settings).get("generate_content_config")
    config: Any = given.value if isinstance(given, Ref) else given
    if isinstance(config, Mapping):
        most: Any = cast("Mapping[str, Any]", config).get("max_output_tokens")
    else:
        most = getattr(config, "max_output_tokens", None)
    return most if isinstance(most, int) else None


def _made(given: Any) -> Around | None:
    """The middleware that stands in a stack, if it has to do with money."""
    value = given.value if isinstance(given, Ref) else given
    if isinstance(value, MiddlewareRef) and value.name in _NAMES:
        try:
            value = find_middleware(value.name).factory(**(value.config or {}))
        except (AdkFluentError, TypeError):
            return None  # core says what is wrong with it
    return value if isinstance(value, Around) else None
