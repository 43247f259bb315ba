"""The route builder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._words import describe
from adk_fluent.builders._branching import checked_scalar
from adk_fluent.builders._flow import Builder
from adk_fluent.builders._keys import as_key
from adk_fluent.builders._operands import as_node, as_predicate, passengers
from adk_fluent.builders._settings import as_flag
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import Match, Node, Predicate, RouteNode

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.builders._base import StepLike
    from adk_fluent.builders._types import KeyLike, PredicateLike

#: What a state key can be compared with for equality.
Scalar = str | float | bool | None


class Route(Builder):
    """The first branch whose test holds, else the one of `otherwise`, else nothing.

    Example:
        >>> from adk_fluent import Agent, Route
        >>> Route("intent").eq("billing", Agent("billing")).otherwise(Agent("general"))
        <Route 'route'>

    Args:
        key: The state key that `eq`, `contains`, `gt` and `lt` look at.
        name: Its name.
    """

    __slots__ = ("_branches", "_default", "_key", "_tests")
    _kind = "route"

    def __init__(self, key: KeyLike | None = None, *, name: str | None = None) -> None:
        super().__init__(name)
        self._key = None if key is None else as_key(key, "Route(...)").key
        self._tests: list[Predicate] = []
        self._branches: list[Node] = []
        self._default: Node | None = None

    def eq(self, value: Scalar, step: StepLike) -> Self:
        """Run a step if the key equals a value."""
        return self._match("eq", checked_scalar(value), step)

    def contains(self, value: str | float | bool, step: StepLike, *, case: bool = False) -> Self:
        """Run a step if a value occurs in the key's text or list.

        Args:
            value: What has to occur.
            step: What runs then.
            case: Whether it has to occur in the very same letter case: ``Billing.`` contains
                ``billing`` if it need not.
        """
        operator = "contains_case" if as_flag(case, "case=") else "contains"
        return self._match(operator, checked_scalar(value), step)

    def gt(self, value: str | float, step: StepLike) -> Self:
        """Run a step if the key is greater than a value."""
        return self._match("gt", _ordered(value), step)

    def lt(self, value: str | float, step: StepLike) -> Self:
        """Run a step if the key is less than a value."""
        return self._match("lt", _ordered(value), step)

    def when(self, predicate: PredicateLike, step: StepLike) -> Self:
        """Run a step if a predicate over the whole state holds; it may be async."""
        return self._add(as_predicate(predicate, ".when(...)"), step)

    def otherwise(self, step: StepLike) -> Self:
        """Run a step if no test holds.

        Raises:
            BuildError: There is such a step already.
        """
        if self._default is not None:
            raise BuildError(
                f"route {self.name!r} has an otherwise already",
                found=f"{self._default.name!r}",
                help="only one step can run when no test holds",
            )
        self._default = as_node(step, "a branch")
        return self._board(passengers(step))

    def _match(self, operator: Any, value: Any, step: StepLike) -> Self:
        if self._key is None:
            method = operator.removesuffix("_case")
            raise BuildError(
                f"route {self.name!r} has no key to compare",
                help=f'write Route("key").{method}(...), or use .when(lambda state: ..., step)',
            )
        return self._add(Match(operator, self._key, value), step)

    def _add(self, test: Predicate, step: StepLike) -> Self:
        self._branches.append(as_node(step, "a branch"))
        self._tests.append(test)
        return self._board(passengers(step))

    def _freeze(self) -> Node:
        if not self._branches:
            raise BuildError(
                f"route {self.name!r} has no branches",
                location=self._location,
                help='add one with .eq("value", step) or .when(lambda state: ..., step)',
            )
        return RouteNode(
            self.name,
            self._key,
            tuple(self._tests),
            tuple(self._branches),
            self._default,
            location=self._location,
        )


def _ordered(value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    raise UsageError(
        "greater and less need a number or text",
        found=describe(value),
    )
