"""What `check` finds about execution boundaries."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from adk_fluent.contracts import (
    ContractReport,
    Diagnostic,
    Graph,
    Related,
    Severity,
    middleware_stacks,
    state_flows,
)
from adk_fluent.distributed._codecs import helper_of
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.distributed._peers import is_peer, peer_step
from adk_fluent.distributed._segments import Segment, check_hosting, split
from adk_fluent.ir import Ref, SequenceNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir import Node


_TYPE: Final = type


class CallableInState(Diagnostic, code="DST001", severity=Severity.ERROR):
    """A callable is to cross a boundary in state, which is JSON."""


class TemporaryKey(Diagnostic, code="DST002", severity=Severity.ERROR):
    """A `temp:` key is read on the other side of a boundary, at which it ends."""


class StreamCut(Diagnostic, code="DST003", severity=Severity.WARNING):
    """An edge that streams leads over a boundary, which hands on whole answers."""


class Unhosted(Diagnostic, code="DST004", severity=Severity.ERROR):
    """A boundary asks for what no engine has, or stands where a run cannot be cut."""


class ProcessMemory(Diagnostic, code="DST005", severity=Severity.WARNING):
    """A middleware keeps in the memory of each process what counts for a whole run."""


class Uncarried(Diagnostic, code="DST006", severity=Severity.ERROR):
    """A value is to cross a boundary that neither JSON nor a codec of the pipeline carries."""


def check_boundaries(graph: Graph) -> Iterator[Diagnostic]:
    """Find what cannot cross boundaries, and what cannot be hosted."""
    bounded = [node for node in graph.nodes if node.boundary is not None]
    if not bounded:
        return
    yield from _hosting(graph, bounded)
    parts = _parts(graph)
    carried = {node.boundary.serialization for node in bounded if node.boundary is not None}
    for flow in state_flows(graph):
        if parts[id(flow.writer)] == parts[id(flow.reader)]:
            continue
        where = Related.at(flow.reader, "read here")
        if flow.key.startswith("temp:"):
            yield TemporaryKey.at(
                graph,
                flow.writer,
                f"`{flow.reader.name}` reads {flow.key!r} in another segment",
                related=[where],
                help="write it to a key without `temp:`",
            )
        elif _is_callable(flow.type):
            yield CallableInState.at(
                graph,
                flow.writer,
                f"`{flow.writer.name}` writes a callable to {flow.key!r}",
                related=[where],
                help="write what JSON can hold, such as the name of what is to be called",
            )
        elif needed := _codecs_for(flow.type) - carried:
            name = min(needed)
            yield Uncarried.at(
                graph,
                flow.writer,
                f"`{flow.writer.name}` writes to {flow.key!r} what JSON cannot hold",
                related=[where],
                help=f"let a boundary carry it: .execution_boundary(serialization={name!r})",
            )
    yield from _streams(graph, parts)
    yield from _memory(graph)


def _parts(graph: Graph) -> dict[int, frozenset[str]]:
    """The segments that each node is in, by its identity; what stands in several is in several."""
    parts: dict[int, frozenset[str]] = {}
    waits = [graph.root]
    open = {id(node): len(graph.parents(node)) for node in graph.nodes}
    while waits:
        node = waits.pop()
        above = [parts[id(each)] for each in graph.parents(node)]
        inherited = frozenset[str]().union(*above) if above else frozenset({""})
        parts[id(node)] = inherited if node.boundary is None else frozenset({node.name})
        for child in node.children:
            open[id(child)] -= 1
            if not open[id(child)]:
                waits.append(child)
    return parts


def _is_callable(type: Any) -> bool:
    """Whether a type is one of functions, or a union with one."""
    if Callable in (type, get_origin(type)) or type in (FunctionType, MethodType):
        return True
    return any(_is_callable(each) for each in get_args(type))


def _codecs_for(type: Any) -> set[str]:
    """The codecs that values of a type need, also as one of a union, or in a list or dict."""
    found = set[str]().union(*map(_codecs_for, get_args(type)))
    own = helper_of(type) if isinstance(type, _TYPE) else None
    return found if own is None else {*found, own}


def _streams(graph: Graph, parts: dict[int, frozenset[str]]) -> Iterator[Diagnostic]:
    for sequence in graph.of(SequenceNode):
        pairs = zip(sequence.steps, sequence.steps[1:], sequence.edge_semantics, strict=False)
        for step, after, edge in pairs:
            if edge.buffering != "full" and parts[id(step)] != parts[id(after)]:
                yield StreamCut.at(
                    graph,
                    step,
                    f"what `{step.name}` streams to `{after.name}` crosses a boundary whole",
                    related=[Related.at(after, "in another segment")],
                    help="put both into one segment, or let the edge be full",
                )


def _hosting(graph: Graph, bounded: list[Node]) -> Iterator[Diagnostic]:
    for node in bounded:
        try:
            if is_peer(node):
                peer_step(node)
            else:
                check_hosting(Segment(node.name, node.name, node.boundary), url=None)
        except BoundaryError as error:
            yield Unhosted.at(graph, node, f"{error.what}: {error.found}", help=error.help)
    try:
        if not any(map(is_peer, bounded)):  # those have been looked at
            split(graph.root)
    except BoundaryError as error:
        node = next((each for each in graph.nodes if each.name == error.node), graph.root)
        yield Unhosted.at(graph, node, error.what, help=error.help)


def memory_of(root: Node) -> ContractReport:
    """What a pipeline without boundaries keeps in one process, where its runs are durable.

    Nobody has said so before an engine gets it: `check` finds it of one with boundaries.
    """
    graph = Graph(root)
    if any(node.boundary is not None for node in graph.nodes):
        return ContractReport.of(())
    return ContractReport.of(_memory(graph))


def _memory(graph: Graph) -> Iterator[Diagnostic]:
    for node, stack in middleware_stacks(graph):
        for each in stack:
            value = each.value if isinstance(each, Ref) else each
            kept, _, help = str(getattr(value, "__process_memory__", "") or "").partition("; ")
            if kept:
                yield ProcessMemory.at(
                    graph,
                    node,
                    f"`{type(value).__name__}` keeps in the memory of each process {kept}",
                    help=help or "keep it where all processes see it",
                )
