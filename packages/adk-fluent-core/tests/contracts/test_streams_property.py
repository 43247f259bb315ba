"""Which steps begin with a part of an output, against a walk that follows every way by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.contracts import check_streaming_contracts
from adk_fluent.ir import (
    AgentNode,
    EdgeSemantics,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    TimeoutNode,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"
EDGES: Final = st.sampled_from([EdgeSemantics("token"), EdgeSemantics("token"), EdgeSemantics()])
LEAVES: Final = st.sampled_from(
    [
        AgentNode("agent"),
        FunctionNode("function", Ref.to(print)),
        MapOverNode("map", "k", AgentNode("item")),
    ]
)
TEST: Final = Match("eq", "k", 1)


@st.composite
def composites(draw: Any, inner: st.SearchStrategy[Node]) -> Node:
    below = tuple(draw(st.lists(inner, min_size=2, max_size=3)))
    kind = draw(st.sampled_from(["sequence"] * 8 + [*MAKERS]))
    if kind == "sequence":
        return SequenceNode(kind, below, tuple(draw(EDGES) for _ in below))
    return MAKERS[kind](below)


MAKERS: Final[dict[str, Callable[[tuple[Node, ...]], Node]]] = {
    "bare": lambda b: SequenceNode("bare", b),
    "route": lambda b: RouteNode("route", "k", (TEST,) * (len(b) - 1), b[1:], b[0]),
    "parallel": lambda b: ParallelNode("parallel", b),
    "interleave": lambda b: ParallelNode("interleave", b, "interleave"),
    "race": lambda b: RaceNode("race", b),
    "fallback": lambda b: FallbackNode("fallback", b),
    "timeout": lambda b: TimeoutNode("timeout", b[0]),
    "loop": lambda b: LoopNode("loop", b[0]),
    "once": lambda b: LoopNode("once", b[0], 1),
    "until": lambda b: LoopNode("until", b[0], 5, TEST),
}
PIPELINES: Final = st.recursive(LEAVES, composites, max_leaves=12)


def follow(node: Node, streams: bool, found: set[str]) -> bool:
    """Go through a node that is fed with a stream, or not; whether it ends with one."""
    match node:
        case SequenceNode():
            for at, step in enumerate(node.steps):
                edges = node.edge_semantics
                streams = follow(step, streams, found)
                streams |= bool(edges) and edges[at].buffering == "token"
            return streams
        case FunctionNode() | RouteNode() | MapOverNode() if streams:
            found.add(node.name)
            return follow(node, False, found)
        case LoopNode():
            ends = follow(node.body, streams, found)
            if ends and node.until is not None:
                found.add(node.name)
            elif ends and node.max_iterations > 1:
                follow(node.body, True, found)
            return ends and node.until is None
        case MapOverNode():
            follow(node.body, False, found)
            return False
        case _:
            ends = [follow(each, streams, found) for each in node.children]
            joins = isinstance(node, RaceNode) or (
                isinstance(node, ParallelNode) and node.merge == "wait_all" and len(ends) > 1
            )
            return any(ends) and not joins


def apart(root: Node) -> Node:
    """The same with a name of its own for each place."""
    count = iter(range(10**6))

    def rename(node: Node) -> Node:
        children = tuple(rename(each) for each in node.children)
        return node.with_children(children).replace(name=f"{node.name}{next(count)}")

    return rename(root)


def conflicts(root: Node) -> set[str]:
    return {d.node for d in check_streaming_contracts(root) if d.code == "FLW201"}


@settings(max_examples=600 if FULL else 100)
@given(PIPELINES)
def test_every_step_that_needs_all_of_a_stream_is_found_and_no_other(root: Node) -> None:
    root = apart(root)
    found = set[str]()
    follow(root, False, found)
    assert conflicts(root) == found


@settings(max_examples=200 if FULL else 40)
@given(PIPELINES)
def test_a_part_that_stands_in_several_places_is_found_once(root: Node) -> None:
    """As where each place has a part of its own, but that one finding speaks for all places."""
    found = set[str]()
    follow(root, False, found)
    assert conflicts(root) == found
