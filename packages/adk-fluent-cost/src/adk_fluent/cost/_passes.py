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
        BuildError: Two agents of one name choose among different models, or only one does.
        PriceError: A candidate's price is none.
    """
    if not any(isinstance(each, ModelSelectorNode) for each in walk(root)):
        return root
    choosing = list(_selecting(root))
    known = {id(agent) for agent, _ in choosing}
    others = [each for each in walk(root) if isinstance(each, AgentNode) and each.mock is None]
    rest = [(each, None) for each in others if id(each) not in known]
    of: dict[str, ModelSelectorNode | None] = {}
    for agent, selector in (*choosing, *rest):
        if of.setdefault(agent.name, selector) != selector:
            raise BuildError(
                f"two agents called {agent.name!r} choose among different models, or only one does",
                node=agent,
                help="rename one of them",
            )
    made = {id(each): Choice(each) for each in of.values() if each is not None}
    if made:
        of_name = {name: made[id(each)] for name, each in of.items() if each is not None}
        cx.add_middleware(ModelSelection(of_name))

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
