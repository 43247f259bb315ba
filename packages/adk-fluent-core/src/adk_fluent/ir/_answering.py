"""Which steps of a pipeline give its answer, and of which types that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.ir._agents import AdkAgentNode, AgentNode, RemoteAgentNode
from adk_fluent.ir._flow import SequenceNode, TransferNode
from adk_fluent.ir._node import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.ir._node import Node

_AGENTS: Final = (AgentNode, AdkAgentNode, RemoteAgentNode, TransferNode)


def answer_types(root: Node) -> Mapping[str, Any]:
    """The agents whose answer is the pipeline's, by name, each with its type.

    Of a sequence that is the last part in which there is an agent. An agent that answers in text is
    left out; None stands for the type of several keys, or of typed ones.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, TransferNode):
            todo.extend(each for each in distinct(root) if each.name == node.target)
        elif isinstance(node, SequenceNode):
            last = next((each for each in reversed(node.steps) if _speaks(each)), None)
            todo.extend(() if last is None else (last,))
        elif isinstance(node, AgentNode | RemoteAgentNode):
            keys = node.writes_keys
            if node.output_schema is not None:
                found[node.name] = node.output_schema.value
            elif len(keys) > 1 or any(ref.type not in (None, str) for ref in keys):
                found[node.name] = None
            if isinstance(node, RemoteAgentNode) and node.fallback is not None:
                todo.append(node.fallback)
        elif isinstance(node, AdkAgentNode):
            schema: Any = getattr(node.agent.value, "output_schema", None)
            if schema is not None:
                found[node.name] = schema
        else:
            todo.extend(node.children)
    return {name: schema for name, schema in found.items() if not _is_genai(schema)}


def _speaks(node: Node) -> bool:
    """Whether there is an agent in a node."""
    return any(isinstance(each, _AGENTS) for each in distinct(node))


def _is_genai(schema: object) -> bool:
    """Whether a schema is in genai's own notation, which only the model checks."""
    return isinstance(schema, dict) or type(schema).__module__.startswith("google.")
