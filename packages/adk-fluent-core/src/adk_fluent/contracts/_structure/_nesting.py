"""Structure: nothing empty, nothing out of place, loops and maps that make sense."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts._reports._issues import (
    EmptyComposite,
    LoopWithoutExit,
    MisplacedNode,
    ShadowedKey,
    SingleAlternative,
)
from adk_fluent.contracts._structure._declared import app_middlewares, may_escalate
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    FallbackNode,
    LoopNode,
    MapOverNode,
    ModelSelectorNode,
    ParallelNode,
    RaceNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node

_DEFAULT: Final[Any] = {f.name: f.default for f in fields(LoopNode)}["max_iterations"]
_PARTS: Final[dict[type[Node], tuple[str, str, str]]] = {
    SequenceNode: ("sequence", "step", "steps"),
    ParallelNode: ("parallel", "branch", "branches"),
    RouteNode: ("route", "branch", "branches"),
    FallbackNode: ("fallback", "attempt", "attempts"),
    RaceNode: ("race", "branch", "branches"),
}


def check_composites(graph: Graph) -> Iterator[Diagnostic]:
    """Every composite has steps, and a choice has more than one."""
    for kind, (what, part, parts) in _PARTS.items():
        for node in graph.of(kind):
            count = len(node.children)
            if count == 0:
                yield EmptyComposite.at(
                    graph,
                    node,
                    f"{what} `{node.name}` has no {parts}",
                    help=f"give it at least one {part}, or leave it out",
                )
            elif count == 1 and _chooses(node):
                yield SingleAlternative.at(
                    graph,
                    node,
                    f"{what} `{node.name}` has only one {part}: `{node.children[0].name}`",
                    help=f"add another {part}, or use `{node.children[0].name}` by itself",
                )


def _chooses(node: Node) -> bool:
    if isinstance(node, ParallelNode):
        return node.merge == "first_complete"
    if isinstance(node, RouteNode):
        return node.default is not None  # one branch with a test is an `if`
    return isinstance(node, (FallbackNode, RaceNode))


def check_placement(graph: Graph) -> Iterator[Diagnostic]:
    """Nodes that only one field can hold stand in that field and nowhere else."""
    for app in graph.of(AppNode):
        if app is not graph.root:
            yield MisplacedNode.at(
                graph,
                app,
                f"application `{app.name}` stands inside `{graph.parents(app)[0].name}`",
                help="an application is only ever the root: use its pipeline here",
            )
        for node in app.resources:
            if not isinstance(node, ResourceNode):
                kind = type(node).__name__
                message = f"{kind} `{node.name}` stands among the resources of `{app.name}`"
                yield MisplacedNode.at(
                    graph, node, message, help="only a ResourceNode can be injected"
                )
    for resource in graph.of(ResourceNode):
        holder = next((p for p in graph.parents(resource) if not _injects(p, resource)), None)
        if resource is graph.root or holder is not None:
            yield _no_step(graph, resource, "the resources of an application")
    for selector in graph.of(ModelSelectorNode):
        holder = next((p for p in graph.parents(selector) if not _selects(p, selector)), None)
        if selector is graph.root or holder is not None:
            yield _no_step(graph, selector, "the model of an agent")


def _injects(parent: Node, resource: Node) -> bool:
    return isinstance(parent, AppNode) and parent.root is not resource


def _selects(parent: Node, selector: Node) -> bool:
    return isinstance(parent, AgentNode) and parent.selector is selector


def _no_step(graph: Graph, node: Node, place: str) -> Diagnostic:
    message = f"{type(node).__name__} `{node.name}` stands where a step is expected"
    return MisplacedNode.at(graph, node, message, help=f"it belongs to {place}")


def check_loops(graph: Graph) -> Iterator[Diagnostic]:
    """A loop nobody gave a number of iterations can end before the default number."""
    loops = [n for n in graph.of(LoopNode) if n.until is None and n.max_iterations == _DEFAULT]
    if not loops or app_middlewares(graph.root):
        return
    ended = graph.above(node for node in graph.nodes if may_escalate(node))
    for loop in loops:
        if id(loop) not in ended:
            yield LoopWithoutExit.at(
                graph,
                loop,
                f"nothing ends loop `{loop.name}` early: it always runs {_DEFAULT} times",
                help="say when to stop, as in `body * until(done, max=10)`, or how often",
            )


def check_maps(graph: Graph) -> Iterator[Diagnostic]:
    """The list, the item and the results of a map have keys of their own."""
    for node in graph.of(MapOverNode):
        written: dict[str | None, str] = {node.errors_key: "errors", node.output_key: "results"}
        if (what := written.get(node.list_key)) is not None:
            yield ShadowedKey.at(
                graph,
                node,
                f"`{node.name}` replaces its list `{node.list_key}` with the {what}",
                help=f"write the results to another key: run again, it would map its own {what}",
            )
        taken = {node.list_key: "list", **written}.get(node.item_key)
        if taken is not None:
            yield ShadowedKey.at(
                graph,
                node,
                f"`{node.name}` keeps each item under `{node.item_key}`, the key of its {taken}",
                help="use another item_key: the body would not see the " + taken,
            )
