"""What no checker can see into: code that sees state and does not say what it does with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts._effects import (
    effects_of_callback,
    effects_of_instruction,
    effects_of_node,
    effects_of_predicate,
    effects_of_tool,
)
from adk_fluent.contracts._structure._declared import predicates
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    FunctionNode,
    GateNode,
    Location,
    Ref,
    TapNode,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node

_FACT: Final = "opaque"


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
    if _FACT not in graph.facts:
        graph.facts[_FACT] = tuple(
            Opaque(node.name, why, node.location)
            for node in graph.nodes
            for why in (*_reasons(node), *_leads_nowhere(graph, node))
        )
    return cast("tuple[Opaque, ...]", graph.facts[_FACT])


def _reasons(node: Node) -> Iterator[str]:
    match node:
        case AgentNode():
            yield from _agent_reasons(node)
            return
        case FunctionNode() | TransformNode() | TapNode():
            name = node.fn.name if node.fn else node.name
            yield from _because(f"what `{name}` does to state", effects_of_node(node).opaque)
        case AdkAgentNode():
            yield "it is an agent built by hand"
        case GateNode() if node.payload is not None:
            what = f"what its payload `{node.payload.name}` reads"
            yield from _because(what, effects_of_predicate(node.payload).opaque)
        case _:
            pass
    for test in predicates(node):
        if isinstance(test, Ref):
            what = f"what its test `{test.name}` reads"
            yield from _because(what, effects_of_predicate(test).opaque)


def _leads_nowhere(graph: Graph, node: Node) -> Iterator[str]:
    if isinstance(node, TransferNode) and node.target not in graph.named:
        yield f"nothing in the pipeline is called `{node.target}`"


def _agent_reasons(node: AgentNode) -> Iterator[str]:
    if isinstance(node.instruction, Ref):
        what = f"what its instruction `{node.instruction.name}` reads"
        yield from _because(what, effects_of_instruction(node.instruction).opaque)
    for tool in node.tools:
        called = [tool.tool]
        if isinstance(tool.require_confirmation, Ref):
            called.append(tool.require_confirmation)
        for each in called:
            what = f"what its tool `{each.name}` does to state"
            yield from _because(what, effects_of_tool(each).opaque)
    for event, functions in node.callbacks:
        for each in functions:
            what = f"what its callback {event} `{each.name}` does to state"
            yield from _because(what, effects_of_callback(each).opaque)


def _because(what: str, clause: str | None) -> Iterator[str]:
    if clause is not None:
        yield f"{what} is not known: {clause}"
