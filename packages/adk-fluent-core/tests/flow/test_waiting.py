"""Steps that wait for an answer from outside: pause, answer, go on with another engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.flow import Signal
from adk_fluent.protocol import Pending

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Ran, Turn


async def answered(b: Bench, root: Node, ran: Ran, **answers: Any) -> Ran:
    """Go on in another process: a new engine, the position read from text."""
    position = json.loads(json.dumps(ran.engine.position))
    return await b.run(root, position=position, answers=answers)


async def test_a_question_pauses_and_its_answer_goes_on(b: Bench) -> None:
    root = b.seq(b.mark("a"), b.waits("w"), b.mark("c"))
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    assert ran.engine.pending == {"w": {"node": "w", "asked": "tool"}}
    assert b.state == {"trail": "a"}
    ran = await answered(b, root, ran, w=42)
    assert ran.outcome is Signal.OK
    assert ran.engine.pending == {}
    assert b.state == {"trail": "ac", "w": 42}
    assert b.calls == ["a", "w", "w", "c"]


async def test_without_its_answer_nothing_runs_and_the_question_stands(b: Bench) -> None:
    root = b.seq(b.mark("a"), b.waits("w"), b.mark("c"))
    ran = await answered(b, root, await b.run(root), other=1)
    assert ran.events == []
    assert ran.outcome is Signal.PAUSE
    assert ran.engine.pending == {"w": {"node": "w", "asked": "tool"}}
    assert b.calls == ["a", "w"]
    ran = await answered(b, root, ran, w=1)
    assert b.state["trail"] == "ac"


async def test_a_step_with_several_questions_goes_on_when_all_are_answered(b: Bench) -> None:
    root = b.seq(b.waits("w", "p", "q"), b.mark("c"))
    ran = await b.run(root)
    assert set(ran.engine.pending) == {"p", "q"}
    ran = await answered(b, root, ran, p=1)
    assert set(ran.engine.pending) == {"q"}
    assert b.calls == ["w"]
    ran = await answered(b, root, ran, p=1, q=2)
    assert b.state == {"p": 1, "q": 2, "trail": "c"}


async def test_questions_in_two_branches_are_answered_one_by_one(b: Bench) -> None:
    root = b.seq(
        b.mark("a"),
        b.par(b.waits("g1"), b.fn("x", x=1), b.seq(b.mark("c"), b.waits("g2"), b.fn("y", y=1))),
        b.mark("d"),
    )
    ran = await b.run(root)
    assert set(ran.engine.pending) == {"g1", "g2"}
    assert b.state == {"trail": "ac", "x": 1}
    ran = await answered(b, root, ran, g2="two")
    assert ran.outcome is Signal.PAUSE
    assert set(ran.engine.pending) == {"g1"}
    assert b.state == {"trail": "ac", "x": 1, "y": 1, "g2": "two"}
    ran = await answered(b, root, ran, g1="one")
    assert b.state == {"trail": "acd", "x": 1, "y": 1, "g1": "one", "g2": "two"}
    assert sorted(b.calls) == sorted(["a", "x", "c", "d", "y", "g1", "g1", "g2", "g2"])


async def test_both_answers_at_once(b: Bench) -> None:
    root = b.seq(b.par(b.waits("g1"), b.waits("g2")), b.mark("d"))
    await answered(b, root, await b.run(root), g1=1, g2=2)
    assert b.state == {"g1": 1, "g2": 2, "trail": "d"}


async def test_siblings_of_a_question_run_to_their_end(b: Bench) -> None:
    root = b.par(b.waits("g"), b.seq(b.say("idle", ticks=9), b.mark("x")))
    await b.run(root)
    assert b.state == {"trail": "x"}


WRAPS = ["seq", "par", "loop", "fallback", "timeout", "map", "race", "first"]


@pytest.mark.parametrize("outer", WRAPS)
@pytest.mark.parametrize("inner", WRAPS)
async def test_a_question_in_everything(b: Bench, outer: str, inner: str) -> None:
    b.state["list"] = [1]

    def wrap(kind: str, body: Node) -> Node:
        made: Node = getattr(b, kind)(body)
        return made.replace(max_iterations=1) if kind == "loop" else made

    body = b.seq(b.mark("a"), b.say("k", k=1), b.waits("w"), b.mark("b"))
    root = b.seq(wrap(outer, wrap(inner, body).replace(name="inner")), b.mark("c"), name="top")
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    ran = await answered(b, root, ran)
    assert ran.outcome is Signal.PAUSE
    ran = await answered(b, root, ran, w="yes")
    assert ran.outcome is Signal.OK
    kept = {key: b.state.get(key) for key in ("trail", "w", "k")}
    mapped = "map" in (outer, inner)  # whose items leave nothing behind
    assert kept == dict(zip(kept, ("c", None, None) if mapped else ("abc", "yes", 1), strict=True))
    assert b.calls == ["a", "k", "w", "w", "b", "c"]


async def test_a_question_in_each_item_answered_out_of_order(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        item = turn.state["item"]
        if turn.answers:
            yield turn.event(f"{item} {turn.answers[item]}")
        else:
            yield turn.event(pending=(Pending(item, "gate"),))

    b.state["list"] = ["x", "y", "z"]
    root = b.seq(b.map(b.agent("g", act), concurrency=2), b.mark("c"))
    ran = await b.run(root)
    assert set(ran.engine.pending) == {"x", "y", "z"}
    for answer in ({"y": 2}, {"z": 3}, {"x": 1}):
        ran = await answered(b, root, ran, **answer)
    assert b.state["results"] == ["x 1", "y 2", "z 3"]
    assert b.state["trail"] == "c"


async def test_a_question_in_the_second_attempt(b: Bench) -> None:
    root = b.seq(b.fallback(b.seq(b.say("p", k=1), b.fails("x")), b.waits("w")), b.mark("c"))
    ran = await b.run(root)
    assert b.clean_state == {}
    await answered(b, root, ran, w=1)
    assert b.clean_state == {"w": 1, "trail": "c"}


async def test_a_failure_after_the_answer_undoes_what_was_before_the_pause(b: Bench) -> None:
    b.state["k"] = 0
    attempt = b.seq(b.say("p", k=1, n=1), b.waits("w"), b.fails("x"))
    root = b.fallback(attempt, b.fn("look", seen=lambda s: [s["k"], s.get("n")]))
    await answered(b, root, await b.run(root), w=1)
    assert b.clean_state == {"k": 0, "seen": [0, None]}


async def test_a_question_in_a_race_waits_while_the_others_fail(b: Bench) -> None:
    root = b.race(b.fails("x", k=1), b.seq(b.say("m", m=1), b.waits("w")))
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    await answered(b, root, ran, w=1)
    assert b.clean_state == {"m": 1, "w": 1}


async def test_a_question_in_a_race_that_somebody_else_wins_is_void(b: Bench) -> None:
    root = b.seq(b.race(b.waits("w"), b.say("won", ticks=9)), b.mark("c"))
    engine = b.engine(root)
    async for event in engine.run():
        b.commit(event)
    assert engine.outcome is Signal.OK
    assert engine.pending == {}


async def test_asking_again_after_an_answer(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        if turn.answers.get("q1") and "q2" not in turn.answers:
            yield turn.event(pending=(Pending("q2", "input"),))
        elif turn.answers:
            yield turn.event("done", state_delta=dict(turn.answers))
        else:
            yield turn.event(pending=(Pending("q1", "input"),))

    root = b.seq(b.agent("w", act), b.mark("c"))
    ran = await answered(b, root, await b.run(root), q1=1)
    assert set(ran.engine.pending) == {"q2"}
    await answered(b, root, ran, q2=2)
    assert b.state == {"q2": 2, "trail": "c"}


async def test_a_question_in_each_iteration(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        id = f"q{turn.state.get('n', 0)}"
        if id in turn.answers:
            yield turn.event("ok", state_delta={"n": turn.state.get("n", 0) + 1})
        else:
            yield turn.event(pending=(Pending(id, "input"),))

    root = b.seq(b.loop(b.agent("w", act), 3), b.mark("c"))
    ran = await b.run(root)
    for i in range(3):
        assert set(ran.engine.pending) == {f"q{i}"}
        ran = await answered(b, root, ran, **{f"q{i}": True})
    assert ran.outcome is Signal.OK
    assert b.state == {"n": 3, "trail": "c"}


async def test_an_agent_that_fails_while_it_waits_has_failed(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(pending=(Pending("q", "input"),))
        raise b.Boom("after the question")

    engine = b.engine(b.fallback(b.agent("w", act), b.say("y")))
    async for event in engine.run():
        b.commit(event)
    assert engine.outcome is Signal.OK
    assert engine.pending == {}


async def test_a_paused_run_is_small(b: Bench) -> None:
    root = b.seq(*[b.say(f"s{i}") for i in range(50)], b.waits("w"))
    ran = await b.run(root)
    assert len(json.dumps(ran.engine.position)) < 200
