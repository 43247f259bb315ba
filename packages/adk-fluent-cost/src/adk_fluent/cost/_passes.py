"""What becomes of a pipeline before it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.backends import Pass, PassList
from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.errors import UnsupportedNodeError
from adk_fluent.ir import ModelSelectorNode, walk

if TYPE_CHECKING:
    from adk_fluent.ir import Node


def attribute(root: Node, cx: Any) -> Node:
    """Attribute costs where ``TelemetryConfig(enable_cost_metrics=True)`` asks for it."""
    telemetry = cx.config.telemetry
    if telemetry is not None and telemetry.enable_cost_metrics:
        cx.add_middleware(CostAttributionMiddleware())
    return root


def refuse_selectors(root: Node, cx: Any) -> Node:
    """Refuse models that would have to be chosen at run time.

    Raises:
        UnsupportedNodeError: There is one.
    """
    for node in walk(root):
        if isinstance(node, ModelSelectorNode):
            raise UnsupportedNodeError(
                "this version of adk-fluent-cost cannot choose models at run time",
                node=node,
                help="name a model instead of .model_select(...), or use "
                'Budget(on_exceed="fallback", fallback_model=...)',
            )
    return root


PASSES: PassList[Any] = PassList()
PASSES.add(Pass("cost-metrics", attribute))
PASSES.add(Pass("cost-selectors", refuse_selectors))
