"""Routes on a key whose values are known, or that is free text."""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from adk_fluent.errors import UsageError
from adk_fluent.flow._functions import matches
from adk_fluent.ir import UNSET, AgentNode, Match, RouteNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._dataflow._kinds import Kind, Kinds
    from adk_fluent.contracts._dataflow._values import Def, Site


class Routed(NamedTuple):
    """What a route may find under a key that it tests.

    Attributes:
        route: The route.
        key: The key.
        members: Every value there may be, None aside; None if these are not known.
        by: Who writes them.
        free: Whether an agent writes it in its own words.
    """

    route: RouteNode
    key: str
    members: tuple[Any, ...] | None
    by: tuple[Def, ...]
    free: bool

    def impossible(self) -> Iterator[int]:
        """Branches whose test no value there may be fulfils, by number."""
        if self.members is None:
            return
        for number, test in enumerate(self.route.tests):
            if isinstance(test, Match) and test.key == self.key and not self._may_hold(test):
                yield number

    @property
    def is_covered(self) -> bool:
        """Whether each value there may be has a branch."""
        tests = [t for t in self.route.tests if isinstance(t, Match) and t.key == self.key]
        if not self.members:
            return False
        return all(any(_holds(test, each) for test in tests) for each in self.members)

    def _may_hold(self, test: Match) -> bool:
        return any(_holds(test, each) for each in (None, *(self.members or ())))


def routed(sites: Sequence[Site], kinds: Kinds) -> dict[tuple[int, str], Routed]:
    """What routes may find under each key that they test, by the route's id and the key."""
    found: dict[tuple[int, str], Routed] = {}
    for site in sites:
        route = site.node
        if not isinstance(route, RouteNode) or (id(route), site.key) in found:
            continue
        each = list(kinds.found(site))
        by = tuple(dict.fromkeys(kind.by for kind in each if kind.by is not None))
        open_ = site.tainted or site.entry or site.blurred or site.races is not None
        members = None if open_ or not each else _all_members(each)
        free = any(kind.type is str and kind.by and kind.value is UNSET for kind in each)
        free &= all(isinstance(made.node, AgentNode) for made in by)
        found[id(route), site.key] = Routed(route, site.key, members, by, free)
    return found


def _all_members(kinds: Sequence[Kind]) -> tuple[Any, ...] | None:
    members: list[Any] = []
    for kind in kinds:
        some = _members(kind.type) if kind.value is UNSET else None
        if some is None:
            return None
        members += some
    return tuple(members)


def _members(kind: Any) -> list[Any] | None:
    """The values of a type as state holds them; None if there are too many to tell."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _members(get_args(kind)[0])
    if origin is Literal:
        return [each.value if isinstance(each, Enum) else each for each in get_args(kind)]
    if origin in (Union, UnionType):
        found = [_members(each) for each in get_args(kind)]
        return None if None in found else [each for some in found for each in some or ()]
    if kind is NoneType:
        return [None]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [each.value for each in kind]
    return None


def _holds(test: Match, value: Any) -> bool:
    try:
        return matches(test, {test.key: value})
    except UsageError:  # found where types are compared
        return True
