"""Streaming between steps: what an edge promises, and what the steps at its ends can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import (
    DiscardedStream,
    HeldStream,
    InertEdge,
    LiveEdge,
    StreamingRouteConflict,
    StructuredStream,
    UnfinishedRead,
    UnseenStream,
)
from adk_fluent.contracts._streams._edges import Edge, Edges, joins
from adk_fluent.contracts._structure._declared import declared_writes, predicates
from adk_fluent.contracts._subject import graph_of
from adk_fluent.ir import (
    UNSET,
    AgentNode,
    AppNode,
    ExpectNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TapNode,
    TransferNode,
    TransformNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.contracts._subject import Checkable
    from adk_fluent.ir import EdgeSemantics, Node, StateFieldRef

_LISTED: Final = 3
#: What can do nothing with a part of an output, in words.
_WHOLE: Final[Mapping[type[Node], str]] = {
    RouteNode: "route",
    GateNode: "gate",
    ExpectNode: "expectation",
    MapOverNode: "map",
    FunctionNode: "function",
    TransformNode: "transform",
    TapNode: "tap",
}


def check_streaming_contracts(pipeline: Checkable) -> list[Diagnostic]:
    """Check what flows between steps before it is complete (spec section 2.5).

    Args:
        pipeline: A builder, a node, or the graph that a checker is given.

    Returns:
        The findings ``FLW201`` to ``FLW208``.

    Raises:
        UsageError: It is no pipeline.
    """
    graph = graph_of(pipeline)
    sequences = [each for each in graph.of(SequenceNode) if each.edge_semantics]
    return list(_Check(graph, sequences).findings()) if sequences else []


class _Check:
    """One check: the pipeline, and its sequences that say something about their edges."""

    def __init__(self, graph: Graph, sequences: list[SequenceNode]) -> None:
        self._graph = graph
        self._sequences = sequences
        self._edges = Edges(graph)

    def findings(self) -> Iterator[Diagnostic]:
        """Everything that is wrong with them."""
        arrivals = self._edges.arrivals()
        for node in self._graph.nodes:
            edge = arrivals.get(id(node))
            if edge is not None:
                yield from self._arriving(node, edge)
        for node in self._graph.nodes:
            yield from self._leaving(node)
        for sequence in self._graph.of(SequenceNode):
            yield from self._between(sequence)
        for sequence in self._sequences:
            for step, semantics in zip(sequence.steps, sequence.edge_semantics, strict=False):
                yield from self._declared(step, semantics)
        yield from self._live()

    # --- where a stream arrives ------------------------------------------------------------------

    def _arriving(self, node: Node, edge: Edge) -> Iterator[Diagnostic]:
        if (what := _needs_all(node)) is not None:
            yield self._conflict(node, what, edge)
            return
        if isinstance(node, AgentNode | RemoteAgentNode):
            unfinished = self._unfinished(node, edge)
            if unfinished is not None:
                yield unfinished
            elif isinstance(node, AgentNode) and node.history in ("own", "none"):
                yield UnseenStream.at(
                    self._graph,
                    node,
                    f"`{node.name}` sees nothing of what `{edge.step.name}` streams to it: "
                    f"its history is {node.history!r}",
                    related=[self._source(edge)],
                    help=f'use .history("input") or .history("transcript"), or {_full(edge.step)}',
                )
            yield from self._structured(node, edge)

    def _conflict(self, node: Node, what: str, edge: Edge) -> Diagnostic:
        tests = [test.key for test in predicates(node) if isinstance(test, Match)]
        written = {ref.key for ref in self._written(edge)} if tests else ()
        tested = [key for key in tests if key in written]
        related = [self._source(edge)]
        if tested:
            related.append(
                Related.at(edge.step, f"`{tested[0]}` is written when `{edge.step.name}` is done")
            )
        return StreamingRouteConflict.at(
            self._graph,
            node,
            f"{what} needs the complete output of `{edge.step.name}`, which comes {edge.pieces}",
            related=related,
            help=_full(edge.step),
        )

    def _unfinished(self, node: AgentNode | RemoteAgentNode, edge: Edge) -> Diagnostic | None:
        if not node.reads_keys:
            return None
        written = {ref.key for ref in self._written(edge)}
        reads = [ref for ref in node.reads_keys if ref.key in written]
        if not reads:
            return None
        needed = [ref for ref in reads if ref.default is UNSET]
        key = (needed or reads)[0].key
        return UnfinishedRead.at(
            self._graph,
            node,
            f"`{node.name}` begins with the first piece of what `{edge.step.name}` says, "
            f"and reads `{key}`, which is written after the last one",
            severity=Severity.ERROR if needed else Severity.WARNING,
            related=[self._source(edge)],
            help=f"{_full(edge.step)}, "
            "or read what it says from the conversation instead of the key",
        )

    def _structured(self, node: Node, edge: Edge) -> Iterator[Diagnostic]:
        data = self._edges.tail(edge.step).data
        if data is not None:
            yield StructuredStream.at(
                self._graph,
                node,
                f"`{node.name}` gets the data of `{data.name}` {edge.pieces}, "
                "and no piece of it is whole",
                related=[Related.at(data, f"`{data.name}` answers with data of a schema")],
                help=_full(edge.step),
            )

    # --- where a stream ends by itself -----------------------------------------------------------

    def _leaving(self, node: Node) -> Iterator[Diagnostic]:
        below: Iterable[Node] = ()
        match node:
            case LoopNode() if node.until is not None:
                edge = self._edges.out(node.body)
                if edge is not None:
                    yield self._conflict(node, f"the test of loop `{node.name}`", edge)
            case RaceNode():
                below = node.branches
            case ParallelNode() if joins(node):
                below = node.branches
            case MapOverNode():
                below = (node.body,)
            case AgentNode():
                below = node.agent_tools
            case _:
                pass
        for each in below:
            edge = self._edges.out(each)
            if edge is not None:
                yield self._held(edge, node)

    def _held(self, edge: Edge, by: Node) -> Diagnostic:
        why, way_out = _holds(by)
        return HeldStream.at(
            self._graph,
            edge.step,
            f"what `{edge.step.name}` says cannot go on {edge.pieces}: {why}",
            related=[Related.at(by, f"it is held by `{by.name}`")] if by is not edge.step else (),
            help=f"{_full(edge.step)}{way_out}",
        )

    def _between(self, sequence: SequenceNode) -> Iterator[Diagnostic]:
        for edge, following in self._edges.behind(sequence):
            fallback = edge.attempt_of or self._edges.tail(edge.step).fallback
            if fallback is not None:
                yield DiscardedStream.at(
                    self._graph,
                    edge.step,
                    f"`{following.name}` begins with what an attempt of `{fallback.name}` says, "
                    "also when that attempt fails and is discarded",
                    related=[Related.at(following, f"`{following.name}` is here")],
                    help=_full(edge.step),
                )

    # --- what an edge says that nothing comes of -------------------------------------------------

    def _declared(self, step: Node, edge: EdgeSemantics) -> Iterator[Diagnostic]:
        tail = self._edges.tail(step)
        streams = edge.buffering in ("chunked", "token")
        merges = edge.merge != "wait_all"
        if streams and not self._edges.speaks(step):
            yield self._inert(
                step,
                f"`{step.name}` says nothing that could come in pieces",
                "put .stream_to(...) on the agent whose answer shall stream",
            )
        elif streams and tail.held is not None and edge.merge != "interleave":
            yield self._held(Edge(step, edge), tail.held)
        if edge.backpressure and not streams:
            yield self._inert(
                step,
                f"`{step.name}` is done before the step behind it begins, "
                "so that backpressure has nothing to hold back",
                'leave backpressure out, or stream with "token" or "chunked"',
            )
        if merges and tail.parallel is None:
            yield self._inert(
                step,
                f"the edge behind `{step.name}` merges with {edge.merge!r}, "
                "and only one step hands something on",
                "leave merge out: it says how several branches meet",
            )
        elif merges and tail.parallel and tail.parallel.merge not in ("wait_all", edge.merge):
            yield self._inert(
                step,
                f"the edge behind `{step.name}` merges with {edge.merge!r}, "
                f"and its branches meet with {tail.parallel.merge!r}",
                "leave merge out of the edge",
            )
        elif edge.merge == "interleave" and not streams:
            yield self._inert(
                step,
                f"the edge behind `{step.name}` waits for all of it, "
                "so that nothing is left to interleave",
                'stream with "token" or "chunked", or leave merge out',
            )

    def _inert(self, step: Node, message: str, help: str) -> Diagnostic:
        return InertEdge.at(self._graph, step, message, help=help)

    def _live(self) -> Iterator[Diagnostic]:
        root = self._graph.root
        if not isinstance(root, AppNode) or root.execution is None:
            return
        if root.execution.streaming_mode != "bidi":
            return
        steps = [
            step
            for sequence in self._sequences
            for step, edge in zip(sequence.steps, sequence.edge_semantics, strict=False)
            if edge.buffering in ("chunked", "token")
        ]
        if steps:
            others = [Related.at(each, "and this one") for each in steps[1 : 1 + _LISTED]]
            yield LiveEdge.at(
                self._graph,
                steps[0],
                f"the edge behind `{steps[0].name}` cannot stream in a live run, "
                "where a step begins when the one before it says that it is done",
                related=others,
                help='leave it at "full", or run with streaming_mode="sse"',
            )

    # --- what is known of an edge ----------------------------------------------------------------

    def _written(self, edge: Edge) -> Iterator[StateFieldRef]:
        """The keys that have their value only when the last piece is there."""
        for node in self._edges.tail(edge.step).nodes():
            yield from node.writes_keys if isinstance(node, AgentNode) else declared_writes(node)

    def _source(self, edge: Edge) -> Related:
        return Related.at(edge.step, f"`{edge.step.name}` hands on what it says {edge.pieces}")


def _needs_all(node: Node) -> str | None:
    """What it is called, if it can do nothing with a part of an output."""
    if isinstance(node, TransferNode):
        called = f"the condition of the transfer to `{node.target}`"
        return None if node.condition is None else called
    word = _WHOLE.get(type(node))
    return word and f"{word} `{node.name}`"


def _holds(node: Node) -> tuple[str, str]:
    """Why nothing goes on before all of it is done, and what else to do about it."""
    match node:
        case MapOverNode():
            return f"`{node.name}` gives its results as one list", ""
        case AgentNode():
            return f"as a tool of `{node.name}` it gives one result", ""
        case ParallelNode(merge="wait_all"):
            way_out = ', or let the branches meet with merge="interleave"'
            return f"`{node.name}` waits for all of its branches", way_out
        case _:
            return f"`{node.name}` hands on nothing before one of its branches has won", ""


def _full(step: Node) -> str:
    return f'leave the edge behind `{step.name}` at "full"'
