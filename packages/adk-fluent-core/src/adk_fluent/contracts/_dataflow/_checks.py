"""State: whether every reader finds what it needs, and of the type that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.contracts._dataflow import Findings, findings
from adk_fluent.contracts._subject import graph_of

if TYPE_CHECKING:
    from adk_fluent.contracts._dataflow._branches import Routed
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._opaque import Opaque
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.contracts._subject import Checkable
    from adk_fluent.ir import Node

_FACT = "dataflow"


@dataclass(frozen=True, slots=True)
class StateFlow:
    """A value of session state on its way from a step to one that may read it.

    Attributes:
        key: The key.
        writer: Who writes it.
        reader: Who may read it.
        type: What it is written as, as far as that is known.
    """

    key: str
    writer: Node
    reader: Node
    type: Any = None


def state_flows(graph: Graph) -> list[StateFlow]:
    """Return which values of session state steps may read that other steps have written.

    Args:
        graph: The pipeline, as a checker is given it; one that is not legal has none.
    """
    found = _findings(graph)
    flows = () if found is None else found.flows()
    return [StateFlow(site.key, each.node, site.node, each.type) for each, site in flows]


def check_dataflow_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """Every key that is read has a value by then, and what is written is read.

    Args:
        pipeline: What is checked.

    Raises:
        UsageError: It is no pipeline.
    """
    found = _findings(graph_of(pipeline))
    if found is None:
        return []
    return [*found.of_reads(), *found.of_clashes(), *found.of_dead()]


def check_type_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """Every key is read as what it is written as, and used as the schemas around it declare.

    Args:
        pipeline: What is checked.

    Raises:
        UsageError: It is no pipeline.
    """
    found = _findings(graph_of(pipeline))
    if found is None:
        return []
    return [*found.of_schemas(), *found.of_types()]


def doubts(graph: Graph) -> list[Opaque]:
    """What is taken for true of values and cannot be seen."""
    found = _findings(graph)
    return [] if found is None else list(found.of_doubts())


def routed_of(graph: Graph) -> list[Routed]:
    """What routes may find under the keys that they test."""
    found = _findings(graph)
    return [] if found is None else list(found.routed().values())


def _findings(graph: Graph) -> Findings | None:
    """The analysis, which several checkers use and one makes; what is not legal has no meaning.

    Of a transfer that leads nowhere all is clear but what it does.
    """
    if _FACT not in graph.facts:
        illegal = any(each.rule != "reached" for each in graph.violations)
        graph.facts[_FACT] = None if illegal else findings(graph)
    return cast("Findings | None", graph.facts[_FACT])
