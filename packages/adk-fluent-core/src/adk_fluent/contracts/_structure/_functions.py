"""Functions over state: whether a run can call them with what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._calling import Misfit, misfits
from adk_fluent.contracts._reports._issues import UncallableFunction
from adk_fluent.contracts._structure._declared import predicates
from adk_fluent.ir import (
    AppNode,
    ExpectNode,
    FunctionNode,
    GateNode,
    LoopNode,
    Ref,
    ResourceNode,
    RouteNode,
    TapNode,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node

_CALLERS: Final = (
    *(FunctionNode, TransformNode, TapNode),
    *(RouteNode, ExpectNode, LoopNode, GateNode, TransferNode),
)


def check_functions(graph: Graph) -> Iterator[Diagnostic]:
    """Functions take the values they are called with, and resources fill what else they need."""
    names = resource_names(graph.root)
    known: dict[int, list[Misfit]] = {}
    for node in (node for kind in _CALLERS for node in graph.of(kind)):
        found: dict[str, Misfit] = {}
        for fn in _functions(node):
            if id(fn.value) not in known:
                known[id(fn.value)] = misfits(fn, names)
            found |= {each.what: each for each in known[id(fn.value)]}
        for each in found.values():
            own = each.what.startswith(f"`{node.name}` ")
            what = each.what if own else f"in `{node.name}`, {each.what}"
            yield UncallableFunction.at(graph, node, what, help=each.help)


def resource_names(root: Node) -> frozenset[str]:
    """The names of what runs of this very root have; a part lacks what the whole adds later."""
    every = root.resources if isinstance(root, AppNode) else ()
    return frozenset(each.name for each in every if isinstance(each, ResourceNode))


def _functions(node: Node) -> Sequence[Ref]:
    called: tuple[Any, ...] = predicates(node)
    if isinstance(node, FunctionNode | TransformNode | TapNode):
        called = (node.fn,)
    elif isinstance(node, GateNode):
        called = (*called, node.payload)
    return [each for each in called if isinstance(each, Ref)]
