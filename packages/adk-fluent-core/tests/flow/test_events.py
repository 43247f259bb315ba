"""What the events of a run say about where they belong, and the answer they amount to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adk_fluent.flow import RULES, Engine, Facts, Note, new_position
from adk_fluent.ir import NODES
from adk_fluent.protocol import kept_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


async def test_a_position_names_each_arrangement_on_the_way_down(b: Bench) -> None:
    b.state["list"] = [1, 2]
    root = b.seq(
        b.say("a"),
        b.loop(b.say("l"), 2),
        b.route((lambda _: False, b.say("no")), (lambda _: True, b.say("r"))),
        b.fallback(b.fails("f0"), b.say("f")),
        b.par(b.say("p"), b.seq(b.say("q"))),
        b.race(b.hangs("h"), b.say("w")),
        b.first(b.hangs("h2"), b.say("w2")),
        b.map(b.say("m")),
        b.timeout(b.say("t")),
    )
    ran = await b.run(root)
    said = {event.path: event.node for event in ran.events if event.content}
    assert said == {
        "s0": "a",
        "s1.l0": "l",
        "s1.l1": "l",
        "s2.r1": "r",
        "s3.f1": "f",
        "s4.p0": "p",
        "s4.p1.s0": "q",
        "s5.w1": "w",
        "s6.w1": "w2",
        "s7.m0": "m",
        "s7.m1": "m",
        "s8.t0": "t",
    }


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("seq", "z"),
        ("par", "x\n\nz"),
        ("fallback", "x"),
        ("race", "x"),
        ("first", "x"),
    ],
)
async def test_the_answer(b: Bench, kind: str, answer: str) -> None:
    node = getattr(b, kind)(b.say("x"), b.fn("f", k=1), b.say("z", ticks=9))
    assert (await b.run(b.seq(b.say("before"), node, b.fn("g", k=2)))).text == answer


async def test_the_answer_of_a_loop_is_that_of_its_last_iteration(b: Bench) -> None:
    body = b.seq(
        b.fn("n", n=lambda s: s.get("n", 0) + 1),
        b.route((lambda s: s["n"] < 3, b.say("early")), (lambda s: s["n"] == 3, b.say("late"))),
    )
    assert (await b.run(b.loop(body, 5))).text == "late"


async def test_without_a_fork_nothing_is_said_about_branches_or_attempts(b: Bench) -> None:
    ran = await b.run(b.seq(b.say("a"), b.loop(b.timeout(b.say("b")), 1)))
    assert (ran.events[0].branch, ran.events[0].attempt) == (None, None)


async def test_a_branch_of_a_parallel_is_a_scope_that_may_be_undone_by_itself(b: Bench) -> None:
    attempt = b.fallback(b.seq(b.say("p"), b.fails("x")), b.say("y"))
    ran = await b.run(b.par(attempt, b.say("o")))
    attempts = {event.node: event.attempt for event in ran.events if event.content}
    assert attempts["o"] is not None
    assert attempts["p"] is not None
    assert not attempts["p"].startswith(attempts["o"])
    assert sorted(e.content for e in kept_events(ran.events) if e.content) == ["o", "y"]


async def test_partial_events_outside_of_races_are_forwarded_and_never_committed(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("h", is_partial=True, state_delta={"k": "partial"})
        yield turn.event("hi", state_delta={"k": "whole"})

    root = b.seq(b.par(b.agent("a", act), b.timeout(b.agent("b", act))), b.agent("c", act))
    ran = await b.run(root)
    assert [event.content for event in ran.events if event.is_partial] == ["h"] * 3
    assert b.state == {"k": "whole"}


async def test_partial_writes_are_not_logged_for_undo(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("h", is_partial=True, state_delta={"k": "partial"})
        raise b.Boom("x")

    b.state["k"] = "start"
    ran = await b.run(b.fallback(b.agent("a", act), b.say("y")))
    assert ran.wrote == [{"k": "partial"}]
    assert b.state == {"k": "start"}


async def test_what_a_muted_branch_says_in_part_is_heard_of_nowhere(b: Bench) -> None:
    """Muting reaches every branch below a race, and ends with it."""

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("part", is_partial=True)
        yield turn.event("all")

    deep = b.par(b.map(b.timeout(b.agent("a", act))), name="deep")
    b.state["list"] = [1]
    ran = await b.run(b.seq(b.race(deep, b.hangs("h")), b.par(b.agent("z", act), name="after")))
    assert [event.path for event in ran.events if event.is_partial] == ["s1.p0"]


def test_there_is_a_rule_for_every_node_of_this_wheel_that_runs() -> None:
    not_run = {"ModelSelectorNode", "ResourceNode", "AppNode"}
    assert {node.__name__ for node in NODES} - {kind.__name__ for kind in RULES} == not_run


def test_the_pieces_of_the_port_are_plain_values(b: Bench) -> None:
    assert Facts() == Facts(None, False, False, False, None, None, False, ())
    assert Note("step") == Note("step", (), None)
    assert new_position() == {"v": 1, "next": 1, "strands": {"0": [{"c": 0}]}}
    engine: Engine[AgentEvent] = b.engine(b.say("a"))
    assert engine.outcome is None
    assert engine.pending == {}
