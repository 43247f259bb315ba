"""Results that know of which types the answers of their pipeline are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.ir._answering import answer_types
from adk_fluent.protocol._output import Types

if TYPE_CHECKING:
    from adk_fluent.ir import Node
    from adk_fluent.protocol import RunResult


def with_types(result: RunResult, root: Node) -> RunResult:
    """A result that knows of which types the answers of its pipeline are."""
    result.types = Types(answer_types(root))
    return result
