"""What is taken for true of values and cannot be seen: that they are there, and as what.

A step may be understood, and what it writes not: a helper's result may be None, or of any type.
Nothing speaks for that, so that it is no finding, but nothing is proven either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._dataflow._schema import held_to_schemas
from adk_fluent.contracts._dataflow._values import Need
from adk_fluent.contracts._dataflow._words import wanted
from adk_fluent.contracts._opaque import Opaque
from adk_fluent.contracts._structure._agents import needed_artifacts
from adk_fluent.contracts._types import keeps, name_of
from adk_fluent.ir import AgentNode, MapOverNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._dataflow._analysis import Analysis
    from adk_fluent.contracts._dataflow._kinds import Kinds
    from adk_fluent.contracts._dataflow._values import Def
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node

#: Whose doubt it is, and what is not known.
Doubt = tuple["Node", str]


def doubts(graph: Graph, analysis: Analysis, kinds: Kinds) -> Iterator[Opaque]:
    """Each doubt once, in the order of the reads and writes that it is about.

    Args:
        graph: The pipeline.
        analysis: What it does to state.
        kinds: What values its keys may have.
    """
    told = set[tuple[int, str]]()
    for found in (
        _of_reads(graph, analysis, kinds),
        _of_writes(graph, analysis, kinds),
        _of_reducers(graph, analysis),
        _of_artifacts(graph),
    ):
        for node, what in found:
            place = (id(node), what)
            if place not in told:
                told.add(place)
                yield Opaque(node.name, f"whether {what} is not known", node.location)


def _of_reads(graph: Graph, analysis: Analysis, kinds: Kinds) -> Iterator[Doubt]:
    checked = _checked_inputs(graph)
    for site in analysis.sites:
        required = site.need is Need.REQUIRED
        if site.type is None and not (required and any(map(_may_be_none, site.kinds))):
            continue
        for kind in kinds.found(site):
            by = kind.by
            if required and by is not None and (kind.gives_none or by.assumed):
                yield by.node, f"it gives `{site.key}` a value or None"
            if site.type is None or kind.is_certain(site.type) or kind.misfits(site.type):
                continue
            if by is not None:
                yield by.node, f"what it gives `{site.key}` is {wanted(site)}"
            elif site.key not in checked:
                yield site.node, f"the input `{site.key}` is {wanted(site)}"


def _may_be_none(made: Def) -> bool:
    """Whether a definition has to be looked at more closely."""
    kind = made.type
    return made.assumed or made.depends or (kind is not None and kind is not str)


def _checked_inputs(graph: Graph) -> frozenset[str]:
    """Inputs that a run looks at by itself before it begins, by a schema around all."""
    contract = graph.boundary.contract
    schema = None if contract is None or contract.schema is None else contract.schema.value
    return frozenset(getattr(schema, "__state_fields__", ()))


def _of_writes(graph: Graph, analysis: Analysis, kinds: Kinds) -> Iterator[Doubt]:
    """Writes that a schema looks at, and may refuse."""
    for made, declared in held_to_schemas(graph, analysis):
        given = kinds.written(made)
        if not all(each.is_certain(declared) or each.misfits(declared) for each in given):
            yield made.node, f"what it gives `{made.key}` is {name_of(declared)}"
    for made in analysis.defs:
        if made.doubtful:
            yield made.node, f"what it gives `{made.key}` is {name_of(made.type)}"


def _of_reducers(graph: Graph, analysis: Analysis) -> Iterator[Doubt]:
    """Keys whose values are joined by functions that may give anything."""
    keys = {key for _, key, *_ in analysis.clashes}
    maps = any(isinstance(each, MapOverNode) for each in graph.nodes)
    for made in analysis.defs if analysis.reduced else ():
        reducer, kind = analysis.reduced.get(made.key, (None, None))
        if reducer is not None and (maps or made.key in keys) and not keeps(reducer, kind):
            yield made.node, f"what the reducer of `{made.key}` gives is {name_of(kind)}"


def _of_artifacts(graph: Graph) -> Iterator[Doubt]:
    for agent in graph.of(AgentNode):
        for name in needed_artifacts(agent):
            yield agent, f"there is an artifact `{name}`"
