"""Laws that hold for every graph: equality, copies, text, and the ways of going through it."""

from __future__ import annotations

import copy
import pickle
import typing
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_strategies import COMPOSITES, LEAVES, chain, graphs, laws, node

from adk_fluent import ir

NAMESPACE: dict[str, Any] = {name: getattr(ir, name) for name in ir.__all__} | {"typing": typing}


@laws
@given(graphs())
def test_a_graph_equals_itself_and_what_is_built_alike(root: ir.Node) -> None:
    again = ir.map(root, lambda n: n.replace())
    assert again is not root
    assert again == root
    assert hash(again) == hash(root)
    assert root != "a graph"


@laws
@given(graphs(), graphs())
def test_equality_agrees_with_hash_and_with_both_hashes(one: ir.Node, other: ir.Node) -> None:
    assert (one == other) is (other == one)
    if one == other:
        assert hash(one) == hash(other)
        assert ir.content_hash(one) == ir.content_hash(other)
    if ir.content_hash(one) == ir.content_hash(other):
        assert ir.structure_hash(one) == ir.structure_hash(other)


@laws
@given(graphs("importable"), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_pickle_round_trip(root: ir.Node, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(root, protocol))
    assert again == root
    assert [n.location for n in ir.walk(again)] == [n.location for n in ir.walk(root)]


@laws
@given(graphs("importable"))
def test_repr_is_an_expression_for_the_same_graph(root: ir.Node) -> None:
    assert eval(repr(root), NAMESPACE) == root


@laws
@given(graphs())
def test_copies_are_the_graph_itself(root: ir.Node) -> None:
    assert copy.copy(root) is root
    assert copy.deepcopy(root) is root


@laws
@given(graphs())
def test_repr_and_errors_do_not_show_what_objects_hold(root: ir.Node) -> None:
    assert "hunter2" not in repr(root) + ir.to_json(root)


@laws
@given(graphs())
def test_walk_is_parents_first_in_declared_order(root: ir.Node) -> None:
    def expected(here: ir.Node) -> list[ir.Node]:
        return [here, *(n for below in here.children for n in expected(below))]

    assert [id(n) for n in ir.walk(root)] == [id(n) for n in expected(root)]


@laws
@given(graphs())
def test_map_with_identity_shares_everything(root: ir.Node) -> None:
    assert ir.map(root, lambda n: n) is root


@laws
@given(graphs())
def test_map_composes(root: ir.Node) -> None:
    def first(here: ir.Node) -> ir.Node:
        return here.replace(name=here.name + "1")

    def second(here: ir.Node) -> ir.Node:
        return here.replace(name=here.name + "2")

    both = ir.map(root, lambda n: second(first(n)))
    assert ir.map(ir.map(root, first), second) == both


@laws
@given(graphs())
def test_map_sees_children_before_parents_in_declared_order_and_shared_nodes_once(
    root: ir.Node,
) -> None:
    seen: list[int] = []
    ir.map(root, lambda n: (seen.append(id(n)), n)[1])
    assert Counter(seen) == Counter({id(n): 1 for n in ir.walk(root)})
    at = {each: i for i, each in enumerate(seen)}
    for here in ir.walk(root):
        below = [at[id(c)] for c in here.children]
        assert all(i < at[id(here)] for i in below)
    firsts = [id(n) for n in reversed(list(ir.walk(root)))]
    assert seen[-1] == firsts[-1]


@laws
@given(graphs())
def test_fold_counts_occurrences(root: ir.Node) -> None:
    def count(_: ir.Node, below: tuple[int, ...]) -> int:
        return 1 + sum(below)

    assert ir.fold(root, count) == len(list(ir.walk(root)))


@laws
@given(graphs(), st.data())
def test_find_gives_the_first_that_walk_comes_to(root: ir.Node, data: st.DataObject) -> None:
    nodes = list(ir.walk(root))
    wanted = data.draw(st.sampled_from(nodes))
    assert ir.find(root, wanted.name) is next(n for n in nodes if n.name == wanted.name)
    assert ir.find(root, type(wanted)) is next(n for n in nodes if isinstance(n, type(wanted)))
    assert ir.find(root, lambda n: n is wanted) is wanted
    assert ir.find(root, "no such name") is None


@laws
@given(graphs(), st.data())
def test_replace_puts_a_node_at_every_place(root: ir.Node, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(list(ir.walk(root))))
    new = ir.AgentNode("new")
    by_node = ir.replace(root, target, new)
    assert ir.find(by_node, lambda n: n is target) is None
    assert ir.find(by_node, lambda n: n is new) is new
    assert ir.replace(root, target, target) is root
    by_name = ir.replace(root, target.name, new)
    assert ir.find(by_name, target.name) is None


@laws
@given(graphs())
def test_children_and_with_children_are_inverse(root: ir.Node) -> None:
    for here in ir.walk(root):
        assert ir.children(here) == here.children
        assert here.with_children(here.children) == here
        assert len(here.children) == sum(n for n in here.shape() if n > 0)


@laws
@given(graphs())
def test_a_changed_field_makes_another_graph(root: ir.Node) -> None:
    changed = ir.replace(root, root, root.replace(name=root.name + "!"))
    assert changed != root
    assert ir.structure_hash(changed) != ir.structure_hash(root)


@laws
@given(graphs(), st.builds(ir.Location, st.text(max_size=3), st.integers(1, 9)))
def test_locations_take_no_part_in_equality_and_hashes(root: ir.Node, at: ir.Location) -> None:
    moved = ir.map(root, lambda n: n.replace(location=at))
    assert moved == root
    assert hash(moved) == hash(root)
    assert ir.content_hash(moved) == ir.content_hash(root)
    assert ir.to_json(moved) == ir.to_json(root)


def test_random_graphs_hold_every_kind() -> None:
    assert {*LEAVES, *COMPOSITES, ir.AppNode, ir.ResourceNode, ir.ModelSelectorNode} == {*ir.NODES}


@pytest.mark.parametrize("kind", [*LEAVES, ir.ResourceNode, ir.ModelSelectorNode])
@laws
@given(data=st.data())
def test_every_field_of_a_leaf_takes_part_in_equality(
    kind: type[ir.Node], data: st.DataObject
) -> None:
    one, other = data.draw(node(kind)), data.draw(node(kind))
    same = all(a == b for a, b in zip(one.data(), other.data(), strict=True))
    assert (one == other) is (same and one.shape() == other.shape())


def test_repr_elides_below_fifty_levels() -> None:
    assert eval(repr(chain(49)), NAMESPACE) == chain(49)
    deep = repr(chain(200))
    assert "..." in deep
    assert deep.count("LoopNode(") < 20
