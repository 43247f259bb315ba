"""What no checker can see into: code that sees state and does not say what it does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._declared import predicates
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    FunctionNode,
    GateNode,
    Location,
    Ref,
    TapNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node


@dataclass(frozen=True, slots=True)
class Opaque:
    """A step whose use of state is not known, so that nothing is proven about it.

    Attributes:
        node: Its name.
        why: What cannot be seen into.
        location: The builder call that made it, if known.
    """

    node: str
    why: str
    location: Location | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        where = self.location and {"file": self.location.file, "line": self.location.line}
        return {"node": self.node, "why": self.why, "location": where}


def opaque_nodes(graph: Graph) -> tuple[Opaque, ...]:
    """Every opaque node of a pipeline, in declared order."""
    return tuple(
        Opaque(node.name, why, node.location) for node in graph.nodes for why in _reasons(node)
    )


def _reasons(node: Node) -> Iterator[str]:
    match node:
        case FunctionNode() | TransformNode() | TapNode() if node.effects.opaque:
            name = node.fn.name if node.fn else node.name
            yield f"what `{name}` reads and writes is not declared"
        case AdkAgentNode():
            yield "it is an agent built by hand"
        case AgentNode():
            yield from _agent_reasons(node)
        case GateNode() if node.payload is not None:
            yield f"what its payload `{node.payload.name}` reads is not declared"
        case _:
            pass
    for test in predicates(node):
        if isinstance(test, Ref):
            yield f"what its test `{test.name}` reads is not declared"


def _agent_reasons(node: AgentNode) -> Iterator[str]:
    if isinstance(node.instruction, Ref):
        yield f"its instruction is made by `{node.instruction.name}`"
    for tool in node.tools:
        yield f"its tool `{tool.name}` may read and write any state"
    for event, _ in node.callbacks:
        yield f"its callback {event} may read and write any state"
