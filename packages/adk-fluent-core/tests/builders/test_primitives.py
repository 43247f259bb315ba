"""race, map_over, timeout, tap, expect and transfer: next to operators, in each other, async."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Route,
    S,
    expect,
    map_over,
    race,
    tap,
    timeout,
    transfer,
    until,
)
from adk_fluent.errors import BuildError, ExpectationError, StepTimeoutError, UsageError
from adk_fluent.ir import (
    FallbackNode,
    LoopNode,
    Match,
    ParallelNode,
    Ref,
    RouteNode,
    SequenceNode,
    TransferNode,
    verify,
)
from adk_fluent.testing import mock_backend, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder, State
    from adk_fluent.protocol import RunResult


def always(state: State) -> bool:
    return True


async def soon(state: State) -> bool:
    await asyncio.sleep(0)
    return True


async def never_soon(state: State) -> bool:
    await asyncio.sleep(0)
    return False


def nothing(state: State) -> Any:
    return 0


def step(state: State) -> dict[str, int]:
    return {"n": state.get("n", 0) + 1}


async def run(pipeline: Builder, **state: Any) -> RunResult:
    backend = mock_backend({"a": "A", "b": "B", "desk": "D", "target": "T"})
    return await pipeline.run("hi", backend=backend, state=state)


a, b = Agent("a"), Agent("b")
MAKE: dict[str, Callable[[], Builder]] = {
    "race": lambda: race(Agent("a"), S.set(x=1)),
    "map_over": lambda: map_over("rows", step, item_key="row", result_key="n"),
    "timeout": lambda: timeout(Agent("a") >> step, 30),
    "tap": lambda: tap(soon),
    "expect": lambda: expect(soon),
    "transfer": lambda: transfer("target", when=soon),
}
#: What a transfer hands over to; it stands where it does not run by itself.
TARGET = Route("absent").eq("never", Agent("b").named("target"))


# --- wherever a step can stand -------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKE)
def test_it_stands_next_to_every_operator(name: str) -> None:
    make = MAKE[name]
    node = make().build()
    na = a.build()
    assert (a >> make()).build() == SequenceNode("pipeline", (na, node))
    assert (make() >> a).build() == SequenceNode("pipeline", (node, na))
    assert (step >> make() >> step).build().children[1] == node
    assert (a | make()).build() == ParallelNode("parallel", (na, node))
    assert (make() | a).build() == ParallelNode("parallel", (node, na))
    assert (a // make()).build() == FallbackNode("fallback", (na, node))
    assert (make() // a).build() == FallbackNode("fallback", (node, na))
    assert (make() * 2).build() == LoopNode("loop", node, 2)
    assert (make() * until(soon)).build() == LoopNode("loop", node, 10, Ref.to(soon))
    assert (a.clone().writes("k") >> {"x": make()}).build().children[1] == RouteNode(
        "route", "k", (Match("eq", "k", "x"),), (node,)
    )


@pytest.mark.parametrize("name", MAKE)
async def test_it_runs_in_every_arrangement(name: str) -> None:
    make = MAKE[name]
    whole = Pipeline(
        make() >> make(),
        FanOut(make(), make()),
        Fallback(make(), make()),
        Loop(make(), max=2),
        Route("rows").contains(1, make()),
        Route("rows").contains(9, a).otherwise(make()),
    )
    await run(whole >> TARGET, rows=[1, 2])


@pytest.mark.parametrize("outer", ["race", "map_over", "timeout", "transfer"])
@pytest.mark.parametrize("inner", MAKE)
async def test_one_stands_in_another(outer: str, inner: str) -> None:
    body = MAKE[inner]() >> S.set(done=1)
    whole: dict[str, Builder] = {
        "race": race(body, never_ends, name="whole"),
        "map_over": map_over("rows", body, concurrency=1, name="whole"),
        "timeout": timeout(body, 30, name="whole"),
        "transfer": transfer("body") >> Route("absent").eq("never", body.named("body")),
    }
    pipeline = whole[outer] >> TARGET
    assert verify(pipeline.build()) == ()
    state = (await run(pipeline, rows=[1, 2])).state
    if outer == "map_over":  # whose items leave nothing behind
        assert len(state["results"]) == 2
        assert "done" not in state
    else:
        assert state["done"] == 1


async def never_ends(state: State) -> None:
    await asyncio.sleep(60)


# --- transfer ------------------------------------------------------------------------------------


def test_a_target_is_a_name_or_what_has_one() -> None:
    expected = TransferNode("transfer", "a")
    assert transfer("a").build() == expected
    assert transfer(a).build() == expected
    assert transfer(a.build()).build() == expected
    assert transfer(Pipeline("desk", a)).build() == TransferNode("transfer", "desk")
    assert transfer("a", when=soon, name="over").build() == TransferNode("over", "a", Ref.to(soon))
    test = Match("gt", "n", 3)
    assert transfer("a", when=test).build() == TransferNode("transfer", "a", test)


@pytest.mark.parametrize("when", [None, always, soon, Match("eq", "n", 1)])
async def test_it_hands_over_and_the_flow_goes_on(when: Any) -> None:
    desk = transfer("desk", when=when) >> S.set(after=1) >> Route("absent").eq(1, Agent("desk"))
    ran = await run(desk, n=1)
    assert ran.text == "D"
    assert ran.state == {"n": 1, "after": 1}
    assert [(event.node, event.transfer_to) for event in ran] == [
        ("transfer", "desk"),
        ("desk", None),
        ("set", None),
    ]


@pytest.mark.parametrize("when", [never_soon, Match("eq", "n", 2)])
async def test_it_hands_over_only_if_the_test_holds(when: Any) -> None:
    ran = await run(transfer("a", when=when) >> Route("absent").eq(1, a) >> step)
    assert [event.node for event in ran] == ["step"]


async def test_it_hands_over_to_a_named_arrangement() -> None:
    desk = Pipeline("desk_too", a, step)
    ran = await run(Loop(transfer(desk), max=2) >> Route("absent").eq(1, desk))
    assert (ran.text, ran.state) == ("A", {"n": 2})


async def test_a_transfer_in_a_branch_that_loses_is_undone() -> None:
    loser = transfer("b") >> S.set(x=1) >> never_ends
    ran = await run(race(loser, wait >> S.set(y=1)) >> Route("absent").eq(1, b))
    assert (ran.text, ran.state) == ("", {"y": 1})


async def wait(state: State) -> None:
    await asyncio.sleep(0.05)


async def test_a_target_that_is_not_there_is_refused_before_anything_runs() -> None:
    backend = mock_backend({"a": "A"})
    with pytest.raises(BuildError, match="transfer to 'nobody'") as caught:
        await (a >> transfer("nobody", when=never_soon)).run("hi", backend=backend)
    assert backend.calls == ()
    assert caught.value.node == "transfer"
    assert not (a >> transfer("nobody")).check().ok


# --- tap and expect ------------------------------------------------------------------------------


async def test_a_tap_sees_state_and_changes_nothing() -> None:
    seen: list[Any] = []

    def look(state: State) -> dict[str, int]:
        seen.append((state["n"], "gone" in state, sorted(state), state.get("gone", 7)))
        return {"n": 9}

    async def look_soon(state: State) -> dict[str, int]:
        await asyncio.sleep(0)
        return look(state)

    ran = await run(tap(look) >> tap(look_soon) >> tap(print_nothing), n=1, gone=None)
    assert ran.state == {"n": 1}
    assert list(ran) == []
    assert seen == [(1, False, ["n"], 7)] * 2


def print_nothing(state: State) -> object:
    return object()  # what a tap returns need not be anything that state could hold


async def test_a_tap_cannot_write() -> None:
    def write(state: Any) -> None:
        state["n"] = 2

    async def delete_soon(state: Any) -> None:
        await asyncio.sleep(0)
        del state["n"]

    for spoil in (write, delete_soon):
        with pytest.raises(UsageError, match="only reads it"):
            await run(tap(spoil), n=1)


@pytest.mark.parametrize("test", [always, soon, Match("eq", "n", 1)])
async def test_what_is_expected_goes_on(test: Any) -> None:
    assert (await run(expect(test) >> step, n=1)).state == {"n": 2}


@pytest.mark.parametrize("test", [never_soon, nothing, Match("gt", "n", 1)])
async def test_what_is_not_expected_stops_the_run(test: Any) -> None:
    with pytest.raises(ExpectationError, match="more than one"):
        await run(expect(test, "more than one") >> step, n=1)
    ran = await run(expect(test) // S.set(instead=1), n=1)
    assert ran.state == {"n": 1, "instead": 1}


# --- race, map_over, timeout ---------------------------------------------------------------------


async def test_a_race_of_functions_that_wait() -> None:
    ran = await run(race(never_ends >> S.set(x=1), soon_written, name="first"))
    assert ran.state == {"y": 1}


async def soon_written(state: State) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"y": 1}


async def test_a_map_of_items_that_wait_keeps_their_order() -> None:
    async def doubled(state: State) -> dict[str, int]:
        await asyncio.sleep(0.001 * (5 - state["row"]))
        return {"twice": state["row"] * 2}

    rows = map_over("rows", doubled, item_key="row", result_key="twice", concurrency=3)
    assert (await run(rows, rows=[1, 2, 3, 4])).state["results"] == [2, 4, 6, 8]


async def test_a_timeout_cancels_a_function_that_waits() -> None:
    with pytest.raises(StepTimeoutError):
        await run(timeout(never_ends, 0.01))
    slow = Agent("slow").mock(reply("late", latency=60))
    ran = await run(timeout(S.set(x=1) >> slow, 0.01) // S.set(y=1))
    assert ran.state == {"y": 1}
