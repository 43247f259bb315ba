"""State schemas around parts of pipelines, on every way in which a write gets to a session."""

from __future__ import annotations

import asyncio
import json
import operator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import made_of
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads annotations
from google.genai import types

from adk_fluent import Agent, FanOut, Pipeline, S, effects, gate, map_over, race
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import (
    OutputMissingError,
    StateKeyError,
    StateTypeError,
    UnstorableValueError,
    UnsupportedNodeError,
    UsageError,
)
from adk_fluent.ir import UNSET, Ref, StateFieldRef
from adk_fluent.protocol import AgentReply
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder, StepLike

pytestmark = pytest.mark.adk

APP = "adk_fluent_app"
DAY, STORED = date(2020, 1, 2), "2020-01-02"
#: What is tried here goes wrong in runs, and checks know it before.
UNCHECKED = ExecutionConfig(contracts="off")


@dataclass
class Field:
    key: str
    type: Any
    reducer: Any = None
    scope: str = "session"
    default: Any = UNSET


class Rules:
    """A state schema of plain types; dates are stored as text."""

    __state_fields__: Mapping[str, Field] = {}

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        return {key: cls.stored(key, value, where) for key, value in delta.items()}

    @classmethod
    def stored(cls, key: str, value: Any, where: str) -> Any:
        field = cls.__state_fields__.get(key)
        if field is None or value is None:
            return value
        try:
            if field.type is date:
                return (value if isinstance(value, date) else date.fromisoformat(value)).isoformat()
        except (TypeError, ValueError):
            field = Field(key, ())  # which nothing is
        if isinstance(value, field.type):
            return value
        raise StateTypeError(f"{key} cannot be {value!r}, as {where} has it", key=key)


def rules(reducers: Mapping[str, Any] | None = None, **types: Any) -> Any:
    """A schema; ``user__x`` is the key ``user:x``."""
    known = {key.replace("__", ":"): kind for key, kind in types.items()}
    fields = {key: Field(key, kind, (reducers or {}).get(key)) for key, kind in known.items()}
    return type("Desk", (Rules,), {"__state_fields__": fields})


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request: pytest.FixtureRequest, tmp_path: Path) -> BaseSessionService:
    if request.param == "memory":
        return InMemorySessionService()
    return SqliteSessionService(str(tmp_path / "sessions.db"))


async def stored(service: BaseSessionService) -> dict[str, Any]:
    """What the one session holds that was written to."""
    [session] = (await service.list_sessions(app_name=APP, user_id="user")).sessions
    found = await service.get_session(app_name=APP, user_id="user", session_id=session.id)
    assert found is not None
    return {k: v for k, v in found.state.items() if v is not None and not k.startswith("_adk")}


# --- the ways to write ---------------------------------------------------------------------------


def by_answer(key: str, value: Any) -> StepLike:
    return Agent("x").mock(str(value)).writes(key)


def by_answer_of_a_schema(key: str, value: Any) -> StepLike:
    model = ScriptedModel(default=json.dumps({key: str(value), "more": 1}))
    return Agent("x", model).writes(StateFieldRef(key, str), StateFieldRef("more", int))


def by_output_key_of_adk(key: str, value: Any) -> StepLike:
    return LlmAgent(name="x", model=ScriptedModel(default=str(value)), output_key=key)


def _tool(key: str, value: Any) -> Callable[..., Any]:
    def put(tool_context: ToolContext) -> str:
        """Writes."""
        tool_context.state[key] = value
        return "ok"

    return put


def by_tool(key: str, value: Any) -> StepLike:
    return Agent("x", ScriptedModel(Call("put"), default="done")).tool(_tool(key, value))


def by_callback(key: str, value: Any) -> StepLike:
    def note(callback_context: Any) -> None:
        callback_context.state[key] = value

    return Agent("x").mock("done").before_agent(note)


def by_last_callback(key: str, value: Any) -> StepLike:
    def note(callback_context: Any) -> None:
        callback_context.state[key] = value

    return Agent("x").mock("done").after_agent(note)


def by_agent_that_is_a_tool(key: str, value: Any) -> StepLike:
    inner = Agent("inner", ScriptedModel(Call("put"), default="done")).description("Writes.")
    outer = ScriptedModel(Call("inner", {"request": "go"}), default="done")
    return Agent("x", outer).agent_tool(inner.tool(_tool(key, value)))


def by_pipeline_that_is_a_tool(key: str, value: Any) -> StepLike:
    inner = Pipeline("inner", lambda _: {key: value}).description("Writes.")
    outer = ScriptedModel(Call("inner", {"request": "go"}), default="done")
    return Agent("x", outer).agent_tool(inner)


def by_delegate(key: str, value: Any) -> StepLike:
    inner = Agent("inner").mock(str(value)).writes(key).description("Writes.")
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    return Agent("x", model).delegates(inner)


def by_pipeline_below(key: str, value: Any) -> StepLike:
    inner = Pipeline("inner", lambda _: {key: value}).description("Writes.")
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    return Agent("x", model).delegates(inner)


def by_function(key: str, value: Any) -> StepLike:
    async def x(_: Any) -> dict[str, Any]:
        return {key: value}

    return x


def by_transform(key: str, value: Any) -> StepLike:
    def compute(_: Any) -> Any:
        return value

    return S.compute(**{key: compute}).named("x")


def by_map(key: str, value: Any) -> StepLike:
    return map_over("list", lambda _: {key: value}, result_key=key, output_key="out", name="x")


class Writing(BaseAgent):
    """A custom agent that writes."""

    key: str
    value: Any

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        delta = {self.key: self.value}
        yield Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            actions=EventActions(state_delta=delta),
        )


def by_custom_agent(key: str, value: Any) -> StepLike:
    return Writing(name="x", key=key, value=value)


def by_hook(key: str, value: Any) -> StepLike:
    async def before_agent(ctx: Any, agent: str) -> None:
        if agent == "x":
            ctx.state[key] = value

    return Agent("x").mock("done").middleware(made_of(before_agent=before_agent))


def by_hook_of_the_model(key: str, value: Any) -> StepLike:
    async def after_model(ctx: Any, response: Any) -> None:
        ctx.state[key] = value

    return Agent("x").mock("done").middleware(made_of(after_model=after_model))


TEXTS = [by_answer, by_answer_of_a_schema, by_output_key_of_adk, by_delegate]
OBJECTS = [
    *(by_tool, by_callback, by_last_callback, by_agent_that_is_a_tool),
    *(by_pipeline_that_is_a_tool, by_pipeline_below, by_function, by_transform, by_map),
    *(by_custom_agent, by_hook, by_hook_of_the_model),
]
#: What is named as the writer where that is another step.
WRITERS: dict[Any, str] = {by_map: "step", by_pipeline_below: "step"}


def desk(step: StepLike, **more: Any) -> Builder:
    """A pipeline that keeps to a schema."""
    return Pipeline("root", step).state(rules(day=date, n=int, out=list, more=int, **more))


START = {"list": [1]}


async def go(pipeline: Builder, sessions: BaseSessionService, **state: Any) -> None:
    await pipeline.run("go", session_service=sessions, state={**START, **state}, config=UNCHECKED)


@pytest.mark.parametrize("route", [*TEXTS, *OBJECTS])
async def test_it_is_stored_alike(sessions: BaseSessionService, route: Any) -> None:
    await go(desk(route("day", STORED if route in TEXTS else DAY)), sessions)
    kept = await stored(sessions)
    if route is by_map:  # whose items leave their results alone
        assert ("day" in kept, kept["out"]) == (False, [STORED])
    else:
        assert kept["day"] == STORED


@pytest.mark.parametrize("route", [*TEXTS, *OBJECTS])
async def test_what_does_not_fit_stops_the_run(sessions: BaseSessionService, route: Any) -> None:
    pipeline = desk(Pipeline(route("n", "one"), lambda _: {"more": 1}))
    with pytest.raises(StateTypeError, match="n cannot be 'one'") as caught:
        await go(pipeline, sessions)
    assert caught.value.key == "n"
    assert caught.value.help
    assert caught.value.node == WRITERS.get(route, "x")
    assert await stored(sessions) == START


@pytest.mark.parametrize("route", [*TEXTS, *OBJECTS])
async def test_what_is_not_declared_stops_the_run(sessions: BaseSessionService, route: Any) -> None:
    with pytest.raises(StateTypeError, match="'dya', which Desk does not declare") as caught:
        await go(desk(route("dya", STORED)), sessions)
    assert "did you mean 'day'?" in str(caught.value)
    assert "dya" not in await stored(sessions)


# --- what a schema refuses, nobody has seen ------------------------------------------------------


async def test_a_step_that_is_tried_again_finds_state_as_it_was(
    sessions: BaseSessionService,
) -> None:
    def look(state: Any) -> dict[str, Any]:
        return {"out": [state.get("n"), state.get("day")]}

    step = (by_tool("n", "one") // Agent("y").mock("sorry")) >> look
    await go(desk(step), sessions, n=1)
    assert await stored(sessions) == {**START, "n": 1, "out": [1, None]}


async def test_a_step_that_is_made_good_leaves_nothing_behind(
    sessions: BaseSessionService,
) -> None:
    async def wrap_agent(call: Any, following: Any) -> AgentReply:
        try:
            return await following(call)
        except StateTypeError:
            return AgentReply("sorry")

    def look(state: Any) -> dict[str, Any]:
        return {"out": [state.get("n")]}

    step: Any = by_tool("n", "one")
    await go(desk(step.middleware(made_of(wrap_agent=wrap_agent)) >> look), sessions)
    assert await stored(sessions) == {**START, "out": [None]}


async def test_what_a_hook_wrote_before_a_call_that_fails(sessions: BaseSessionService) -> None:
    async def before_model(ctx: Any, request: Any) -> None:
        ctx.state["n"] = "one"

    step = Agent("x", ScriptedModel(ValueError("down"))).middleware(
        made_of(before_model=before_model)
    )
    with pytest.raises(StateTypeError, match="n cannot be 'one'") as caught:
        await go(desk(step), sessions)
    assert str(caught.value.__context__) == "down"
    assert await stored(sessions) == START


async def test_the_step_itself_reads_what_is_stored(sessions: BaseSessionService) -> None:
    seen: list[Any] = []

    def look(tool_context: ToolContext) -> str:
        """Reads."""
        seen.append(tool_context.state["day"])
        return "ok"

    model = ScriptedModel(Call("put"), Call("look"), default="done")
    await go(desk(Agent("x", model).tool(_tool("day", DAY)).tool(look)), sessions)
    assert seen == [STORED]


async def test_a_branch_beside_reads_what_is_stored(sessions: BaseSessionService) -> None:
    seen: set[Any] = set()

    async def look(state: Any) -> None:
        for _ in range(200):
            await asyncio.sleep(0)
            seen.add(state.get("day"))

    await go(desk(FanOut(by_tool("day", DAY), look)), sessions)
    assert seen <= {None, STORED}


async def test_below_and_beside_the_part_nothing_is_checked(sessions: BaseSessionService) -> None:
    part = Pipeline("part", by_function("day", DAY)).state(rules(day=date))
    await go(Pipeline("root", part, by_tool("n", "one")), sessions)
    assert await stored(sessions) == {**START, "day": STORED, "n": "one"}


async def test_a_pipeline_below_may_write_what_stands_around_declares(
    sessions: BaseSessionService,
) -> None:
    inner = Pipeline("inner", by_function("n", 1), by_function("day", DAY)).description("Writes.")
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    await go(desk(Agent("x", model).delegates(inner.state(rules(n=object)))), sessions)
    assert await stored(sessions) == {**START, "n": 1, "day": STORED}


async def test_a_delegate_keeps_to_its_own_schema(sessions: BaseSessionService) -> None:
    inner = Agent("inner").mock("one").writes("n").description("Writes.").state(rules(n=int))
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    with pytest.raises(StateTypeError, match="n cannot be 'one'"):
        await go(Pipeline("root", Agent("x", model).delegates(inner)), sessions)


async def test_an_agent_that_is_a_tool_cannot_keep_to_one_of_its_own() -> None:
    tool = Agent("inner").mock("one").writes("n").state(rules(n=int))
    with pytest.raises(UnsupportedNodeError, match="inner runs as a tool"):
        await Pipeline("root", Agent("x").mock("x").agent_tool(tool)).run("go", config=UNCHECKED)


async def test_a_pipeline_that_is_a_tool_keeps_to_its_own(sessions: BaseSessionService) -> None:
    inner = Pipeline("inner", by_function("n", "one")).description("Writes.").state(rules(n=int))
    model = ScriptedModel(Call("inner", {"request": "go"}), default="done")
    with pytest.raises(StateTypeError, match="n cannot be 'one'"):
        await go(Pipeline("root", Agent("x", model).agent_tool(inner)), sessions)


async def test_a_warning_lets_it_be(
    sessions: BaseSessionService, caplog: pytest.LogCaptureFixture
) -> None:
    step = Pipeline("root", by_tool("n", "one"), by_function("day", STORED))
    await go(step.state(rules(n=int, day=date), enforce="warn"), sessions)
    assert await stored(sessions) == {**START, "n": "one", "day": STORED}
    [told] = [each for each in caplog.records if each.name == "adk_fluent.state"]
    assert "where: node 'x'" in told.getMessage()


async def test_what_a_person_answers(sessions: BaseSessionService) -> None:
    pipeline = Pipeline("root", gate(message="How many?", name="ask", key="n", response_schema=int))
    pipeline = pipeline.state(rules(n=str))
    where: Any = {"session_service": sessions, "config": UNCHECKED}
    asked = await pipeline.run("go", **where)
    [question] = asked.pending
    with pytest.raises(StateTypeError, match="n cannot be 3") as caught:
        await pipeline.resume(question.answer(3), session_id=asked.session_id, **where)
    assert caught.value.node == "ask"


# --- the beginning -------------------------------------------------------------------------------


async def by_run(pipeline: Builder, sessions: BaseSessionService, state: dict[str, Any]) -> None:
    await pipeline.run("go", session_service=sessions, state=state, config=UNCHECKED)


async def by_stream(pipeline: Builder, sessions: BaseSessionService, state: dict[str, Any]) -> None:
    async with aclosing(
        pipeline.stream("go", session_service=sessions, state=state, config=UNCHECKED)
    ) as events:
        async for _ in events:
            continue


async def _on(runner: Runner, sessions: BaseSessionService, state: dict[str, Any]) -> None:
    ids: Any = {"user_id": "user", "session_id": "s"}
    await sessions.create_session(app_name=APP, state=state, **ids)
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async with aclosing(runner.run_async(new_message=message, **ids)) as events:
        async for _ in events:
            continue


async def by_app(pipeline: Builder, sessions: BaseSessionService, state: dict[str, Any]) -> None:
    app = pipeline.to_app(UNCHECKED)
    await _on(Runner(app=app, session_service=sessions), sessions, state)


async def by_root_agent(
    pipeline: Builder, sessions: BaseSessionService, state: dict[str, Any]
) -> None:
    """As `adk web` does."""
    agent = pipeline.to_agent(UNCHECKED)
    await _on(Runner(app_name=APP, agent=agent, session_service=sessions), sessions, state)


WAYS = [by_run, by_stream, by_app, by_root_agent]


@pytest.mark.parametrize("way", WAYS)
async def test_no_model_is_called_where_a_session_does_not_fit(
    sessions: BaseSessionService, way: Any
) -> None:
    model = ScriptedModel(default="done")
    pipeline = Pipeline("root", Agent("x", model)).state(rules(n=int))
    with pytest.raises(StateTypeError, match="n cannot be 'one', as the session has it") as caught:
        await way(pipeline, sessions, {"n": "one", "other": "x"})
    assert (caught.value.key, caught.value.node) == ("n", "root")
    assert not model.calls


@pytest.mark.parametrize("way", WAYS)
async def test_no_model_is_called_where_an_input_is_missing(
    sessions: BaseSessionService, way: Any
) -> None:
    model = ScriptedModel(default="done")
    pipeline = Pipeline("root", Agent("w", model), Agent("x", model).instruct("On {topic}."))
    pipeline = pipeline.contract(inputs=["topic", "user:name"])
    with pytest.raises(StateKeyError, match="begins without 'topic', which it needs") as caught:
        await way(pipeline, sessions, {"user:name": "A", "topic": None})
    assert caught.value.found == "x reads 'topic'"
    assert "state={'topic': ...}" in str(caught.value)
    assert not model.calls


@pytest.mark.parametrize("way", WAYS)
async def test_what_fits_begins(sessions: BaseSessionService, way: Any) -> None:
    pipeline = Pipeline("root", by_function("n", 2)).state(rules(n=int, topic=str))
    await way(pipeline.contract(inputs=["topic"]), sessions, {"n": 1, "topic": "x"})
    assert await stored(sessions) == {"n": 2, "topic": "x"}


async def test_a_run_that_goes_on_has_begun(sessions: BaseSessionService) -> None:
    part = Pipeline("root", gate(message="ok?", name="ask"), by_function("n", 1))
    pipeline = part.state(rules(n=int, topic=str)).contract(inputs=["topic"])
    where: Any = {"session_service": sessions, "config": UNCHECKED}
    asked = await pipeline.run("go", state={"topic": "x"}, **where)
    session = await sessions.get_session(
        app_name=APP, user_id="user", session_id=asked.session_id or ""
    )
    assert session is not None
    delta = {"topic": None, "n": "one"}
    await sessions.append_event(
        session, Event(author="me", actions=EventActions(state_delta=delta))
    )
    [question] = asked.pending
    await pipeline.resume(question.answer(True), session_id=asked.session_id, **where)
    assert (await stored(sessions))["n"] == 1


async def test_a_pipeline_below_begins_where_it_is_handed_over_to(
    sessions: BaseSessionService,
) -> None:
    inner = Pipeline("inner", by_function("n", 1)).description("Writes.")
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    pipeline = Pipeline(
        "root", Agent("x", model).delegates(inner.contract(inputs=["topic"])), Agent("y").mock("Y")
    )
    with pytest.raises(StateKeyError, match="inner begins without 'topic'"):
        await go(pipeline, sessions)


# --- reducers and declared effects ---------------------------------------------------------------


async def test_branches_merge_by_the_schema(sessions: BaseSessionService) -> None:
    fork = FanOut(
        by_function("out", ["a"]),
        Agent("b", ScriptedModel(Call("put"), default="B")).tool(_tool("out", ["b"])),
        Writing(name="c", key="out", value=["c"]),
    )
    merged = rules({"out": operator.add}, out=list)
    await go(Pipeline("root", fork).state(merged), sessions)
    assert (await stored(sessions))["out"] == ["a", "b", "c"]


async def test_a_reducer_makes_what_cannot_be_stored(tmp_path: Path) -> None:
    def both(one: Any, other: Any) -> Any:
        return {one, other}

    ref = StateFieldRef("k", reducer=Ref.to(both))
    fork = FanOut("fork", Agent("a").mock("A").writes(ref), Agent("b").mock("B").writes("k"))
    sqlite = SqliteSessionService(str(tmp_path / "sessions.db"))
    with pytest.raises(UnstorableValueError, match="fork writes what sessions") as caught:
        await go(Pipeline("root", fork), sqlite)
    assert (caught.value.key, caught.value.node) == ("k", "fork")
    await go(Pipeline("root", fork // Agent("c").mock("C").writes("out")), sqlite)


async def test_declared_effects_hold(sessions: BaseSessionService) -> None:
    @effects(writes=["k"])
    def forgets(_: Any) -> dict[str, Any]:
        return {}

    @effects(reads="a", may_write=["k"])
    async def writes_more(_: Any) -> dict[str, Any]:
        return {"other": 1}

    with pytest.raises(OutputMissingError, match="'k'") as caught:
        await go(Pipeline("root", forgets), sessions)
    assert caught.value.node == "forgets"
    with pytest.raises(UsageError, match="'other', which it is not declared to write") as told:
        await Pipeline("root", writes_more).run("go", config=UNCHECKED)
    assert told.value.node == "writes_more"
    computed = S.compute(k=lambda _: None).reads("a")
    with pytest.raises(OutputMissingError):
        await Pipeline("root", computed).run("go", config=UNCHECKED)


async def test_the_winner_of_a_race_keeps_to_the_schema(sessions: BaseSessionService) -> None:
    slow = Agent("y").mock("slow") >> by_function("day", DAY)
    await go(desk(race(by_tool("n", "one"), slow)), sessions)
    assert await stored(sessions) == {**START, "day": STORED}
