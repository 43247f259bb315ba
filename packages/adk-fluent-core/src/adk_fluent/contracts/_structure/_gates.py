"""Gates that people and later steps cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._reports._diagnostic import Related
from adk_fluent.contracts._reports._issues import DuplicateGate
from adk_fluent.ir import FallbackNode, GateNode, RouteNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node


def check_gate_names(graph: Graph) -> Iterator[Diagnostic]:
    """No two gates of one run share a name or a key; the same gate may stand in several places."""
    names: dict[str, _First] = {}
    keys: dict[str, _First] = {}
    for gate in graph.of(GateNode):
        key = gate.key or gate.name
        named = names.setdefault(gate.name, _First(graph, gate))
        keyed = keys.setdefault(key, _First(graph, gate))
        if named.meets(gate):
            same = f", and write `{key}`" if (named.gate.key or named.gate.name) == key else ""
            yield DuplicateGate.at(
                graph,
                gate,
                f"two different gates are called `{gate.name}`{same}",
                related=[Related.at(named.gate, "the other one is here")],
                help="name them apart: gate(..., name=...) tells questions, and what is answered "
                "to them, from each other",
            )
        elif keyed.meets(gate):
            yield DuplicateGate.at(
                graph,
                gate,
                f"the gates `{keyed.gate.name}` and `{gate.name}` write the same key `{key}`",
                related=[Related.at(keyed.gate, "the other one is here")],
                help="give one of them another key: the later answer replaces the earlier one",
            )


class _First:
    """The first gate of a name or key.

    Attributes:
        gate: The gate.
    """

    __slots__ = ("_above", "_graph", "gate")

    def __init__(self, graph: Graph, gate: GateNode) -> None:
        self.gate: GateNode = gate
        self._graph = graph
        self._above: dict[int, Node] | None = None

    def meets(self, other: GateNode) -> bool:
        """Whether another gate may ask in the same run, and its answer count beside this one's."""
        if other is self.gate:
            return False
        if self._above is None:
            self._above = {id(parent): child for child, parent in _up(self._graph, self.gate)}
        for child, parent in _up(self._graph, other):
            if id(parent) in self._above:
                apart = self._above[id(parent)] is not child
                return not (apart and isinstance(parent, RouteNode | FallbackNode))
        return True


def _up(graph: Graph, node: Node) -> Iterator[tuple[Node, Node]]:
    """The way to the root, by the first place where each node stands: child and parent."""
    while parents := graph.parents(node):
        yield node, parents[0]
        node = parents[0]
