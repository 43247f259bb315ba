"""Routes: every case has a branch, and every branch a case."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._dataflow._checks import routed_of
from adk_fluent.contracts._dataflow._words import writers
from adk_fluent.contracts._reports._diagnostic import Related
from adk_fluent.contracts._reports._issues import RouteWithoutDefault, UnreachableBranch
from adk_fluent.ir import Match, RouteNode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._dataflow._branches import Routed
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Predicate


def check_routes(graph: Graph) -> Iterator[Diagnostic]:
    """A route has a default, and no branch that can never run."""
    found: dict[int, list[Routed]] = {}
    for each in routed_of(graph):
        found.setdefault(id(each.route), []).append(each)
    for route in graph.of(RouteNode):
        keys = found.get(id(route), [])
        if route.default is None and route.branches and not any(each.is_covered for each in keys):
            yield _without_default(graph, route, keys)
        taken: set[int] = set()
        for number, finding in _unreachable(graph, route):
            taken.add(number)
            yield finding
        for each in keys:
            yield from _impossible(graph, each, taken)


def _without_default(graph: Graph, route: RouteNode, keys: Sequence[Routed]) -> Diagnostic:
    does = f"route `{route.name}` does nothing when no test holds"
    text = next((each for each in keys if each.free), None)
    if text is None:
        return RouteWithoutDefault.at(
            graph, route, does, help="add .otherwise(...) if that case matters"
        )
    return RouteWithoutDefault.at(
        graph,
        route,
        f"{does}, and `{text.key}` is free text: a model may say anything",
        related=writers(text.by),
        help="add .otherwise(...), or let the agent choose: agent @ Literal[...]",
    )


def _impossible(graph: Graph, found: Routed, taken: set[int]) -> Iterator[Diagnostic]:
    for number in found.impossible():
        if number in taken:
            continue
        branch = found.route.branches[number]
        values = ", ".join(dict.fromkeys(repr(each) for each in found.members or ()))
        yield UnreachableBranch.at(
            graph,
            branch,
            f"`{branch.name}` never runs: `{_text(found.route.tests[number])}` holds for no value "
            f"that `{found.key}` may have",
            related=writers(found.by),
            help=f"test one of its values: {values}",
        )


def _unreachable(graph: Graph, route: RouteNode) -> Iterator[tuple[int, Diagnostic]]:
    seen = _Seen()
    for number, (test, branch) in enumerate(zip(route.tests, route.branches, strict=False)):
        by = seen.covers(test, number)
        if by is not None:
            first, winner = route.tests[by], route.branches[by]
            yield (
                number,
                UnreachableBranch.at(
                    graph,
                    branch,
                    f"`{branch.name}` never runs: when `{_text(test)}` holds, "
                    f"route `{route.name}` has taken `{winner.name}`",
                    related=[Related.at(winner, f"`{_text(first)}` is tested first")],
                    help="put the narrower test first, or remove this branch",
                ),
            )


def _text(test: Predicate) -> str:
    return str(test) if isinstance(test, Match) else test.name


@dataclass
class _Bounds:
    """What the comparisons of one key took so far: a bound, and the branch it belongs to."""

    above: tuple[float, int] = (inf, -1)
    below: tuple[float, int] = (-inf, -1)


class _Seen:
    """The tests of a route up to here, such that asking whether they cover another is cheap."""

    def __init__(self) -> None:
        self.exact: dict[Predicate, int] = {}
        self.bounds: dict[str, _Bounds] = {}

    def covers(self, test: Predicate, number: int) -> int | None:
        """The branch that takes every case of this test; else remember it as branch `number`."""
        try:
            same = self.exact.setdefault(test, number)
        except TypeError:  # its constant has no hash, so it is compared with nothing
            return None
        if same != number:
            return same
        return self._bounded(test, number) if isinstance(test, Match) else None

    def _bounded(self, test: Match, number: int) -> int | None:
        value: Any = test.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or isnan(value):
            return None
        bounds = self.bounds.setdefault(test.key, _Bounds())
        (above, by_above), (below, by_below) = bounds.above, bounds.below
        match test.operator:
            case "gt" if value >= above:
                return by_above
            case "gt":
                bounds.above = (value, number)
            case "lt" if value <= below:
                return by_below
            case "lt":
                bounds.below = (value, number)
            case "eq" if value > above:
                return by_above
            case "eq" if value < below:
                return by_below
            case _:
                pass
        return None
