"""What one step of an agent may do, and what it leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.ir import AdkAgentNode, AgentNode, LoopNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.ir import Node


def may_call(node: Node) -> bool:
    """Whether an agent may call a tool, if no middleware gives it any."""
    if isinstance(node, AgentNode):
        return bool(node.tools or node.agent_tools or node.delegates)
    return isinstance(node, AdkAgentNode)


def asks_only(node: Node) -> bool:
    """Whether all that an agent does is to ask its model, if nobody else gives it anything."""
    return isinstance(node, AgentNode) and not (node.callbacks or node.settings or may_call(node))


def is_loop(node: Node) -> bool:
    return isinstance(node, LoopNode)


def drop_committed(drafts: dict[str, Any] | None, wrote: Mapping[str, Any]) -> None:
    """From here on the committed value counts, unless the step has written again meanwhile."""
    if not drafts:
        return
    for key, value in wrote.items():
        if key in drafts and (drafts[key] is value or drafts[key] == value):
            del drafts[key]
