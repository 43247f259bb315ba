"""The operators: what each makes, and that both sides are snapshots."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Fallback, FanOut, Loop, Pipeline, Route, until
from adk_fluent.ir import (
    AgentNode,
    EdgeSemantics,
    ExecutionBoundary,
    FallbackNode,
    FunctionNode,
    LoopNode,
    Match,
    Node,
    ParallelNode,
    Ref,
    RouteNode,
    SequenceNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable

a, b, c, d = (Agent(name) for name in "abcd")
A, B, C, D = (AgentNode(name) for name in "abcd")


def step(state: Any) -> dict[str, Any]:
    return {"n": 1}


async def slow_step(state: Any) -> None:
    return None


UNNAMED: Callable[[Any], None] = lambda s: None  # noqa: E731  # a function without a name


def seq(*steps: Node) -> SequenceNode:
    return SequenceNode("pipeline", steps)


def par(*branches: Node) -> ParallelNode:
    return ParallelNode("parallel", branches)


def test_then() -> None:
    assert (a >> b >> c).build() == seq(A, B, C)
    assert isinstance(a >> b, Pipeline)


def test_at_the_same_time() -> None:
    assert (a | b | c).build() == par(A, B, C)
    assert isinstance(a | b, FanOut)


def test_if_that_fails() -> None:
    assert (a // b // c).build() == FallbackNode("fallback", (A, B, C))
    assert isinstance(a // b, Fallback)


def test_again_and_again() -> None:
    def done(state: Any) -> bool:
        return True

    assert (a * 3).build() == LoopNode("loop", A, 3)
    assert (a * until(done, max=4)).build() == LoopNode("loop", A, 4, Ref.to(done))
    assert (a * until(done)).build() == LoopNode("loop", A, 10, Ref.to(done))
    assert ((a >> b) * 2).build() == LoopNode("loop", seq(A, B), 2)
    assert isinstance(a * 3, Loop)


def test_precedence_is_pythons() -> None:
    mixed = a >> b * 2 // c | d
    assert mixed.build() == par(seq(A, FallbackNode("fallback", (LoopNode("loop", B, 2), C))), D)


@pytest.mark.parametrize("fn", [step, slow_step, functools.partial(step), UNNAMED])
def test_functions_on_either_side(fn: Any) -> None:
    node = FunctionNode(getattr(getattr(fn, "func", fn), "__name__", ""), Ref.to(fn))
    node = node.replace(name="step") if node.name == "<lambda>" else node
    assert (a >> fn).build() == seq(A, node)
    assert (fn >> a).build() == seq(node, A)
    assert (a | fn).build() == par(A, node)
    assert (fn | a).build() == par(node, A)
    assert (a // fn).build() == FallbackNode("fallback", (A, node))
    assert (fn // a).build() == FallbackNode("fallback", (node, A))


def test_callable_objects_and_methods_are_functions() -> None:
    class Counter:
        def __call__(self, state: Any) -> None:
            return None

        def bump(self, state: Any) -> None:
            return None

    counter = Counter()
    names = [node.name for node in (a >> counter >> counter.bump).build().children]
    assert names == ["a", "Counter", "bump"]


def test_nodes_are_operands() -> None:
    assert (a >> B).build() == (A >> b).build() == seq(A, B)
    assert (A | b).build() == par(A, B)
    assert (a // B).build() == FallbackNode("fallback", (A, B))


# --- a dict of branches --------------------------------------------------------------------------


def routed(part: Any) -> RouteNode:
    node = part.build().children[-1]
    assert isinstance(node, RouteNode)
    return node


def test_a_dict_branches_on_the_key_written_last() -> None:
    writer = Agent("w").writes("x", "intent")
    route = routed(writer >> {"billing": b, "other": step})
    assert route == RouteNode(
        "route",
        "intent",
        (Match("eq", "intent", "billing"), Match("eq", "intent", "other")),
        (B, FunctionNode("step", Ref.to(step))),
    )


def test_branches_of_a_dict_may_be_any_scalar() -> None:
    values = [
        test.value
        for test in routed(Agent("w").writes("k") >> {1: a, None: b}).tests
        if isinstance(test, Match)
    ]
    assert values == [1, None]


@pytest.mark.parametrize(
    ("before", "key"),
    [
        (Agent("w").writes("k") >> step, "k"),
        (Agent("v").writes("j") >> Agent("w").writes("k") >> a, "k"),
        (Agent("w").writes("k") * 3, "k"),
        (Agent("v").writes("k") | Agent("w").writes("k"), "k"),
        (Agent("v").writes("k") // Agent("w").writes("k"), "k"),
        (Pipeline("p", Agent("w").writes("k"), a), "k"),
        (a >> Pipeline("p", Agent("v").writes("j"), Agent("w").writes("k"), a), "k"),
        (Agent("w").writes("k") >> {"x": a}, "k"),
        (Agent("w").writes("k") >> Route("k").eq("x", Agent("v").writes("j")), "j"),
        (Agent("w").writes("k").writes("t", via="tool"), "k"),
        (Agent("w").writes("user:k"), "user:k"),
    ],
)
def test_the_key_is_the_one_written_last(before: Any, key: str) -> None:
    assert routed(before >> {"x": b}).key == key


def test_a_dict_of_branches_as_a_step() -> None:
    writer = Agent("w").writes("k")
    assert Pipeline(writer).step({"x": b}).build() == (writer >> {"x": b}).build()


# --- flattening ----------------------------------------------------------------------------------


def test_parts_without_a_name_melt_into_one() -> None:
    assert (a >> (b >> c)).build() == ((a >> b) >> c).build() == seq(A, B, C)
    assert ((a | b) | (c | d)).build() == par(A, B, C, D)
    assert (a // (b // c) // d).build() == FallbackNode("fallback", (A, B, C, D))
    assert Pipeline("p", a >> b, c).build() == SequenceNode("p", (A, B, C))


def test_named_parts_stay_whole() -> None:
    named = (b >> c).named("inner")
    assert (a >> named >> d).build() == seq(A, SequenceNode("inner", (B, C)), D)
    assert (named >> d).build() == seq(SequenceNode("inner", (B, C)), D)


def test_another_way_of_merging_stays_whole() -> None:
    first = FanOut(a, b, merge="first_complete")
    inner = ParallelNode("parallel", (A, B), "first_complete")
    assert (first | c).build() == par(inner, C)
    assert (c | first).build() == par(C, inner)
    assert first.build() == inner


def test_what_runs_elsewhere_or_streams_in_its_own_way_stays_whole() -> None:
    boundary, edge = ExecutionBoundary(), EdgeSemantics("token")
    edged = seq(A, B).replace(edge_semantics=(edge, edge))
    assert (edged >> c).build() == seq(edged, C)
    steps, branches, attempts = seq(A, B), par(A, B), FallbackNode("fallback", (A, B))
    for whole in (steps >> c, branches | c, attempts // c):
        assert whole.build().children == (A, B, C)
    there = [node.replace(boundary=boundary) for node in (steps, branches, attempts)]
    for whole, part in zip((there[0] >> c, there[1] | c, there[2] // c), there, strict=True):
        assert whole.build().children == (part, C)


def test_loops_do_not_melt() -> None:
    assert (a * 2 * 3).build() == LoopNode("loop", LoopNode("loop", A, 2), 3)


# --- snapshots -----------------------------------------------------------------------------------


def test_later_setters_change_nothing_already_built() -> None:
    part = Agent("part")
    line = part >> part
    wide, either, again = part | a, part // a, part * 2
    before = [x.build() for x in (line, wide, either, again)]
    part.instruct("later").writes("k").named("renamed")
    assert [x.build() for x in (line, wide, either, again)] == before
    assert [x.clone().build() for x in (line, wide, either, again)] == before


def test_a_chain_may_branch() -> None:
    base = a >> b
    left, right = base >> c, base >> d
    more = left >> d
    assert base.build() == seq(A, B)
    assert left.build() == seq(A, B, C)
    assert right.build() == seq(A, B, D)
    assert more.build() == seq(A, B, C, D)


def test_what_is_made_from_a_chain_costs_the_chain_nothing() -> None:
    base = a >> b
    for _ in range(100):
        assert (base >> c).build() == seq(A, B, C)
    assert len(base._parts) == 3


def test_a_step_added_to_a_shared_chain_is_added_once() -> None:
    base = a >> b
    longer = base >> c
    base.step(d)
    assert base.build() == seq(A, B, D)
    assert longer.build() == seq(A, B, C)
    longer.step(d)
    assert (base.build(), longer.build()) == (seq(A, B, D), seq(A, B, C, D))


def test_threads_may_share_a_chain() -> None:
    base = a >> b
    tails = [Agent(f"t{i}") for i in range(8)]
    wrong: list[Node] = []

    def grow(tail: Agent) -> None:
        expected = seq(A, B, AgentNode(tail.name), C)
        for _ in range(300):
            made = (base >> tail >> c).build()
            if made != expected:
                wrong.append(made)

    threads = [threading.Thread(target=grow, args=(tail,)) for tail in tails]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_unchanged_part_is_frozen_once() -> None:
    node = a.build()
    assert all(child is node for child in (a >> a | a).build().children[0].children)


def test_the_location_of_a_chain_is_where_it_starts() -> None:
    line = test_the_location_of_a_chain_is_where_it_starts.__code__.co_firstlineno
    chain = a >> b
    chain = chain >> step
    node = chain.build()
    assert str(node.location) == f"{__file__}:{line + 2}"
    assert str(node.children[-1].location) == f"{__file__}:{line + 3}"


def test_a_chain_of_ten_thousand() -> None:
    chain: Any = a
    wide: Any = a
    for _ in range(10_000):
        chain = chain >> b
        wide = wide | b
    assert len(chain.build().children) == len(wide.build().children) == 10_001
    assert sum(1 for _ in walk(chain.build())) == 10_002


def test_ten_thousand_deep() -> None:
    deep: Any = a
    for _ in range(10_000):
        deep = deep * 2
    assert sum(1 for _ in walk(deep.build())) == 10_001
    assert deep.explain().endswith("... 9950 more steps below")
