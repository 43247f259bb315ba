from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import AgentReportedError, StepTimeoutError
from adk_fluent.flow import Signal
from adk_fluent.ir import Node, Ref
from adk_fluent.protocol import ErrorInfo, collect_discarded, kept_events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from adk_fluent.protocol import AgentEvent

    from .conftest import Bench, Turn


def chain(error: BaseException | None) -> list[str]:
    texts: list[str] = []
    while error is not None:
        texts.append(str(error).splitlines()[0])
        error = error.__context__
    return texts


async def test_the_first_attempt_that_succeeds_is_the_last_that_runs(b: Bench) -> None:
    ran = await b.run(b.seq(b.fallback(b.fails("x"), b.say("y", k=1), b.say("never")), b.say("z")))
    assert b.calls == ["x", "y", "z"]
    assert b.state == {"k": 1}
    assert ran.text == "z"


async def test_an_attempt_that_succeeds_at_once_costs_no_event(b: Bench) -> None:
    ran = await b.run(b.fallback(b.say("x", k=1), b.say("never")))
    assert len(ran.events) == 1
    assert not ran.engine.position.get("discarded")


async def test_what_a_failed_attempt_wrote_is_undone_in_one_event(b: Bench) -> None:
    b.state.update(old=1)
    attempt = b.seq(b.say("p", old=2, new=1), b.fn("q", new=2, more=3), b.fails("x"))
    ran = await b.run(b.fallback(attempt, b.fn("y", seen=lambda s: (s["old"], s.get("new")))))
    assert ran.wrote[2:] == [{"more": None, "new": None, "old": 1}, {"seen": (1, None)}]
    [discarding] = [event for event in ran.events if event.discarded]
    assert (discarding.node, discarding.author, discarding.path) == ("fb", "fb", "")
    assert kept_events(ran.events) == [ran.events[-1]]


async def test_an_attempt_that_said_something_is_discarded_even_if_it_wrote_nothing(
    b: Bench,
) -> None:
    ran = await b.run(b.fallback(b.seq(b.say("p"), b.fails("x")), b.say("y")))
    [first, discarding, last] = ran.events
    assert first.attempt is not None
    assert discarding.discarded == (first.attempt,)
    assert discarding.state_delta == {}
    assert discarding.attempt == first.attempt
    assert last.attempt not in (None, first.attempt)
    assert [event.content for event in kept_events(ran.events)] == ["y"]


async def test_an_attempt_that_showed_nothing_needs_no_discarding(b: Bench) -> None:
    ran = await b.run(b.fallback(b.fails("x"), b.say("y")))
    assert [event.node for event in ran.events] == ["y"]


async def test_partial_events_of_an_attempt_are_forwarded_and_then_discarded(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event("par", is_partial=True, state_delta={"never": 1})
        raise b.Boom("x")

    ran = await b.run(b.fallback(b.agent("x", act), b.say("y")))
    assert [event.content for event in ran.events] == ["par", None, "y"]
    assert ran.events[1].discarded == (ran.events[0].attempt,)
    assert ran.events[1].state_delta == {}
    assert b.state == {}


async def test_when_all_fail_the_last_error_is_raised_with_the_others_as_context(b: Bench) -> None:
    error = await b.error(b.fallback(b.fails("x", k=1), b.fails("y"), b.fails("z", k=2)))
    assert isinstance(error, b.Boom)
    assert chain(error) == ["z", "y", "x"]
    assert b.clean_state == {}


async def test_a_context_of_its_own_is_kept_below_the_chain(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        try:
            raise KeyError("cause")
        except KeyError:
            raise b.Boom("y") from None
        yield turn.event()

    error = await b.error(b.fallback(b.fails("x"), b.agent("y", act)))
    assert chain(error) == ["y", "'cause'", "x"]


async def test_one_error_raised_in_every_attempt_makes_no_ring(b: Bench) -> None:
    one, two = b.Boom("one"), b.Boom("two")
    attempts = [b.fails(f"x{i}", (one, two)[i % 2]) for i in range(4)]
    error = await b.error(b.fallback(b.fallback(*attempts), b.fallback(*attempts)))
    assert error is two
    assert set(chain(error)) == {"one", "two"}


async def test_an_error_event_counts_like_an_exception(b: Bench) -> None:
    ran = await b.run(b.fallback(b.reports("x", state_delta={"k": 1}), b.say("y")))
    assert b.calls == ["x", "y"]
    assert ran.text == "y"
    assert b.clean_state == {}


async def test_an_error_event_in_the_last_attempt_is_raised(b: Bench) -> None:
    error = await b.error(b.fallback(b.fails("x"), b.reports("y", "MAX_TOKENS", "cut: off")))
    assert isinstance(error, AgentReportedError)
    assert (error.error_code, error.error_message) == ("MAX_TOKENS", "cut: off")
    assert error.node == "y"
    assert error.what == "y reported an error: MAX_TOKENS: cut: off"
    assert str(error.help).endswith("or add one more attempt")
    assert chain(error)[1] == "x"


async def test_an_error_event_outside_of_attempts_is_no_failure(b: Bench) -> None:
    ran = await b.run(b.seq(b.reports("x"), b.par(b.reports("y")), b.say("z")))
    assert ran.text == "z"
    assert ran.outcome is Signal.OK


async def test_a_reported_error_stays_one_when_the_agent_then_escalates(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        yield turn.event(error=ErrorInfo("SAFETY"))
        yield turn.event(escalate=True)

    await b.run(b.loop(b.fallback(b.agent("x", act), b.say("y")), 1))
    assert b.calls == ["x", "y"]


@pytest.mark.parametrize("wrap", ["seq", "par", "race", "first", "loop", "timeout", "fallback"])
async def test_a_failure_deep_inside_an_attempt_is_a_failure_of_the_attempt(
    b: Bench, wrap: str
) -> None:
    attempt = getattr(b, wrap)(b.seq(b.say("p", k=1), b.fails("x")))
    await b.run(b.fallback(attempt, b.say("y", seen=lambda s: s.get("k"))))
    assert b.clean_state == {}
    assert b.calls == ["p", "x", "y"]


@pytest.mark.parametrize("wrap", ["par", "race", "first", "timeout"])
async def test_an_error_event_deep_inside_an_attempt_is_a_failure_of_the_attempt(
    b: Bench, wrap: str
) -> None:
    await b.run(b.fallback(getattr(b, wrap)(b.reports("x")), b.say("y")))
    assert b.calls == ["x", "y"]


async def test_nested_fallbacks_undo_their_own_attempt_only(b: Bench) -> None:
    inner = b.fallback(b.fails("x", k="x", i=1), b.say("y", j=1), name="inner")
    attempt = b.seq(b.say("a", k="a"), inner, b.fn("look", seen=lambda s: (s["k"], s.get("i"))))
    await b.run(b.fallback(attempt))
    assert b.clean_state == {"k": "a", "j": 1, "seen": ("a", None)}


async def test_an_outer_attempt_takes_an_inner_success_with_it(b: Bench) -> None:
    b.state["k"] = 0
    inner = b.fallback(b.fails("x", k=1), b.say("y", k=2), name="inner")
    await b.run(b.fallback(b.seq(inner, b.fails("bad")), b.fn("look", seen=lambda s: s["k"])))
    assert b.clean_state == {"k": 0, "seen": 0}


async def test_a_loop_that_falls_back_again_and_again(b: Bench) -> None:
    attempt = b.seq(b.fn("n", n=lambda s: s.get("n", 0) + 1, t=1), b.fails("x"))
    good = b.fn("g", g=lambda s: s.get("g", 0) + 1)
    await b.run(b.loop(b.fallback(attempt, good), 5))
    assert b.clean_state == {"g": 5}


async def test_a_success_forgets_the_errors_before_it(b: Bench) -> None:
    attempts = b.fallback(b.fails("early"), b.say("fine"))
    error = await b.error(b.seq(*[attempts] * 50, b.fallback(b.fails("late"), b.fails("last"))))
    assert chain(error) == ["last", "late"]


async def test_a_timeout_inside_an_attempt_is_a_failure(b: Bench) -> None:
    await b.run(b.fallback(b.timeout(b.hangs("h", k=1), 0.01), b.say("y")))
    assert b.calls == ["h", "y"]
    assert b.clean_state == {}


async def test_a_timeout_in_the_last_attempt_is_raised(b: Bench) -> None:
    error = await b.error(b.fallback(b.fails("x"), b.timeout(b.hangs("h"), 0.01)))
    assert isinstance(error, StepTimeoutError)
    assert chain(error)[1] == "x"


async def test_a_fallback_in_a_branch_undoes_nothing_of_its_neighbours(b: Bench) -> None:
    attempt = b.seq(b.say("a", shared="a", mine=1), b.say("idle", ticks=6), b.fails("x"))
    other = b.seq(b.say("idle2", ticks=3), b.say("o", shared="o", other=1))
    await b.run(b.par(b.fallback(attempt, b.say("y")), other))
    assert b.clean_state == {"shared": "o", "other": 1}


async def test_stopping_is_no_failure(b: Bench) -> None:
    ran = await b.run(b.seq(b.fallback(b.stops("no"), b.say("never")), b.say("never")))
    assert ran.outcome is Signal.STOP
    assert b.calls == ["no"]


async def test_cancelling_is_no_failure(b: Bench) -> None:
    async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
        raise KeyboardInterrupt
        yield turn.event()

    engine = b.engine(b.fallback(b.agent("x", act), b.say("never")))
    with pytest.raises(KeyboardInterrupt):
        await anext(engine.run())
    assert b.calls == ["x"]


async def test_events_carry_their_attempt_and_its_enclosing_ones(b: Bench) -> None:
    inner = b.fallback(b.say("y"), name="inner")
    ran = await b.run(b.seq(b.fallback(b.seq(b.say("x"), inner, b.say("z"))), b.say("end")))
    x, y, z, end = [event.attempt for event in ran.events]
    assert x is not None
    assert y is not None
    assert y.startswith(f"{x}.")
    assert z == x
    assert end is None


async def test_the_bench_needs_no_attempts(b: Bench) -> None:
    calls: list[Any] = []
    await b.run(b.fallback(b.tap(calls.append)))
    assert calls == [{}]


async def test_each_discarded_attempt_is_logged(b: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """With its step, its error and the place; the last one is raised, and is not."""

    def broken(state: Any) -> None:
        raise LookupError("prices")

    node = b.fallback(b.seq(b.say("p"), b.fn("broken", broken), name="first"), b.fails("x"))
    with (
        caplog.at_level("WARNING", "adk_fluent.flow"),
        pytest.raises(Exception, match="x"),  # whatever it is
    ):
        await b.run(node)
    [told] = [each.getMessage() for each in caplog.records]
    assert told.startswith("fb")
    assert "tries x, for first failed: LookupError: prices; in node 'broken'" in told
    caplog.clear()
    await b.run(b.fallback(b.say("x"), b.fails("never")))
    assert caplog.records == []


class OnPurposeError(KeyError):
    """An error of its own, as libraries have them."""


def _raises(error: Exception) -> Callable[[Any], Any]:
    def raises(state: Any) -> Any:
        raise error

    return raises


#: Every place where a function of the user's stands.
PLACES: dict[str, Callable[[Bench, Callable[[Any], Any]], Node]] = {
    "function": lambda b, fn: b.fn("x", fn),
    "look": lambda b, fn: b.tap(fn),
    "route": lambda b, fn: b.route((fn, b.say("never"))),
    "until": lambda b, fn: b.loop(b.say("p"), 2, fn),
    "branch": lambda b, fn: b.par(b.fn("x", fn), b.say("p")),
    "item": lambda b, fn: b.map(b.fn("x", fn), "items"),
    "in time": lambda b, fn: b.timeout(b.fn("x", fn), 60),
    "fallback": lambda b, fn: b.fallback(b.fn("x", fn), b.say("never")),
    "last attempt": lambda b, fn: b.fallback(b.fails("p"), b.fn("x", fn)),
}
MISTAKES = [TypeError, KeyError, NameError, UnboundLocalError, AttributeError]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_in_a_function_is_raised(
    b: Bench, place: str, mistake: type[Exception]
) -> None:
    """With what failed before it as its context; what the attempt wrote is undone."""
    error = mistake("oh")
    b.state.update(items=[1])
    attempt = b.seq(b.say("before", k=1), PLACES[place](b, _raises(error)))
    raised = await b.error(b.fallback(b.fails("early"), attempt, b.say("never")))
    assert raised is error
    assert "early" in chain(raised)
    assert "never" not in b.calls
    assert "k" not in b.clean_state


# but for the fallback, whose own next attempt makes it good
@pytest.mark.parametrize("place", [each for each in PLACES if each != "fallback"])
@pytest.mark.parametrize("error", [OnPurposeError("oh"), ValueError("oh"), RuntimeError("oh")])
async def test_what_a_function_raises_on_purpose_is_made_good(
    b: Bench, place: str, error: Exception
) -> None:
    b.state.update(items=[1])
    ran = await b.run(b.fallback(PLACES[place](b, _raises(error)), b.say("y")))
    assert ran.text == "y"


async def test_the_same_types_are_failures_where_an_agent_raises_them(b: Bench) -> None:
    """What models and tools raise is no mistake of the pipeline."""
    for mistake in MISTAKES:
        ran = await b.run(b.fallback(b.fails("x", mistake("oh")), b.say("y")))
        assert ran.text == "y"


async def test_on_says_which_errors_are_made_good(b: Bench) -> None:
    on = (Ref.to(KeyError), Ref.to(ConnectionError))
    for error in (KeyError("oh"), OnPurposeError("oh"), ConnectionResetError("oh")):
        node = b.fallback(b.fn("x", _raises(error)), b.say("y")).replace(on=on)
        assert (await b.run(node)).text == "y"
    for error in (ValueError("oh"), TypeError("oh"), OSError("oh")):
        node = b.fallback(b.fn("x", _raises(error)), b.say("never")).replace(on=on)
        assert await b.error(node) is error
    assert "never" not in b.calls


async def test_discarded_attempts_are_collected(b: Bench) -> None:
    """Not those that were raised, nor what another run inside discarded and collected itself."""
    early, late = ValueError("early"), OnPurposeError("late")
    first = b.seq(b.say("p"), b.fn("broken", _raises(early)), name="first")
    node = b.fallback(first, b.fn("second", _raises(late)), b.say("y"))
    with collect_discarded() as outer:
        with collect_discarded() as found:
            await b.run(node)
            await b.error(b.fallback(b.fails("x"), b.fails("y")))
        assert not outer
    assert [(each.fallback, each.step) for each in found] == [
        *[("fb", "first"), ("fb", "second"), ("fb", "x")]
    ]
    assert [each.exception for each in found[:2]] == [early, late]
    assert (str(found[0].error), found[0].place) == ("ValueError: early", "in node 'broken'")
    kept = pickle.loads(pickle.dumps(found[0]))  # our own
    assert (kept, kept.exception) == (found[0], None)
