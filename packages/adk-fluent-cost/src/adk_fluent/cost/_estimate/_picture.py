"""The picture of a pipeline with what each step costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adk_fluent.backends.viz import diagram, to_html
from adk_fluent.ir import AdkAgentNode, AgentNode, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.cost._estimate._measured import Measured
    from adk_fluent.cost._estimate._walk import Position
    from adk_fluent.ir import Node


@dataclass(slots=True)
class _Cost:
    """What a node costs in a run, in all of its places."""

    usd: float = 0.0
    calls: float = 0.0
    unpriced: list[str] = field(default_factory=list[str])


def picture(positions: Sequence[Position], text: str, measured: Measured | None) -> str:
    """Return a page with the pipeline, and the money in the boxes of its steps.

    Args:
        positions: The pipeline, each position before those inside it.
        text: What stands above it.
        measured: What runs did cost.
    """
    costs: dict[int, _Cost] = {}
    for here in positions:
        cost, runs = costs.setdefault(id(here.node), _Cost()), here.runs.mean
        if isinstance(here.node, AgentNode):
            cost.usd += here.own.mean * runs if here.own else 0.0
            cost.calls += here.calls.mean * runs
            cost.unpriced += [model or "its model" for model, _, usd in here.asked if usd is None]
        else:
            cost.usd += here.cost.mean * runs

    def notes(node: Node) -> Iterator[str]:
        cost = costs.get(id(node))
        if isinstance(node, AdkAgentNode | RemoteAgentNode):
            yield "costs: nobody sees its models"
        elif isinstance(node, AgentNode) and cost is not None and node.mock is None:
            if cost.unpriced:
                yield f"no price is known of {', '.join(dict.fromkeys(cost.unpriced))}"
            if cost.usd or not cost.unpriced:
                yield f"${cost.usd:.6f} a run"
            yield f"{cost.calls:.2f} calls"
        elif cost is not None and cost.usd:
            yield f"${cost.usd:.6f} a run in all"
        is_agent = isinstance(node, AgentNode | AdkAgentNode | RemoteAgentNode)
        if measured is not None and is_agent:
            yield f"measured: {measured.said(node.name)}, {measured.calls(node.name):.2f} calls"

    return to_html(diagram(positions[0].node, notes=notes), text)
