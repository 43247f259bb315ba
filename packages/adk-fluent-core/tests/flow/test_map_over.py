from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import UsageError
from adk_fluent.flow import Signal
from adk_fluent.protocol import collect_discarded

from .test_waiting import answered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


async def test_results_stand_in_the_lists_order(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        for _ in range(turn.state["item"]):
            await asyncio.sleep(0)
        yield turn.event(state_delta={"r": turn.state["item"] * 10})

    b.state["list"] = [9, 1, 5, 0]
    ran = await b.run(b.map(b.agent("a", act), result="r"))
    assert b.state["results"] == [90, 10, 50, 0]
    assert b.clean_state.keys() == {"list", "results"}
    assert [e.state_delta["r"] for e in ran.events[:4]] == [0, 10, 50, 90]
    assert (ran.events[-1].node, ran.events[-1].metadata["why"]) == ("map", "joined")


async def test_without_a_result_key_the_answer_of_an_item_is_its_result(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("first thought")
        yield turn.event(f"about {turn.state['item']}")

    b.state["list"] = ["ä", "b"]
    await b.run(b.map(b.seq(b.agent("a", act), b.fn("f", x=1))))
    assert b.state["results"] == ["about ä", "about b"]


async def test_the_answer_of_an_item_is_composed_like_that_of_a_run(b: Bench) -> None:
    b.state["list"] = [1, 2]
    body = b.seq(b.say("before"), b.par(b.say("x", ticks=4), b.say("y"), b.fn("f", k=1)))
    ran = await b.run(b.map(body))
    assert b.state["results"] == ["x\n\ny", "x\n\ny"]
    assert ran.text == "x\n\ny\n\nx\n\ny"


async def test_what_a_discarded_attempt_said_is_no_result(b: Bench) -> None:
    b.state["list"] = [1]
    body = b.fallback(b.seq(b.say("bad"), b.fails("x")), b.fn("f", k=1))
    await b.run(b.map(body))
    assert b.state["results"] == [""]


@pytest.mark.parametrize("kind", ["race", "first"])
async def test_what_a_loser_said_is_no_result(b: Bench, kind: str) -> None:
    b.state["list"] = [1, 2]
    body = getattr(b, kind)(b.say("w", ticks=9), b.seq(b.say("loser"), b.hangs("h")))
    await b.run(b.map(body))
    assert b.state["results"] == ["w", "w"]


async def test_a_map_in_a_map_gives_lists_of_answers(b: Bench) -> None:
    b.state.update(list=["a", "b"], inner=[1, 2])
    say = b.fn("f", t=lambda s: f"{s['outer']}{s['item']}")
    inner = b.map(say, "inner", result="t", name="in").replace(output_key="row")
    await b.run(b.map(inner, result="row").replace(item_key="outer"))
    assert b.state["results"] == [["a1", "a2"], ["b1", "b2"]]


async def test_items_do_not_see_each_others_writes(b: Bench) -> None:
    b.state.update(list=[1, 2, 3], n=10)
    body = b.fn("f", n=lambda s: s["n"] + s["item"])
    await b.run(b.map(body, result="n", concurrency=1))
    assert b.state["results"] == [11, 12, 13]
    assert b.state["n"] == 10


async def test_an_item_sees_its_own_writes(b: Bench) -> None:
    b.state["list"] = [1, 2]
    body = b.seq(b.fn("f", n=lambda s: s["item"]), b.fn("g", m=lambda s: s["n"] + 1))
    await b.run(b.map(body, result="m"))
    assert b.state["results"] == [2, 3]


async def test_a_result_that_an_item_did_not_write_is_none_also_when_the_key_is_set(
    b: Bench,
) -> None:
    b.state.update(list=[1, 2], r="stale")
    body = b.route((lambda s: s["item"] == 2, b.fn("f", r="fresh")))
    await b.run(b.map(body, result="r"))
    assert b.state["results"] == [None, "fresh"]


async def test_the_item_hides_a_key_of_the_same_name(b: Bench) -> None:
    b.state.update(list=[1], item="session's")
    await b.run(
        b.seq(b.map(b.fn("f", x=lambda s: s["item"]), result="x"), b.fn("g", y=lambda s: s["item"]))
    )
    assert (b.state["results"], b.state["y"]) == ([1], "session's")


@pytest.mark.parametrize("concurrency", [1, 2, 3, 10, None])
async def test_concurrency_is_bounded_and_used(b: Bench, concurrency: int | None) -> None:
    running = most = 0

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        yield turn.event(str(turn.state["item"]))
        running -= 1

    b.state["list"] = list(range(7))
    await b.run(b.map(b.agent("a", act), concurrency=concurrency))
    assert most == min(concurrency or 7, 7)
    assert b.state["results"] == [str(i) for i in range(7)]


async def test_the_next_item_starts_when_one_ends(b: Bench) -> None:
    order: list[str] = []

    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        item = turn.state["item"]
        order.append(f"+{item}")
        for _ in range(20 if item == 0 else 1):
            await asyncio.sleep(0)
        order.append(f"-{item}")
        yield turn.event()

    b.state["list"] = [0, 1, 2, 3]
    await b.run(b.map(b.agent("a", act), concurrency=2))
    assert order == ["+0", "+1", "-1", "+2", "-2", "+3", "-3", "-0"]


@pytest.mark.parametrize("value", [[], None, "absent", (), frozenset[int]()])
async def test_nothing_to_map_over_gives_an_empty_list(b: Bench, value: object) -> None:
    if value != "absent":
        b.state["list"] = value
    await b.run(b.map(b.say("never")))
    assert b.state["results"] == []
    assert b.calls == []


@pytest.mark.parametrize("value", ["text", b"bytes", {"a": 1}, 3, 1.5, True])
async def test_what_is_no_list_is_an_error_that_names_the_key(b: Bench, value: object) -> None:
    b.state["list"] = value
    error = await b.error(b.seq(b.map(b.say("never"))))
    assert isinstance(error, UsageError)
    assert error.node == "map"
    assert "'list'" in str(error)
    assert b.calls == []


async def test_a_fallback_takes_over_from_what_is_no_list(b: Bench) -> None:
    b.state["list"] = 3
    ran = await b.run(b.fallback(b.map(b.say("never")), b.say("f")))
    assert ran.text == "f"


async def test_any_iterable_of_values_will_do(b: Bench) -> None:
    b.state["list"] = (1, None, "é", {"a": 1}, [2])
    await b.run(b.map(b.fn("f", x=lambda s: s["item"]), result="x", concurrency=2))
    assert b.state["results"] == [1, None, "é", {"a": 1}, [2]]


async def test_the_list_is_read_once(b: Bench) -> None:
    b.state["list"] = [1, 2, 3]
    await b.run(b.map(b.fn("f", list=[]), concurrency=1))
    assert b.calls == ["f"] * 3


async def test_a_failing_item_stops_the_others_and_says_which_it_was(b: Bench) -> None:
    def fn(state: Any) -> None:
        if state["item"] == "bad":
            raise ValueError("no")

    b.state["list"] = ["ok", "bad", "never", "never"]
    error = await b.error(b.map(b.seq(b.fn("f", fn), b.say("s", ticks=9)), concurrency=2))
    assert isinstance(error, ValueError)
    assert error.__notes__ == ["in node 'f'", "in item 1 of map_over 'map'"]
    assert b.calls.count("f") == 2
    assert "results" not in b.state


async def test_what_items_of_a_failed_map_wrote_is_undone_by_an_attempt_around_it(
    b: Bench,
) -> None:
    b.state.update(list=[1, 2, 3], x=0)
    body = b.seq(
        b.say("w", x=1, y=1),
        b.route((lambda s: s["item"] == 3, b.fails("bad")), default=b.hangs("h")),
    )
    await b.run(b.fallback(b.map(body), b.fn("look", seen=lambda s: (s["x"], s.get("y")))))
    assert b.state["seen"] == (0, None)


async def test_a_thousand_items(b: Bench) -> None:
    b.state["list"] = list(range(1000))
    await b.run(b.map(b.fn("f", x=lambda s: s["item"] ** 2), result="x", concurrency=8))
    assert b.state["results"] == [i * i for i in range(1000)]


async def test_branches_are_named_after_the_item(b: Bench) -> None:
    b.state["list"] = [7, 8]
    ran = await b.run(b.map(b.say("a")))
    assert [(e.branch, e.path) for e in ran.events[:2]] == [
        ("map.a[0]", "m0"),
        ("map.a[1]", "m1"),
    ]


async def test_a_map_in_a_loop_maps_anew(b: Bench) -> None:
    b.state["list"] = [1]
    grow = b.fn("grow", list=lambda s: [*s["results"], 1])
    await b.run(b.loop(b.seq(b.map(b.fn("f", x=lambda s: s["item"] + 1), result="x"), grow), 3))
    assert b.state["results"] == [4, 3, 2]


async def test_a_map_in_a_branch_in_an_item(b: Bench) -> None:
    b.state.update(list=[1, 2], other=[3, 4])
    inner = b.map(b.fn("f", p=lambda s: s["item"] * 10), "other", result="p", name="inner")
    await b.run(b.map(b.par(inner, b.fn("g", q=lambda s: s["item"])), result="results"))
    assert b.state["results"] == [[30, 40], [30, 40]]
    assert b.state["q"] is None


async def test_undoing_in_an_item_gives_the_item_back(b: Bench) -> None:
    b.state["list"] = ["i", "j"]
    attempt = b.seq(b.fn("f", item="overwritten"), b.fails("x"))
    await b.run(b.map(b.fallback(attempt, b.fn("g", got=lambda s: s["item"])), result="got"))
    assert b.state["results"] == ["i", "j"]


# --- what items leave behind ---------------------------------------------------------------------


async def test_what_items_wrote_is_as_it_was_before_the_map(b: Bench) -> None:
    b.state.update(list=[1, 2], old="before")
    body = b.seq(b.say("a", old="new", own=1), b.fn("f", lambda s: {"user:seen": s["item"]}))
    ran = await b.run(b.map(body, result="own"))
    assert b.clean_state == {"list": [1, 2], "old": "before", "user:seen": 2, "results": [1, 1]}
    assert ran.events[-1].metadata["why"] == "joined"


async def test_what_others_wrote_beside_a_map_stays(b: Bench) -> None:
    b.state.update(list=[1, 2], k="before")
    body = b.fn("f", k=lambda s: s["item"])
    for root in (
        b.par(b.fn("g", k="beside"), b.map(body)),
        b.par(b.map(body), b.fn("g", k="beside")),
        b.par(b.map(body), b.seq(b.say("slow", ticks=9), b.fn("g", k="beside"))),
        b.seq(b.fn("g", k="beside"), b.map(body)),
    ):
        b.state["k"] = "before"
        await b.run(root)
        assert b.state["k"] == "beside"


async def test_an_attempt_around_a_map_is_undone_to_before_it(b: Bench) -> None:
    b.state.update(list=[1, 2], k="before")
    attempt = b.seq(b.map(b.fn("f", k=lambda s: s["item"]), result="k"), b.fails("bad"))
    await b.run(b.fallback(attempt, b.fn("g", seen=lambda s: s["k"])))
    assert b.clean_state == {"list": [1, 2], "k": "before", "seen": "before"}


# --- items that fail -----------------------------------------------------------------------------

SURVIVED = pytest.mark.parametrize("on_error", ["collect", "skip"])


def failing(b: Bench, on_error: Any, *, concurrency: int | None = None) -> Any:
    def fn(state: Any) -> dict[str, Any]:
        if state["item"] == "bad":
            raise ValueError("no: that")
        return {"r": state["item"] * 2}

    body = b.seq(b.say("said", left=1), b.fn("f", fn), b.say("end"))
    return b.map(body, result="r", concurrency=concurrency).replace(on_error=on_error)


@pytest.mark.parametrize("concurrency", [1, 2, None])
async def test_collected_errors_stand_beside_the_results(b: Bench, concurrency: int | None) -> None:
    b.state["list"] = [1, "bad", 3, "bad", "x"]
    await b.run(failing(b, "collect", concurrency=concurrency))
    error = {"code": "ValueError", "message": "no: that"}
    assert b.state["results"] == [2, None, 6, None, "xx"]
    assert b.state["results_errors"] == [None, error, None, error, None]
    assert b.calls.count("end") == 3


async def test_without_errors_there_is_a_list_of_none(b: Bench) -> None:
    b.state["list"] = [1, 2]
    await b.run(failing(b, "collect"))
    assert (b.state["results"], b.state["results_errors"]) == ([2, 4], [None, None])


async def test_skipped_items_have_no_result(b: Bench) -> None:
    b.state["list"] = ["bad", 1, "bad", 3]
    await b.run(failing(b, "skip"))
    assert b.state["results"] == [2, 6]
    assert "results_errors" not in b.state


@SURVIVED
async def test_what_a_failed_item_wrote_and_said_counts_no_more(b: Bench, on_error: str) -> None:
    b.state.update(list=["bad", 1], left=0)
    ran = await b.run(failing(b, on_error))
    assert b.state["left"] == 0
    assert ran.text == "end"
    gone = {event.attempt for event in ran.events if (event.path or "").startswith("m0")}
    assert {str(attempt) for attempt in gone} == set(ran.events[-1].discarded)


@SURVIVED
async def test_a_map_all_of_whose_items_fail_goes_on(b: Bench, on_error: str) -> None:
    b.state["list"] = ["bad", "bad"]
    await b.run(b.seq(failing(b, on_error), b.fn("after", n=lambda s: len(s["results"]))))
    assert b.state["n"] == (2 if on_error == "collect" else 0)


@SURVIVED
async def test_each_failed_item_is_logged_and_told(
    b: Bench, on_error: str, caplog: pytest.LogCaptureFixture
) -> None:
    b.state["list"] = [1, "bad"]
    with collect_discarded() as told:
        await b.run(failing(b, on_error))
    assert [(each.fallback, each.step, each.error.code) for each in told] == [
        ("map", "seq", "ValueError")
    ]
    assert told[0].place == "in node 'f'; in item 1 of map_over 'map'"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "map goes on without item 1, for seq failed: ValueError: no: that" in record.message


@SURVIVED
async def test_a_mistake_in_a_function_is_an_error_of_its_item_too(b: Bench, on_error: str) -> None:
    b.state["list"] = [{"n": 1}, {}]
    root = b.map(b.fn("f", n=lambda s: s["item"]["n"]), result="n").replace(on_error=on_error)
    await b.run(root)
    assert b.state["results"] == ([1, None] if on_error == "collect" else [1])


async def test_an_error_that_an_agent_reports_is_one_of_its_item(b: Bench) -> None:
    b.state["list"] = [1]
    root = b.map(b.reports("r", "SAFETY", "blocked")).replace(on_error="collect")
    ran = await b.run(root)
    (error,) = b.state["results_errors"]
    assert error["code"] == "AgentReportedError"
    assert "SAFETY: blocked" in error["message"]
    assert ran.text == ""


async def test_a_map_that_goes_on_in_a_map_that_does_not(b: Bench) -> None:
    b.state.update(list=[["bad", 1], [2, "bad"]])
    inner = failing(b, "collect").replace(name="in", list_key="row")
    await b.run(b.map(inner, result="results_errors").replace(item_key="row", output_key="all"))
    error = {"code": "ValueError", "message": "no: that"}
    assert b.state["all"] == [[error, None], [None, error]]


async def test_a_cancelled_map_collects_nothing(b: Bench) -> None:
    b.state["list"] = [1]
    root = b.map(b.hangs("h")).replace(on_error="skip")
    error = await b.error(b.par(root, b.fails("x")))
    assert isinstance(error, b.Boom)
    assert "results" not in b.state


async def test_a_failed_item_and_one_that_waits(b: Bench) -> None:
    b.state["list"] = [1, "bad"]
    root = failing(b, "collect")
    root = b.seq(root.replace(body=b.seq(root.body, b.waits("w"))), b.mark("c"), name="top")
    ran = await b.run(root)
    assert ran.outcome is Signal.PAUSE
    ran = await answered(b, root, ran, w="yes")
    assert ran.outcome is Signal.OK
    assert b.state["results"] == [2, None]
    assert b.state["results_errors"] == [None, {"code": "ValueError", "message": "no: that"}]
    assert b.calls.count("f") == 2
