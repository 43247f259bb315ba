"""What a check is given: a builder, a node, or a graph that was made of one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from adk_fluent.contracts._graph import Graph
from adk_fluent.errors import UsageError
from adk_fluent.ir import Node


@runtime_checkable
class HasIR(Protocol):
    """Something that turns into a node: every builder does."""

    def to_ir(self) -> Node:
        """The node it stands for."""
        ...


#: What the checks of one kind take.
Checkable = Node | HasIR | Graph


def node_of(thing: object) -> Node:
    """The pipeline as IR.

    Raises:
        UsageError: It is no pipeline.
    """
    if isinstance(thing, Node):
        return thing
    if isinstance(thing, HasIR) and not isinstance(thing, type):
        return thing.to_ir()
    raise UsageError(
        "only a pipeline can be checked",
        found=f"a {type(thing).__name__}",
        help="pass a builder such as Agent(...) >> Agent(...), or its .to_ir()",
    )


def graph_of(thing: object) -> Graph:
    """The pipeline as checkers see it.

    Raises:
        UsageError: It is no pipeline.
    """
    return thing if isinstance(thing, Graph) else Graph(node_of(thing))
