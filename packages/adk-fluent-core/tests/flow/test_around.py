"""What stands around steps: in their place, once more, with a time limit, over a restart."""

from __future__ import annotations

import asyncio
import contextvars
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.protocol import AgentReply

from .conftest import ALL, Hooks, passes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from adk_fluent.flow import Enclosed
    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Ran, Turn

LIST = {"list": [1, 2, 3]}


async def run(b: Bench, root: Node, around: Hooks, **options: Any) -> Ran:
    b.around = around
    return await b.run(root, **options)


# --- what a hook may do --------------------------------------------------------------------------


async def test_a_step_is_answered_for(b: Bench) -> None:
    async def answers(_: Enclosed[Any]) -> AgentReply:
        return AgentReply("instead", {"k": 1})

    ran = await run(b, b.seq(b.say("a", x=1), b.say("z")), Hooks(answers, "a"))
    assert (ran.said, b.state, b.calls) == (["instead", "z"], {"k": 1}, ["z"])


async def test_the_reply_of_a_step_is_what_it_says_and_writes(b: Bench) -> None:
    replies: dict[str, AgentReply] = {}

    async def looks(step: Enclosed[Any]) -> AgentReply:
        reply = replies[step.node.name] = await step.go_on()
        return reply

    root = b.seq(
        b.par(b.say("a", "A", x=1), b.say("b", "B", y=2)),
        b.fallback(b.seq(b.say("lost", "lost"), b.fails("f"), name="first"), b.say("c", "C")),
        b.fn("fn", z=3),
    )
    await run(b, root, Hooks(looks))
    told = {name: (each.text, each.state_delta) for name, each in replies.items()}
    assert told["a"] == ("A", {"x": 1})
    assert told["par"] == ("A\n\nB", {"x": 1, "y": 2})
    assert told["fb"] == ("C", {})
    assert told["seq"] == ("C", {"x": 1, "y": 2, "z": 3})
    assert "first" not in told


async def test_what_is_put_in_place_of_a_reply_is_said_besides(b: Bench) -> None:
    async def changes(step: Enclosed[Any]) -> AgentReply:
        reply = await step.go_on()
        return AgentReply(reply.text + "!", reply.state_delta | {"more": 1})

    ran = await run(b, b.say("a", "A", x=1), Hooks(changes, "a"))
    assert (ran.said, ran.text, b.state) == (["A", "A!"], "A!", {"x": 1, "more": 1})


async def test_a_step_is_done_once_more(b: Bench) -> None:
    async def twice(step: Enclosed[Any]) -> AgentReply:
        await step.go_on()
        return await step.go_on()

    counts = b.fn("n", n=lambda s: (s.get("n") or 0) + 1)
    ran = await run(
        b, b.seq(b.seq(counts, b.say("a"), name="twice"), b.say("z")), Hooks(twice, "twice")
    )
    assert (b.calls, b.state, ran.said) == (["n", "a", "n", "a", "z"], {"n": 2}, ["a", "a", "z"])


@pytest.mark.parametrize("kind", ["alone", "in an attempt", "in a fork", "durable"])
async def test_a_step_that_fails_is_tried_again(b: Bench, kind: str) -> None:
    left = [2]

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        left[0] -= 1
        yield turn.event(state_delta={"tried": 2 - left[0]})
        if left[0]:
            raise b.Boom
        yield turn.event("done")

    async def tries(step: Enclosed[Any]) -> AgentReply:
        try:
            return await step.go_on()
        except b.Boom:
            return await step.go_on()

    inner = b.seq(b.mark("first"), b.fallback(b.agent("flaky", act)), name="tried")
    root = b.seq(inner, b.mark("end"))
    if kind == "in an attempt":
        root = b.fallback(root, b.say("never"))
    elif kind == "in a fork":
        root = b.seq(b.par(root, b.say("other")))
    options = {"keeps_failures": True} if kind == "durable" else {}
    await run(b, root, Hooks(tries, "tried"), **options)
    assert b.clean_state == {"tried": 2, "trail": "firstfirstend"}
    assert "never" not in b.calls


async def test_a_failure_is_made_good(b: Bench) -> None:
    async def mends(step: Enclosed[Any]) -> AgentReply:
        try:
            return await step.go_on()
        except b.Boom as error:
            return AgentReply(f"sorry: {error}")

    root = b.seq(b.seq(b.say("a", x=1), b.fails("f"), name="mended"), b.say("z"))
    ran = await run(b, root, Hooks(mends, "mended"), keeps_failures=True)
    assert (ran.said, b.state) == (["a", "sorry: f", "z"], {"x": 1})
    assert ran.engine.failed_at is None


async def test_what_a_hook_raises_is_the_failure_of_the_step(b: Bench) -> None:
    async def breaks(_: Enclosed[Any]) -> AgentReply:
        raise LookupError("the hook's own")

    error = await b.error(b.say("a"), around=Hooks(breaks, "a"))
    assert (type(error), error.args[0]) == (LookupError, "the hook's own")
    assert "in node 'a'" in "".join(error.__notes__)
    ran = await run(b, b.fallback(b.say("a"), b.say("b")), Hooks(breaks, "a"))
    assert ran.said == ["b"]


async def test_a_time_limit_of_a_hook_ends_the_step(b: Bench) -> None:
    async def limits(step: Enclosed[Any]) -> AgentReply:
        try:
            async with asyncio.timeout(0.02):
                return await step.go_on()
        except TimeoutError:
            return AgentReply("too late")

    root = b.seq(b.par(b.hangs("h"), b.hangs("i"), name="limited"), b.say("z"))
    ran = await run(b, root, Hooks(limits, "limited"))
    assert (ran.said, b.closed) == (["too late", "z"], ["h", "i", "z"])


async def test_a_step_sees_the_context_variables_of_its_hooks(b: Bench) -> None:
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="")
    seen: list[str] = []

    async def sets(step: Enclosed[Any]) -> AgentReply:
        token = var.set(var.get() + step.node.name)
        try:
            return await step.go_on()
        finally:
            var.reset(token)

    def look(_: Any) -> None:
        seen.append(var.get())

    inner = b.seq(b.tap(look), b.par(b.tap(look), b.tap(look)), b.tap(look), name="b")
    await run(b, b.seq(b.seq(inner, name="a"), b.tap(look)), Hooks(sets, "a", "b"))
    assert seen == ["ab", "ab", "ab", "ab", ""]


async def test_a_run_that_is_closed_early_leaves_no_hook_hanging(b: Bench) -> None:
    ended: list[str] = []

    async def watches(step: Enclosed[Any]) -> AgentReply:
        try:
            return await step.go_on()
        finally:
            ended.append(step.node.name)

    b.around = Hooks(watches)
    engine = b.engine(b.seq(b.par(b.say("a"), b.hangs("h")), b.say("z")))
    before = asyncio.all_tasks()
    async with aclosing(engine.run()) as events:
        async for _ in events:
            break
    assert asyncio.all_tasks() <= before
    assert sorted(ended) == ["a", "h", "par", "seq"]


async def test_the_loser_of_a_race_is_cancelled_with_its_hooks(b: Bench) -> None:
    ended: list[str] = []

    async def watches(step: Enclosed[Any]) -> AgentReply:
        try:
            return await step.go_on()
        except asyncio.CancelledError:
            ended.append(step.node.name)
            raise

    race = b.race(b.seq(b.say("l", x=1), b.hangs("h"), name="loser"), b.say("w", ticks=9))
    ran = await run(b, race, Hooks(watches))
    assert (ended, ran.text, b.clean_state) == (["h", "loser"], "w", {})


async def test_iterations_are_those_of_the_nearest_loop(b: Bench) -> None:
    seen: list[tuple[str, int]] = []

    async def looks(step: Enclosed[Any]) -> AgentReply:
        seen.append((step.node.name, step.iteration))
        return await step.go_on()

    root = b.loop(b.seq(b.say("a"), b.loop(b.say("b"), 2, name="inner")), 2)
    await run(b, root, Hooks(looks, "a", "b", "inner"))
    once = [("inner", 0), ("b", 0), ("b", 1)]
    assert seen == [("a", 0), *once, ("a", 1), ("inner", 1), *once[1:]]


# --- pauses and restarts -------------------------------------------------------------------------


async def test_a_step_that_waits_is_told_so_and_goes_on_inside_its_hooks(b: Bench) -> None:
    seen: list[Any] = []

    async def looks(step: Enclosed[Any]) -> AgentReply:
        seen.append((step.node.name, step.resumed))
        reply = await step.go_on()
        seen.append(reply.paused)
        return reply

    root = b.seq(b.mark("a"), b.seq(b.waits("w"), b.mark("b"), name="body"), b.mark("z"))
    ran = await run(b, root, Hooks(looks, "body"))
    assert seen == [("body", False), True]
    position = json.loads(json.dumps(ran.engine.position))
    await run(b, root, Hooks(looks, "body"), position=position, answers={"w": 1})
    assert seen[2:] == [("body", True), False]
    assert b.state == {"trail": "abz", "w": 1}


WITH = [(ALL, None), (None, ALL), (ALL, ALL)]
ROOTS: dict[str, Callable[[Bench], Node]] = {
    "sequence": lambda b: b.seq(b.mark("a"), b.seq(b.waits("w"), b.mark("b")), b.mark("z")),
    "parallel": lambda b: b.par(
        b.seq(b.waits("w"), b.fn("f", f=1)), b.seq(b.say("s"), b.waits("v"))
    ),
    "map": lambda b: b.map(b.seq(b.fn("f", n=1), b.fallback(b.fails("x"), b.waits("w", "v")))),
    "fallback": lambda b: b.fallback(
        b.seq(b.say("a", x=1), b.waits("w", "v"), b.fails("f")), b.say("c")
    ),
    "loop": lambda b: b.loop(b.seq(b.mark("a"), b.waits("w"), b.mark("b")), 2),
    "timeout": lambda b: b.timeout(b.seq(b.waits("w"), b.mark("a")), 60),
    "race": lambda b: b.race(b.seq(b.waits("w"), b.mark("a")), b.fails("f")),
}


@pytest.mark.parametrize(("first", "then"), WITH, ids=["no more", "only then", "both"])
@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("limit", [None, 60.0])
async def test_a_run_that_waits_goes_on_with_other_hooks(
    b: Bench, name: str, first: Hooks | None, then: Hooks | None, limit: float | None
) -> None:
    """Hooks are no part of the pipeline: a position fits a run with others, or with none."""
    root, answers = ROOTS[name](b), {"w": 1, "v": 2}
    b.state = dict(LIST)
    plain = await b.run(root)
    while plain.engine.pending:
        plain = await b.run(root, position=plain.engine.position, answers=answers)
    expected, calls = b.clean_state, sorted(b.calls)
    b.state, b.calls = dict(LIST), []
    b.around = first
    ran = await b.run(root, limit=limit)
    b.around = then
    while ran.engine.pending:
        position = json.loads(json.dumps(ran.engine.position))
        ran = await b.run(root, position=position, answers=answers, limit=limit)
    assert (b.clean_state, sorted(b.calls)) == (expected, calls)


async def test_a_step_that_has_ended_is_not_done_again_for_what_its_hooks_still_do(
    b: Bench,
) -> None:
    saved: list[str] = []

    async def saves(step: Enclosed[Any]) -> AgentReply:
        reply = await step.go_on()
        saved.append(json.dumps(b.last.position))
        return reply

    root = b.seq(b.mark("a"), b.seq(b.mark("b"), b.mark("c"), name="body"), b.mark("z"))
    await run(b, root, Hooks(saves, "body"))
    for around in (Hooks(saves, "body"), Hooks(passes), None):
        b.state, b.around = {"trail": "abc"}, around
        await b.run(root, position=json.loads(saved[0]))
        assert b.state == {"trail": "abcz"}
