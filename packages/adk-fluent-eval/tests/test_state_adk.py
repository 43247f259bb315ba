"""What cases expect of session state: in the end, after turns, and by who wrote it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    adk_agent,
    agent,
    calling,
    case,
    outcome_of,
    passes,
    report_of,
    says,
    sequence,
    suite_of,
)
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adk_fluent import Agent, Fallback, FanOut, Loop, S, gate, map_over
from adk_fluent.eval import EvalError, FluentJudge, Status, Turn
from adk_fluent.ir import UNSET, StateFieldRef
from adk_fluent.testing import Call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from adk_fluent.builders import State
    from adk_fluent.eval import CaseOutcome

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]


@pytest.fixture(params=["none", "memory", "sqlite"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Options of a run: where sessions are kept."""
    if request.param == "none":
        return {}
    if request.param == "memory":
        return {"session_service": InMemorySessionService()}
    return {"session_service": SqliteSessionService(str(tmp_path / "sessions.db"))}


def writer(name: str, *deltas: dict[str, Any]) -> LlmAgent:
    """An agent of ADK's whose tool writes these deltas, one at each call."""

    def write(number: int, tool_context: Any) -> str:
        """Write to state."""
        for key, value in deltas[number].items():
            tool_context.state[key] = value
        return "ok"

    calls = [Call("write", {"number": number}) for number in range(len(deltas))]
    return LlmAgent(name=name, model=says(calling(*calls)), tools=[write])


def holds(condition: Callable[[Any], Any]) -> Any:
    """A condition on a value of any type."""
    return condition


def reasons(outcome: CaseOutcome) -> str:
    return "; ".join(outcome.reasons)


# --- in the end ----------------------------------------------------------------------------------


async def test_what_is_there_in_the_end(options: dict[str, Any]) -> None:
    classify = agent("classify", "billing", writes="intent")
    answer = agent("answer", "Done.", writes="reply")
    outcome = await outcome_of(
        classify >> answer,
        options=options,
        initial_state={"tier": "gold", "n": 1},
        state_assertions={
            "intent": "billing",
            "reply": holds(lambda text: text.startswith("Done")),
            "tier": "gold",
            "n": 1,
            "absent": None,
        },
    )
    assert outcome.reasons == []
    assert outcome.state == {"tier": "gold", "n": 1, "intent": "billing", "reply": "Done."}


async def test_what_is_not_as_expected_is_told(options: dict[str, Any]) -> None:
    outcome = await outcome_of(
        agent("a", "billing", writes="intent"),
        options=options,
        state_assertions={
            "intent": "other",
            "intend": "billing",
            "a.intent": holds(lambda value: value == "x"),
        },
    )
    assert outcome.status is Status.FAILED
    assert outcome.reasons == [
        'state intent: expected "other", found "billing"',
        "state intend: there is no such key; did you mean 'intent'?",
        'state intent as a wrote it: the condition says no to "billing"',
    ]


async def test_the_scopes_of_state(options: dict[str, Any]) -> None:
    given = {"plain": 1, "user:tier": "gold", "app:shop": "books", "temp:secret": 2}
    outcome = await outcome_of(
        writer("a", given),
        options=options,
        state_assertions={
            "plain": 1,
            "user:tier": "gold",
            "app:shop": "books",
            "tier": None,
        },
    )
    assert outcome.reasons == []
    assert outcome.state == {"plain": 1, "user:tier": "gold", "app:shop": "books"}


async def test_a_key_that_was_taken_away(options: dict[str, Any]) -> None:
    program = agent("a", "x", writes="draft") >> S.drop("draft")
    outcome = await outcome_of(
        program, options=options, state_assertions={"draft": None, "a.draft": "x"}
    )
    assert outcome.reasons == []
    assert outcome.state == {}


async def test_what_adk_and_the_engine_keep_for_themselves_is_left_out(
    options: dict[str, Any],
) -> None:
    def leave(callback_context: Any) -> None:
        callback_context.state["__llm_request_key__"] = "left by an evaluation of ADK's"

    program = adk_agent("a", before_agent_callback=leave)
    outcome = await outcome_of(
        agent("first") >> program >> gate(lambda state: False, message="?") >> agent("b"),
        options=options,
    )
    assert outcome.reasons == []
    assert outcome.state == {}
    assert all(not step.state for step in outcome.turns[0].steps)


async def test_predicates_that_raise_or_say_nothing() -> None:
    async def later(value: Any) -> bool:
        return True

    outcome = await outcome_of(
        agent("a", "x", writes="k"),
        state_assertions={
            "k": holds(lambda value: value["missing"]),
            "a.k": holds(lambda value: None),
            Field("k"): later,
        },
    )
    assert outcome.status is Status.FAILED
    assert outcome.reasons == [
        "state k: the condition raised TypeError: string indices must be integers, not 'str'",
        'state k as a wrote it: the condition returned neither true nor false for "x"',
        "state k: later() is async, and says nothing by itself",
    ]


async def test_what_is_compared_is_the_value_itself() -> None:
    """Not what can be written to a report."""

    @dataclass
    class Money:
        cents: int

    outcome = await outcome_of(
        writer("a", {"day": date(2026, 1, 2), "price": Money(5), "pair": (1, 2)}),
        state_assertions={
            "day": holds(lambda day: day.year == 2026),
            "price": Money(5),
            "pair": [1, 2],
        },
    )
    assert outcome.reasons == []
    assert outcome.state == {"day": "2026-01-02", "price": {"cents": 5}, "pair": [1, 2]}


async def test_a_dict_that_is_written_anew(options: dict[str, Any]) -> None:
    """SQLite merges dicts; pipelines of ours replace them all the same."""

    def first(state: State) -> dict[str, Any]:
        return {"box": {"a": 1, "deep": {"x": 1}}}

    def second(state: State) -> dict[str, Any]:
        return {"box": {"b": 2, "deep": {"y": 2}}}

    outcome = await outcome_of(
        first >> agent("a") >> second,
        options=options,
        initial_state={"box": {"zero": 0}},
        state_assertions={
            "box": {"b": 2, "deep": {"y": 2}},
            "first.box": {"a": 1, "deep": {"x": 1}},
        },
    )
    assert outcome.reasons == []
    assert outcome.state == {"box": {"b": 2, "deep": {"y": 2}}}


async def test_what_is_told_is_what_the_session_holds(options: dict[str, Any]) -> None:
    """Of agents of ADK's SQLite keeps a merged dict; so the case sees one."""
    program = writer("a", {"box": {"a": 1}}, {"box": {"b": 2}})
    outcome = await outcome_of(program, options=options)
    service = options.get("session_service")
    expected: Any = {"b": 2}
    if service is not None:
        session = await service.get_session(
            app_name=f"a_{outcome.user_id.replace('-', '_')}",
            user_id=outcome.user_id,
            session_id=outcome.session_id,
        )
        expected = session.state["box"]
    assert outcome.state == {"box": expected}


# --- by step -------------------------------------------------------------------------------------


async def test_what_each_step_wrote(options: dict[str, Any]) -> None:
    first = agent("draft", "one", writes="text")
    second = agent("polish", "two", writes="text")

    def count(state: State) -> dict[str, Any]:
        return {"n": len(state["text"])}

    outcome = await outcome_of(
        first >> second >> count,
        options=options,
        state_assertions={
            "text": "two",
            "draft.text": "one",
            "polish.text": "two",
            "count.n": 3,
            "draft.n": None,
        },
    )
    assert outcome.reasons == []


async def test_what_steps_of_adk_wrote() -> None:
    root = sequence(
        "s",
        adk_agent("draft", "one", output_key="text"),
        adk_agent("polish", "two", output_key="text"),
    )
    await passes(root, state_assertions={"draft.text": "one", "polish.text": "two", "text": "two"})


async def test_a_step_that_writes_several_times_counts_with_the_last() -> None:
    numbers = iter("abc")

    def count(asked: Any) -> str:
        return next(numbers)

    body = agent("draft", count, writes="text")
    await passes(Loop("l", body, max=3), state_assertions={"draft.text": "c", "text": "c"})


async def test_keys_with_a_dot_of_their_own() -> None:
    program = writer("a", {"a.b": 1, "b": 2})
    await passes(program, state_assertions={"a.b": 1, "a.a.b": 1})
    await passes(writer("a", {"b": 2}), state_assertions={"a.b": 2})


async def test_steps_of_a_fan_out_and_of_a_map() -> None:
    both = FanOut("f", agent("a", "A", writes="x"), agent("b", "B", writes="y"))
    each = map_over("items", agent("c", "C", writes="z"), output_key="all")
    await passes(
        both >> each,
        initial_state={"items": [1, 2]},
        state_assertions={"a.x": "A", "b.y": "B", "x": "A", "y": "B", "all": ["C", "C"]},
    )


async def test_what_a_failed_attempt_wrote_is_undone(options: dict[str, Any]) -> None:
    def write(state: State) -> dict[str, Any]:
        return {"draft": "half", "kept": "changed"}

    broken = write >> agent("a", ValueError("no"))
    outcome = await outcome_of(
        Fallback("f", broken, agent("b", "ok", writes="answer")),
        options=options,
        initial_state={"kept": "as it was"},
        state_assertions={"draft": None, "kept": "as it was", "answer": "ok"},
    )
    assert outcome.reasons == []
    assert outcome.state == {"kept": "as it was", "answer": "ok"}


async def test_a_step_that_is_not_there_is_told_before_anything_runs() -> None:
    model = says("x")
    with pytest.raises(EvalError) as caught:
        await outcome_of(Agent("classify", model).writes("k"), state_assertions={"clasify.k": "x"})
    assert str(caught.value.help).startswith("did you mean 'classify'?; if ")
    assert "it expects what step 'clasify' writes" in caught.value.what
    assert model.calls == ()


@pytest.mark.parametrize("of_turn", [False, True], ids=["case", "turn"])
async def test_nobody_wrote_nothing_of_a_step_that_is_not_there(*, of_turn: bool) -> None:
    model = says("x")
    program = Agent("classify", model).writes("k")
    asserted: dict[Any, Any] = {"k": "x", "billing.intent": None}
    said: Any = Turn("Hi", state_assertions=asserted) if of_turn else "Hi"
    fields: dict[str, Any] = {} if of_turn else {"state_assertions": asserted}
    with pytest.raises(EvalError) as caught:
        await outcome_of(program, said, **fields)
    assert "it expects what step 'billing' writes" in caught.value.what
    assert (caught.value.found or "").startswith("steps: classify")
    assert "let initial_state= have it" in (caught.value.help or "")
    assert model.calls == ()
    alone: dict[str, Any] = {"target_node": "classify", "state_assertions": {"reply.k": None}}
    with pytest.raises(EvalError, match="step 'reply'"):  # it is not run
        await outcome_of(agent("classify") >> agent("reply"), **alone)


async def test_keys_with_a_dot_that_no_step_has() -> None:
    """What would not hold without such a step is asked of state, and so is what can be a key."""
    program = writer("classify", {"shop.open": True, "classifies.k": None})
    await passes(
        program,
        initial_state={"shop.door": "shut", "classifies.k": 1},
        state_assertions={
            "shop.open": True,
            "shop.door": "shut",
            "classifies.k": None,
            "user:shop.tier": None,
            StateFieldRef("shop.tier"): None,
        },
    )
    outcome = await outcome_of(agent("classify"), state_assertions={"shop.open": True})
    assert outcome.status is Status.FAILED


async def test_a_step_of_somebody_elses_agent_may_be_there() -> None:
    class Own(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> AsyncGenerator[Event, None]:
            yield Event(author=self.name, actions=EventActions(state_delta={"k": 1}))

    await passes(Own(name="own"), state_assertions={"k": 1, "billing.intent": None})


@pytest.mark.parametrize("key", ["temp:x", "classify.temp:x"])
async def test_what_is_temporary_is_never_there(options: dict[str, Any], key: str) -> None:
    """Why such keys are refused: what ADK itself makes of them."""
    with pytest.raises(EvalError, match="which is never there"):
        case(state_assertions={key: None})
    seen: list[Any] = []

    def look(callback_context: Any) -> None:
        seen.append(callback_context.state.to_dict())

    program = LlmAgent(
        name="classify", model=says("x"), output_key="temp:x", before_agent_callback=look
    )
    given = case()
    given.initial_state = {"temp:y": 1, "z": 2}  # past the look at what is written
    report = await report_of(program, given, **options)
    assert seen == [{"z": 2}]
    assert report.outcomes[0].state == {"z": 2}


# --- after turns ---------------------------------------------------------------------------------


def counter(name: str = "a") -> LlmAgent:
    """Counts its calls, in a list that it changes in place."""

    def count(tool_context: Any) -> int:
        """Count."""
        seen = tool_context.state.get("seen", [])
        seen.append(len(seen) + 1)
        tool_context.state["seen"] = seen
        return len(seen)

    return LlmAgent(name=name, model=says(calling(Call("count"))), tools=[count])


def grower(name: str) -> Any:
    """An agent that changes the list in place before it speaks."""

    def grow(callback_context: Any) -> None:
        seen = callback_context.state["seen"]
        seen.append(len(seen) + 1)
        callback_context.state["seen"] = seen

    return adk_agent(name, before_agent_callback=grow)


async def test_what_a_step_wrote_stays_what_it_was(options: dict[str, Any]) -> None:
    """Also where the next one changes the very list."""
    outcome = await outcome_of(
        sequence("s", counter("a"), grower("b")),
        options=options,
        state_assertions={"a.seen": [1], "b.seen": [1, 2], "seen": [1, 2]},
    )
    assert outcome.reasons == []


async def test_state_after_each_turn(options: dict[str, Any]) -> None:
    outcome = await outcome_of(
        counter(),
        [
            Turn("one", state_assertions={"seen": [1], "a.seen": [1]}),
            Turn("two", state_assertions={"seen": [1, 2], "a.seen": [1, 2]}),
            "three",
        ],
        options=options,
        state_assertions={"seen": [1, 2, 3], "a.seen": [1, 2, 3]},
    )
    assert outcome.reasons == []
    writes = [step.state["seen"] for turn in outcome.turns for step in turn.steps if step.state]
    assert writes == [[1], [1, 2], [1, 2, 3]]


async def test_a_turn_after_which_it_is_otherwise() -> None:
    outcome = await outcome_of(
        counter(),
        [Turn("one", state_assertions={"seen": [1, 2]}), "two"],
        state_assertions={"seen": [1, 2]},
    )
    assert outcome.status is Status.FAILED
    assert outcome.reasons == ["state seen of turn 1: expected [1, 2], found [1]"]


# --- typed references ----------------------------------------------------------------------------


class Field:
    """What a layer of typed state gives: a key, and how its value is stored."""

    def __init__(self, key: str, type: Any = None, default: Any = UNSET) -> None:
        self.key = key
        self.type = type
        self.default = default
        prefix, colon, _ = key.partition(":")
        self.scope = prefix if colon else "session"


class DateField(Field):
    def encode(self, value: date) -> str:
        return value.isoformat()

    def decode(self, stored: str) -> date:
        return date.fromisoformat(stored)


async def test_typed_references(options: dict[str, Any]) -> None:
    day, tier = DateField("day", date), Field("user:tier", str, "bronze")

    def show(state: State) -> dict[str, Any]:
        return {"shown": f"{state['day']}"}

    outcome = await outcome_of(
        show >> agent("a", "x", writes="k"),
        options=options,
        initial_state={day: date(2026, 1, 2), Field("n"): 3},
        state_assertions={
            day: date(2026, 1, 2),
            tier: "bronze",
            Field("n"): 3,
            Field("k"): holds(lambda value: value == "x"),
            "shown": "2026-01-02",
        },
    )
    assert outcome.reasons == []
    assert outcome.state == {"day": "2026-01-02", "n": 3, "shown": "2026-01-02", "k": "x"}


async def test_a_typed_value_that_cannot_be_stored_is_told_before_anything_runs() -> None:
    model = says("x")
    with pytest.raises(EvalError) as caught:
        await outcome_of(
            Agent("a", model), id="x", initial_state={DateField("day", date): "tomorrow"}
        )
    assert caught.value.what == "case 'x': it cannot start with what initial_state= gives 'day'"
    assert "AttributeError" in (caught.value.found or "")
    assert model.calls == ()


async def test_a_value_that_cannot_be_copied_for_each_run() -> None:
    import threading

    with pytest.raises(EvalError, match="cannot start with what initial_state= gives 'lock'"):
        await outcome_of(agent("a"), initial_state={"lock": threading.Lock()})


async def test_what_is_stored_may_be_no_value_of_its_type() -> None:
    outcome = await outcome_of(
        agent("a", "soon", writes="day"),
        state_assertions={DateField("day", date): date(2026, 1, 2)},
    )
    assert outcome.status is Status.FAILED
    assert 'state day: "soon" is no value of day: ValueError' in reasons(outcome)


@pytest.mark.parametrize("fails_at", ["create_session", "append_event", "get_session"])
async def test_a_service_that_fails_is_an_error_of_its_run(
    fails_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **given: Any) -> Any:
        raise OSError("disk full")

    service = InMemorySessionService()
    monkeypatch.setattr(service, fails_at, full)
    report = await report_of(agent("a"), case(), num_runs=2, session_service=service)
    for outcome in report.outcomes:
        assert outcome.status is Status.ERROR
        assert outcome.error == "OSError: disk full"


# --- runs that fail ------------------------------------------------------------------------------


async def test_what_was_written_before_a_run_failed(options: dict[str, Any]) -> None:
    program = agent("a", "x", writes="k") >> agent("b", ValueError("no"))
    outcome = await outcome_of(
        program, options=options, initial_state={"n": 1}, state_assertions={"k": "x"}
    )
    assert outcome.status is Status.ERROR
    assert outcome.error == "ValueError: no"
    assert outcome.state == {"n": 1, "k": "x"}
    assert [step.state for step in outcome.turns[0].steps if step.state] == [{"k": "x"}]


async def test_what_was_written_before_time_was_up(options: dict[str, Any]) -> None:
    async def slowly(asked: Any) -> str:
        await asyncio.sleep(30)
        return "x"

    program = agent("a", "x", writes="k") >> agent("b", slowly)
    outcome = await outcome_of(program, options=options, timeout_s=0.3)
    assert outcome.error == "TimeoutError: it took longer than 0.3 s"
    assert outcome.state == {"k": "x"}


async def test_a_run_that_fails_at_once_has_the_state_it_began_with() -> None:
    outcome = await outcome_of(agent("a", ValueError("no")), initial_state={"n": 1})
    assert outcome.state == {"n": 1}


async def test_judges_see_the_values_themselves() -> None:
    seen: list[Any] = []

    def judge(state: Any) -> bool:
        seen.append(state)
        return True

    suite = suite_of(
        writer("a", {"day": date(2026, 1, 2)}), case(), custom_judges=[FluentJudge("j", judge)]
    )
    report = await suite.run()
    assert report.pass_rate == 1.0
    assert seen == [{"day": date(2026, 1, 2)}]


@pytest.mark.parametrize("make", [lambda: agent("a"), lambda: adk_agent("a")])
async def test_nothing_is_there_that_nobody_wrote(
    make: Callable[[], Any], options: dict[str, Any]
) -> None:
    report = await report_of(make(), case(), num_runs=2, **options)
    assert [each.state for each in report.outcomes] == [{}, {}]
