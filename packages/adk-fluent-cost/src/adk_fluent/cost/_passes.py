"""What becomes of a pipeline before it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.backends import Pass, PassList
from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.cost._selecting._choice import Choice
from adk_fluent.cost._selecting._middleware import ModelSelection
from adk_fluent.errors import BuildError
from adk_fluent.ir import AgentNode, MiddlewareNode, ModelSelectorNode, walk
from adk_fluent.ir import map as rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir import Node


def attribute(root: Node, cx: Any) -> Node:
    """Attribute costs where ``TelemetryConfig(enable_cost_metrics=True)`` asks for it."""
    telemetry = cx.config.telemetry
    if telemetry is not None and telemetry.enable_cost_metrics:
        cx.add_middleware(CostAttributionMiddleware())
    return root


def select(root: Node, cx: Any) -> Node:
    """Put the first candidate in the place of each selector, and who chooses around all calls.

    Raises:
        BuildError: Two agents of one name choose among different models.
        PriceError: A candidate's price is none.
    """
    if not any(isinstance(each, ModelSelectorNode) for each in walk(root)):
        return root
    choices: dict[str, Choice] = {}
    of: dict[str, ModelSelectorNode] = {}
    made: dict[int, Choice] = {}
    for agent, selector in _selecting(root):
        known = of.setdefault(agent.name, selector)
        if known != selector:
            raise BuildError(
                f"two agents called {agent.name!r} choose among different models",
                node=agent,
                help="rename one of them",
            )
        if id(selector) not in made:
            made[id(selector)] = Choice(selector)
        choices[agent.name] = made[id(selector)]
    chosen = {id(agent) for agent, _ in _selecting(root)}
    for agent in walk(root):
        is_other = isinstance(agent, AgentNode) and agent.mock is None and id(agent) not in chosen
        if is_other and agent.name in choices:
            raise BuildError(
                f"of two agents called {agent.name!r}, one chooses its model and one does not",
                node=agent,
                help="rename one of them",
            )
    if choices:
        cx.add_middleware(ModelSelection(choices))

    def first(node: Node) -> Node:
        if not isinstance(node, AgentNode) or node.selector is None:
            return node
        return node.replace(selector=None, model=node.selector.candidates[0].model)

    return rewrite(root, first)


def _selecting(root: Node) -> Iterator[tuple[AgentNode, ModelSelectorNode]]:
    """The agents that choose, each with its selector; delegates without a model have that above."""
    todo: list[tuple[Node, ModelSelectorNode | None]] = [(each, None) for each in walk(root)]
    while todo:
        node, above = todo.pop()
        if isinstance(node, MiddlewareNode) and above is not None:
            todo.append((node.body, above))
        if not isinstance(node, AgentNode) or node.mock is not None:
            continue
        selector = node.selector or (above if node.model is None else None)
        if selector is not None:
            yield node, selector
            todo += [(each, selector) for each in node.delegates]


PASSES: PassList[Any] = PassList()
PASSES.add(Pass("cost-metrics", attribute))
PASSES.add(Pass("cost-selectors", select))
