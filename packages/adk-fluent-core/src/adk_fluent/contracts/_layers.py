"""Layers: what belongs to a wheel that is not installed is reported, never passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent._hints import PROVIDERS, WHEELS
from adk_fluent._registry import found
from adk_fluent.contracts._checkers import all_checkers
from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import LayerAbsent
from adk_fluent.contracts._structure._declared import middleware_stacks
from adk_fluent.contracts._subject import graph_of
from adk_fluent.ir import AppNode, ExecutionBoundary, MiddlewareRef, Ref, TelemetryConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.contracts._subject import Checkable
    from adk_fluent.errors import LayerError
    from adk_fluent.ir import Node

_CORE: Final = "core"


def absent_layers(graph: Graph, installed: Collection[str]) -> Iterator[tuple[str, Diagnostic]]:
    """The layers a pipeline needs and nobody has installed, each with one finding."""
    for layer, users in sorted(_users(graph).items()):
        if layer not in installed:
            yield layer, _finding(graph, layer, users)


def broken_layers(graph: Graph, errors: Iterable[LayerError]) -> Iterator[Diagnostic]:
    """A finding for each installed layer whose checks cannot run, or not all of them."""
    users = _users(graph)
    for error in errors:
        node, _, severity = users.get(error.layer, [(graph.root, "", Severity.WARNING)])[0]
        yield LayerAbsent.at(
            graph,
            node,
            f"the layer `{error.layer}` is broken, and not all of its checks were made: "
            f"{error.what}",
            severity=severity,
            related=[Related(str(line)) for line in (error.location, error.found) if line],
            help=error.help,
        )


def check_boundary_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """What the layer ``distributed`` finds wrong with execution boundaries (spec section 9).

    Args:
        pipeline: A builder, a node, or the graph that a checker is given.

    Returns:
        The findings of the layer's checkers; `LayerAbsent` where the pipeline needs the layer and
        it is not installed.

    Raises:
        UsageError: It is no pipeline.
        CheckerError: A checker failed.
    """
    return _checked_by("distributed", pipeline)


def check_a2a_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """What the layer ``a2a`` finds wrong with remote agents (spec section 4).

    Arguments, result and errors are those of `check_boundary_contracts`.
    """
    return _checked_by("a2a", pipeline)


def check_cost_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """What the layer ``cost`` finds wrong with models that are chosen at run time (spec section 3).

    Arguments, result and errors are those of `check_boundary_contracts`.
    """
    return _checked_by("cost", pipeline)


def _checked_by(layer: str, pipeline: Checkable) -> list[Diagnostic]:
    graph = graph_of(pipeline)
    checkers, errors = all_checkers()
    findings = [d for each in checkers if each.layer == layer for d in each.run(graph)]
    findings += broken_layers(graph, (each for each in errors if each.layer == layer))
    absent = dict(absent_layers(graph, found()))
    return [*findings, absent[layer]] if layer in absent else findings


def _users(graph: Graph) -> dict[str, list[tuple[Node, str, Severity]]]:
    """What of a pipeline belongs to which layer, what cannot do without it first."""
    users: dict[str, list[tuple[Node, str, Severity]]] = {}
    for node in graph.nodes:
        if node.layer != _CORE:
            users.setdefault(node.layer, []).append((node, type(node).__name__, Severity.ERROR))
        if isinstance(node, AppNode) and node.execution and node.execution.telemetry:
            use = (node, "telemetry", Severity.ERROR)
            users.setdefault(TelemetryConfig.layer, []).append(use)
    for node, stack in middleware_stacks(graph):
        for each in stack:
            ref = each.value if isinstance(each, Ref) else each
            layer = None
            if isinstance(ref, MiddlewareRef):
                layer = PROVIDERS["middleware"].get(ref.name)
            if layer is not None:
                use = (node, f"middleware {ref.name!r}", Severity.ERROR)
                users.setdefault(layer, []).append(use)
    for node in graph.nodes:
        if (boundary := node.boundary) is not None:  # the plain one holds in one process
            asked = ", ".join(boundary.beyond_process)
            severity = Severity.ERROR if asked else Severity.WARNING
            use = (node, f"execution boundary{asked and f' with {asked}'}", severity)
            users.setdefault(ExecutionBoundary.layer, []).append(use)
    for uses in users.values():
        uses.sort(key=lambda use: use[2] is not Severity.ERROR)
    return users


def _finding(graph: Graph, layer: str, users: list[tuple[Node, str, Severity]]) -> Diagnostic:
    node, what, severity = users[0]
    related = [Related.at(other, "used here too") for other, _, _ in users[1:3]]
    if len(users) > 3:
        related.append(Related(f"and in {len(users) - 3} more places"))
    return LayerAbsent.at(
        graph,
        node,
        f"`{node.name}` needs the layer `{layer}` ({what}), which is not installed",
        severity=severity,
        related=related,
        help=f"pip install {WHEELS.get(layer, f'adk-fluent-{layer}')}",
    )
