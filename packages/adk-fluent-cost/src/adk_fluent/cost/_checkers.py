"""What `check` finds about money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.ir import ModelSelectorNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Graph


class UnsupportedSelection(Diagnostic, code="CST001", severity=Severity.ERROR):
    """A model is to be chosen at run time, which this version cannot do."""


def check_selectors(graph: Graph) -> Iterator[Diagnostic]:
    """Find models that would have to be chosen at run time."""
    for node in graph.of(ModelSelectorNode):
        yield UnsupportedSelection.at(
            graph,
            node,
            f"`{node.name}`: this version of adk-fluent-cost cannot choose models at run time",
            help='name a model, or use Budget(on_exceed="fallback", fallback_model=...)',
        )
