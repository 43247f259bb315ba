"""Edges that stream: where each one begins, what ends there, and which steps it leads to.

Entry i of a sequence's edges leaves step i; the last one goes to the caller, which is whatever
stands behind the sequence. So what is `full` by itself hands on what streams out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    FallbackNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
    fold,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import EdgeSemantics, Node

#: What gives text that can come in pieces.
_SPEAKERS: Final = (AgentNode, AdkAgentNode, RemoteAgentNode, TransferNode)
_STREAMING: Final = ("chunked", "token")


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge that streams.

    Attributes:
        step: The step that it leaves.
        semantics: How.
        attempt_of: The fallback that it leaves out of an attempt that may fail.
    """

    step: Node
    semantics: EdgeSemantics
    attempt_of: FallbackNode | None = None

    @property
    def pieces(self) -> str:
        """How the output comes, for a message."""
        size = self.semantics.chunk_size
        if self.semantics.buffering == "token":
            return "token by token"
        return f"{size} tokens at a time"


@dataclass(frozen=True, slots=True)
class Tail:
    """What ends a step, and so what its output is.

    Attributes:
        parts: The agents whose answers it is, with the steps behind them that say nothing; those
            of a part of the step are shared with it.
        data: An agent among them whose answer is data of a schema.
        held: What gives nothing before all of it is done; None where it need not come to that.
        parallel: Branches whose output meets here.
        fallback: Attempts of which all but the last may fail.
    """

    parts: tuple[Node | Tail, ...] = ()
    data: Node | None = None
    held: Node | None = None
    parallel: ParallelNode | None = None
    fallback: FallbackNode | None = None

    def nodes(self) -> Iterator[Node]:
        """The agents and silent steps, each once."""
        todo: list[Node | Tail] = [self]
        seen = set[int]()
        while todo:
            part = todo.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            if isinstance(part, Tail):
                todo.extend(reversed(part.parts))
            else:
                yield part


class Edges:
    """The edges of a pipeline.

    Args:
        graph: The pipeline.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        speakers = [node for kind in _SPEAKERS for node in graph.of(kind)]
        self._speaking: set[int] = graph.above(speakers)
        self._out: dict[int, Edge | None] = {}
        self._tails: dict[int, Tail] = {}
        fold(graph.root, self._leave)
        fold(graph.root, self._end)

    def out(self, node: Node) -> Edge | None:
        """The edge with which the output of a node leaves it; None when it comes as a whole."""
        return self._out[id(node)]

    def behind(self, sequence: SequenceNode) -> Iterator[tuple[Edge, Node]]:
        """The edges between the steps of a sequence, each with the step that it leads to."""
        own = _own(sequence)
        for at, following in enumerate(sequence.steps[1:]):
            edge = own.get(at) or self.out(sequence.steps[at])
            if edge is not None:
                yield edge, following

    def speaks(self, node: Node) -> bool:
        """Whether anything in it gives text that can come in pieces."""
        return id(node) in self._speaking

    def tail(self, step: Node) -> Tail:
        """What ends a step."""
        return self._tails[id(step)]

    def arrivals(self) -> dict[int, Edge]:
        """The steps that begin with pieces of what stands before them, by id.

        A step in several places, or with several such steps before it, has the first edge found.
        """
        found: dict[int, Edge] = {}
        for edge, step in self._deliveries():
            todo = [step]
            while todo:
                node = todo.pop()
                if id(node) in found:
                    continue
                found[id(node)] = edge
                todo.extend(reversed(self._first(node)))
        return found

    def _deliveries(self) -> Iterator[tuple[Edge, Node]]:
        for node in self._graph.nodes:
            if isinstance(node, SequenceNode):
                yield from self.behind(node)
            elif isinstance(node, LoopNode) and node.until is None and node.max_iterations != 1:
                edge = self.out(node.body)
                if edge is not None:  # into the next iteration
                    yield edge, node.body

    def _first(self, node: Node) -> Sequence[Node]:
        """What begins when a node does."""
        match node:
            case SequenceNode():
                return node.steps[:1]
            case ParallelNode() | RaceNode():
                return node.branches
            case FallbackNode():
                return node.attempts
            case AppNode() | MiddlewareNode() | TimeoutNode() | LoopNode():
                return node.children[:1]
            case TransferNode() if node.condition is None:
                return self._graph.named.get(node.target, ())[:1]
            case _:
                return ()

    def _leave(self, node: Node, below: tuple[Edge | None, ...]) -> Edge | None:
        edge: Edge | None = None
        match node:
            case SequenceNode() if node.steps:
                edge = _own(node).get(len(node.steps) - 1) or below[-1]
            case LoopNode() if node.until is not None:
                pass  # the test stands behind it
            case FallbackNode():
                at, edge = next(((at, e) for at, e in enumerate(below) if e), (0, None))
                if edge is not None and at < len(below) - 1:
                    edge = Edge(edge.step, edge.semantics, node)
            case RouteNode() | AppNode() | MiddlewareNode() | TimeoutNode() | LoopNode():
                edge = next((each for each in below if each is not None), None)
            case ParallelNode() if node.merge == "interleave" or len(node.branches) == 1:
                edge = next((each for each in below if each is not None), None)
            case _:
                pass
        self._out[id(node)] = edge
        return edge

    def _end(self, node: Node, below: tuple[Tail, ...]) -> Tail:
        if isinstance(node, _SPEAKERS) or not below:
            tail = Tail((node,), node if gives_data(node) else None)
        elif isinstance(node, SequenceNode):
            spoken = (at for at in reversed(range(len(below))) if self.speaks(node.steps[at]))
            tail = _behind(below[next(spoken, 0) :])
        else:
            tail = _meeting(node, below)
        self._tails[id(node)] = tail
        return tail


def gives_data(node: Node) -> bool:
    """Whether what it says is data of a schema, as JSON text."""
    match node:
        case AgentNode():
            typed = any(ref.type not in (None, str) for ref in node.writes_keys)
            return node.output_schema is not None or len(node.writes_keys) > 1 or typed
        case RemoteAgentNode():
            return node.output_schema is not None
        case _:
            return False


def _behind(tails: Sequence[Tail]) -> Tail:
    """The tail of the last step that speaks, and those of the silent ones behind it."""
    first = tails[0]
    if len(tails) == 1:
        return first
    return Tail(tuple(tails), first.data, first.held, first.parallel, first.fallback)


def _meeting(node: Node, below: Sequence[Tail]) -> Tail:
    """The tail of what arranges others otherwise than one after the other."""
    alone = len(below) == 1
    held = node if isinstance(node, MapOverNode | RaceNode) or joins(node) else None
    parallel = node if isinstance(node, ParallelNode) else None
    fallback = node if isinstance(node, FallbackNode) and not alone else None
    if alone and held is parallel is None:
        return below[0]
    return Tail(
        (node, *below) if isinstance(node, MapOverNode) else tuple(below),
        next((each.data for each in below if each.data), None),
        held or (below[0].held if alone else None),
        parallel or next((each.parallel for each in below if each.parallel), None),
        fallback or next((each.fallback for each in below if each.fallback), None),
    )


def joins(node: Node) -> bool:
    """Whether it hands on nothing before its branches have met."""
    return isinstance(node, ParallelNode) and node.merge != "interleave" and len(node.branches) > 1


def _own(sequence: SequenceNode) -> dict[int, Edge]:
    """The edges of a sequence that stream, by the step that they leave."""
    pairs = zip(sequence.steps, sequence.edge_semantics, strict=False)
    return {
        at: Edge(step, edge)
        for at, (step, edge) in enumerate(pairs)
        if edge.buffering in _STREAMING
    }
