"""The position as part of the event that brings the run there: both are committed, or neither."""

from __future__ import annotations

import copy
import json
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import StepTimeoutError
from adk_fluent.flow import Engine

from .conftest import BenchLeaf
from .test_restart import LIST, PROGRAMS, bump

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.flow import Position
    from adk_fluent.ir import Node

    from .conftest import Bench

KEY = "journal"


def written(position: Position) -> dict[str, str]:
    return {KEY: json.dumps(position)}


async def killed_after(b: Bench, root: Node, count: int) -> list[str]:
    """Run; end as if the process died when so many events are committed.

    Returns:
        The names of the steps that committed something, in order.
    """
    leaf = BenchLeaf(b.state, root.name)
    leaf.bench = b
    return await drained(b, Engine(root, leaf, journal=written), count)


async def drained(b: Bench, engine: Engine[Any], count: int = 10_000) -> list[str]:
    done: list[str] = []
    async with aclosing(engine.run()) as events:
        async for event in events:
            b.commit(event)
            if not event.is_partial:
                done.append(f"{event.metadata.get('why')} {event.node}")
            if len(done) == count:
                break
    return done


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_run_that_is_killed_after_any_event_goes_on(b: Bench, name: str) -> None:
    start: dict[str, Any] = {**copy.deepcopy(b.state), **copy.deepcopy(LIST)}
    b.state = copy.deepcopy(start)
    root = PROGRAMS[name](b)
    events = await killed_after(b, root, 10_000)
    end, once = without_journal(b), Counter(b.calls)
    assert len(events) > 1
    for at in range(1, len(events)):
        b.state, b.calls = copy.deepcopy(start), []
        await killed_after(b, root, at)
        if KEY not in b.state:  # only an agent in flight has said something
            continue
        await b.run(root, position=json.loads(b.state[KEY]))
        assert without_journal(b) == end, at
        assert not once - Counter(b.calls), at


def without_journal(b: Bench) -> dict[str, Any]:
    return {key: value for key, value in b.clean_state.items() if key != KEY}


SHAPES: dict[str, Callable[[Bench], Node]] = {
    "sequence": lambda b: b.seq(*[b.mark(c) for c in "abcd"]),
    "loop": lambda b: b.loop(b.seq(b.mark("a"), b.mark("b")), 3),
    "parallel": lambda b: b.par(b.mark("a"), b.seq(b.mark("b"), b.mark("c"))),
    "fallback": lambda b: b.fallback(b.seq(b.mark("a"), b.fails("x")), b.mark("b")),
    "map": lambda b: b.map(b.seq(b.fn("a", x=1), b.fn("b", y=1))),
    "others": lambda b: b.seq(b.timeout(b.mark("a")), b.race(b.mark("b")), b.mark("c")),
}


@pytest.mark.parametrize("name", SHAPES)
async def test_functions_write_exactly_once(b: Bench, name: str) -> None:
    b.state.update(LIST)
    start = copy.deepcopy(b.state)
    root = SHAPES[name](b)
    once = written_by(await killed_after(b, root, 10_000))
    for at in range(1, sum(once.values())):
        b.state = copy.deepcopy(start)
        done = await killed_after(b, root, at)
        engine = b.engine(root, position=json.loads(b.state[KEY]))
        assert written_by(done + await drained(b, engine)) == once


def written_by(done: list[str]) -> Counter[str]:
    return Counter(each for each in done if each.startswith("step "))


async def test_where_a_step_failed_is_kept_before_its_frames_go(b: Bench) -> None:
    attempts: list[int] = []

    def fails_once(state: Any) -> dict[str, int]:
        attempts.append(1)
        if len(attempts) == 1:
            raise b.Boom("once")
        return {"x": 1}

    root = b.seq(b.mark("a"), b.loop(b.seq(b.mark("b"), b.fn("f", fails_once)), 1), b.mark("c"))
    engine = b.engine(root)
    engine = Engine(root, engine.leaf, keeps_failures=True)
    with pytest.raises(b.Boom):
        await drained(b, engine)
    assert engine.failed_at is not None
    await b.run(root, position=json.loads(json.dumps(engine.failed_at)))
    assert b.state == {"trail": "abc", "x": 1}


async def test_nobody_pays_for_what_nobody_keeps(b: Bench) -> None:
    engine = b.engine(b.timeout(b.hangs("h"), seconds=0.01))
    with pytest.raises(StepTimeoutError):
        await drained(b, engine)
    assert engine.failed_at is None


async def test_where_a_function_wrote_no_other_event_is_needed(b: Bench) -> None:
    b.state.update(LIST)
    root = b.seq(b.mark("a"), b.map(b.fn("f", x=1)), b.par(b.mark("b"), b.say("c")))
    done = await killed_after(b, root, 10_000)
    assert [each for each in done if each.startswith("journal")] == ["journal seq"]  # of the agent


async def test_what_writes_nothing_is_not_called_again(b: Bench) -> None:
    calls: list[str] = []
    tap, function = b.tap(lambda _: calls.append("t")), b.fn("f", lambda _: calls.append("f"))
    root = b.seq(tap, function, b.say("x"), b.mark("y"))
    await killed_after(b, root, 3)
    assert b.calls == ["f", "x"]
    await b.run(root, position=json.loads(b.state[KEY]))
    assert calls == ["t", "f"]
    assert b.state["trail"] == "y"


def fails_at_first(b: Bench, name: str) -> Node:
    """Counts itself, the second time it is called."""
    called: list[int] = []

    def counts(state: Any) -> dict[str, int]:
        called.append(1)
        if len(called) == 1:
            raise b.Boom(name)
        return {name: (state.get(name) or 0) + 1}

    return b.fn(name, counts)


FAILING: dict[str, Callable[[Bench], Node]] = {
    "beside one that goes on": lambda b: b.par(fails_at_first(b, "a"), bump(b, "c")),
    "beside one that is later": lambda b: b.par(
        fails_at_first(b, "a"), b.seq(b.say("idle", ticks=2), bump(b, "c"))
    ),
    "both": lambda b: b.par(
        b.seq(bump(b, "c"), fails_at_first(b, "a")), fails_at_first(b, "b"), name="both"
    ),
    "two deep": lambda b: b.par(b.par(fails_at_first(b, "a"), bump(b, "c")), bump(b, "d")),
    "in a map": lambda b: b.map(b.seq(bump(b, "c"), fails_at_first(b, "a")), result="a"),
    "in a timeout": lambda b: b.timeout(b.seq(bump(b, "c"), fails_at_first(b, "a"))),
    "in the last attempt": lambda b: b.fallback(
        b.fails("never"), b.seq(bump(b, "c"), fails_at_first(b, "a"))
    ),
    "in a race": lambda b: b.race(b.fails("never"), b.seq(bump(b, "c"), fails_at_first(b, "a"))),
}


@pytest.mark.parametrize("name", FAILING)
async def test_what_failed_goes_on_and_nothing_is_done_twice(b: Bench, name: str) -> None:
    b.state.update(LIST)
    root = b.seq(b.mark("a"), FAILING[name](b), b.mark("z"), name="root")
    position, failures = None, 0
    while True:
        engine = Engine(root, b.engine(root).leaf, position=position, keeps_failures=True)
        try:
            await drained(b, engine)
        except b.Boom:
            failures += 1
            position = json.loads(json.dumps(engine.failed_at))
        else:
            break
    assert failures in (1, 2)
    assert {key for key, value in b.clean_state.items() if value not in (1, *LIST.values())} <= {
        "trail",
        "results",
    }
    assert b.state["trail"] == "az"
