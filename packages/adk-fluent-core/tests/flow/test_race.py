"""A race, and a parallel that keeps the first branch to succeed: the same rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import AgentReportedError
from adk_fluent.protocol import ErrorInfo, kept_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn

pytestmark = pytest.mark.parametrize("kind", ["race", "first"])


def chain(error: BaseException | None) -> list[str]:
    texts: list[str] = []
    while error is not None:
        texts.append(str(error).splitlines()[0])
        error = error.__context__
    return texts


async def test_the_first_success_wins_and_the_losers_are_cancelled(b: Bench, kind: str) -> None:
    race = getattr(b, kind)(b.hangs("h"), b.say("w", ticks=3, won=1), b.say("late", ticks=99))
    ran = await b.run(b.seq(race, b.say("z")))
    assert b.state == {"won": 1}
    assert sorted(b.closed) == ["h", "late", "w", "z"]
    assert ran.said == ["w", "z"]


async def test_a_failure_is_no_success(b: Bench, kind: str) -> None:
    ran = await b.run(getattr(b, kind)(b.fails("x"), b.say("w", ticks=9)))
    assert ran.text == "w"


async def test_an_error_event_is_no_success(b: Bench, kind: str) -> None:
    ran = await b.run(getattr(b, kind)(b.reports("x"), b.say("w", ticks=9)))
    assert ran.text == "w"


async def test_when_all_fail_the_last_declared_error_is_raised_with_the_others(
    b: Bench, kind: str
) -> None:
    root = getattr(b, kind)(b.fails("x", ticks=5, k=1), b.reports("y"), b.fails("z", ticks=9))
    error = await b.error(root)
    assert isinstance(error, b.Boom)
    assert chain(error) == ["z", "y reported an error: SAFETY: no", "x"]
    assert isinstance(error.__context__, AgentReportedError)
    assert b.clean_state == {}


async def test_what_losers_wrote_is_undone_in_one_event(b: Bench, kind: str) -> None:
    b.state["k"] = 0
    lose = b.seq(b.say("l", k=1, mine=1), b.hangs("h", more=1))
    root = getattr(b, kind)(lose, b.fails("x", k=2), b.say("w", ticks=20, won=1))
    ran = await b.run(root)
    assert b.clean_state == {"k": 0, "won": 1}
    [discarding] = [event for event in ran.events if event.discarded]
    assert discarding.state_delta == {"k": 0, "mine": None, "more": None}
    assert len(discarding.discarded) == 2
    assert [event.content for event in kept_events(ran.events) if event.content] == ["w"]


async def test_losers_that_did_nothing_are_not_mentioned(b: Bench, kind: str) -> None:
    ran = await b.run(getattr(b, kind)(b.hangs("h"), b.say("w")))
    assert [event.node for event in ran.events] == ["w"]


async def test_branches_work_on_a_snapshot(b: Bench, kind: str) -> None:
    b.state["k"] = 0
    lose = b.seq(b.say("l", k=1), b.hangs("h"))
    win = b.seq(
        b.say("idle", ticks=20),
        b.fn("f", seen=lambda s: s["k"], k=2),
        b.fn("g", again=lambda s: s["k"]),
    )
    await b.run(getattr(b, kind)(lose, win))
    assert b.state == {"k": 2, "seen": 0, "again": 2}


async def test_a_loser_that_wrote_over_the_winner_is_undone_to_the_winners_value(
    b: Bench, kind: str
) -> None:
    win = b.seq(b.say("w", k="w"), b.say("idle", ticks=20))
    lose = b.seq(b.say("wait", ticks=5), b.say("l", k="l"), b.hangs("h"))
    await b.run(getattr(b, kind)(win, lose))
    assert b.state == {"k": "w"}


async def test_no_partial_event_is_forwarded(b: Bench, kind: str) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("w", is_partial=True)
        yield turn.event("whole")

    ran = await b.run(b.seq(getattr(b, kind)(b.par(b.agent("x", act))), b.agent("y", act)))
    assert [(e.content, e.is_partial) for e in ran.events] == [
        ("whole", False),
        ("w", True),
        ("whole", False),
    ]


async def test_a_winner_that_escalates_ends_the_loop(b: Bench, kind: str) -> None:
    await b.run(b.loop(b.seq(getattr(b, kind)(b.hangs("h"), b.escalates("up")), b.say("never"))))
    assert sorted(b.calls) == ["h", "up"]


async def test_a_refusal_wins(b: Bench, kind: str) -> None:
    ran = await b.run(b.seq(getattr(b, kind)(b.hangs("h"), b.stops("no")), b.say("never")))
    assert ran.outcome is not None
    assert ran.outcome.value == "stop"


async def test_an_empty_race_is_done(b: Bench, kind: str) -> None:
    ran = await b.run(b.seq(getattr(b, kind)(), b.say("a")))
    assert ran.said == ["a"]


async def test_a_race_of_one_is_that_one(b: Bench, kind: str) -> None:
    await b.run(getattr(b, kind)(b.say("w", k=1)))
    assert b.state == {"k": 1}


async def test_a_race_in_a_losing_racer(b: Bench, kind: str) -> None:
    b.state["k"] = 0
    inner = getattr(b, kind)(b.seq(b.say("i", k=1), b.hangs("h")), b.hangs("j", k=2), name="inner")
    await b.run(getattr(b, kind)(inner, b.say("w", ticks=20, won=1)))
    assert b.clean_state == {"k": 0, "won": 1}


async def test_a_race_in_a_winning_racer(b: Bench, kind: str) -> None:
    inner = getattr(b, kind)(b.hangs("h", k=1, x=1), b.say("i", ticks=9, k=2), name="inner")
    look = b.fn("look", seen=lambda s: (s["k"], s.get("x")))
    await b.run(getattr(b, kind)(b.seq(inner, look), b.hangs("h2", k=3)))
    assert b.clean_state == {"k": 2, "seen": (2, None)}


async def test_a_race_in_a_loop_starts_from_what_the_last_one_left(b: Bench, kind: str) -> None:
    count = b.fn("n", n=lambda s: s.get("n", 0) + 1)
    lose = b.seq(b.fn("l", n=lambda s: s.get("n", 0) + 100), b.hangs("h"))
    await b.run(b.loop(getattr(b, kind)(b.seq(b.say("idle", ticks=9), count), lose), 4))
    assert b.state == {"n": 4}


async def test_what_a_racer_says_counts_only_if_it_wins(b: Bench, kind: str) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("half an answer")
        yield turn.event(error=ErrorInfo("MAX_TOKENS"))

    ran = await b.run(getattr(b, kind)(b.say("w", ticks=9), b.agent("x", act)))
    assert ran.text == "w"


async def test_winners_of_one_fork_beside_another(b: Bench, kind: str) -> None:
    def race(name: str, **writes: Any) -> Any:
        return getattr(b, kind)(b.hangs(f"h{name}", x=name), b.say(name, ticks=5, **writes))

    await b.run(b.par(race("p", x="p"), race("q", y="q"), b.say("o", ticks=2, o=1)))
    assert b.clean_state == {"x": "p", "y": "q", "o": 1}
