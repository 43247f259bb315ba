"""Runs that wait, fail, are closed and go on inside middlewares, and what hooks may not break."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import (
    SSE,
    TOOL,
    WHERE,
    OwnError,
    content,
    desk,
    made_of,
    noting,
    ping,
    says,
    text_of,
)
from adk_programs import by_runner
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.apps.app import App
from google.adk.models.llm_response import LlmResponse  # noqa: TC002  # ADK looks it up
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from adk_fluent import Agent, gate, map_over, timeout
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import StepTimeoutError, UsageError
from adk_fluent.protocol import AgentEvent, AgentReply
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from google.adk.sessions.base_session_service import BaseSessionService


pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


# --- waiting, failing and going on ---------------------------------------------------------------


async def test_a_run_that_waits_goes_on_inside_its_middlewares(store: BaseSessionService) -> None:
    seen: list[Any] = []

    async def looks(call: Any, following: Any) -> AgentReply:
        done = await following(call)
        seen.append((type(call).__name__, call.resumed, done.paused))
        return done

    stack = made_of(wrap_run=looks)
    pipeline = Agent("a").mock("A") >> gate(message="Go?") >> Agent("b").mock("B")
    pipeline = pipeline.middleware(stack)
    options: Any = {"session_id": "s", "session_service": store}
    paused = await pipeline.run("hi", **options)
    result = await pipeline.resume(paused.pending[0].answer(True), **options)
    assert result.text == "B"
    assert seen == [("RunCall", False, True), ("RunCall", True, False)]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("then", [True, False])
async def test_a_run_that_failed_goes_on_with_other_middlewares(
    store: BaseSessionService, first: bool, then: bool
) -> None:
    calls: list[str] = []

    def once(state: Any) -> dict[str, int]:
        calls.append("once")
        return {"once": 1}

    def fails_once(state: Any) -> dict[str, int]:
        calls.append("fails")
        if calls.count("fails") == 1:
            raise ConnectionError
        return {"then": 1}

    pipeline = (once >> Agent("a").mock("A")) >> timeout(Agent("b").mock("B") >> fails_once, 30)
    options: Any = {
        "session_id": "s",
        "session_service": store,
        "config": ExecutionConfig(resumable=True),
    }
    with pytest.raises(ConnectionError):
        await pipeline.run("hi", **options, middleware=[noting([])] if first else [])
    result = await pipeline.resume(**options, middleware=[noting([])] if then else [])
    assert result.state == {"once": 1, "then": 1}
    assert calls == ["once", "fails", "fails"]


@pytest.mark.parametrize("durable", [True, False])
async def test_a_reply_tells_what_was_written_and_nothing_of_our_own(durable: bool) -> None:
    deltas: list[dict[str, Any]] = []

    async def looks(call: Any, following: Any) -> AgentReply:
        done = await following(call)
        deltas.append(done.state_delta)
        return done

    def step(state: Any) -> dict[str, int]:
        return {"n": 1}

    pipeline = Agent("a").mock("A").writes("o") >> step
    config = ExecutionConfig(resumable=durable)
    await pipeline.middleware(made_of(wrap_run=looks, wrap_agent=looks)).run("hi", config=config)
    assert deltas == [{"o": "A"}, *[{"o": "A", "n": 1}] * 2]


async def test_a_step_has_one_context_whoever_asks_for_it_and_when() -> None:
    seen: list[Any] = []

    async def before(ctx: Any, name: str) -> None:
        seen.append(ctx)

    async def looks(call: Any, following: Any) -> AgentReply:
        done = await following(replace(call, run="other"))
        seen.extend([call.ctx, copy(call).ctx])
        call.ctx.state["late"] = call.ctx.agent_name
        return done

    async def misspells(call: Any, following: Any) -> AgentReply:
        assert not hasattr(call, "context")
        return await following(call)

    result = await Agent("a").mock("A").middleware(made_of(wrap_agent=looks)).run("hi")
    assert result.state["late"] == "a"
    stack = made_of(before_agent=before, wrap_agent=looks), made_of(wrap_agent=misspells)
    seen.clear()
    pipeline = Agent("a").mock("A").middleware(stack[0]).middleware(stack[1])
    assert (await pipeline.run("hi")).state["late"] == "a"
    assert len({id(each) for each in seen}) == 1
    assert len(seen) == 3


async def test_runs_that_are_closed_early_leave_nothing_behind() -> None:
    ended: list[str] = []

    async def watches(call: Any, following: Any) -> Any:
        try:
            return await following(call)
        finally:
            ended.append(type(call).__name__)

    stack = made_of(wrap_run=watches, wrap_agent=watches, wrap_model_call=watches)
    pipeline = Agent("a").mock(reply(chunks=["1", "2", "3"])) >> Agent("b").mock("B")
    before = asyncio.all_tasks()
    async with aclosing(pipeline.middleware(stack).stream("hi", config=SSE)) as events:
        async for _ in events:
            break
    assert asyncio.all_tasks() <= before
    assert ended == ["ModelCall", "AgentCall", "AgentCall", "RunCall"]


async def test_items_of_a_map_have_hooks_of_their_own_each() -> None:
    paths: list[tuple[str, Any]] = []

    async def looks(call: Any, following: Any) -> AgentReply:
        done = await following(call)
        paths.append((call.path, call.state.get("row")))
        return done

    pipeline = map_over("rows", Agent("a").instruct("{row}").mock("A"), item_key="row")
    await pipeline.middleware(made_of(wrap_agent=looks)).run("hi", state={"rows": [1, 2]})
    assert sorted(paths, key=str)[:2] == [("", None), ("m0", 1)]
    assert ("m1", 2) in paths


# --- what hooks may not break --------------------------------------------------------------------


@pytest.mark.parametrize("what", ["a time limit", "two at once"])
async def test_an_observer_makes_nothing_happen_twice(what: str) -> None:
    calls: list[str] = []

    def act(word: str) -> str:
        """Acts."""
        calls.append(word)
        return word

    async def watches(call: Any, following: Any) -> Any:
        if what == "two at once":
            both: list[Awaitable[Any]] = [following(call), following(call)]
            return (await asyncio.gather(*both))[0]
        async with asyncio.timeout(0.01):
            return await following(call)

    observer = made_of(wrap_tool_call=watches, wrap_model_call=watches, wrap_agent=watches)
    observer.observer = True
    model = ScriptedModel(reply(Call("act", {"word": "w"}), latency=0.05), "done")
    result = await Agent("a", model).tool(act).middleware(observer).run("hi")
    assert (result.text, len(model.calls), calls) == ("done", 2, ["w"])


@pytest.mark.parametrize(
    "kind", ["time limit", "on_event", "before_run", "on_user_message", "step"]
)
async def test_whatever_stops_a_run_is_told_of_once(kind: str) -> None:
    told: list[str] = []

    async def tells(ctx: Any, error: Exception) -> None:
        told.append(type(error).__name__)

    async def breaks(*_: Any) -> Any:
        raise OwnError

    model = ScriptedModel(reply("x", latency=30 if kind == "time limit" else 0))
    pipeline = Agent("a", model).middleware(made_of(on_run_error=tells))
    config = ExecutionConfig(timeout_seconds=0.1) if kind == "time limit" else None
    more: list[Any] = []
    if kind == "step":
        more = [made_of(before_agent=breaks)]
    elif kind != "time limit":
        more = [made_of(**{kind: breaks})]
    with pytest.raises((OwnError, StepTimeoutError)) as caught:
        await pipeline.run("hi", config=config, middleware=more)
    assert told == [type(caught.value).__name__]


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_what_is_written_around_calls_that_fail_is_kept(
    store: BaseSessionService, mode: ExecutionConfig
) -> None:
    def fails(word: str) -> str:
        """Fails."""
        raise ConnectionError(word)

    for session, model in (
        ("model", ScriptedModel(ConnectionError("no"))),
        ("tool", ScriptedModel(reply(Call("fails", {"word": "w"})))),
    ):
        pipeline = Agent("a", model).tool(fails).middleware(noting([], state=True))
        options: Any = {"session_id": session, "session_service": store, "config": mode}
        with pytest.raises(ConnectionError):
            await pipeline.run("hi", **options)
        where: Any = {**WHERE, "session_id": session}
        stored = await store.get_session(**where)
        assert stored is not None
        assert {f"before_{session}", f"on_{session}_error"} <= stored.state.keys(), session


async def test_what_is_written_around_a_tool_that_waits_is_kept(store: BaseSessionService) -> None:
    from google.adk.tools.long_running_tool import LongRunningFunctionTool

    def later(word: str) -> None:
        """Takes its time."""

    model = ScriptedModel(reply(Call("later", {"word": "w"})))
    pipeline = Agent("a", model).tool(LongRunningFunctionTool(later))
    result = await pipeline.middleware(noting([], state=True)).run(
        "hi", session_id="s", session_service=store
    )
    assert [each.kind for each in result.pending] == ["tool"]
    session = await store.get_session(**WHERE)
    assert session is not None
    assert {"before_tool", "after_tool"} <= session.state.keys()


@pytest.mark.parametrize("how", ["two at once", "after its end", "not awaited"])
async def test_a_step_is_done_once_at_a_time(how: str) -> None:
    kept: list[Any] = []

    async def wraps(call: Any, following: Any) -> AgentReply:
        if call.name == "b" and kept:
            return await kept[0]()
        if call.name != "a":
            return await following(call)
        if how == "two at once":
            await asyncio.gather(following(call), following(call))
        if how == "after its end":
            kept.append(lambda: following(call))
            return await following(call)
        task = asyncio.ensure_future(following(call))
        await asyncio.sleep(0)
        assert not task.done()
        return AgentReply("early", {"k": 1})

    pipeline = Agent("a", ScriptedModel(reply("x", latency=0.02))).writes("k") >> Agent("b").mock(
        "B"
    )
    running = pipeline.middleware(made_of(wrap_agent=wraps)).run("hi")
    if how == "not awaited":
        result = await running
        assert ([event.content for event in result], result.state) == (
            ["early", "B"],
            {"k": 1},
        )
        return
    with pytest.raises(UsageError, match="cannot be run"):
        await running


async def test_what_is_said_after_a_step_is_not_read_as_its_answer() -> None:
    async def more(ctx: Any, name: str) -> types.Content | None:
        return content("mind the gap") if name == "a" else None

    pipeline = Agent("a").mock("A").writes("o")
    result = await pipeline.middleware(made_of(after_agent=more)).run("hi")
    assert result.state == {"o": "A"}


async def test_state_that_on_event_adds_is_undone_with_an_attempt() -> None:
    async def marks(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        if event.author not in {"a", "b"}:
            return None
        return replace(event, state_delta={**event.state_delta, f"seen_{event.author}": 1})

    def fails(state: Any) -> None:
        raise ConnectionError

    attempt = Agent("a").mock("A") >> fails
    result = await (attempt // Agent("b").mock("B")).middleware(made_of(on_event=marks)).run("hi")
    assert result.state == {"seen_b": 1}


async def test_an_event_stays_what_it_was_when_it_was_seen() -> None:
    kept: list[AgentEvent] = []

    async def keeps(_: Any, event: AgentEvent) -> None:
        kept.append(event)  # and looks at it when the run is over

    async def changes(_: Any, event: AgentEvent) -> AgentEvent:
        return replace(event, content="changed")

    def notes(state: Any) -> dict[str, Any]:
        return {"temp:draft": 1, "kept": 2}

    p = Agent("a", ScriptedModel("said")) >> notes
    p = p.middleware(made_of(on_event=changes), made_of(on_event=keeps))
    told = await by_runner(p.to_app())
    assert [text_of(each.content) for each in told] == ["changed", "changed"]
    assert [each.content for each in kept] == ["said", None]
    assert kept[1].state_delta == {"temp:draft": 1, "kept": 2}


class _Redacts(BasePlugin):
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        for part in event.content.parts:
            part.text = "[redacted]"


async def test_nobody_who_changes_adks_event_changes_what_was_seen() -> None:
    kept: list[AgentEvent] = []

    async def keeps(_: Any, event: AgentEvent) -> None:
        kept.append(event)  # and looks at it when the run is over

    async def changes(_: Any, event: AgentEvent) -> AgentEvent:
        return replace(event, content="changed outside")

    by_plugin = Agent("a", ScriptedModel("said")).middleware(made_of(on_event=keeps)).to_app()
    by_plugin.plugins.append(_Redacts(name="redacts"))
    await by_runner(by_plugin)
    by_reader = Agent("a", ScriptedModel("said")).middleware(made_of(on_event=keeps)).to_app()
    runner = InMemoryRunner(app=by_reader)
    await runner.session_service.create_session(
        app_name=runner.app_name, user_id="u", session_id="s"
    )
    async for event in runner.run_async(user_id="u", session_id="s", new_message=content("hi")):
        assert event.content is not None
        assert event.content.parts is not None
        event.content.parts[0].text = "shown in the UI"
        event.custom_metadata = None
    inner = Agent("a", ScriptedModel("said")).middleware(made_of(on_event=keeps)).to_agent()
    await (Agent("z").mock("z") >> inner).middleware(made_of(on_event=changes)).run("hi")
    assert [(each.content, each.node) for each in kept] == [("said", "a")] * 3


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE])
async def test_a_call_is_freed_when_it_is_over(config: ExecutionConfig) -> None:
    requests: list[weakref.ref[Any]] = []

    async def notes(call: Any, following: Any) -> Any:
        requests.append(weakref.ref(call.request))
        return await following(call)

    p = Agent("a", ScriptedModel(reply("said", chunks=["sa", "id"]))) >> Agent(
        "b", ScriptedModel("x")
    )
    app = p.middleware(made_of(wrap_model_call=notes)).to_app(config)
    gc.collect()
    gc.disable()  # what refers to itself is left to the collector
    try:
        await by_runner(app)
        await asyncio.sleep(0)  # for what is told when a task is done
        assert [each() for each in requests] == [None, None]
    finally:
        gc.enable()


async def test_a_run_is_freed_when_it_is_over() -> None:
    async def passes(call: Any, following: Any) -> Any:
        return await following(call)

    around = made_of(wrap_agent=passes, wrap_model_call=passes, wrap_tool_call=passes)
    p = Agent("a", ScriptedModel(Call("ping"), default="x")).tool(ping)
    p = p >> (Agent("b", ScriptedModel("b")) | timeout(Agent("c", ScriptedModel("c")), 60))
    app = p.middleware(around).to_app()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await by_runner(app)
        await asyncio.sleep(0)
        gc.collect()
        modules = {str(type(each).__module__) for each in gc.garbage}
        assert not [each for each in modules if each.startswith("adk_fluent")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def test_a_plugin_behind_ours_is_asked_what_the_user_says() -> None:
    heard: list[str] = []

    class Foreign(BasePlugin):
        async def on_user_message_callback(self, *, user_message: Any, **_: Any) -> None:
            heard.append(text_of(user_message))

    async def changes(ctx: Any, message: Any) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text="changed")])

    pipeline = Agent("a").mock("A").middleware(made_of(on_user_message=changes))
    await by_runner(pipeline.to_app(plugins=[Foreign(name="foreign")]))
    assert heard == ["changed"]


async def test_a_hook_cannot_end_what_waits() -> None:
    async def ends(call: Any, following: Any) -> AgentReply:
        await following(call)
        return AgentReply("over")

    pipeline = Agent("a").mock("A") >> gate(message="Go?")
    with pytest.raises(UsageError, match="waits for an answer, and what a hook returned"):
        await pipeline.middleware(made_of(wrap_agent=ends)).run("hi")


GIVES = {
    "wrap_agent": "returns an AgentReply",
    "wrap_run": "returns an AgentReply",
    "wrap_model_call": "returns a ModelReply",
    "before_model": "returns an LlmResponse or None",
    "before_agent": "returns a Content or None",
    "on_user_message": "returns a Content or None",
    "before_tool": "returns a dict or None",
}


@pytest.mark.parametrize("name", GIVES)
async def test_what_a_hook_may_not_give_is_told_by_its_name(name: str) -> None:
    async def gives(*_: Any) -> Any:
        return 3

    with pytest.raises(UsageError, match=f"{name} of Made {GIVES[name]}"):
        await desk().middleware(made_of(**{name: gives})).run("hi")


async def test_what_new_may_not_give_is_refused() -> None:
    class Nothing:
        def new(self) -> None: ...

        async def before_run(self, ctx: Any) -> None: ...

    with pytest.raises(UsageError, match="this is no middleware"):
        await Agent("a").mock("A").middleware(Nothing()).run("hi")


@pytest.mark.parametrize("where", ["after_agent", "after_run"])
async def test_what_hooks_have_said_is_not_said_again(
    store: BaseSessionService, where: str
) -> None:
    failing = [True]

    async def once(*_: Any) -> None:
        if failing:
            failing.clear()
            raise ConnectionError

    async def better(call: Any, following: Any) -> AgentReply:
        done = await following(call)
        return replace(done, text="better") if call.name == "a" else done

    stack = [made_of(**{where: once}), made_of(wrap_agent=better)]
    pipeline = Agent("a").mock("A") >> Agent("b").mock("B")
    options: Any = {
        "session_id": "s",
        "session_service": store,
        "config": ExecutionConfig(resumable=True),
        "middleware": stack,
    }
    with pytest.raises(ConnectionError):
        await pipeline.run("hi", **options)
    await pipeline.resume(**options)
    session = await store.get_session(**WHERE)
    assert session is not None
    said = [text_of(each.content) for each in session.events if each.content]
    assert said == ["hi", "A", "better", "B"]


@pytest.mark.parametrize("given", [True, None])
async def test_hooks_of_tools_are_asked_when_a_person_has_confirmed(given: bool | None) -> None:
    log: list[str] = []
    model = ScriptedModel(reply(Call("ping", {"word": "hi"})), "done")
    pipeline = Agent("a", model).tool(ping, require_confirmation=True).middleware(noting(log))
    options: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    paused = await pipeline.run("hi", **options)
    assert [each for each in log if "tool" in each] == []
    if given:
        await pipeline.resume(paused.pending[0].answer(True), **options)
        assert [each for each in log if "tool" in each] == TOOL


async def test_what_the_user_says_is_handed_in_from_one_to_the_next(
    store: BaseSessionService,
) -> None:
    heard: list[str] = []

    def adding(word: str, *, observes: bool = False) -> Any:
        async def on_user_message(ctx: Any, message: types.Content) -> types.Content:
            heard.append(text_of(message))
            said = f"{text_of(message)} {word}"
            return types.Content(role="user", parts=[types.Part(text=said)])

        made = made_of(on_user_message=on_user_message)
        made.observer = observes
        return made

    model = ScriptedModel(default="Yes.")
    stack = (adding("one"), adding("nothing", observes=True), adding("two"))
    pipeline = Agent("a").model(model).middleware(*stack)
    await pipeline.run("hi", session_id="s", session_service=store)
    assert heard == ["hi", "hi one", "hi one"]
    assert model.calls[0].prompt == "hi one two"
    session = await store.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert session is not None
    assert text_of(session.events[0].content) == "hi one two"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # SequentialAgent, on 2.x
async def test_what_is_around_one_agent_is_not_around_its_neighbours() -> None:
    """In a tree of ADK's own, in each run of a Runner: the first brings our plugin."""
    closed: list[str] = []

    def around(name: str, log: list[str]) -> Any:
        made = noting(log)

        async def close() -> None:
            closed.append(name)

        type(made).close = staticmethod(close)
        return made

    def native(name: str) -> LlmAgent:
        return LlmAgent(name=name, model=ScriptedModel(default=name))

    first: list[str] = []
    second: list[str] = []
    ours = [
        Agent(name).model(ScriptedModel(default="hi")).middleware(around(name, log)).to_agent()
        for name, log in (("first", first), ("second", second))
    ]
    agents = [native("x"), *ours, native("y")]
    root = SequentialAgent(name="root", sub_agents=agents)  # pyright: ignore[reportDeprecated]
    runner = InMemoryRunner(agent=root, app_name="calls")
    session = await runner.session_service.create_session(app_name="calls", user_id="u")
    seen: list[tuple[list[str], list[str]]] = []
    for _ in range(2):
        async for _ in runner.run_async(
            user_id="u",
            session_id=session.id,
            new_message=types.Content(role="user", parts=[types.Part(text="q")]),
        ):
            pass
        seen.append(([*first], [*second]))
        first.clear()
        second.clear()
    assert seen[0] == seen[1]
    for log, name in zip(seen[0], ("first", "second"), strict=True):
        assert log.count("before_run") == log.count("before_model") == 1
        assert [each for each in log if each.startswith("before_agent")] == [f"before_agent {name}"]
    await runner.close()
    assert closed == ["first", "second"]


def _foreign(hook: str) -> BasePlugin:
    """A plugin of somebody else's that answers in the place of a call, or when one has failed."""
    answer: Any = {"result": "theirs"} if "tool" in hook else says("theirs")

    async def callback(**_: Any) -> Any:
        return answer

    plugin = BasePlugin(name="foreign")
    setattr(plugin, f"{hook}_callback", callback)
    return plugin


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE])
@pytest.mark.parametrize("hook", ["before_model", "on_model_error"])
async def test_what_others_answer_in_a_models_place_passes_our_hooks(
    hook: str, config: ExecutionConfig, store: BaseSessionService
) -> None:
    asked: list[str] = []

    async def after_model(ctx: Any, response: Any) -> Any:
        asked.append(text_of(response.content))
        ctx.state["asked"] = len(asked)
        return says(text_of(response.content).upper())

    failing = hook == "on_model_error"
    model = ScriptedModel(OSError("down")) if failing else ScriptedModel("never")
    pipeline = Agent("a").model(model).writes("said").middleware(made_of(after_model=after_model))
    app = pipeline.to_app(config, plugins=[_foreign(hook)])
    runner = Runner(app=app, session_service=store)
    session = await store.create_session(app_name=app.name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="q")])
    events = [
        event
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
    ]
    assert asked == ["theirs"]
    assert [text_of(event.content) for event in events if event.content] == ["THEIRS"]
    found = await store.get_session(app_name=app.name, user_id="u", session_id=session.id)
    assert found is not None
    assert (found.state["said"], found.state["asked"]) == ("THEIRS", 1)
    assert [text_of(event.content) for event in found.events if event.content] == ["q", "THEIRS"]


@pytest.mark.parametrize("hook", ["before_tool", "on_tool_error", "after_tool"])
async def test_what_others_answer_in_a_tools_place_passes_our_hooks(hook: str) -> None:
    asked: list[Any] = []

    async def after_tool(ctx: Any, name: str, args: dict[str, Any], result: Any) -> Any:
        asked.append(result)
        return {"result": "ours"}

    def fetch() -> str:
        """Fetch."""
        if hook == "on_tool_error":
            raise OSError("down")
        return "fetched"

    model = ScriptedModel(Call("fetch"), "done")
    pipeline = Agent("a").model(model).tool(fetch).middleware(made_of(after_tool=after_tool))
    await by_runner(pipeline.to_app(plugins=[_foreign(hook)]))
    told = model.calls[1].turns[-1].text
    if hook == "after_tool":  # theirs comes later, and once
        assert (asked, "theirs" in told) == (["fetched"], True)
    else:
        assert (asked, "ours" in told) == ([{"result": "theirs"}], True)


async def test_what_an_agents_own_callback_answers_passes_our_hooks() -> None:
    log: list[str] = []

    def answers(callback_context: Any, llm_request: Any) -> LlmResponse:
        return says("of its own")

    agent = Agent("a").model(ScriptedModel("never")).before_model(answers)
    said = await agent.middleware(noting(log)).ask_async("hi")
    assert said == "of its own"
    assert log.count("after_model") == 1
    assert "before_model" not in log


async def test_what_others_answer_passes_our_hooks_under_an_app_of_theirs() -> None:
    async def after_model(ctx: Any, response: Any) -> Any:
        return says(text_of(response.content).upper())

    pipeline = Agent("a").mock("never") >> Agent("b").mock("never")
    root = pipeline.middleware(made_of(after_model=after_model)).to_agent()
    app = App(name="theirs", root_agent=root, plugins=[_foreign("before_model")])
    events = await by_runner(app)
    assert [text_of(event.content) for event in events if event.content] == ["THEIRS", "THEIRS"]
