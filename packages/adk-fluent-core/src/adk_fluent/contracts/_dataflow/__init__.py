"""Data flow: who gives state keys their values, who reads them, and on which ways.

`_analysis` says what each kind of node does to state; `_part` puts that together, bottom up, into
what the whole does; `_values` is what it is made of; `_verdicts` decides what each reader finds;
`_findings` says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._dataflow._analysis import Analysis
from adk_fluent.contracts._dataflow._findings import Findings

if TYPE_CHECKING:
    from adk_fluent.contracts._graph import Graph

__all__ = ["Findings", "findings"]


def findings(graph: Graph) -> Findings:
    """The findings of a pipeline."""
    analysis = Analysis(graph)
    if analysis.wipes:  # once more, now that all keys are known
        analysis = Analysis(graph, analysis.keys() | graph.world.inputs.keys())
    return Findings(graph, analysis.done())
