"""When a loop ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders._operands import as_predicate, positive

if TYPE_CHECKING:
    from adk_fluent.builders._types import PredicateLike
    from adk_fluent.ir import Predicate


class Until:
    """When a loop ends; made by `until`.

    Attributes:
        predicate: Tested after each iteration.
        max: Iterations at most.
    """

    __slots__ = ("max", "predicate")

    def __init__(self, predicate: Predicate, max: int) -> None:
        self.predicate: Predicate = predicate
        self.max: int = max

    def __repr__(self) -> str:
        return f"until({self.predicate!r}, max={self.max})"


def until(predicate: PredicateLike, *, max: int = 10) -> Until:
    """Say when a loop ends.

    Example:
        >>> from adk_fluent import until
        >>> until(lambda s: s["score"] > 8, max=3).max
        3

    Args:
        predicate: A function of state, sync or async, tested after each iteration.
        max: Iterations at most.
    """
    return Until(as_predicate(predicate, "until(...)"), positive(max, "max", whole=True))
