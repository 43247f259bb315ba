"""Checks of remote agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import Diagnostic, Graph


def check_remote_agents(graph: Graph) -> Iterator[Diagnostic]:
    """Find what is wrong with remote agents."""
    yield from ()
