"""Gates on the engine alone: who is asked what, and what an answer does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import BuildError
from adk_fluent.flow import Signal, check_gates, new_position, questions_at
from adk_fluent.ir import GateNode, Match, Node, Ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Bench, Ran

YES = {"approved": True, "note": ""}
NO = {"approved": False, "note": "too much"}


def gate(when: Callable[[Any], object] | Match | None = None, **fields: Any) -> GateNode:
    name = fields.pop("name", "gate")
    return GateNode(name, Ref(when) if callable(when) else when, **fields)


def asked(ran: Ran, name: str = "gate") -> str:
    """Id of the question that a gate asks."""
    [id] = [each for each in ran.engine.pending if each.startswith(f"{name}-")]
    return id


async def answered(b: Bench, root: Node, ran: Ran, **answers: Any) -> Ran:
    """Go on in another process: a new engine, the position read from text."""
    position = json.loads(json.dumps(ran.engine.position))
    given = {asked(ran, name): value for name, value in answers.items()}
    return await b.run(root, position=position, answers=given)


async def test_a_gate_stops_before_the_next_step_and_goes_on_when_answered(b: Bench) -> None:
    root = b.seq(b.mark("a"), gate(message="go on?"), b.mark("c"))
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    [question] = ran.engine.questions
    assert (question.kind, question.name, question.message) == ("gate", "gate", "go on?")
    assert question.response_schema is not None
    assert question.response_schema["required"] == ["approved"]
    assert ran.engine.pending == {question.id: {"node": "gate", "asked": "gate"}}
    assert questions_at(ran.engine.position) == {question.id: "gate"}
    assert b.calls == ["a"]
    ran = await answered(b, root, ran, gate=True)
    assert ran.outcome is Signal.OK
    assert ran.engine.questions == []
    assert b.state == {"trail": "ac", "gate": YES}
    assert b.calls == ["a", "c"]


async def test_a_refusal_is_written_and_ends_the_run(b: Bench) -> None:
    root = b.seq(b.mark("a"), gate(key="verdict"), b.mark("c"))
    ran = await answered(b, root, await b.run(root), gate=NO)
    assert ran.outcome is Signal.STOP
    assert b.state == {"trail": "a", "verdict": NO}
    assert ran.events[-1].content == "gate was refused: too much. Nothing after it was run."
    assert ran.text == ""


async def test_a_refusal_ends_branches_beside_it(b: Bench) -> None:
    root = b.seq(b.par(gate(), b.seq(b.hangs("h"), b.mark("x"))), b.mark("z"))
    fork: dict[str, Any] = {"c": 0, "strands": {"0": "7"}, "scopes": {"0": "8"}, "done": {}}
    asking = [{"c": 0, "asks": 1, "waits": {"gate-1": "gate"}}]
    strands = {"0": [{"c": 0, "i": 0}, fork], "7": asking}
    position = {**new_position(), "strands": strands, "next": 9}
    ran = await b.run(root, position=position, answers={"gate-1": False})
    assert ran.outcome is Signal.STOP
    assert "trail" not in b.state


async def test_what_is_no_answer_leaves_the_question_open(b: Bench) -> None:
    root = b.seq(gate(), b.mark("c"))
    first = await b.run(root)
    ran = await answered(b, root, first, gate="hmm maybe")
    assert ran.outcome is Signal.PAUSE
    assert asked(ran) == asked(first)
    assert ran.engine.questions == []  # it is not asked twice
    ran = await answered(b, root, ran, gate="yes")
    assert b.state["trail"] == "c"


async def test_a_gate_whose_predicate_does_not_hold_asks_nobody(b: Bench) -> None:
    ran = await b.run(b.seq(gate(lambda s: "x" in s), gate(Match("gt", "n", 3)), b.mark("c")))
    assert ran.outcome is Signal.OK
    assert b.calls == ["c"]


async def test_a_gate_does_not_decide_anew_whether_it_asks(b: Bench) -> None:
    tested: list[int] = []

    def once(state: Any) -> bool:
        tested.append(1)
        return len(tested) == 1

    root = b.seq(gate(once), b.mark("c"))
    await answered(b, root, await b.run(root), gate="yes")
    assert len(tested) == 1
    assert b.state == {"gate": YES, "trail": "c"}


async def test_a_payload_is_what_its_function_makes_of_state(b: Bench) -> None:
    async def shown(state: Any) -> Any:
        return {"sum": state["sum"]}

    b.state["sum"] = 7
    for payload in (Ref(shown), Ref(lambda s: {"sum": s["sum"]})):  # pyright: ignore[reportUnknownLambdaType]
        ran = await b.run(gate(payload=payload))
        [question] = ran.engine.questions
        assert question.payload == {"sum": 7}


async def test_a_predicate_or_payload_that_raises_is_the_failure_of_the_gate(b: Bench) -> None:
    def fails(state: Any) -> Any:
        raise b.Boom("no")

    for broken in (gate(fails), gate(payload=Ref(fails))):
        error = await b.error(b.seq(broken, b.mark("c")))
        assert isinstance(error, b.Boom)
        assert "in node 'gate'" in "".join(error.__notes__)
    root = b.fallback(gate(fails), b.mark("c"))
    await b.run(root)
    assert b.state["trail"] == "c"


async def test_an_answer_of_a_schema_is_written_as_it_is(b: Bench) -> None:
    schema = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}
    root = b.seq(gate(response_schema=json.dumps(schema)), b.mark("c"))
    first = await b.run(root)
    [question] = first.engine.questions
    assert question.response_schema == schema
    ran = await answered(b, root, first, gate={"days": "many"})
    assert ran.outcome is Signal.PAUSE
    ran = await answered(b, root, ran, gate={"days": 3})
    assert b.state == {"gate": {"days": 3}, "trail": "c"}


async def test_two_gates_in_branches_answered_one_by_one(b: Bench) -> None:
    root = b.seq(
        b.par(gate(name="g1"), b.seq(b.mark("x"), gate(name="g2"), b.mark("y"))), b.mark("z")
    )
    ran = await b.run(root)
    assert [each.name for each in ran.engine.questions] == ["g1", "g2"]
    ran = await answered(b, root, ran, g2="yes")
    assert b.state == {"trail": "xy", "g2": YES}
    await answered(b, root, ran, g1="yes")
    assert b.state == {"trail": "xyz", "g1": YES, "g2": YES}


async def test_a_gate_in_each_item_answered_out_of_order(b: Bench) -> None:
    b.state["list"] = ["x", "y", "z"]
    name = b.fn("n", lambda s: {"out": f"{s['item']} {s['gate']['note']}"})
    root = b.seq(b.map(b.seq(gate(), name), result="out", concurrency=2), b.mark("c"))
    ran = await b.run(root)
    ids = [each.id for each in ran.engine.questions]
    for at in (1, 2, 0):
        position = json.loads(json.dumps(ran.engine.position))
        answers = {ids[at]: {"approved": True, "note": str(at)}}
        ran = await b.run(root, position=position, answers=answers)
    assert b.state["results"] == ["x 0", "y 1", "z 2"]
    assert b.state["trail"] == "c"


async def test_what_is_kept_of_a_thousand_waiting_items_is_small(b: Bench) -> None:
    b.state["list"] = list(range(1000))
    ran = await b.run(b.map(b.seq(gate(), b.mark("x"))))
    assert len(ran.engine.questions) == 1000
    assert len(json.dumps(ran.engine.position, separators=(",", ":"))) < 200_000


async def test_a_gate_in_each_turn_of_a_loop_asks_anew(b: Bench) -> None:
    root = b.loop(b.seq(gate(), b.mark("x")), 3)
    ran = await b.run(root)
    ids = [asked(ran)]
    for _ in range(3):
        ran = await answered(b, root, ran, gate=True)
        ids += [each.id for each in ran.engine.questions]
    assert len(set(ids)) == 3
    assert b.state["trail"] == "xxx"


async def test_what_an_attempt_wrote_before_its_gate_is_undone_after_it(b: Bench) -> None:
    b.state["k"] = 0
    attempt = b.seq(b.say("p", k=1, n=1), gate(), b.fails("x"))
    root = b.fallback(attempt, b.fn("look", seen=lambda s: [s["k"], s.get("n"), s.get("gate")]))
    await answered(b, root, await b.run(root), gate=True)
    assert b.clean_state == {"k": 0, "seen": [0, None, None]}


async def test_time_that_a_timeout_waits_for_an_answer_does_not_count(b: Bench) -> None:
    root = b.timeout(b.seq(b.say("a", ticks=3), gate(), b.mark("c")), seconds=20)
    ran = await b.run(root)
    spent = ran.engine.position["strands"]["0"][0]["spent"]
    assert 0 <= spent < 20
    ran = await answered(b, root, ran, gate=True)
    assert b.state["trail"] == "c"


async def test_the_time_before_the_question_does_count(b: Bench) -> None:
    root = b.timeout(b.seq(gate(), b.hangs("h")), seconds=20)
    ran = await b.run(root)
    ran.engine.position["strands"]["0"][0]["spent"] = 19.99
    with pytest.raises(TimeoutError, match="no result within 20 s"):
        await answered(b, root, ran, gate=True)


def test_a_gate_in_a_race_is_refused(b: Bench) -> None:
    for make in (b.race, b.first):
        root = make(b.mark("a"), b.seq(gate(), b.mark("c")))
        with pytest.raises(BuildError, match="gate 'gate' stands inside the race"):
            check_gates([root])
    check_gates([b.par(gate()), gate()])
