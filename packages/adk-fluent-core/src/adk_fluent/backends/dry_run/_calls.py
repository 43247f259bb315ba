"""How often what is called in a whole pipeline, from the leaves up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.backends.dry_run._count import ONCE, PERHAPS, Count, least_of
from adk_fluent.backends.dry_run._rules import Loops, models_called, remotes_called, times
from adk_fluent.ir import FallbackNode, Node, ParallelNode, RaceNode, RouteNode, TransferNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adk_fluent.ir import ExecutionConfig

#: Name of what is called, to how often.
Calls = dict[str, Count]


def calls_of(
    root: Node, named: Mapping[str, Node], config: ExecutionConfig | None
) -> tuple[Calls, Calls]:
    """The models and the remote agents that a pipeline calls.

    Args:
        root: The pipeline.
        named: Where transfers lead.
        config: Its default model counts.
    """
    loops = Loops.of(root)
    models = _Counting(loops, named, lambda node: models_called(node, config))
    remotes = _Counting(loops, named, remotes_called)
    return models.of(root), remotes.of(root)


class _Counting:
    def __init__(
        self,
        loops: Loops,
        named: Mapping[str, Node],
        own: Callable[[Node], Calls],
    ) -> None:
        self._loops, self._named, self._own = loops, named, own
        self._done: dict[int, Calls] = {}

    def of(self, root: Node) -> Calls:
        """Parts and the targets of transfers come first; a transfer back to itself adds nothing."""
        todo: list[tuple[Node, bool]] = [(root, False)]
        under_way: set[int] = set()
        while todo:
            node, ready = todo.pop()
            if id(node) in self._done:
                continue
            if ready:
                under_way.discard(id(node))
                self._done[id(node)] = self._calls(node)
                continue
            if id(node) in under_way:
                continue
            under_way.add(id(node))
            todo.append((node, True))
            todo.extend((each, False) for each in reversed(self._needed(node)))
        return self._done[id(root)]

    def _needed(self, node: Node) -> list[Node]:
        target = self._target(node)
        return [*node.children, *([] if target is None else [target])]

    def _target(self, node: Node) -> Node | None:
        return self._named.get(node.target) if isinstance(node, TransferNode) else None

    def _calls(self, node: Node) -> Calls:
        total = dict(self._own(node))
        target = self._target(node)
        if isinstance(node, TransferNode) and target is not None:
            once = PERHAPS if node.condition is not None else ONCE
            _add(total, _scaled(self._done.get(id(target), {}), once))
        counts = times(node, self._loops)
        parts = [self._done.get(id(each), {}) for each in node.children]
        scaled = [_scaled(calls, count) for calls, count in zip(parts, counts, strict=True)]
        if isinstance(node, RouteNode | RaceNode | FallbackNode) or (
            isinstance(node, ParallelNode) and node.merge == "first_complete"
        ):
            _add(total, _alternatives(node, parts, scaled))
        else:
            for calls in scaled:
                _add(total, calls)
        return total


def _scaled(calls: Calls, count: Count) -> Calls:
    if count == ONCE:
        return calls
    return {name: each * count for name, each in calls.items()}


def _add(total: Calls, more: Calls) -> None:
    for name, count in more.items():
        total[name] = total.get(name, Count()) + count


def _alternatives(node: Node, parts: list[Calls], scaled: list[Calls]) -> Calls:
    """One part comes to its end; of a route only one runs, of the others every one may."""
    total: Calls = {}
    for calls in scaled:
        _add(total, calls)
    nothing_runs = isinstance(node, RouteNode) and node.default is None
    for name, count in total.items():
        ends = [each.get(name, Count()) for each in parts]
        least = 0 if nothing_runs else least_of(ends)
        most = _most(ends) if isinstance(node, RouteNode) else count.at_most
        total[name] = Count(least, most)
    return total


def _most(counts: Iterable[Count]) -> int | None:
    bounds = [each.at_most for each in counts]
    return None if None in bounds else max(each or 0 for each in bounds)
