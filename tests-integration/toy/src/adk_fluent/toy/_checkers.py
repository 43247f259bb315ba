"""The toy's checker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.toy._nodes import EchoNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Graph


class EmptyEcho(Diagnostic, code="TOY001", severity=Severity.WARNING):
    """An echo has nothing to say."""


def check_echoes(graph: Graph) -> Iterator[Diagnostic]:
    """Find echoes without a text."""
    for node in graph.of(EchoNode):
        if not node.text.strip():
            yield EmptyEcho.at(graph, node, f"`{node.name}` is empty", help="give it a text")
