"""Middlewares on ADK: every hook, in every way of running, on every version alike."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
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
    says,
    text_of,
)
from adk_programs import by_runner
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from adk_fluent import Agent, Resource, injected
from adk_fluent.backends.adk._hooks._plugin import MiddlewarePlugin
from adk_fluent.backends.adk._hooks._sites import make_site
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError, unwrap
from adk_fluent.extend import request_model
from adk_fluent.protocol import HOOKS, AgentEvent, AgentReply, Middleware, ModelCall, ModelReply
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.models.llm_response import LlmResponse
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


# --- all of them ---------------------------------------------------------------------------------

CALL = ["before_model", "wrap_model_call a", "wrap_model_request a", "after_model"]
WHOLE = [
    *("on_user_message", "before_run", "wrap_run", "before_agent pipeline", "wrap_agent pipeline"),
    *("before_agent a", "wrap_agent a", *CALL, *TOOL, *CALL, "after_agent a"),
    *("before_agent b", "wrap_agent b", "before_model", "wrap_model_call b"),
    *("wrap_model_request b", "after_model", "after_agent b", "after_agent pipeline", "after_run"),
]


async def test_every_hook_in_its_turn() -> None:
    log: list[str] = []
    result = await desk().middleware(noting(log)).run("hi")
    assert result.text == "B"
    assert [each for each in log if each != "on_event"] == WHOLE
    assert log.count("on_event") == 4  # a's call, the tool's response, a's answer, b's


async def test_streamed_the_fragments_come_by_too() -> None:
    log: list[str] = []
    result = await desk().middleware(noting(log)).run("hi", config=SSE)
    assert result.state["out"] == "done"
    wanted = [*WHOLE]
    at = wanted.index("after_model", wanted.index("after_tool ping"))
    wanted[at:at] = ["after_model"] * 2
    wanted.insert(wanted.index("after_model", wanted.index("before_agent b")), "after_model")
    assert [each for each in log if each != "on_event"] == wanted


async def by_run(pipeline: Builder) -> None:
    await pipeline.run("hi")


async def by_stream(pipeline: Builder) -> None:
    async with aclosing(pipeline.stream("hi")) as events:
        async for _ in events:
            continue


async def by_ask(pipeline: Builder) -> None:
    await pipeline.ask_async("hi")


async def by_map(pipeline: Builder) -> None:
    await pipeline.map_async(["hi"])


async def by_app(pipeline: Builder) -> None:
    await by_runner(pipeline.to_app())


async def by_root_agent(pipeline: Builder) -> None:
    await by_runner(pipeline.to_agent())


async def by_own_runner(pipeline: Builder) -> None:
    runner = pipeline.to_runner()
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    run = runner.run_async(user_id="u", session_id=session.id, new_message=message)
    async with aclosing(run) as events:
        async for _ in events:
            continue


WAYS = [by_run, by_stream, by_ask, by_map, by_app, by_root_agent, by_own_runner]


@pytest.mark.parametrize("way", WAYS)
async def test_in_every_way_of_running(way: Any) -> None:
    log: list[str] = []
    await way(desk().middleware(noting(log)))
    assert [each for each in log if each != "on_event"] == WHOLE


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_what_hooks_write_is_kept(store: BaseSessionService, mode: ExecutionConfig) -> None:
    log: list[str] = []
    pipeline = desk().middleware(noting(log, state=True))
    result = await pipeline.run("hi", config=mode, session_id="s", session_service=store)
    session = await store.get_session(**WHERE)
    assert session is not None
    wanted = {name for name in HOOKS if not name.startswith("wrap_") and "error" not in name}
    wanted -= {"on_event", "close"}
    for state in (result.state, session.state):
        assert wanted <= {key for key, value in state.items() if value}, wanted - state.keys()
    assert set(session.state) == {*wanted, "out"}


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_what_hooks_write_when_something_fails_is_kept(
    store: BaseSessionService, mode: ExecutionConfig
) -> None:
    pipeline = Agent("a", ScriptedModel(ConnectionError("no"))) >> Agent("b").mock("B")
    noted = noting([], state=True)
    with pytest.raises(ConnectionError):
        await pipeline.middleware(noted).run(
            "hi", config=mode, session_id="s", session_service=store
        )
    session = await store.get_session(**WHERE)
    assert session is not None
    assert {"on_agent_error", "on_run_error"} <= session.state.keys()


# --- in the place of something -------------------------------------------------------------------


async def no(*_: Any) -> LlmResponse:
    return says("no")


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_a_model_is_answered_for(mode: ExecutionConfig) -> None:
    model = ScriptedModel("never")
    for name in ("before_model", "after_model", "on_model_error"):
        failing = ScriptedModel(ConnectionError("no"))
        used = {"before_model": model, "after_model": ScriptedModel("x")}.get(name, failing)
        pipeline = Agent("a", used).writes("out").middleware(made_of(**{name: no}))
        result = await pipeline.run("hi", config=mode)
        assert (result.text, result.state) == ("no", {"out": "no"}), name
    assert model.calls == ()


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_another_model_is_called_in_the_place_of_one(mode: ExecutionConfig) -> None:
    """Of whatever class it is; ADK's own, and one that is a call site itself."""

    class Other(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            if stream:
                yield says(self.model[:2]).model_copy(update={"partial": True})
            yield says(self.model)

    async def wrap(call: ModelCall, next: NextModel) -> ModelReply:
        return await next(replace(call, model=other))

    model = ScriptedModel("never")
    for other in (Other(model="other"), make_site(Other(model="site"))):
        pipeline = Agent("a", model).middleware(made_of(wrap_model_call=wrap))
        result = await pipeline.run("hi", config=mode)
        said = [each.content for each in result if each.is_partial]
        assert (result.text, said) == (other.model, [other.model[:2]] if mode is SSE else [])
    assert model.calls == ()


class Sends:
    """Notes the models that are really asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.asked.append(call.model.model)
        return await next(call)


@pytest.mark.parametrize("outside", [True, False])
async def test_each_request_that_is_sent_is_seen_wherever_one_stands(outside: bool) -> None:
    """Two attempts, one of them by another model, and a question of the middleware's own."""
    other = ScriptedModel("B", "a summary", model="other")

    async def wrap(call: ModelCall, next: NextModel) -> ModelReply:
        await next(call)
        aside = await request_model(replace(call, model=other))
        assert aside.final.content.parts[0].text == "B"
        return await next(replace(call, model=other))

    sends, twice = Sends(), made_of(wrap_model_call=wrap)
    pipeline = Agent("a", ScriptedModel("A", model="first"))
    for each in (sends, twice) if outside else (twice, sends):
        pipeline = pipeline.middleware(each)
    assert (await pipeline.run("hi")).text == "a summary"
    assert sends.asked == ["first", "other", "other"]


async def test_what_is_answered_without_a_model_is_no_request() -> None:
    sends = Sends()

    async def wrap(call: ModelCall, next: NextModel) -> ModelReply:
        return ModelReply([says("kept")])

    pipeline = (
        Agent("a", ScriptedModel("A")).middleware(sends).middleware(made_of(wrap_model_call=wrap))
    )
    assert (await pipeline.run("hi")).text == "kept"
    assert sends.asked == []


async def test_a_question_outside_of_a_run_reaches_the_model() -> None:
    made = await request_model(ModelCall(LlmRequest(), model=ScriptedModel("A")))
    assert made.final.content.parts[0].text == "A"


async def test_a_request_is_changed_in_place() -> None:
    async def asks(ctx: Any, request: Any) -> None:
        request.contents[-1].parts[0].text = "changed"

    model = ScriptedModel("x")
    await Agent("a", model).middleware(made_of(before_model=asks)).run("hi")
    assert model.calls[0].prompt == "changed"


async def test_a_tool_is_answered_for() -> None:
    calls: list[str] = []

    def act(word: str) -> dict[str, str]:
        """Acts."""
        calls.append(word)
        if word == "bad":
            raise ConnectionError(word)
        return {"said": word}

    async def before(ctx: Any, name: str, args: dict[str, Any]) -> dict[str, Any] | None:
        if args["word"] == "refused":
            return {"refused": name}
        args["word"] = args["word"].lower()
        return None

    async def mended(ctx: Any, name: str, args: Any, error: Exception) -> dict[str, Any]:
        return {"mended": str(error)}

    async def after(ctx: Any, name: str, args: Any, result: Any) -> dict[str, Any] | None:
        return {"after": result} if result == {"said": "late"} else None

    model = ScriptedModel(
        reply(*(Call("act", {"word": each}) for each in ("refused", "BAD", "Ok", "late"))), "done"
    )
    stack = made_of(before_tool=before, on_tool_error=mended, after_tool=after)
    result = await Agent("a", model).tool(act).middleware(stack).run("hi")
    told = [each.result for event in result for each in event.tool_responses]
    assert told == [
        {"refused": "act"},
        {"mended": "bad"},
        {"said": "ok"},
        {"after": {"said": "late"}},
    ]
    assert calls == ["bad", "ok", "late"]


async def test_a_step_is_answered_for_as_if_it_had_spoken() -> None:
    async def instead(ctx: Any, name: str) -> types.Content | None:
        return content("instead") if name == "a" else None

    pipeline = Agent("a").mock("never").writes("out") >> Agent("b").mock(lambda prompt: prompt)
    result = await pipeline.middleware(made_of(before_agent=instead)).run("hi")
    assert result.state == {"out": "instead"}
    assert "instead" in result.text  # the next agent is told of it
    assert (result[0].author, result[0].content) == ("a", "instead")


async def test_an_arrangement_is_answered_for() -> None:
    async def instead(ctx: Any, name: str) -> types.Content | None:
        return content("instead") if name == "both" else None

    both = (Agent("a").mock("A") | Agent("b").mock("B")).named("both")
    result = await (both >> Agent("z").mock("")).middleware(made_of(before_agent=instead)).run("hi")
    assert result.text == "instead"


async def test_more_is_said_after_a_step() -> None:
    async def more(ctx: Any, name: str) -> types.Content | None:
        return content("more") if name == "a" else None

    pipeline = Agent("a").mock("A").writes("out")
    result = await pipeline.middleware(made_of(after_agent=more)).run("hi")
    assert [event.content for event in result] == ["A", "more"]


async def test_a_run_is_answered_for() -> None:
    async def closed(ctx: Any) -> types.Content:
        return content("closed")

    told: list[str] = []
    stack = desk().middleware(noting(told)).middleware(made_of(before_run=closed))
    assert (await stack.run("hi")).text == "closed"
    assert [each for each in told if each != "on_event"] == [
        *("on_user_message", "before_run", "after_run")  # it stands outside the one that answered
    ]


async def test_a_run_is_tried_again_and_a_step_is() -> None:
    calls: list[str] = []

    def flaky(state: Any) -> dict[str, int]:
        calls.append("flaky")
        if len(calls) < 3:
            raise ConnectionError
        return {"n": len(calls)}

    async def again(call: Any, following: Any) -> AgentReply:
        try:
            return await following(call)
        except ConnectionError:
            return await following(call)

    pipeline = Agent("a").mock("A") >> ((Agent("b").mock("B") >> flaky).named("part"))
    result = (
        await pipeline.middleware(made_of(wrap_run=again))
        .middleware(made_of(wrap_agent=again))
        .run("hi")
    )
    assert result.state == {"n": 3}


# --- what the user says --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["run", "app", "root agent"])
async def test_what_the_user_says_is_replaced_before_it_is_stored(
    store: BaseSessionService, way: str
) -> None:
    async def redacts(ctx: Any, message: types.Content) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text="[card]")])

    pipeline = Agent("a").mock(lambda prompt: f"heard {prompt}")
    pipeline = pipeline.middleware(made_of(on_user_message=redacts))
    if way == "run":
        result = await pipeline.run("4111", session_id="s", session_service=store)
        assert result.text == "heard [card]"
    else:
        app: Any = pipeline.to_app() if way == "app" else None
        runner = (
            Runner(app=app, session_service=store)
            if app is not None
            else Runner(app_name="adk_fluent_app", agent=pipeline.to_agent(), session_service=store)
        )
        await store.create_session(**WHERE)
        said = types.Content(role="user", parts=[types.Part(text="4111")])
        run = runner.run_async(user_id="user", session_id="s", new_message=said)
        async with aclosing(run) as events:
            heard = [text_of(each.content) async for each in events if each.content]
        assert heard == ["heard [card]"]
    session = await store.get_session(**WHERE)
    assert session is not None
    [first] = [event for event in session.events if event.author == "user"]
    if way != "root agent":  # its Runner has stored the message before anything of ours is there
        assert text_of(first.content) == "[card]"


# --- events --------------------------------------------------------------------------------------


async def test_an_event_is_changed_and_stored_as_it_is_seen(store: BaseSessionService) -> None:
    async def edits(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        assert event.raw is not None
        if event.author != "a" or event.is_partial:
            return None
        return replace(
            event,
            content=f"<{event.content}>",
            state_delta={**event.state_delta, "seen": 1},
            custom_metadata={"by": "edits"},
        )

    pipeline = Agent("a").mock("A").writes("out") >> Agent("b").mock("B")
    result = await pipeline.middleware(made_of(on_event=edits)).run(
        "hi", session_id="s", session_service=store
    )
    session = await store.get_session(**WHERE)
    assert session is not None
    assert result.state == session.state == {"out": "A", "seen": 1}
    stored = [event for event in session.events if event.author == "a"]
    assert [text_of(each.content) for each in stored] == ["<A>"]
    assert stored[0].custom_metadata is not None
    assert stored[0].custom_metadata["by"] == "edits"
    assert result[0].path == "s0"  # what it does not touch stays


@pytest.mark.parametrize("mode", [ExecutionConfig(), SSE])
async def test_notes_are_kept_on_the_events_of_answers(mode: ExecutionConfig) -> None:
    class Notes(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        def note_answer(self, call: ModelCall, /) -> dict[str, Any] | None:
            return {"by": self.name, self.name: call.path} if call.agent == "a" else None

    class Onlooker(Notes):
        observer = True

    pipeline = desk().middleware(Notes("outer"), Onlooker("other")).middleware(Notes("inner"))
    result = await pipeline.run("hi", config=mode)
    kept = [each.custom_metadata for each in result if not each.is_partial]
    noted = {"by": "outer", "outer": result[0].path, "inner": result[0].path}
    assert kept == [noted, {}, noted, {}]
    assert not any(each.custom_metadata for each in result if each.is_partial)
    assert [each.node for each in result if not each.is_partial] == ["a", "a", "a", "b"]


async def test_notes_that_are_no_mapping_are_refused() -> None:
    class Wrong(Middleware):
        def note_answer(self, call: ModelCall, /) -> Any:
            return "text"

    with pytest.raises(UsageError, match=r"note_answer of .*Wrong returns a mapping or None"):
        await Agent("a").mock("A").middleware(Wrong()).run("hi")


async def test_what_makes_an_event_that_event_cannot_be_changed() -> None:
    async def edits(ctx: Any, event: AgentEvent) -> Any:
        return replace(event, author="somebody else")

    with pytest.raises(UsageError, match="on_event cannot change 'author'"):
        await Agent("a").mock("A").middleware(made_of(on_event=edits)).run("hi")

    async def wrong(ctx: Any, event: AgentEvent) -> Any:
        return "text"

    with pytest.raises(UsageError, match="on_event returns an AgentEvent"):
        await Agent("a").mock("A").middleware(made_of(on_event=wrong)).run("hi")


# --- errors --------------------------------------------------------------------------------------


_ELSEWHERE = {"close", "wrap_remote_call"}  # nobody is called elsewhere here
BREAKING = [name for name in HOOKS if "error" not in name and name not in _ELSEWHERE]


@pytest.mark.parametrize("name", BREAKING)
async def test_what_a_hook_raises_stops_the_run_with_its_own_type(name: str) -> None:
    async def breaks(*_: Any) -> Any:
        raise OwnError(name)

    with pytest.raises(OwnError):
        await desk().middleware(made_of(**{name: breaks})).run("hi")
    with pytest.raises((OwnError, RuntimeError)) as caught:
        await by_runner(desk().middleware(made_of(**{name: breaks})).to_app())
    assert isinstance(unwrap(caught.value), OwnError)


@pytest.mark.parametrize("name", BREAKING)
async def test_what_an_observer_raises_stops_nothing(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: Any) -> Any:
        raise OwnError(name)

    observer = made_of(**{name: breaks})
    observer.observer = True
    assert (await desk().middleware(observer).run("hi")).text == "B"
    assert f"{name} of observer" in caplog.text


async def test_errors_are_told_of_where_they_happen() -> None:
    log: list[str] = []
    model = ScriptedModel(ConnectionError("no"), ConnectionError("no"))
    failing = Agent("a", model)
    pipeline = Agent("z").mock("Z") >> failing // Agent("b").mock("B")
    assert (await pipeline.middleware(noting(log)).run("hi")).text == "B"
    assert [each for each in log if "error" in each] == ["on_model_error", "on_agent_error"]
    log.clear()
    with pytest.raises(ConnectionError):
        await failing.middleware(noting(log)).run("hi")
    errors = [each for each in log if "error" in each]
    assert errors == ["on_model_error", "on_agent_error", "on_run_error"]


# --- stacks --------------------------------------------------------------------------------------


async def test_stacks_are_put_together_in_order() -> None:
    order: list[str] = []

    def tagged(tag: str) -> Any:
        async def before(ctx: Any, request: Any) -> None:
            order.append(tag)

        async def after(ctx: Any, response: Any) -> None:
            order.append(f"/{tag}")

        return made_of(before_model=before, after_model=after)

    pipeline = Agent("a").mock("A").middleware(tagged("builder"))
    config = ExecutionConfig(middlewares=[tagged("config")])
    await pipeline.run("hi", config=config, middleware=[tagged("run")])
    assert order == ["builder", "config", "run", "/run", "/config", "/builder"]
    order.clear()
    await pipeline.run("hi")
    assert order == ["builder", "/builder"]


async def test_each_run_has_an_instance_of_its_own_and_agents_in_tools_share_it() -> None:
    made: list[Any] = []

    class Counts:
        def __init__(self) -> None:
            self.calls = 0

        def new(self) -> Counts:
            made.append(Counts())
            return made[-1]

        async def before_model(self, ctx: Any, request: Any) -> None:
            self.calls += 1
            await asyncio.sleep(0)

    inner = Agent("inner").instruct("x").mock("I")
    model = ScriptedModel(
        default=lambda asked: (
            reply(Call("inner", {"request": "x"})) if asked.prompt == "hi" else "done"
        )
    )
    pipeline = Agent("a", model).agent_tool(inner).middleware(Counts())
    await asyncio.gather(*(pipeline.run("hi") for _ in range(3)))
    assert [each.calls for each in made] == [3, 3, 3]


async def test_a_resource_reaches_a_middleware() -> None:
    seen: list[Any] = []
    closed: list[str] = []

    async def uses(*_: Any) -> None:
        seen.append(injected("db"))

    async def wraps(call: Any, following: Any) -> Any:
        await uses()
        return await following(call)

    stack = made_of(before_model=uses, wrap_agent=wraps, before_tool=uses, wrap_run=wraps)
    db = Resource(lambda: "it", scope="invocation", cleanup=closed.append)
    await desk().middleware(stack).inject(db=db).run("hi")
    assert set(seen) == {"it"}
    assert len(seen) == 1 + 3 + 3 + 1  # the run, its steps, its model calls, its tool call
    assert closed == ["it"]


async def test_a_foreign_plugin_starves_nobody_and_is_not_starved() -> None:
    log: list[str] = []

    class Foreign(BasePlugin):
        async def before_agent_callback(self, **_: Any) -> None:
            log.append("foreign before_agent")

        async def after_model_callback(self, **_: Any) -> LlmResponse:
            log.append("foreign after_model")
            return says("theirs")

        async def after_run_callback(self, **_: Any) -> None:
            log.append("foreign after_run")

    app = Agent("a").mock("A").middleware(noting(log)).to_app(plugins=[Foreign(name="foreign")])
    events = await by_runner(app)
    assert text_of(events[-1].content) == "theirs"
    for hook in ("before_model", "after_model", "after_agent a", "after_run", "foreign after_run"):
        assert hook in log


async def test_one_that_was_built_by_hand_has_hooks_too() -> None:
    from google.adk.agents.llm_agent import LlmAgent

    log: list[str] = []
    native = LlmAgent(name="native", model=ScriptedModel("N"), instruction="x")
    await (Agent("a").mock("A") >> native).middleware(noting(log)).run("hi")
    assert "before_agent native" in log
    assert "wrap_model_call native" in log


async def test_a_pipeline_in_a_pipeline_is_part_of_the_same_run() -> None:
    log: list[str] = []
    inner = (Agent("c").mock("C") >> Agent("d").mock("D")).named("inner").to_agent()
    await (Agent("a").mock("A") >> inner).middleware(noting(log)).run("hi")
    assert [log.count(each) for each in ("before_run", "wrap_run", "after_run")] == [1, 1, 1]
    assert [each for each in log if each.startswith("before_agent")] == [
        *("before_agent pipeline", "before_agent a", "before_agent inner"),
        *("before_agent inner", "before_agent c", "before_agent d"),
    ]


# --- the plugin ----------------------------------------------------------------------------------


async def test_under_agents_built_by_hand_it_is_a_plugin_as_any_other() -> None:
    from google.adk.agents.llm_agent import LlmAgent

    log: list[str] = []
    native = LlmAgent(name="native", model=ScriptedModel("N"), instruction="x")
    runner = Runner(
        app_name="x",
        agent=native,
        plugins=[MiddlewarePlugin("mine", [noting(log)])],
        session_service=InMemorySessionService(),
    )
    session = await runner.session_service.create_session(app_name="x", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text="hi")])
    async with aclosing(
        runner.run_async(user_id="u", session_id=session.id, new_message=said)
    ) as events:
        async for _ in events:
            continue
    await runner.close()
    assert log == [
        *("on_user_message", "before_run", "before_agent native", "before_model", "after_model"),
        *("on_event", "after_agent native", "after_run", "close"),
    ]
