"""Nothing is recursive, and nothing is slower than it must be."""

from __future__ import annotations

import gc
import json
import sys
from time import process_time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.ir import Node

    from .conftest import Bench

DEEP, FORKS = 20_000, 2_000


def nested(leaf: Node, wrap: Callable[[Node], Node], depth: int) -> Node:
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


@pytest.mark.parametrize("kind", ["seq", "loop", "route", "fallback"])
async def test_deep_nesting(b: Bench, kind: str) -> None:
    wraps: dict[str, Callable[[Node], Node]] = {
        "seq": b.seq,
        "loop": lambda node: b.loop(node, 1),
        "route": lambda node: b.route((lambda _: True, node)),
        "fallback": b.fallback,
    }
    assert sys.getrecursionlimit() < DEEP
    ran = await b.run(nested(b.fn("f", x=1), wraps[kind], DEEP))
    assert b.state == {"x": 1}
    assert len(ran.events) == 1


@pytest.mark.parametrize("kind", ["par", "race", "timeout", "map"])
async def test_deep_forks(b: Bench, kind: str) -> None:
    b.state["list"] = [1]
    wraps: dict[str, Callable[[Node], Node]] = {
        "par": lambda node: b.par(node, b.seq()),
        "race": b.race,
        "timeout": b.timeout,
        "map": lambda node: b.map(node, result="x").replace(output_key="x"),
    }
    depth = FORKS if kind != "map" else 200  # each level of a map writes its results
    await b.run(nested(b.fn("f", x=1), wraps[kind], depth))
    x = b.state["x"]
    for _ in range(depth if kind == "map" else 0):
        (x,) = x
    assert x == 1


async def test_a_failure_from_far_below(b: Bench) -> None:
    deep = nested(b.seq(b.say("a", x=1), b.fails("x")), b.fallback, DEEP)
    await b.run(b.fallback(deep, b.say("y")))
    assert b.clean_state == {}
    forks = nested(b.seq(b.say("a", x=1), b.fails("x")), b.par, FORKS)
    await b.run(b.fallback(forks, b.say("y")))
    assert b.clean_state == {}


@pytest.mark.full
async def test_cancelling_far_below(b: Bench) -> None:
    deep = nested(b.hangs("h"), b.par, FORKS)
    await b.run(b.race(deep, b.seq(b.say("idle", ticks=50), b.say("w"))))
    assert "h" in b.closed


async def test_restarting_far_below(b: Bench) -> None:
    deep = nested(b.seq(b.mark("a"), b.mark("b")), lambda node: b.fallback(b.seq(node)), DEEP // 8)
    saves = await b.saves(deep)
    b.state = saves[0].state
    await b.run(deep, position=json.loads(saves[0].position))
    assert b.state["trail"] == "ab"


@pytest.mark.full
async def test_a_wide_parallel(b: Bench) -> None:
    ran = await b.run(b.par(*[b.fn(f"f{i}", x=i) for i in range(10_000)]))
    assert len(ran.events) == 10_000
    assert b.state["x"] == 9_999


async def test_a_wide_race(b: Bench) -> None:
    others = [b.hangs(f"h{i}") for i in range(2_000)]
    await b.run(b.race(*others, b.say("w", ticks=3, x=1)))
    assert b.state == {"x": 1}


@pytest.mark.full
async def test_a_long_sequence_and_a_long_loop(b: Bench) -> None:
    await b.run(b.seq(*[b.fn("f", n=lambda s: s.get("n", 0) + 1) for _ in range(10_000)]))
    await b.run(b.loop(b.fn("f", n=lambda s: s["n"] + 1), 10_000))
    assert b.state["n"] == 20_000


@pytest.mark.full
@pytest.mark.parametrize("kind", ["seq", "par", "race", "map", "fallback"])
async def test_time_grows_with_size_not_with_its_square(b: Bench, kind: str) -> None:
    """Eight times as much takes less than twenty-five times as long; sixty-four would be square."""

    async def cost(size: int) -> float:
        b.state = {"list": list(range(size)), **{f"k{i}": i for i in range(size)}}
        steps = [b.fn("f", lambda _, i=i: {f"x{i}": i}) for i in range(size)]
        root: Node = {
            "seq": lambda: b.seq(*steps),
            "par": lambda: b.par(*steps),
            "race": lambda: b.race(
                *[b.seq(each, b.fails("x")) for each in steps], b.say("w", ticks=9)
            ),
            "map": lambda: b.map(b.fn("f", x=lambda s: s["item"]), result="x", concurrency=4),
            "fallback": lambda: b.fallback(
                *[b.seq(each, b.fails("x")) for each in steps], b.say("w")
            ),
        }[kind]()
        start = process_time()
        await b.run(root)
        return process_time() - start

    gc.disable()  # what other tests have left on the heap is not what is measured
    try:
        await cost(50)
        small = min([await cost(100) for _ in range(5)])
        assert min([await cost(800) for _ in range(3)]) < 25 * small
    finally:
        gc.enable()
