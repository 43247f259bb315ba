"""Functions that answer in the place of tools and models, below everything that stands around."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from adk_middlewares import content, made_of, says
from adk_programs import agent, by_runner, model_of, run
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # here in every version
)
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from adk_fluent import Agent
from adk_fluent.backends.adk import (
    announce_call,
    call_site,
    call_sites_of,
    in_place_of,
    to_app,
)
from adk_fluent.backends.adk._hooks._sites import is_site
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.protocol import ModelCall, ModelReply, ToolCall
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.events.event import Event

    from adk_fluent.protocol import NextModel, NextTool

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

SSE = ExecutionConfig(streaming_mode="sse")
STREAMED = RunConfig(streaming_mode=StreamingMode.SSE)


class FlapError(Exception):
    pass


class Sites(BasePlugin):
    """What a plugin of another layer does."""

    def __init__(self) -> None:
        super().__init__(name="sites")

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        call_sites_of(agent)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        announce_call(llm_request, callback_context)

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        call_site(tool)


class Notes(BasePlugin):
    """Notes what ADK tells plugins about calls."""

    def __init__(self, log: list[Any], recovers: Any = None) -> None:
        super().__init__(name="notes")
        self.log = log
        self.recovers = recovers

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        self.log.append(("before", tool.name, dict(tool_args)))

    async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
        self.log.append(("after", result))

    async def on_tool_error_callback(self, *, error: Exception, **_: Any) -> Any:
        self.log.append(("tool failed", error))
        return self.recovers

    async def on_model_error_callback(self, *, error: Exception, **_: Any) -> Any:
        self.log.append(("model failed", error))
        return self.recovers


def ping(word: str = "pong") -> str:
    """Answers."""
    raise AssertionError(f"the tool itself was called with {word}")


def real(word: str = "pong") -> str:
    """Answers."""
    return f"really {word}"


def gives(result: Any, seen: list[ToolCall] | None = None) -> Any:
    """Answers in the place of tools."""

    async def answer(call: ToolCall, next: NextTool) -> Any:
        if seen is not None:
            seen.append(call)
        return result

    return answer


def replies(text: str, seen: list[ModelCall] | None = None) -> Any:
    """Answers in the place of models."""

    async def answer(call: ModelCall, next: NextModel) -> ModelReply:
        if seen is not None:
            seen.append(call)
        return ModelReply([says(text)])

    return answer


def tag(name: str, log: list[str]) -> Any:
    async def answer(call: Any, next: Any) -> Any:
        log.append(f"{name} >")
        made = await next(call)
        log.append(f"{name} <")
        return made

    return answer


def user_of(*tools: Any, calls: Any = None, name: str = "a", **fields: Any) -> LlmAgent:
    model = ScriptedModel(calls or Call("ping"), "done")
    return LlmAgent(name=name, model=model, tools=list(tools), **fields)


async def hand_built(root: Any, *plugins: BasePlugin, **settings: Any) -> list[Event]:
    """Run an agent of ADK's own, with the plugin that makes call sites."""
    return await by_runner(App(name="x", root_agent=root, plugins=[Sites(), *plugins]), **settings)


async def compiled(program: Any, *plugins: BasePlugin, **settings: Any) -> list[Event]:
    """Run a pipeline of ours under ADK's Runner, with the plugin."""
    return await by_runner(to_app(program, plugins=[Sites(), *plugins]), **settings)


def results(events: list[Event]) -> list[Any]:
    return [each.response for event in events for each in event.get_function_responses()]


def texts(events: list[Event], *, partial: bool = False) -> list[str]:
    return [
        "".join(part.text or "" for part in event.content.parts or ())
        for event in events
        if event.content and bool(event.partial) is partial and not _calls_or_answers(event)
    ]


def _calls_or_answers(event: Event) -> bool:
    return bool(event.get_function_calls() or event.get_function_responses())


# --- tools ---------------------------------------------------------------------------------------


async def test_below_the_callbacks_of_the_agent_and_of_plugins() -> None:
    log: list[Any] = []

    def before(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        log.append(("agent before", args["word"]))
        args["word"] = "changed"

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> dict[str, Any]:
        log.append(("agent after", tool_response))
        return {"checked": tool_response}

    root = user_of(
        ping,
        calls=Call("ping", {"word": "x"}),
        before_tool_callback=before,
        after_tool_callback=after,
    )
    seen: list[ToolCall] = []
    with in_place_of(tools=gives({"mock": 1}, seen)):
        events = await hand_built(root, Notes(log))
    assert results(events) == [{"checked": {"mock": 1}}]
    assert [call.args for call in seen] == [{"word": "changed"}]
    assert log == [
        ("before", "ping", {"word": "x"}),
        ("agent before", "x"),
        ("after", {"mock": 1}),
        ("agent after", {"mock": 1}),
    ]


async def test_an_error_is_as_if_the_tool_had_raised_it() -> None:
    log: list[Any] = []
    error = FlapError("mock")

    async def fails(call: ToolCall, next: NextTool) -> Any:
        raise error

    with in_place_of(tools=fails):
        events = await hand_built(user_of(ping), Notes(log, recovers={"made": "good"}))
        assert results(events) == [{"made": "good"}]
        with pytest.raises(FlapError) as caught:
            await hand_built(user_of(ping))
    assert [each for each in log if each[0] == "tool failed"] == [("tool failed", error)]
    assert caught.value is error


@pytest.mark.parametrize("way", [hand_built, compiled])
async def test_what_a_call_says(way: Any) -> None:
    calls = Call("ping", {"word": "x"}, id="c1")
    program = user_of(ping, calls=calls) if way is hand_built else asks(calls)
    seen: list[ToolCall] = []
    with in_place_of(tools=gives("mock", seen)):
        events = await way(program)
    [call] = seen
    assert results(events) == [{"result": "mock"}]
    assert (call.name, call.args, call.call_id, call.agent) == ("ping", {"word": "x"}, "c1", "a")
    assert call.long_running is False
    assert isinstance(call.tool, FunctionTool)
    assert call.ctx.function_call_id == "c1"


def asks(*calls: Call, tool: Callable[..., Any] = ping, **fields: Any) -> Any:
    return agent("a", *(calls or (Call("ping"),)), "done", tools=[tool], **fields)


async def test_what_is_written_to_state_is_kept() -> None:
    async def writes(call: ToolCall, next: NextTool) -> Any:
        call.ctx.state["mocked"] = call.name
        return "mock"

    with in_place_of(tools=writes):
        events = await hand_built(user_of(ping))
    [delta] = [event.actions.state_delta for event in events if event.get_function_responses()]
    assert delta["mocked"] == "ping"


async def test_next_calls_the_tool_itself() -> None:
    async def other_word(call: ToolCall, next: NextTool) -> Any:
        return (await next(replace(call, args={"word": "other"}))).upper()

    with in_place_of(tools=other_word):
        assert results(await hand_built(user_of(real, calls=Call("real")))) == [
            {"result": "REALLY OTHER"}
        ]


@pytest.mark.parametrize("way", ["middlewares", "hand_built"])
async def test_nested_the_last_is_the_innermost(way: str) -> None:
    log: list[str] = []
    with in_place_of(tools=tag("one", log)), in_place_of(models=tag("model", log)):
        with in_place_of(tools=tag("two", log)):
            if way == "middlewares":
                await run_with(asks(Call("real"), tool=real), wrap_tool_call=tag("out", log))
            else:
                await hand_built(user_of(real, calls=Call("real")))
        around = ["out >", *ONION, "out <"] if way == "middlewares" else ONION
        assert [each for each in log if "model" not in each] == around
        assert log.count("model >") == 2
        log.clear()
        await hand_built(user_of(real, calls=Call("real")))
        assert [each for each in log if "model" not in each] == ["one >", "one <"]


ONION = ["one >", "two >", "two <", "one <"]


async def run_with(program: Any, config: ExecutionConfig | None = None, **hooks: Any) -> Any:
    """Run with one middleware that has these hooks."""
    config = config or ExecutionConfig()
    return await run(program, config=replace(config, middlewares=(made_of(**hooks),)))


async def test_an_inner_one_that_answers_lets_nothing_through() -> None:
    log: list[str] = []
    with in_place_of(tools=tag("one", log)), in_place_of(tools=gives("inner")):
        assert results(await hand_built(user_of(ping))) == [{"result": "inner"}]
    assert log == ["one >", "one <"]


async def again(call: Any, next: Any) -> Any:
    """Tries again, as a real middleware does."""
    for _ in range(2):
        try:
            return await next(call)
        except FlapError:
            continue
    return await next(call)


async def test_a_middleware_tries_again_what_a_mock_has_raised() -> None:
    left = [FlapError("1"), FlapError("2")]
    seen: list[ToolCall] = []

    async def flaky(call: ToolCall, next: NextTool) -> Any:
        seen.append(call)
        if left:
            raise left.pop()
        return "at last"

    program = asks(Call("ping", {"word": "x"}, id="c1"))
    with in_place_of(tools=flaky):
        result = await run_with(program, wrap_tool_call=again)
    assert [each.result for event in result for each in event.tool_responses] == [
        {"result": "at last"}
    ]
    assert [(call.call_id, call.agent, call.node) for call in seen] == [("c1", "a", program)] * 3
    assert {call.run for call in seen} == {result[0].run_id}


async def test_when_it_is_left_the_tool_itself_answers_again() -> None:
    tool = FunctionTool(real)

    def user() -> LlmAgent:
        return user_of(tool, calls=Call("real"))

    with in_place_of(tools=gives("mock")):
        assert results(await hand_built(user())) == [{"result": "mock"}]
    assert is_site(tool)
    assert results(await hand_built(user())) == [{"result": "really pong"}]
    with pytest.raises(FlapError), in_place_of(tools=gives("mock")):
        raise FlapError
    assert results(await hand_built(user())) == [{"result": "really pong"}]


async def test_tasks_do_not_see_each_other() -> None:
    tool = call_site(FunctionTool(real))

    async def one(word: str | None) -> Any:
        root = LlmAgent(name="a", model=ScriptedModel(Call("real"), "done"), tools=[tool])
        if word is None:
            return results(await hand_built(root))
        with in_place_of(tools=slow(word)):
            return results(await hand_built(root))

    def slow(word: str) -> Any:
        async def answer(call: ToolCall, next: NextTool) -> Any:
            await asyncio.sleep(0.001)
            return word

        return answer

    assert await asyncio.gather(one("x"), one(None), one("y")) == [
        [{"result": "x"}],
        [{"result": "really pong"}],
        [{"result": "y"}],
    ]


class Remote(BaseTool):
    """As an MCP tool is: no function behind it, and an answer of its own."""

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        raise AssertionError(args)


class Box(BaseToolset):
    """Makes its tools anew for each step."""

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [Remote(name="ping", description="x")]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: ping, "ping"),
        (lambda: FunctionTool(ping), "ping"),
        (lambda: Remote(name="ping", description="x"), "ping"),
        (Box, "ping"),
        (lambda: Box(tool_name_prefix="box"), "box_ping"),
    ],
    ids=["function", "function tool", "remote", "toolset", "prefixed"],
)
async def test_tools_of_every_kind(made: Any, name: str) -> None:
    seen: list[ToolCall] = []
    with in_place_of(tools=gives("mock", seen)):
        events = await hand_built(user_of(made(), calls=Call(name)))
    assert results(events) == [{"result": "mock"}]
    assert [call.name for call in seen] == [name]


async def test_several_calls_at_once() -> None:
    async def echo(call: ToolCall, next: NextTool) -> Any:
        await asyncio.sleep(0)
        return call.args["word"]

    calls = reply(*[Call("ping", {"word": str(n)}) for n in range(3)])
    with in_place_of(tools=echo):
        events = await hand_built(user_of(ping, calls=calls))
    assert results(events) == [{"result": str(n)} for n in range(3)]


@pytest.mark.parametrize("way", ["middlewares", "hand_built"])
async def test_a_long_running_tool_that_returns_none_stays_so(way: str) -> None:
    def later() -> str:
        """Takes long."""
        raise AssertionError

    tool = LongRunningFunctionTool(later)
    seen: list[ToolCall] = []
    with in_place_of(tools=gives(None, seen)):
        if way == "middlewares":
            node = Agent("a", ScriptedModel(Call("later", id="c1"))).tool(tool).to_ir()
            result = await run_with(node, wrap_tool_call=tag("m", []))
            assert [each.id for each in result.pending] == ["c1"]
        else:
            events = await hand_built(user_of(tool, calls=Call("later", id="c1")))
            assert results(events) == []
            assert any(event.long_running_tool_ids == {"c1"} for event in events)
    assert [call.long_running for call in seen] == [True]


# --- confirmations -------------------------------------------------------------------------------


def unless_x(word: str, **_: Any) -> bool:
    return word != "x"


async def unless_x_later(word: str) -> bool:
    return word != "x"


class Talk:
    """A conversation with an app, in one session."""

    def __init__(self, app: App) -> None:
        self.runner = InMemoryRunner(app=app)
        self.session: Any = None

    async def send(self, part: types.Part) -> list[Event]:
        sessions, name = self.runner.session_service, self.runner.app_name
        self.session = self.session or await sessions.create_session(app_name=name, user_id="u")
        message = types.Content(role="user", parts=[part])
        running = self.runner.run_async(
            user_id="u", session_id=self.session.id, new_message=message
        )
        async with aclosing(running) as events:
            return [event async for event in events]


def confirming(kind: str, asking: Any) -> App:
    model = ScriptedModel(Call("ping", {"word": "y"}), "done")
    if kind == "hand-built":
        root = LlmAgent(
            name="a", model=model, tools=[FunctionTool(ping, require_confirmation=asking)]
        )
        return App(name="x", root_agent=root, plugins=[Sites()])
    pipeline = Agent("a", model).tool(ping, require_confirmation=asking)
    if kind == "middlewares":
        pipeline = pipeline.middleware(made_of(wrap_tool_call=tag("m", [])))
    return pipeline.to_app(plugins=[Sites()])


@pytest.mark.parametrize("kind", ["hand-built", "compiled", "middlewares"])
@pytest.mark.parametrize("asking", [True, unless_x, unless_x_later])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_person_is_asked_first(kind: str, asking: Any, approved: bool) -> None:
    seen: list[ToolCall] = []
    talk = Talk(confirming(kind, asking))
    with in_place_of(tools=gives("mock", seen)):
        events = await talk.send(types.Part(text="hi"))
        [asked] = [
            call
            for event in events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        ]
        assert seen == []
        response = {"confirmed": approved}
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response=response)
        events = await talk.send(types.Part(function_response=answer))
    assert len(seen) == approved
    [result] = results(events)
    assert (result == {"result": "mock"}) is approved
    assert ("rejected" in str(result)) is not approved


@pytest.mark.parametrize("asking", [unless_x, unless_x_later])
async def test_who_need_not_be_asked_is_not(asking: Any) -> None:
    tool = FunctionTool(ping, require_confirmation=asking)
    with in_place_of(tools=gives("mock")):
        events = await hand_built(user_of(tool, calls=Call("ping", {"word": "x"})))
    assert results(events) == [{"result": "mock"}]


async def test_what_is_missing_is_said_by_a_tool_that_may_have_to_ask() -> None:
    def pay(order: str, amount: int) -> str:
        """Pays."""
        raise AssertionError

    def much(order: str, amount: int) -> bool:
        return amount > 9

    seen: list[ToolCall] = []
    with in_place_of(tools=gives("mock", seen)):
        calls = Call("pay", {"order": "A1"})
        tool = FunctionTool(pay, require_confirmation=much)
        if hasattr(tool, "check_require_confirmation"):  # ADK 2.x asks before, and that fails
            with pytest.raises(TypeError, match="amount"):
                await hand_built(user_of(tool, calls=calls))
        else:
            [result] = results(await hand_built(user_of(tool, calls=calls)))
            assert "amount" in result["error"]
    assert seen == []


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [hand_built, compiled])
async def test_a_model_is_answered_for(way: Any) -> None:
    seen: list[ModelCall] = []
    model = ScriptedModel()  # would raise
    root = LlmAgent(name="a", model=model) if way is hand_built else agent("a", model=model)
    with in_place_of(models=replies("mock", seen)):
        assert texts(await way(root)) == ["mock"]
    assert model.calls == ()
    [call] = seen
    assert (call.agent, call.stream, call.emitted) == ("a", False, False)
    assert isinstance(call.model, ScriptedModel)
    assert call.ctx.agent_name == "a"
    assert call.request.contents[0].parts[0].text == "hi"


async def test_a_model_of_middlewares_is_answered_for_innermost() -> None:
    log: list[str] = []
    seen: list[ModelCall] = []
    program = agent("a", "never")

    async def answer(call: ModelCall, next: NextModel) -> ModelReply:
        log.append("mock")
        seen.append(call)
        return ModelReply([says("mock")])

    with in_place_of(models=answer):
        result = await run_with(program, wrap_model_call=tag("m", log))
    assert (result.text, log, model_of(program).calls) == ("mock", ["m >", "mock", "m <"], ())
    assert (seen[0].agent, seen[0].node, seen[0].iteration) == ("a", program, 0)


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_a_middleware_tries_a_model_again(config: ExecutionConfig) -> None:
    left = [FlapError("1"), FlapError("2")]

    async def flaky(call: ModelCall, next: NextModel) -> ModelReply:
        if left:
            raise left.pop()
        return ModelReply([says("at last")])

    with in_place_of(models=flaky):
        result = await run_with(agent("a", "never"), config, wrap_model_call=again)
    assert result.text == "at last"


@pytest.mark.parametrize("mode", [None, STREAMED], ids=["whole", "streamed"])
async def test_an_error_is_as_if_the_model_had_raised_it(mode: Any) -> None:
    log: list[Any] = []
    error = FlapError("mock")

    async def fails(call: ModelCall, next: NextModel) -> ModelReply:
        raise error

    root = LlmAgent(name="a", model=ScriptedModel())
    with in_place_of(models=fails):
        notes = Notes(log, recovers=says("made good"))
        assert texts(await hand_built(root, notes, run_config=mode)) == ["made good"]
        with pytest.raises(FlapError) as caught:
            await hand_built(root, run_config=mode)
    assert log == [("model failed", error)]
    assert caught.value is error


async def test_without_an_announcement_the_labels_say_whose_call_it_is() -> None:
    seen: list[ModelCall] = []
    root = LlmAgent(name="desk", model=call_site(ScriptedModel()))
    with in_place_of(models=replies("mock", seen)):
        assert texts(await by_runner(root)) == ["mock"]
        assert [each async for each in root.canonical_model.generate_content_async(bare())]
    assert [(call.agent, call.ctx) for call in seen] == [("desk", None), ("", None)]


def bare(model: str = "m") -> LlmRequest:
    return LlmRequest(model=model, contents=[types.UserContent("hi")])


@pytest.mark.parametrize("order", [1, -1])
async def test_a_call_that_two_plugins_announce_counts_once(order: int) -> None:
    counts: list[int] = []

    async def noted(call: ModelCall, next: NextModel) -> ModelReply:
        counts.append(call.iteration)
        return await next(call)

    pipeline = Agent("a", ScriptedModel(Call("real"), "done")).tool(real)
    app = pipeline.middleware(made_of(wrap_model_call=noted)).to_app(plugins=[Sites()])
    app = app.model_copy(update={"plugins": app.plugins[::order]})
    with in_place_of(models=tag("m", [])):
        await by_runner(app)
    assert counts == [0, 1]


class Other(BaseLlm):
    """A model of another class, which answers by the name that the request has."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield says(f"{llm_request.model} by other")


@pytest.mark.parametrize("site", [True, False])
@pytest.mark.parametrize("way", ["hand_built", "middlewares"])
async def test_another_model_can_be_called(way: str, site: bool) -> None:
    other = Other(model="large")
    if site:
        call_site(other)
    requests: list[Any] = []

    async def replaced(call: ModelCall, next: NextModel) -> ModelReply:
        requests.append(call.request)
        return await next(replace(call, model=other))

    model = ScriptedModel(model="small")
    with in_place_of(models=tag("outer", [])), in_place_of(models=replaced):
        if way == "hand_built":
            assert texts(await hand_built(LlmAgent(name="a", model=model))) == ["large by other"]
        else:
            made = await run_with(agent("a", model=model), wrap_model_call=tag("m", []))
            assert made.text == "large by other"
    assert model.calls == ()
    assert [each.model for each in requests] == ["small"]  # those outside see nothing of it


async def test_a_name_that_a_function_has_put_in_the_request_stays() -> None:
    async def renamed(call: ModelCall, next: NextModel) -> ModelReply:
        call.request.model = "tuned"
        return await next(replace(call, model=Other(model="large")))

    with in_place_of(models=renamed):
        root = LlmAgent(name="a", model=ScriptedModel())
        assert texts(await hand_built(root)) == ["tuned by other"]


async def test_models_that_a_model_calls_are_part_of_its_call() -> None:
    inner = call_site(ScriptedModel(default="inner"))

    class Outer(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async with aclosing(inner.generate_content_async(llm_request, stream)) as responses:
                async for response in responses:
                    yield response

    log: list[str] = []
    with in_place_of(models=tag("m", log)):
        root = LlmAgent(name="a", model=Outer(model="outer"))
        assert texts(await hand_built(root)) == ["inner"]
    assert log == ["m >", "m <"]


async def test_what_functions_call_themselves_goes_straight() -> None:
    helper = call_site(ScriptedModel(default="helped"))

    async def ask_helper() -> str:
        async with aclosing(helper.generate_content_async(bare())) as responses:
            return texts_of([each async for each in responses])

    async def tool(call: ToolCall, next: NextTool) -> Any:
        return await ask_helper()

    async def model(call: ModelCall, next: NextModel) -> ModelReply:
        if call.agent == "":
            raise AssertionError
        await ask_helper()
        return await next(call)

    with in_place_of(tools=tool, models=model):
        events = await hand_built(user_of(ping))
    assert results(events) == [{"result": "helped"}]
    assert texts(events) == ["done"]
    assert len(helper.calls) == 3


def texts_of(responses: list[LlmResponse]) -> str:
    return "".join(
        part.text or "" for each in responses if each.content for part in each.content.parts or ()
    )


# --- streaming -----------------------------------------------------------------------------------

CHUNKS = reply(chunks=("one ", "two"))


@pytest.mark.parametrize("way", [hand_built, compiled])
async def test_fragments_of_the_model_go_out_as_they_come(way: Any) -> None:
    model = ScriptedModel(CHUNKS)
    root = LlmAgent(name="a", model=model) if way is hand_built else agent("a", model=model)
    done: list[str] = []

    async def noted(call: ModelCall, next: NextModel) -> ModelReply:
        assert call.stream
        made = await next(call)
        assert call.emitted
        done.append(texts_of(made.responses))
        return made

    with in_place_of(models=noted):
        events = await way(root, run_config=STREAMED)
    assert texts(events, partial=True) == ["one ", "two"]
    assert texts(events) == done == ["one two"]


async def test_a_fragment_is_seen_before_the_next_is_made() -> None:
    first = asyncio.Event()

    async def waits(call: ModelCall, next: NextModel) -> ModelReply:
        await call.emit(LlmResponse(content=content("one"), partial=True))
        await first.wait()
        return ModelReply([says("one two")])

    model = call_site(ScriptedModel())
    heard: list[str] = []
    with in_place_of(models=waits):
        async with aclosing(model.generate_content_async(bare(), stream=True)) as responses:
            async for response in responses:
                heard.append(texts_of([response]))
                first.set()
    assert heard == ["one", "one two"]


@pytest.mark.parametrize("way", ["hand_built", "middlewares"])
async def test_an_answer_without_the_model_is_whole(way: str) -> None:
    with in_place_of(models=replies("mock")):
        if way == "middlewares":
            made = await run_with(agent("a", "never"), SSE, wrap_model_call=tag("m", []))
            assert [(event.content, event.is_partial) for event in made] == [("mock", False)]
        else:
            root = LlmAgent(name="a", model=ScriptedModel())
            events = await hand_built(root, run_config=STREAMED)
            assert (texts(events, partial=True), texts(events)) == ([], ["mock"])


async def test_who_stops_reading_ends_the_call() -> None:
    ended: list[str] = []

    async def endless(call: ModelCall, next: NextModel) -> ModelReply:
        try:
            while True:
                await call.emit(LlmResponse(content=content("x"), partial=True))
                await asyncio.sleep(0)
        finally:
            ended.append("ended")

    model = call_site(ScriptedModel())
    with in_place_of(models=endless):
        async with aclosing(model.generate_content_async(bare(), stream=True)) as responses:
            async for _ in responses:
                break
    assert ended == ["ended"]


# --- agents that are tools -----------------------------------------------------------------------


def boss_of(*below: Any, include_plugins: bool = True) -> LlmAgent:
    expert = LlmAgent(
        name="expert",
        model=ScriptedModel(Call("ping"), "knows"),
        tools=list(below),
        description="knows",
    )
    tool = AgentTool(expert, include_plugins=include_plugins)
    model = ScriptedModel(Call("expert", {"request": "?"}), "done")
    return LlmAgent(name="boss", model=model, tools=[tool])


@pytest.mark.parametrize("include_plugins", [True, False])
@pytest.mark.parametrize(
    "below", [lambda: ping, lambda: FunctionTool(ping), Box], ids=["fn", "tool", "box"]
)
async def test_calls_of_an_agent_that_is_a_tool(below: Any, include_plugins: bool) -> None:
    tools: list[str] = []
    models: list[str] = []

    async def tool(call: ToolCall, next: NextTool) -> Any:
        tools.append(f"{call.agent}: {call.name}")
        return "mock" if call.name == "ping" else await next(call)

    async def model(call: ModelCall, next: NextModel) -> ModelReply:
        models.append(call.agent)
        return await next(call)

    with in_place_of(tools=tool, models=model):
        events = await hand_built(boss_of(below(), include_plugins=include_plugins))
    assert results(events) == [{"result": "knows"}]
    assert tools == ["boss: expert", "expert: ping"]
    assert models == ["boss", "expert", "expert", "boss"]


async def test_an_agent_that_is_a_tool_is_answered_for_itself() -> None:
    with in_place_of(tools=gives("mock")):
        assert results(await hand_built(boss_of(ping))) == [{"result": "mock"}]


async def test_an_agent_below_that_hands_over() -> None:
    """Nobody tells the plugin of what runs in there."""
    kid = LlmAgent(
        name="kid", model=ScriptedModel(Call("ping"), "kid knows"), tools=[ping], description="x"
    )
    expert = LlmAgent(
        name="expert",
        model=ScriptedModel(Call("transfer_to_agent", {"agent_name": "kid"})),
        sub_agents=[kid],
    )
    tool = AgentTool(expert, include_plugins=False)
    root = LlmAgent(
        name="boss", model=ScriptedModel(Call("expert", {"request": "?"}), "done"), tools=[tool]
    )
    models: list[str] = []

    async def answer(call: ToolCall, next: NextTool) -> Any:
        return "mock" if call.name == "ping" else await next(call)

    async def model(call: ModelCall, next: NextModel) -> ModelReply:
        models.append(call.agent)
        return await next(call)

    with in_place_of(tools=answer, models=model):
        assert results(await hand_built(root)) == [{"result": "kid knows"}]
    assert models == ["boss", "expert", "kid", "kid", "boss"]


async def test_an_agent_that_is_a_tool_in_a_pipeline_with_middlewares() -> None:
    log: list[str] = []

    async def tool(call: ToolCall, next: NextTool) -> Any:
        log.append(f"mock of {call.agent}: {call.name}")
        return "mock" if call.name == "ping" else await next(call)

    async def noted(call: ToolCall, next: NextTool) -> Any:
        log.append(f"m {call.name}")
        return await next(call)

    expert = agent("expert", Call("ping"), "knows", tools=[ping])
    boss = agent("boss", Call("expert", {"request": "?"}), "done", agent_tools=(expert,))
    with in_place_of(tools=tool):
        result = await run_with(boss, wrap_tool_call=noted)
    assert result.text == "done"
    assert log == ["m expert", "mock of boss: expert", "m ping", "mock of expert: ping"]


# --- models by name ------------------------------------------------------------------------------


@pytest.fixture
def gemini(monkeypatch: pytest.MonkeyPatch) -> list[BaseLlm]:
    """The models that have been called, instead of Google."""
    called: list[BaseLlm] = []

    async def answer(
        self: Gemini, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        called.append(self)
        yield says("hello")

    monkeypatch.setattr(Gemini, "generate_content_async", answer)
    return called


@pytest.mark.parametrize("name", ["gemini-2.5-flash", ""])
@pytest.mark.parametrize("inherits", [True, False])
async def test_a_model_by_name(gemini: list[BaseLlm], name: str, inherits: bool) -> None:
    seen: list[ModelCall] = []
    hands_over = Call("transfer_to_agent", {"agent_name": "kid"})

    async def answer(call: ModelCall, next: NextModel) -> ModelReply:
        seen.append(call)
        if call.agent == "boss":
            part = types.Part(
                function_call=types.FunctionCall(name=hands_over.name, args=dict(hands_over.args))
            )
            return ModelReply([LlmResponse(content=types.Content(role="model", parts=[part]))])
        return await next(call)

    kid = LlmAgent(name="kid", model="" if inherits else name, description="knows")
    boss = LlmAgent(name="boss", model=name, sub_agents=[kid])
    with in_place_of(models=answer):
        assert texts(await hand_built(boss)) == ["hello"]
    assert [call.agent for call in seen] == ["boss", "kid"]
    assert gemini == [seen[1].model]
    assert texts(await hand_built(kid.root_agent)) == ["hello"]  # and nothing is left behind


def test_a_model_from_above_is_one_site() -> None:
    kid = LlmAgent(name="kid")
    between = LlmAgent(name="between", sub_agents=[kid])
    top = LlmAgent(name="top", model="gemini-2.5-flash", sub_agents=[between])
    call_sites_of(kid)
    model = kid.canonical_model
    assert is_site(model)
    assert top.canonical_model is between.canonical_model is model
    assert (kid.model, between.model) == ("", "")
    call_sites_of(top)
    assert kid.canonical_model is model


# --- call sites ----------------------------------------------------------------------------------


def test_a_call_site_is_the_same_object() -> None:
    for thing in (FunctionTool(ping), ScriptedModel(), Remote(name="x", description="x")):
        assert call_site(thing) is call_site(thing) is thing
        assert is_site(thing)
    tool = AgentTool(LlmAgent(name="x", sub_agents=[LlmAgent(name="y")]))
    call_site(tool)
    assert is_site(tool.agent)
    assert is_site(tool.agent.sub_agents[0])


@pytest.mark.parametrize("thing", [42, ping, None, MagicMock(spec=BaseTool), LlmAgent(name="x")])
def test_what_is_no_call_is_no_call_site(thing: Any) -> None:
    with pytest.raises(UsageError, match="tools and models"):
        call_site(thing)


def test_only_agents_with_models_have_call_sites() -> None:
    other = BaseAgent(name="x", sub_agents=[kid := LlmAgent(name="kid", model=ScriptedModel())])
    call_sites_of(other)
    assert not is_site(other)
    assert not is_site(kid.canonical_model)


def test_where_nobody_answers_a_call_goes_straight_on() -> None:
    model = ScriptedModel("x")
    plain: Any = model.generate_content_async(bare())
    site: Any = call_site(model).generate_content_async(bare())
    with in_place_of(tools=gives("mock")):
        beside: Any = model.generate_content_async(bare())
    assert site.ag_code is beside.ag_code is plain.ag_code


def test_an_object_that_only_says_it_is_a_tool_is_left_alone() -> None:
    request = bare()
    double = MagicMock(spec=BaseTool)
    request.tools_dict = {"double": double, "tool": (tool := FunctionTool(ping))}
    with in_place_of(tools=gives("mock")):
        call_site(ScriptedModel()).generate_content_async(request)
    assert is_site(tool)
    assert isinstance(double, MagicMock)


# --- misuse --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [42, "ping", {"ping": 1}])
@pytest.mark.parametrize("name", ["tools", "models"])
def test_what_cannot_be_called_cannot_answer(name: str, given: Any) -> None:
    wrong: Any = {name: given}
    with pytest.raises(UsageError, match=rf"in_place_of\({name}="), in_place_of(**wrong):
        raise AssertionError


async def test_functions_are_async() -> None:
    def sync(call: Any, next: Any) -> Any:
        return {"answer": 42}

    wrong: Any = sync
    with in_place_of(tools=wrong), pytest.raises(UsageError, match="async function"):
        await hand_built(user_of(ping))
    with in_place_of(models=wrong), pytest.raises(UsageError, match="async function"):
        await hand_built(user_of(ping))


async def test_a_model_is_answered_for_by_a_reply() -> None:
    async def text(call: Any, next: Any) -> Any:
        return "hello"

    with in_place_of(models=text), pytest.raises(UsageError, match="returns a ModelReply"):
        await hand_built(user_of(ping))


async def test_nothing_given_is_nothing_done() -> None:
    with in_place_of():
        assert results(await hand_built(user_of(real, calls=Call("real")))) == [
            {"result": "really pong"}
        ]
