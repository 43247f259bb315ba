"""Sequence, loop and route."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.flow import Signal
from adk_fluent.ir import Match

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


# --- sequence ----------------------------------------------------------------------------------


async def test_steps_run_in_order_on_one_state(b: Bench) -> None:
    ran = await b.run(b.seq(b.say("a", x=1), b.fn("f", y=lambda s: s["x"] + 1), b.say("c")))
    assert b.calls == ["a", "f", "c"]
    assert b.state == {"x": 1, "y": 2}
    assert ran.outcome is Signal.OK


async def test_an_empty_sequence_does_nothing(b: Bench) -> None:
    ran = await b.run(b.seq(b.seq(), b.say("a")))
    assert ran.said == ["a"]


async def test_a_failing_step_ends_the_run_and_keeps_what_was_written(b: Bench) -> None:
    error = await b.error(b.seq(b.say("a", x=1), b.fails("bad", y=2), b.say("c")))
    assert str(error) == "bad"
    assert b.calls == ["a", "bad"]
    assert b.state == {"x": 1, "y": 2}


async def test_one_node_in_two_places_runs_in_both(b: Bench) -> None:
    count = b.fn("n", n=lambda s: s.get("n", 0) + 1)
    await b.run(b.seq(count, b.seq(count, count), b.loop(count, 2)))
    assert b.state == {"n": 5}


# --- loop --------------------------------------------------------------------------------------


def counting(b: Bench) -> Any:
    return b.fn("n", n=lambda s: s.get("n", 0) + 1)


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_a_loop_ends_at_its_maximum(b: Bench, times: int) -> None:
    await b.run(b.loop(counting(b), times))
    assert b.calls == ["n"] * times


async def test_a_loop_ends_when_its_predicate_holds_after_an_iteration(b: Bench) -> None:
    await b.run(b.loop(counting(b), until=lambda s: s["n"] == 3))
    assert b.state == {"n": 3}


async def test_a_predicate_that_holds_from_the_start_is_asked_after_one_iteration(b: Bench) -> None:
    await b.run(b.loop(counting(b), until=lambda _: True))
    assert b.state == {"n": 1}


async def test_a_loop_takes_a_comparison_as_predicate(b: Bench) -> None:
    await b.run(b.loop(counting(b), until=Match("gt", "n", 1)))
    assert b.state == {"n": 2}


async def test_a_loop_asks_no_predicate_after_escalation(b: Bench) -> None:
    asked: list[int] = []

    def until(state: Any) -> bool:
        asked.append(1)
        return False

    await b.run(b.loop(b.seq(counting(b), b.escalates("stop")), until=until))
    assert b.calls == ["n", "stop"]
    assert asked == []


async def test_escalation_skips_the_rest_of_the_body_and_goes_on_after_the_loop(b: Bench) -> None:
    body = b.seq(b.say("a"), b.escalates("up", x=1), b.say("never"))
    ran = await b.run(b.seq(b.loop(body), b.say("after")))
    assert b.calls == ["a", "up", "after"]
    assert b.state == {"x": 1}
    assert ran.outcome is Signal.OK


async def test_escalation_ends_only_the_nearest_loop(b: Bench) -> None:
    inner = b.loop(b.escalates("up"), 5, name="inner")
    await b.run(b.loop(b.seq(inner, b.say("a")), 2))
    assert b.calls == ["up", "a"] * 2


async def test_escalation_outside_every_loop_changes_nothing(b: Bench) -> None:
    ran = await b.run(
        b.seq(b.escalates("up"), b.loop(b.say("a"), 1), b.escalates("up"), b.say("z"))
    )
    assert b.calls == ["up", "a", "up", "z"]
    assert ran.outcome is Signal.OK


async def test_a_leaf_that_escalates_still_finishes(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(escalate=True)
        yield turn.event("said after", state_delta={"x": 1})

    ran = await b.run(b.loop(b.agent("up", act)))
    assert ran.said == ["said after"]
    assert b.calls == ["up"]
    assert b.state == {"x": 1}


@pytest.mark.parametrize("wrap", ["par", "race", "first", "timeout", "fallback", "seq", "map"])
async def test_escalation_inside_an_arrangement_ends_the_loop_around_it(
    b: Bench, wrap: str
) -> None:
    b.state["list"] = [1]
    body = getattr(b, wrap)(b.escalates("up"))
    await b.run(b.loop(b.seq(body, b.say("never")), 3))
    assert b.calls == ["up"]


async def test_branches_beside_an_escalating_one_run_to_their_end(b: Bench) -> None:
    body = b.par(b.escalates("up"), b.seq(b.say("x", ticks=5), b.say("y", y=1)), b.say("z"))
    await b.run(b.loop(b.seq(body, b.say("never"))))
    assert sorted(b.calls) == ["up", "x", "y", "z"]
    assert b.state == {"y": 1}


async def test_escalation_in_one_item_ends_the_loop_after_all_items(b: Bench) -> None:
    b.state["list"] = [1, 2, 3]
    body = b.route((lambda s: s["item"] == 2, b.escalates("up")), default=b.say("a", got=1))
    await b.run(b.loop(b.seq(b.map(body, result="got"), b.say("never"))))
    assert sorted(b.calls) == ["a", "a", "up"]
    assert b.state["results"] == [1, None, 1]


# --- route -------------------------------------------------------------------------------------


async def test_the_first_test_that_holds_chooses(b: Bench) -> None:
    b.state["k"] = 2
    await b.run(
        b.route(
            (Match("eq", "k", 1), b.say("one")),
            (Match("gt", "k", 1), b.say("many")),
            (Match("eq", "k", 2), b.say("two")),
            default=b.say("other"),
        )
    )
    assert b.calls == ["many"]


async def test_without_a_match_the_default_runs(b: Bench) -> None:
    await b.run(b.route((Match("eq", "k", 1), b.say("one")), default=b.say("other")))
    assert b.calls == ["other"]


async def test_without_a_match_and_a_default_nothing_runs(b: Bench) -> None:
    ran = await b.run(b.seq(b.route((Match("eq", "k", 1), b.say("one"))), b.say("after")))
    assert b.calls == ["after"]
    assert ran.outcome is Signal.OK


async def test_later_tests_are_not_asked(b: Bench) -> None:
    def never(state: Any) -> bool:
        raise AssertionError

    await b.run(b.route((lambda _: True, b.say("a")), (never, b.say("b"))))
    assert b.calls == ["a"]


async def test_a_branch_may_change_what_the_route_asked_about(b: Bench) -> None:
    b.state["k"] = 1
    await b.run(b.route((Match("eq", "k", 1), b.say("a", k=2)), (Match("eq", "k", 2), b.say("b"))))
    assert b.calls == ["a"]


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        (Match("eq", "k", None), "absent", True),
        (Match("eq", "k", None), None, True),
        (Match("eq", "k", 1), "absent", False),
        (Match("eq", "k", 1), None, False),
        (Match("eq", "k", 1), 1, True),
        (Match("ne", "k", None), "absent", False),
        (Match("ne", "k", None), None, False),
        (Match("ne", "k", None), 0, True),
        (Match("ne", "k", 1), "absent", True),
        (Match("ne", "k", 1), 1, False),
        (Match("ne", "k", 1), True, True),
        (Match("contains", "k", "b"), "abc", True),
        (Match("contains", "k", "B"), "abc", True),
        (Match("contains", "k", "billing"), "Billing.", True),
        (Match("contains", "k", "STRASSE"), "Hauptstraße", True),
        (Match("contains", "k", "x"), "abc", False),
        (Match("contains", "k", "b"), ["A", "B"], True),
        (Match("contains", "k", "b"), ["abc"], False),
        (Match("contains_case", "k", "B"), "abc", False),
        (Match("contains_case", "k", "b"), "abc", True),
        (Match("contains_case", "k", "b"), ["B"], False),
        (Match("contains", "k", 2), [1, 2], True),
        (Match("contains", "k", "b"), None, False),
        (Match("contains", "k", "b"), "absent", False),
        (Match("gt", "k", 1), 2, True),
        (Match("gt", "k", 2), 2, False),
        (Match("gt", "k", -1), None, False),
        (Match("lt", "k", 1), 0, True),
        (Match("lt", "k", 1), 1, False),
        (Match("lt", "k", 1), "absent", False),
    ],
)
async def test_comparisons(b: Bench, test: Match, value: object, holds: bool) -> None:
    if value != "absent":
        b.state["k"] = value
    await b.run(b.route((test, b.say("yes")), default=b.say("no")))
    assert b.calls == ["yes" if holds else "no"]
