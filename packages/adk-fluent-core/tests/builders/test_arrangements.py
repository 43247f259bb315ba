"""Pipeline, FanOut, Fallback, Loop, Route and the primitives, by name."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    expect,
    map_over,
    race,
    tap,
    timeout,
    until,
)
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    AgentNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Match,
    ParallelNode,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TimeoutNode,
    from_json,
    to_json,
)

a, b = Agent("a"), Agent("b")
A, B = AgentNode("a"), AgentNode("b")


def ready(state: Any) -> bool:
    return True


def step(state: Any) -> None:
    return None


def test_a_pipeline_by_steps_or_at_once() -> None:
    expected = SequenceNode("desk", (A, FunctionNode("step", Ref.to(step)), B))
    assert Pipeline("desk").step(a).step(step).step(b).build() == expected
    assert Pipeline("desk", a, step, b).build() == expected
    assert Pipeline(a, step, b).named("desk").build() == expected
    assert Pipeline(a).build() == SequenceNode("pipeline", (A,))


def test_a_fan_out_by_branches_or_at_once() -> None:
    expected = ParallelNode("look_up", (A, B), "first_complete")
    assert FanOut("look_up", merge="first_complete").branch(a).branch(b).build() == expected
    assert FanOut("look_up", a, b, merge="first_complete").build() == expected
    assert FanOut(a, b).build() == ParallelNode("parallel", (A, B))


def test_a_fallback_by_attempts_or_at_once() -> None:
    expected = FallbackNode("reply", (A, B))
    assert Fallback("reply").attempt(a).attempt(b).build() == expected
    assert Fallback("reply", a, b).build() == expected


def test_a_fallback_on_some_errors() -> None:
    """One of its own, which no other fallback melts into or swallows."""
    expected = FallbackNode("reply", (A, B), (Ref.to(ConnectionError), Ref.to(KeyError)))
    some = Fallback("reply", a, b, on=(ConnectionError, KeyError))
    assert some.build() == expected
    assert Fallback("reply", on=[ConnectionError, KeyError]).attempt(a).attempt(b).build() == (
        expected
    )
    one = Fallback(a, b, on=KeyError)
    inner = FallbackNode("fallback", (A, B), (Ref.to(KeyError),))
    assert one.build() == inner
    assert (one // a).build() == FallbackNode("fallback", (inner, A))
    assert one.attempt(a).build() == inner.replace(attempts=(A, B, A))
    assert "fallback, on KeyError" in str(one.explain())
    assert from_json(to_json(inner), allow_imports=["builtins"]) == inner


@pytest.mark.parametrize("wrong", [(), [], "KeyError", 3, (KeyError, 3), BaseException, (int,)])
def test_a_fallback_takes_types_of_exceptions_alone(wrong: Any) -> None:
    with pytest.raises(UsageError, match="on= takes types of exceptions"):
        Fallback(a, b, on=wrong)


def test_a_loop_by_steps_or_at_once() -> None:
    body = SequenceNode("pipeline", (A, B))
    expected = LoopNode("polish", body, 4, Ref.to(ready))
    assert Loop("polish").step(a).step(b).until(ready).max(4).build() == expected
    assert Loop("polish", a, b, until=ready, max=4).build() == expected
    assert Loop("polish", a >> b, until=ready, max=4).build() == expected
    assert Loop(a).build() == LoopNode("loop", A, 10)


def test_until_takes_a_comparison_too() -> None:
    test = Match("gt", "score", 3)
    assert (a * until(test)).build() == LoopNode("loop", A, 10, test)
    assert repr(until(test, max=2)).startswith("until(Match(")


def test_a_route_by_tests() -> None:
    route = (
        Route("k", name="by_k")
        .eq("x", a)
        .contains("y", b)
        .contains("Y", a, case=True)
        .gt(3, a)
        .lt(0.5, b)
        .when(ready, a)
        .otherwise(b)
    )
    tests = (
        Match("eq", "k", "x"),
        Match("contains", "k", "y"),
        Match("contains_case", "k", "Y"),
        Match("gt", "k", 3),
        Match("lt", "k", 0.5),
        Ref.to(ready),
    )
    assert route.build() == RouteNode("by_k", "k", tests, (A, B, A, A, B, A), B)


def test_a_route_over_the_whole_state_and_over_a_field() -> None:
    assert Route().when(ready, a).build() == RouteNode("route", None, (Ref.to(ready),), (A,))
    field = StateFieldRef("user:tier", str)
    assert Route(field).eq("gold", a).build() == Route("user:tier").eq("gold", a).build()


def test_primitives() -> None:
    assert race(a, b).build() == RaceNode("race", (A, B))
    assert race(a, name="fastest").branch(b).build() == RaceNode("fastest", (A, B))
    assert tap(ready).build() == TapNode("ready", Ref.to(ready))
    assert tap(ready, name="look").build() == TapNode("look", Ref.to(ready))
    assert tap(lambda s: None).name == "tap"
    assert expect(ready).build() == ExpectNode("expect", Ref.to(ready))
    assert expect(ready, "not yet", name="is_ready").build() == ExpectNode(
        "is_ready", Ref.to(ready), "not yet"
    )
    assert timeout(a, 3).build() == TimeoutNode("timeout", A, 3.0)
    assert timeout(a >> b, 0.5, name="quick").build() == TimeoutNode(
        "quick", SequenceNode("pipeline", (A, B)), 0.5
    )
    assert map_over("items", a).build() == MapOverNode("map_over", "items", A)
    assert map_over(
        "items",
        a,
        item_key="item",
        output_key="done",
        result_key="x",
        concurrency=4,
        name="each",
    ).build() == MapOverNode("each", "items", A, "item", "done", "x", 4)


def test_every_part_is_a_snapshot() -> None:
    part = Agent("part")
    whole = [
        Pipeline("p", part),
        FanOut("f", part),
        Fallback("g", part),
        Loop("l", part),
        Route("k").eq("x", part).otherwise(part),
        race(part),
        map_over("k", part),
        timeout(part, 3),
    ]
    before = [x.build() for x in whole]
    part.instruct("later")
    assert [x.clone().build() for x in whole] == before


def test_clones_of_arrangements_are_independent() -> None:
    route = Route("k").eq("x", a)
    line, loop = Pipeline("p", a), Loop("l", a)
    before = [x.build() for x in (route, line, loop)]
    route.clone("other").eq("y", b)
    line.clone("other").step(b)
    loop.clone("other").max(3).until(ready)
    assert [x.build() for x in (route, line, loop)] == before
    assert [x.clone().build() for x in (route, line, loop)] == before
    assert line.with_(name="other").step(b).build() == SequenceNode("other", (A, B))


def test_names_do_not_depend_on_what_was_built_before() -> None:
    def program() -> list[str]:
        whole = (a >> b >> step) * 2 // (a | b) >> timeout(race(a, b), 3)
        return [node.name for node in (whole.build(), *whole.build().children)]

    assert program() == program() == ["pipeline", "fallback", "timeout"]


def test_builders_say_what_they_are() -> None:
    assert repr(Agent("x")) == "<Agent 'x'>"
    assert repr(a >> b) == "<Pipeline 'pipeline'>"
    assert (a >> b).name == "pipeline"
    assert (a >> b).named("desk").name == "desk"


def test_what_says_what_it_is_for_stays_whole() -> None:
    c = Agent("c")
    for make in (lambda: a >> b, lambda: a | b, lambda: a // b):
        described = make().description("Does both.")
        node = described.build()
        assert node.description == "Does both."
        for longer in (described >> c, described | c, described // c):
            assert longer.build().children[0] == node
        assert make().build().description is None
    timed = timeout(a, 3).description("Quick.")
    assert timed.build().description == "Quick."
