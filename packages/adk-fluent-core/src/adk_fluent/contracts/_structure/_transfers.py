"""Transfers: each leads to one node, and none leads back to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import (
    AmbiguousTransferTarget,
    TransferCycle,
    UnknownTransferTarget,
)
from adk_fluent.ir import (
    AppNode,
    ExpectNode,
    FallbackNode,
    GateNode,
    MiddlewareNode,
    ParallelNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node

    Below = Callable[[Node], Sequence[Node]]


def check_transfer_targets(graph: Graph) -> Iterator[Diagnostic]:
    """A transfer names one node of the pipeline."""
    for node in graph.of(TransferNode):
        targets = graph.named.get(node.target)
        if targets is None:
            near = graph.suggest(node.target)
            yield UnknownTransferTarget.at(
                graph,
                node,
                f"nothing in the pipeline is called `{node.target}`",
                help=f"did you mean `{near}`?" if near else "name a step of this pipeline",
            )
            continue
        first = targets[0]
        other = next((each for each in targets[1:] if each != first), None)
        if other is not None:
            yield AmbiguousTransferTarget.at(
                graph,
                node,
                f"several different nodes are called `{node.target}`",
                related=[Related.at(each, "one is here") for each in (first, other)],
                help="give the target a name of its own",
            )


def check_transfer_cycles(graph: Graph) -> Iterator[Diagnostic]:
    """No transfer reaches itself again: an error if it must, a warning if it may."""
    transfers = graph.of(TransferNode)
    if not any(node.target in graph.named for node in transfers):
        return
    endless = _cycles(graph.nodes, _will_run(graph))
    cycle_of = _cycles(graph.nodes, _may_run(graph))
    cycles: dict[int, list[TransferNode]] = {}
    for node in transfers:
        if id(node) in cycle_of:
            cycles.setdefault(cycle_of[id(node)], []).append(node)
    for members in cycles.values():
        first = next((node for node in members if id(node) in endless), members[0])
        certain = id(first) in endless
        others = [node for node in members if node is not first]
        yield TransferCycle.at(
            graph,
            first,
            f"the transfer to `{first.target}` leads back to itself"
            + (", without end" if certain else " and may never end"),
            severity=Severity.ERROR if certain else Severity.WARNING,
            related=[
                Related.at(graph.named[first.target][0], f"`{first.target}` would run again"),
                *(Related.at(node, "by way of this transfer") for node in others[:3]),
            ],
            help="to repeat steps use a loop, as in `body * until(done, max=10)`",
        )


def _may_run(graph: Graph) -> Below:
    """What may run while a node does."""

    def below(node: Node) -> Sequence[Node]:
        if isinstance(node, TransferNode):
            return graph.named.get(node.target, ())[:1]
        return node.children

    return below


def _will_run(graph: Graph) -> Below:
    """What runs whenever a node does, as long as nothing fails."""
    stopping = graph.above([*graph.of(GateNode), *graph.of(ExpectNode)])

    def below(node: Node) -> Sequence[Node]:
        match node:
            case TransferNode():
                targets = graph.named.get(node.target, ())
                return targets[:1] if node.condition is None else ()
            case SequenceNode():
                stop = next((i for i, step in enumerate(node.steps) if id(step) in stopping), None)
                return node.steps if stop is None else node.steps[: stop + 1]
            case ParallelNode() if node.merge != "first_complete":
                return node.branches
            case FallbackNode():
                return node.attempts[:1]
            case TimeoutNode() | MiddlewareNode() | AppNode():
                return node.children[:1]
            case _:
                return ()

    return below


def _cycles(nodes: Sequence[Node], below: Below) -> dict[int, int]:
    """The nodes that can reach themselves, by id, with a number for each cycle.

    Tarjan's strongly connected components, with a stack of our own: each node and edge once.
    """
    order: dict[int, int] = {}  # when a node was found
    low: dict[int, int] = {}  # the earliest node that it is known to lead to
    path: list[tuple[int, Iterator[Node]]] = []
    found: list[int] = []  # nodes whose component is not complete
    cycles: dict[int, int] = {}
    closed: set[int] = set()
    for start in nodes:
        fresh = None if id(start) in order else start
        while fresh is not None or path:
            if fresh is not None:
                order[id(fresh)] = low[id(fresh)] = len(order)
                found.append(id(fresh))
                path.append((id(fresh), iter(below(fresh))))
            here, rest = path[-1]
            fresh = next((n for n in rest if not _known(n, here, order, low, closed)), None)
            if fresh is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[here])
                if low[here] == order[here]:
                    members = _pop_until(found, here)
                    closed.update(members)
                    if len(members) > 1:
                        cycles.update(dict.fromkeys(members, order[here]))
    return cycles


def _known(
    node: Node, parent: int, order: dict[int, int], low: dict[int, int], closed: set[int]
) -> bool:
    if id(node) not in order:
        return False
    if id(node) not in closed:
        low[parent] = min(low[parent], order[id(node)])
    return True


def _pop_until(stack: list[int], last: int) -> list[int]:
    popped = [stack.pop()]
    while popped[-1] != last:
        popped.append(stack.pop())
    return popped
