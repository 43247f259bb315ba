"""Data flow: who gives state keys their values, who reads them, and on which ways.

`_leaves` says what single steps do to state, `_analysis` what arrangements make of their parts;
`_part` is how parts are put together, bottom up, and `_values` what they are made of. `_verdicts`
decides what each reader finds; `_misses`, `_types`, `_schema` and `_findings` say what is wrong.
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
    return Findings(graph, analysis)
