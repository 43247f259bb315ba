"""`Node` and the functions over graphs, by example; their laws are in `test_graph_laws.py`."""

from __future__ import annotations

import dataclasses
import timeit
from typing import Any

import pytest

from adk_fluent import ir

A, B, C = ir.AgentNode("a"), ir.AgentNode("b"), ir.AgentNode("c")


def test_children_are_those_of_all_child_fields_in_declared_order() -> None:
    selector = ir.ModelSelectorNode("m")
    agent = ir.AgentNode("x", selector=selector, agent_tools=(B, C), delegates=(A,))
    assert agent.children == (selector, B, C, A)
    assert agent.shape() == (1, 2, 1)
    assert ir.AgentNode("x").shape() == (-1, 0, 0)
    assert ir.GateNode("g").children == ()


def test_with_children_keeps_the_shape() -> None:
    agent = ir.AgentNode("x", agent_tools=(B, C), delegates=(A,))
    other = agent.with_children((A, A, C))
    assert (other.agent_tools, other.delegates, other.selector) == ((A, A), (C,), None)
    route = ir.RouteNode("r", tests=(ir.Match("eq", "k", 1),), branches=(A,), default=B)
    assert route.with_children((C, A)) == route.replace(branches=(C,), default=A)
    with pytest.raises(ValueError, match="AgentNode 'x' has 3 children, but 2 were given"):
        agent.with_children((A, B))


def test_replace_on_a_node() -> None:
    assert A.replace(name="z", model="m") == ir.AgentNode("z", model="m")
    with pytest.raises(TypeError, match="modle"):
        A.replace(modle="m")


def test_equality_is_not_fooled_by_shape() -> None:
    tests = (ir.Match("eq", "k", 1),)
    assert ir.AgentNode("x", delegates=(A,)) != ir.AgentNode("x", agent_tools=(A,))
    assert ir.RouteNode("r", tests=tests, branches=(A,)) != ir.RouteNode(
        "r", tests=tests, default=A
    )
    nested = ir.SequenceNode("s", (ir.SequenceNode("s", (A,)), B))
    assert nested != ir.SequenceNode("s", (ir.SequenceNode("s", (A, B)),))
    assert ir.SequenceNode("s", (A,)) != ir.FallbackNode("s", (A,))


def test_a_subclass_is_another_kind() -> None:
    class Mine(ir.AgentNode):
        pass

    assert Mine("a") != A
    assert ir.find(ir.SequenceNode("s", (Mine("a"),)), ir.AgentNode) == Mine("a")


def test_unhashable_data_is_said_to_be() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ir.AgentNode("a", settings=(("x", [1]),)))


def test_routes_pair_tests_with_branches() -> None:
    one, two = ir.Match("eq", "k", 1), ir.Match("gt", "k", 2)
    route = ir.RouteNode("r", tests=(one, two), branches=(A, B))
    assert route.rules == ((one, A), (two, B))
    with pytest.raises(ValueError, match="shorter"):
        _ = ir.RouteNode("r", tests=(one, two), branches=(A,)).rules


@pytest.mark.parametrize(
    ("match", "text"),
    [
        (ir.Match("eq", "k", "x"), "k == 'x'"),
        (ir.Match("contains", "k", "x"), "k contains 'x'"),
        (ir.Match("contains_case", "k", "x"), "k contains exactly 'x'"),
        (ir.Match("gt", "k", 1), "k > 1"),
        (ir.Match("lt", "k", 1), "k < 1"),
    ],
)
def test_a_match_reads_well(match: ir.Match, text: str) -> None:
    assert str(match) == text


def test_a_tool_has_the_name_of_its_ref() -> None:
    assert ir.ToolSpec(ir.Ref.to(len)).name == "len"


def test_replace_says_what_is_missing_and_where() -> None:
    root = ir.SequenceNode("s", (A,))
    with pytest.raises(LookupError, match="'z' does not occur below SequenceNode 's'"):
        ir.replace(root, "z", B)
    with pytest.raises(LookupError, match="AgentNode 'a' does not occur below SequenceNode 's'"):
        ir.replace(root, ir.AgentNode("a"), B)  # equal, but another object


def test_replace_by_name_takes_every_place_once() -> None:
    root = ir.SequenceNode("s", (A, ir.LoopNode("a", ir.SequenceNode("t", (A,))), B))
    assert ir.replace(root, "a", C) == ir.SequenceNode("s", (C, C, B))
    wrapped = ir.LoopNode("l", A)
    assert ir.replace(root, A, wrapped) == ir.SequenceNode(
        "s", (wrapped, ir.LoopNode("a", ir.SequenceNode("t", (wrapped,))), B)
    )


def test_map_may_put_a_wrapper_around_what_it_sees() -> None:
    def bounded(here: ir.Node) -> ir.Node:
        return ir.TimeoutNode(f"{here.name}_t", here) if isinstance(here, ir.AgentNode) else here

    root = ir.map(ir.SequenceNode("s", (A, B)), bounded)
    assert [n.name for n in ir.walk(root)] == ["s", "a_t", "a", "b_t", "b"]


def test_parts_that_did_not_change_are_shared() -> None:
    left, right = ir.SequenceNode("l", (A,)), ir.SequenceNode("r", (B,))
    root = ir.replace(ir.ParallelNode("p", (left, right)), B, C)
    assert root.children[0] is left
    assert root.children[1] is not right


def test_repr_is_short_and_leaves_locations_out() -> None:
    node = ir.LoopNode("l", ir.AgentNode("a", model="m"), 3, location=ir.Location("x.py", 1))
    assert repr(node) == "LoopNode('l', body=AgentNode('a', model='m'), max_iterations=3)"
    assert repr(ir.SequenceNode("s", (A, B))) == (
        "SequenceNode('s', steps=(AgentNode('a'), AgentNode('b')))"
    )


def test_repr_of_a_graph_with_many_places_ends() -> None:
    node: ir.Node = A
    for _ in range(40):  # 2 ** 40 places
        node = ir.SequenceNode("s", (node, node))
    assert "..." in repr(node)


def test_nodes_are_frozen() -> None:
    node: Any = ir.AgentNode("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        node.name = "b"
    assert not hasattr(node, "__dict__")


def test_making_a_node_is_cheap() -> None:
    """A goal of 2.5 us; the bound is wide, for machines that are busy or slow."""
    best = min(timeit.repeat(lambda: ir.AgentNode("a", model="m"), number=2000, repeat=5)) / 2000
    assert best < 25e-6
