from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import Agent, Middleware
from adk_fluent.contracts import Graph, middleware_stacks, state_flows
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    Contract,
    LoopNode,
    ModelSelectorNode,
    Node,
    ParallelNode,
    Ref,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TransferNode,
)

A, B, C = (AgentNode(name) for name in "abc")


def seq(name: str, *steps: Node) -> SequenceNode:
    return SequenceNode(name, steps)


def names(nodes: object) -> list[str]:
    assert isinstance(nodes, (list, tuple))
    return [node.name for node in nodes if isinstance(node, Node)]  # pyright: ignore[reportUnknownVariableType]


def test_nodes_are_distinct_parents_first_and_in_declared_order() -> None:
    graph = Graph(seq("root", A, ParallelNode("p", (B, A)), LoopNode("l", C), B))
    assert names(graph.nodes) == ["root", "a", "p", "b", "l", "c"]


def test_equal_nodes_are_two_if_they_are_two_objects() -> None:
    graph = Graph(seq("root", AgentNode("x"), AgentNode("x")))
    assert names(graph.nodes) == ["root", "x", "x"]


def test_parents_name_every_place() -> None:
    inner = seq("inner", A, A)
    root = seq("root", inner, A)
    graph = Graph(root)
    assert names(graph.parents(A)) == ["root", "inner", "inner"]
    assert graph.parents(inner) == (root,)
    assert graph.parents(root) == ()


def test_of_gives_the_nodes_of_a_type_or_of_any_of_its_subclasses() -> None:
    remote = RemoteAgentNode("r", "http://x")
    graph = Graph(seq("root", A, remote, B))
    assert graph.of(AgentNode) == [A, B]
    assert graph.of(RouteNode) == []
    assert {node.name for node in graph.of(Node)} == {"root", "a", "r", "b"}


def test_agents_are_what_adk_finds_by_name() -> None:
    team = seq("team", B)
    boss = AgentNode("boss", delegates=(team,), agent_tools=(seq("tool", C),))
    built, remote = AdkAgentNode("built", Ref(1)), RemoteAgentNode("far", "http://x")
    graph = Graph(seq("root", boss, built, remote, LoopNode("l", A)))
    assert sorted(graph.agents) == ["a", "b", "boss", "built", "c", "far", "team"]
    assert graph.agents["team"] == [team]


def test_named_is_what_a_transfer_can_lead_to() -> None:
    selector = ModelSelectorNode("pick")
    inner = seq("flow", AgentNode("a", selector=selector), TransferNode("t", "a"), B, seq("b", C))
    graph = Graph(AppNode("app", inner, (ResourceNode("db", Ref(1)),)))
    assert sorted(graph.named) == ["a", "b", "c", "flow"]
    assert [type(node) for node in graph.named["b"]] == [AgentNode, SequenceNode]


@pytest.mark.parametrize(
    ("depth", "path"),
    [
        (0, "leaf"),
        (1, "l0 > leaf"),
        (6, "l5 > l4 > l3 > l2 > l1 > l0 > leaf"),
        (7, "l6 > ... > l4 > l3 > l2 > l1 > l0 > leaf"),
        (20_000, "l19999 > ... > l4 > l3 > l2 > l1 > l0 > leaf"),
    ],
)
def test_path_is_one_way_from_the_root_and_never_long(depth: int, path: str) -> None:
    leaf = node = AgentNode("leaf")
    for level in range(depth):
        node = LoopNode(f"l{level}", node)
    assert Graph(node).path(leaf) == path


def test_above_is_everything_a_node_is_part_of() -> None:
    shared = seq("shared", A)
    left, right, other = seq("left", shared), seq("right", shared), seq("other", B)
    root = seq("root", left, right, other)
    graph = Graph(root)
    assert graph.above([A]) == {id(node) for node in (A, shared, left, right, root)}
    assert graph.above([]) == set()


def test_reach_follows_children_and_transfers() -> None:
    ring = seq("ring", TransferNode("t", "ring"), TransferNode("u", "a"), TransferNode("v", "no"))
    graph = Graph(seq("root", ring, A, B))
    assert {node.name for node in graph.reach([ring])} == {"ring", "t", "u", "v", "a"}
    assert graph.reach([]) == []


def test_suggest_names_the_nearest_and_gives_up_after_many_mistakes() -> None:
    graph = Graph(seq("root", AgentNode("billing"), AgentNode("support")))
    assert graph.suggest("biling") == "billing"
    assert graph.suggest("zzz") is None
    assert [graph.suggest("biling") for _ in range(10)] == ["billing"] * 8 + [None] * 2


def test_a_graph_that_shares_its_parts_costs_its_distinct_parts() -> None:
    node: Node = A
    for level in range(200):  # 2**200 places
        node = seq(f"s{level}", node, node)
    graph = Graph(node)
    assert len(graph.nodes) == 201
    assert len(graph.reach([node])) == 201


def test_downwards_comes_to_a_node_after_everything_that_it_stands_in() -> None:
    shared = seq("shared", A)
    low = seq("low", seq("deep", shared), B)
    graph = Graph(seq("root", shared, low))
    order = list(graph.downwards())
    assert sorted(map(id, order)) == sorted(map(id, graph.nodes))
    at = {id(node): place for place, node in enumerate(order)}
    for node in graph.nodes:
        assert all(at[id(above)] < at[id(node)] for above in graph.parents(node)), node.name


def test_downwards_takes_a_node_that_stands_twice_in_one_place_for_one() -> None:
    assert names(list(Graph(seq("root", A, A)).downwards())) == ["root", "a"]


def test_downwards_is_as_deep_as_it_is() -> None:
    node: Node = A
    for _ in range(20_000):
        node = seq("s", node)
    assert sum(1 for _ in Graph(node).downwards()) == 20_001


def allowing(node: Node, *codes: str) -> Node:
    return node.replace(contract=Contract(allow=codes))


def test_allowed_is_what_a_node_says_and_all_above_it() -> None:
    inner = allowing(seq("inner", A), "FLW002")
    graph = Graph(allowing(seq("root", inner, B), "FLW001"))
    assert graph.allowed(graph.root) == {"FLW001"}
    assert graph.allowed(inner) == graph.allowed(A) == {"FLW001", "FLW002"}
    assert graph.allowed(B) == {"FLW001"}


def test_a_shared_node_is_allowed_what_all_its_places_allow() -> None:
    one = allowing(seq("one", A), "FLW001", "FLW002")
    other = allowing(seq("other", A), "FLW002", "FLW003")
    assert Graph(seq("root", one, other)).allowed(A) == {"FLW002"}
    assert Graph(seq("root", one, A)).allowed(A) == set()
    own = allowing(A, "FLW009")
    both = seq("root", allowing(seq("one", own), "FLW001"), own)
    assert Graph(both).allowed(own) == {"FLW009"}


def test_nothing_is_allowed_where_nobody_says_so() -> None:
    graph = Graph(seq("root", A, LoopNode("l", B)))
    assert all(graph.allowed(node) == set() for node in graph.nodes)


def test_values_on_their_way() -> None:
    def total(state: dict[str, int]) -> dict[str, object]:
        return {"sum": state["one"]}

    pipeline = Agent("a").mock("1").writes("one") >> total >> Agent("b").instruct("{sum}").mock("x")
    flows = state_flows(Graph(pipeline.to_ir()))
    assert [(each.writer.name, each.key, each.reader.name) for each in flows] == [
        ("a", "one", "total"),
        ("total", "sum", "b"),
    ]


def test_middlewares_and_who_has_them() -> None:
    class Quiet(Middleware):
        async def before_model(self, ctx: Any, request: Any) -> None: ...

    root = (Agent("a").mock("A") >> Agent("b").middleware(Quiet()).mock("B")).to_ir()
    ((node, stack),) = middleware_stacks(Graph(root))
    assert (node is root, len(stack)) == (True, 1)
