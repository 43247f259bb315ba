"""What `check` finds about money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.cost._errors import PriceError
from adk_fluent.ir import ModelSelectorNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Graph


class InvalidCandidatePrice(Diagnostic, code="CST001", severity=Severity.ERROR):
    """A candidate's price is none, or off by orders of magnitude from the one that is known."""


def check_selectors(graph: Graph) -> Iterator[Diagnostic]:
    """Find what is wrong with the models that selectors choose among."""
    from adk_fluent.cost._selecting._candidates import table_of  # noqa: PLC0415  # few have selectors

    for node in graph.of(ModelSelectorNode):
        try:
            table_of(node.candidates)
        except PriceError as error:
            found = f": {error.found}" if error.found else ""
            yield InvalidCandidatePrice.at(
                graph, node, f"`{node.name}`: {error.what}{found}", help=error.help
            )
