"""The fallbacks of remote agents, as the engine runs them."""

from __future__ import annotations

from adk_fluent.ir import FallbackNode, Node, RemoteAgentNode, map, walk


def with_fallbacks(root: Node) -> Node:
    """Make a `FallbackNode` of each remote agent that has a fallback, which it loses."""
    if any(_falls_back(node) for node in walk(root)):
        return map(root, _apart)
    return root


def _falls_back(node: Node) -> bool:
    return isinstance(node, RemoteAgentNode) and node.fallback is not None


def _apart(node: Node) -> Node:
    if not isinstance(node, RemoteAgentNode) or node.fallback is None:
        return node
    attempts = (node.replace(fallback=None), node.fallback)
    return FallbackNode(f"{node.name}_or_fallback", attempts, location=node.location)
