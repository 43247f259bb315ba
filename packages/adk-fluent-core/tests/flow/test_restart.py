"""A run goes on from every position that was written down: same end, nothing done twice."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import AgentReportedError
from adk_fluent.flow import Signal, new_position

from .conftest import ALL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from adk_fluent.flow import Position
    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Hooks, Turn

LIST = {"list": [1, 2, 3]}


def bump(b: Bench, name: str, ticks: int = 0) -> Node:
    """Counts itself; `ticks` decides when."""
    idle = [b.say(f"{name}_idle", ticks=ticks)] if ticks else []
    return b.seq(*idle, b.fn(name, lambda s: {name: (s.get(name) or 0) + 1}), name=f"{name}_seq")


def around(b: Bench, *inside: Node) -> Node:
    return b.seq(b.mark("a"), *inside, b.mark("h"))


def lose(b: Bench) -> Node:
    return b.seq(b.say("lose", k="lost", l=1), b.hangs("h1"))


def deep_lose(b: Bench) -> Node:
    failing = b.seq(b.say("deep", k="deep", d=1), b.fails("df"))
    return b.seq(b.fallback(failing, b.hangs("dh", d2=1)))


class Ahead:
    """The time of an event loop, which is moved on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time, self.seconds = loop.time, 0.0

    def __call__(self) -> float:
        return self._time() + self.seconds


def hangs_for(b: Bench, name: str, seconds: float) -> Node:
    """Never ends, and lets so many seconds pass at once, for a timer that is set."""

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        loop = asyncio.get_running_loop()
        if not isinstance(loop.time, Ahead):
            vars(loop)["time"] = Ahead(loop)
        vars(loop)["time"].seconds += seconds
        await asyncio.Event().wait()
        yield turn.event()

    return b.agent(name, act)


def win(b: Bench) -> Node:
    return b.seq(b.say("w1", ticks=4, k="won"), b.say("w2", ticks=4), b.say("w3", w=1))


#: Every kind of node, with steps before, inside and after it.
PROGRAMS: dict[str, Callable[[Bench], Node]] = {
    "sequence": lambda b: around(b, b.seq(b.mark("b"), b.mark("c"))),
    "loop max": lambda b: around(b, b.loop(b.seq(b.mark("b"), b.mark("c")), 3)),
    "loop until": lambda b: around(
        b, b.loop(b.seq(b.mark("b"), b.mark("c")), until=lambda s: len(s["trail"]) > 6)
    ),
    "loop until in a loop": lambda b: around(
        b,
        b.loop(
            b.seq(b.loop(b.mark("b"), until=lambda s: len(s["trail"]) % 3 == 0), b.mark("c")), 2
        ),
    ),
    "loop escalate": lambda b: around(
        b,
        b.loop(
            b.seq(
                b.mark("b"),
                b.route((lambda s: len(s["trail"]) > 3, b.escalates("up"))),
                b.mark("c"),
            )
        ),
    ),
    "route": lambda b: around(
        b,
        b.route(
            (lambda _: False, b.mark("b")),
            # what it does makes the first test that follows hold, were it asked again
            (lambda s: s["trail"] == "a", b.seq(b.mark("c"), b.mark("d"))),
            default=b.mark("e"),
        ),
    ),
    "route default": lambda b: around(
        b, b.route((lambda _: False, b.mark("b")), default=b.seq(b.mark("c"), b.mark("d")))
    ),
    "route nothing": lambda b: around(b, b.route((lambda _: False, b.mark("b")))),
    "transfer": lambda b: around(
        b, b.seq(b.mark("b"), name="sub"), b.transfer("sub"), b.transfer("a")
    ),
    "transfer if": lambda b: around(
        b,
        b.transfer("sub", when=lambda s: s["trail"] == "a"),
        b.seq(b.mark("b"), b.mark("c"), name="sub"),
    ),
    "tap and expect": lambda b: around(
        b, b.tap(lambda _: None), b.expect(lambda s: s["trail"].endswith("a")), b.mark("b")
    ),
    "transform": lambda b: around(
        b,
        b.transform(lambda s: {"x": len(s["trail"])}),
        b.transform(None, semantics="delete_keys", affected_keys=("x",)),
    ),
    "fallback": lambda b: around(
        b,
        b.fallback(
            b.seq(b.mark("b"), b.say("k", k=1), b.fails("x")), b.seq(b.mark("c"), b.mark("d"))
        ),
    ),
    "fallback first": lambda b: around(b, b.fallback(b.seq(b.mark("b"), b.mark("c")), b.mark("d"))),
    "fallback nested": lambda b: around(
        b,
        b.fallback(
            b.seq(
                b.mark("b"),
                b.fallback(b.seq(b.mark("c"), b.fails("x")), b.mark("d"), name="in"),
                b.fails("y"),
            ),
            b.seq(b.mark("e"), b.mark("f")),
        ),
    ),
    "fallback in a loop": lambda b: around(
        b, b.loop(b.fallback(b.seq(b.mark("b"), b.fails("x")), b.mark("c")), 3)
    ),
    "parallel": lambda b: around(
        b, b.par(bump(b, "p", 2), bump(b, "q"), b.seq(bump(b, "r", 1), b.say("z", ticks=9)))
    ),
    "parallel shared key": lambda b: around(
        b, b.par(b.seq(b.say("l", ticks=9, k="l"), b.say("l2", ticks=3)), b.say("e", k="e"))
    ),
    "parallel nested": lambda b: around(
        b,
        b.par(
            b.par(b.say("x", ticks=8, k="x"), b.say("y", k="y"), name="in"),
            b.seq(b.say("z", ticks=4, k="z"), b.say("z2")),
        ),
    ),
    "parallel in an attempt": lambda b: around(
        b,
        b.fallback(
            b.seq(
                b.par(b.say("x", ticks=5, k="x", i=1), b.say("y", k="y", j=1)),
                b.say("m"),
                b.fails("bad"),
            ),
            b.mark("c"),
        ),
    ),
    "attempts in a parallel": lambda b: around(
        b,
        b.par(
            b.fallback(
                b.seq(b.say("x", k="x", i=1), b.say("idle", ticks=4), b.fails("bad")),
                b.say("ok", o=1),
            ),
            b.seq(b.say("y", ticks=2, k="y"), b.say("y2", ticks=9)),
        ),
    ),
    "escalation in a branch": lambda b: around(
        b, b.loop(b.seq(b.mark("b"), b.par(b.escalates("up"), bump(b, "q", 6)), b.mark("c")))
    ),
    "race": lambda b: around(b, b.race(lose(b), win(b), b.fails("x", k=3))),
    "race that reads": lambda b: around(
        b,
        b.race(
            lose(b),
            b.seq(b.say("w1", ticks=5), b.say("w2"), b.fn("f", seen=lambda s: s.get("k"))),
        ),
    ),
    "race that reads in a map": lambda b: around(
        b,
        b.map(
            b.seq(
                b.fn("e", own=lambda s: s["item"]),
                b.race(
                    b.seq(b.fn("g", own="lost"), b.hangs("h1")),
                    b.seq(b.say("w1", ticks=5), b.say("w2"), b.fn("f", seen=lambda s: s["own"])),
                ),
            ),
            result="seen",
        ),
    ),
    "first_complete": lambda b: around(b, b.first(win(b), lose(b))),
    "race with attempts in the losers": lambda b: around(b, b.race(deep_lose(b), win(b))),
    "race in a race": lambda b: around(b, b.race(b.race(lose(b), deep_lose(b), name="in"), win(b))),
    "race won by a race": lambda b: around(
        b, b.race(b.seq(b.race(lose(b), win(b), name="in"), b.say("more", more=1)), deep_lose(b))
    ),
    "race in an attempt": lambda b: around(
        b, b.fallback(b.seq(b.race(lose(b), win(b)), b.fails("bad")), b.mark("c"))
    ),
    "race of parallels": lambda b: around(
        b, b.race(b.par(lose(b), b.say("l2", l2=1)), b.par(win(b), b.say("w4", w4=1), name="pw"))
    ),
    "race in a loop": lambda b: around(
        b, b.loop(b.race(b.seq(b.say("i", ticks=6), b.mark("b")), lose(b)), 2)
    ),
    "race all fail": lambda b: around(
        b,
        b.fallback(b.race(b.seq(b.say("x", k=1), b.fails("f1")), b.fails("f2", k=2)), b.mark("c")),
    ),
    "map": lambda b: around(
        b,
        b.map(
            b.seq(
                b.fn("f", y=lambda s: s["item"] * 2), b.say("m"), b.fn("g", z=lambda s: s["y"] + 1)
            ),
            result="z",
            concurrency=2,
        ),
    ),
    "map answers": lambda b: around(
        b, b.map(b.seq(b.say("m"), b.fn("f", y=1), b.fn("g", z=2)), concurrency=1)
    ),
    "map answers of attempts": lambda b: around(
        b,
        b.map(
            b.seq(b.fallback(b.seq(b.say("bad"), b.fails("x")), b.say("good")), b.fn("f", y=1)),
            concurrency=2,
        ),
    ),
    "map answers of a parallel": lambda b: around(
        b, b.map(b.seq(b.par(b.say("m"), b.say("n")), b.fn("f", y=1)))
    ),
    "map in an attempt": lambda b: around(
        b,
        b.fallback(
            b.seq(b.map(b.fn("f", y=lambda s: s["item"]), result="y"), b.fails("bad")), b.mark("c")
        ),
    ),
    "attempts in a map": lambda b: around(
        b,
        b.map(
            b.fallback(
                b.seq(b.fn("f", y=lambda s: s["item"], y2=0), b.say("m"), b.fails("bad")),
                b.fn("g", y=lambda s: [s["item"], s.get("y"), s.get("y2")]),
            ),
            result="y",
            concurrency=2,
        ),
    ),
    "race in a map": lambda b: around(
        b,
        b.map(
            b.race(b.seq(b.say("w", ticks=4), b.fn("g", y=lambda s: s["item"])), lose(b)),
            result="y",
        ),
    ),
    "map in a race": lambda b: around(
        b, b.race(b.map(b.say("m", ticks=1, y="m")), b.hangs("h1", y=1, l=1))
    ),
    "parallel in a map": lambda b: around(
        b,
        b.map(
            b.seq(
                b.par(b.fn("f", y=lambda s: s["item"]), b.fn("g", z=lambda s: s["item"])),
                b.fn("sum", y=lambda s: s["y"] + s["z"]),
            ),
            result="y",
        ),
    ),
    "map in a loop": lambda b: around(
        b, b.loop(b.map(b.fn("f", n=lambda s: (s.get("n") or 0) + s["item"]), result="n"), 2)
    ),
    "timeout": lambda b: around(b, b.timeout(b.seq(b.mark("b"), b.say("m"), b.mark("c")))),
    "timeout of a parallel": lambda b: around(b, b.timeout(b.par(bump(b, "p", 2), bump(b, "q")))),
    "timeout fired": lambda b: around(
        b, b.fallback(b.timeout(b.seq(b.say("m", k=1), hangs_for(b, "h1", 5)), 5), b.mark("c"))
    ),
    "error events": lambda b: around(
        b, b.fallback(b.seq(b.mark("b"), b.reports("x")), b.mark("c"))
    ),
    "empty": lambda b: around(
        b, b.seq(), b.par(), b.race(), b.loop(b.mark("b"), 0), b.map(b.mark("b"), key="absent")
    ),
}


@pytest.mark.parametrize("hooks", [None, ALL], ids=["plain", "enclosed"])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_from_every_step(b: Bench, name: str, hooks: Hooks | None) -> None:
    b.around = hooks
    b.state.update(LIST)
    assert await b.restarts(PROGRAMS[name](b)) > 0


@pytest.mark.parametrize("name", PROGRAMS)
async def test_from_every_step_below_something_else(b: Bench, name: str) -> None:
    program = PROGRAMS[name](b)
    steps = b.seq(*[b.say(f"o{i}", ticks=1) for i in range(5)])
    for outer in (
        b.par(program, steps, name="o"),
        b.race(b.hangs("oh", k="o", trail="o"), program, name="o"),
        b.first(program, b.seq(b.say("ol", k="o"), b.hangs("oh")), name="o"),
        b.fallback(b.seq(program, b.fails("of")), b.mark("o"), name="o"),
        b.loop(program, 2, name="o"),
        b.timeout(program, name="o"),
        b.map(program, "list2", result="trail", concurrency=1, name="o"),
    ):
        b.state = {**LIST, "list2": [1, 2]}
        await b.restarts(b.seq(outer, b.mark("z"), name="root"), every=3)


@pytest.mark.parametrize("ticks", range(3))
async def test_in_the_moment_in_which_an_attempt_is_undone(b: Bench, ticks: int) -> None:
    """Committed, but its strand has not gone on yet: another one saves the position."""
    attempts = b.fallback(b.seq(b.say("p", k=1), b.fails("x")), b.seq(b.say("y"), b.mark("z")))
    other = b.seq(*[b.say(f"o{i}", ticks=ticks if i == 0 else 0) for i in range(6)])
    seen = 0
    for root in (b.par(attempts, other), b.par(other, attempts)):
        await b.restarts(root)
        gone = {id for event in (await b.run(root)).events for id in event.discarded}
        moments = [save for save in await b.saves(root) if '"undone"' in save.position]
        assert gone
        for save in moments:
            ran = await b.run(root, position=json.loads(save.position))
            assert all(gone.isdisjoint((e.attempt or "").split(".")) for e in ran.events)
        seen += len(moments)
    assert seen


async def test_a_position_is_flat_json_and_small(b: Bench) -> None:
    root = b.seq(b.say("x"), b.say("y"), b.say("z"))
    for depth in range(30):
        root = b.loop(b.fallback(b.seq(root, b.say(f"s{depth}", k=depth)), b.say("never")), 1)
    saves = await b.saves(root)
    sizes = [len(save.position) for save in saves]
    assert len(sizes) > 30
    assert max(sizes) < 30 * 130
    deepest = max(saves, key=lambda save: len(save.position))
    assert all(type(frame) is dict for frame in json.loads(deepest.position)["strands"]["0"])


async def test_a_position_does_not_grow_with_the_steps_done(b: Bench) -> None:
    body = b.seq(
        b.race(b.say("w", k=1), b.seq(b.say("l"), b.hangs("h"))),
        b.fallback(b.seq(b.say("p", k=2), b.fails("x")), b.say("y")),
        b.par(b.say("q"), b.say("r")),
        b.map(b.say("m")),
    )
    b.state.update(LIST)
    saves = await b.saves(b.loop(body, 20))
    sizes = [len(save.position) for save in saves]
    first, last = sizes[: len(sizes) // 4], sizes[-len(sizes) // 4 :]
    assert max(last) < max(first) + 60  # ids have more digits


async def test_the_position_is_changed_in_place_and_starts_empty(b: Bench) -> None:
    position = new_position()
    seen: list[Any] = []

    async def on_step(now: Position) -> None:
        assert now is position
        seen.append(json.loads(json.dumps(now["strands"])))

    await b.run(b.seq(b.say("a"), b.say("b")), position=position, on_step=on_step)
    assert seen == [{"0": [{"c": 0, "i": 1}, {"c": 1}]}]
    assert position["strands"] == {"0": []}


async def test_a_run_that_ended_has_nothing_left_to_do(b: Bench) -> None:
    root = b.seq(b.say("a"))
    ran = await b.run(root)
    again = await b.run(root, position=ran.engine.position)
    assert again.outcome is Signal.OK
    assert again.events == []


async def test_a_step_is_told_of_when_a_branch_ends(b: Bench) -> None:
    """A branch that is done is not run again because another one takes long."""
    root = b.par(b.say("quick"), b.hangs("slow"))
    saves: list[str] = []

    async def on_step(now: Position) -> None:
        saves.append(json.dumps(now))

    engine = b.engine(root, on_step=on_step)
    events = engine.run()
    await anext(events)
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert json.loads(saves[-1])["strands"]["0"][0]["done"] == {"0": "ok"}


async def test_after_a_restart_the_chain_of_errors_has_the_texts(b: Bench) -> None:
    root = b.fallback(b.fails("x"), b.seq(b.say("s"), b.fails("y")), b.fails("z"))
    saves: list[str] = []

    async def on_step(now: Position) -> None:
        saves.append(json.dumps(now))

    await b.error(root, on_step=on_step)
    at = next(save for save in saves if '"i": 1' in save)
    error = await b.error(root, position=json.loads(at))
    chain = [error, error.__context__, getattr(error.__context__, "__context__", None)]
    assert [str(each).splitlines()[0] for each in chain] == ["z", "y", "BoomError: x"]
    assert isinstance(chain[2], AgentReportedError)


@pytest.mark.parametrize("kind", ["par", "map", "timeout"])
async def test_an_error_that_was_noted_before_a_restart_is_not_lost(b: Bench, kind: str) -> None:
    """Of two forks at the same time one had failed, and the other one saved the position."""
    b.state["list"] = [1]
    failing = getattr(b, kind)(b.fails("x"), name="bad")
    saves: list[str] = []

    async def on_step(now: Position) -> None:
        saves.append(json.dumps(now))

    root = b.par(b.par(failing, name="p1"), b.seq(*[b.say(f"s{i}") for i in range(6)]))
    await b.error(root, on_step=on_step)
    for save in saves:
        error = await b.error(root, position=json.loads(save))
        assert "x" in str(error)


async def test_a_position_taken_by_force_in_the_middle_of_a_leaf(b: Bench) -> None:
    """What a killed process leaves behind is the last position it wrote, whatever came after."""
    b.state.update(LIST)
    root = around(b, b.race(lose(b), win(b)), b.map(b.say("m", ticks=3)))
    b_state, positions = dict(b.state), list[tuple[str, dict[str, Any]]]()

    async def on_step(now: Position) -> None:
        positions.append((json.dumps(now), dict(b.state)))

    engine = b.engine(root, on_step=on_step)
    count = 0
    async with aclosing(engine.run()) as events:
        async for event in events:
            b.commit(event)
            count += 1
            if count == 5:
                break
    position, b.state = positions[-1]
    await b.run(root, position=json.loads(position))
    end = b.clean_state
    b.state = b_state
    await b.run(root)
    assert b.clean_state == end
