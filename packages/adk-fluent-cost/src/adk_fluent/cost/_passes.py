"""``TelemetryConfig(enable_cost_metrics=True)``: costs are attributed without a middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.backends import Pass, PassList
from adk_fluent.cost._attribution import CostAttributionMiddleware

if TYPE_CHECKING:
    from adk_fluent.ir import Node


def attribute(root: Node, cx: Any) -> Node:
    """Attribute costs where the configuration of the run asks for it."""
    telemetry = cx.config.telemetry
    if telemetry is not None and telemetry.enable_cost_metrics:
        cx.add_middleware(CostAttributionMiddleware())
    return root


PASSES: PassList[Any] = PassList()
PASSES.add(Pass("cost-metrics", attribute))
