"""Where a write stands, seen from a read that it does not serve, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._effects import effects_of_function
from adk_fluent.ir import (
    AgentNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Node,
    ParallelNode,
    RaceNode,
    RouteNode,
    TransferNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.contracts._dataflow._values import Def, Site
    from adk_fluent.contracts._graph import Graph


def meeting(graph: Graph, one: Node, other: Node) -> Node | None:
    """What two nodes are both part of; None where that is not for sure one place."""
    above = graph.above([other])
    while id(one) not in above:
        parents = graph.parents(one)
        if len(parents) != 1:
            return None
        one = parents[0]
    return one


def is_survived(graph: Graph, node: Node) -> bool:
    """Whether a run may go on after a node has failed: without an item, or by another attempt."""
    while parents := graph.parents(node):
        above = parents[0]
        if isinstance(above, FallbackNode) and node is not above.attempts[-1]:
            return True
        if isinstance(above, MapOverNode) and above.on_error != "raise":
            return True
        racing = isinstance(above, RaceNode) or (
            isinstance(above, ParallelNode) and above.merge == "first_complete"
        )
        if racing and len(above.children) > 1:
            return True
        node = above
    return False


def elsewhere(graph: Graph, made: Def, site: Site) -> tuple[str, str]:
    """Where a key is written that has no value when it is read, and how to mend that.

    Returns:
        The end of a sentence about the write, and advice.
    """
    both = None if graph.of(TransferNode) else meeting(graph, made.node, site.node)
    if isinstance(both, RaceNode | FallbackNode | RouteNode | ParallelNode) and (
        both is not site.node
    ):
        what = "attempt" if isinstance(both, FallbackNode) else "branch"
        return f"in another {what} of `{both.name}`", f"write `{site.key}` before `{both.name}`"
    called = isinstance(both, AgentNode) and both is not made.node
    when = "elsewhere" if both is None or called else "later"
    return when, f"move what writes `{site.key}` before this"


def condition(graph: Graph, made: Def, site: Site) -> str:
    """When a write happens that need not happen before a read, as the end of a sentence."""
    own = _its_own(made)
    if own is not None:
        return own
    node, above = made.node, graph.above([site.node])
    otherwise = of_sources(made)
    if node is site.node:
        return "if it has run before"
    while len(parents := graph.parents(node)) == 1 and node is not site.node:
        node = parents[0]
        if id(node) in above and (node is not site.node or site.how != "promises"):
            break
        say = _CHOICES.get(type(node))
        if say is not None and (said := say(node)) is not None:
            return said
        if isinstance(node, LoopNode):
            otherwise = otherwise or f"in `{node.name}`, which may be left before that"
    if isinstance(node, AgentNode) and id(node) in above:
        return f"if `{node.name}` calls it first"
    return otherwise or ("" if site.gone else "on some ways only")


def _its_own(made: Def) -> str | None:
    """What a node itself makes a write of its own depend on."""
    node, key = made.node, made.key
    if isinstance(node, GateNode):
        return None if node.predicate is None else "if it asks"
    if isinstance(node, FunctionNode) and node.effects.opaque:
        may = effects_of_function(node.fn).may_write
        return "on some of its ways only" if any(ref.key == key for ref in may) else None
    if not isinstance(node, AgentNode):
        return None
    if by_call(made):
        return "if it calls a function that does"
    return "unless it hands over" if node.delegates else None


def of_sources(made: Def) -> str | None:
    """What must have a value, so that a write gives its key one."""
    others = [f"`{each.key}`" for each in made.sources or () if each.key != made.key]
    return f"if there is {' or '.join(others)}" if others else None


def by_call(made: Def) -> bool:
    """Whether an agent has not declared a write: a function does it that it may call."""
    node = made.node
    if not isinstance(node, AgentNode) or made.removes:
        return False
    return all(ref.key != made.key for ref in (*node.writes_keys, *node.tool_writes))


#: What may leave out some of what is below it, and what it is then that is written.
_CHOICES: Final[Mapping[type[Node], Callable[[Node], str | None]]] = {
    RouteNode: lambda node: f"in a branch of `{node.name}`",
    RaceNode: lambda node: f"in a branch of `{node.name}`, if that wins",
    ParallelNode: lambda node: (
        f"in a branch of `{node.name}`, if that is first"
        if isinstance(node, ParallelNode) and node.merge == "first_complete"
        else None
    ),
    FallbackNode: lambda node: f"in an attempt of `{node.name}`",
    MapOverNode: lambda node: f"for each item of `{node.name}`, if there is any",
    AgentNode: lambda node: f"if `{node.name}` calls it",
}
