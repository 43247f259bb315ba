"""Call sites: the onion around model and tool calls, and objects that stay what they were."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
import pickle
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import agent, built, by_runner, model_of, par, run, seq
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # here in every version
)
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from adk_fluent.backends._tables import Pass, PassList
from adk_fluent.backends.adk import ADKBackend, CompileContext, to_agent, to_app
from adk_fluent.backends.adk._hooks._plugin import NAME, MiddlewarePlugin
from adk_fluent.backends.adk._hooks._sites import is_site, make_site
from adk_fluent.backends.adk._lowering import _compile as compiling
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, ExecutionConfig, Node, Ref, ToolSpec
from adk_fluent.protocol import ModelCall, ModelReply, ToolCall
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from google.adk.models.llm_request import LlmRequest

pytestmark = pytest.mark.adk

SSE = ExecutionConfig(streaming_mode="sse")


class FlapError(Exception):
    pass


class Trace:
    """Notes every call that passes; each run has an instance of its own."""

    def __init__(self, tag: str, log: list[Any], made: list[Any] | None = None) -> None:
        self.tag, self.log, self.made = tag, log, made

    def new(self) -> Trace:
        fresh = Trace(self.tag, self.log, self.made)
        if self.made is not None:
            self.made.append(fresh)
        return fresh

    async def wrap_model_call(self, call: ModelCall, next: Any) -> ModelReply:
        self.log.append(f"{self.tag} > {call.agent} {call.iteration}")
        made = await next(call)
        self.log.append(f"{self.tag} < {call.agent}")
        return made

    async def wrap_tool_call(self, call: ToolCall, next: Any) -> Any:
        self.log.append(f"{self.tag} > {call.name}")
        result = await next(call)
        self.log.append(f"{self.tag} < {call.name} {result}")
        return result


class Only:
    """A middleware made of one or two functions."""

    def __init__(self, model: Any = None, tool: Any = None) -> None:
        if model is not None:
            self.wrap_model_call = model
        if tool is not None:
            self.wrap_tool_call = tool


class Retry:
    """Tries again, as a real one does."""

    async def wrap_model_call(self, call: ModelCall, next: Any) -> ModelReply:
        for attempt in range(3):
            try:
                return await next(call)
            except FlapError:
                if call.emitted or attempt == 2:
                    raise
        raise AssertionError

    async def wrap_tool_call(self, call: ToolCall, next: Any) -> Any:
        for attempt in range(3):
            try:
                return await next(call)
            except FlapError:
                if attempt == 2:
                    raise
        raise AssertionError


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts middlewares around what is compiled from now on, as a layer's pass would."""

    def install(*stack: Any) -> None:
        def register(root: Node, cx: CompileContext) -> Node:
            for middleware in stack:
                cx.add_middleware(middleware)
            return root

        passes: PassList[CompileContext] = PassList()
        passes.add(Pass("toy", register))
        monkeypatch.setattr(compiling, "passes", passes)

    return install


def ping(word: str = "pong") -> str:
    """Answers."""
    return word


def tool_user(*calls: Call, name: str = "a", **fields: Any) -> AgentNode:
    return agent(name, *(calls or (Call("ping"),)), "done", tools=[ping], **fields)


# --- nothing to do -------------------------------------------------------------------------------


def test_what_cannot_wait_and_has_no_middleware_has_no_plugin() -> None:
    assert to_app(AgentNode("a", model="gemini-2.5-flash")).plugins == []


async def test_without_middlewares_there_is_no_site() -> None:
    seen: list[Any] = []

    class Look(BasePlugin):
        async def before_tool_callback(self, **kwargs: Any) -> None:
            manager = kwargs["tool_context"]._invocation_context.plugin_manager
            seen.append([type(each) for each in manager.plugins])

    program = tool_user()
    app = to_app(program, plugins=[Look(name="look")])
    await by_runner(app)
    assert seen == [[MiddlewarePlugin, Look]]  # which lets the answers of tools in at the root
    root: Any = app.root_agent
    (made,) = root.sub_agents
    assert made.model is model_of(program)
    assert not any(is_site(tool) for tool in made.tools)


# --- the onion -----------------------------------------------------------------------------------


async def test_the_first_middleware_is_the_outermost(around: Any) -> None:
    log: list[Any] = []
    around(Trace("out", log), Trace("in", log))
    result = await run(tool_user())
    assert result.text == "done"
    assert log == [
        "out > a 0",
        "in > a 0",
        "in < a",
        "out < a",
        "out > ping",
        "in > ping",
        "in < ping pong",
        "out < ping pong",
        "out > a 1",
        "in > a 1",
        "in < a",
        "out < a",
    ]


async def test_iterations_count_from_the_start_of_each_run_of_an_agent(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    model = ScriptedModel(default="x")
    await run(seq(agent("a", model=model), agent("b", model=model), agent("a", model=model)))
    assert [line for line in log if ">" in line] == ["m > a 0", "m > b 0", "m > a 0"]


async def test_a_call_knows_where_it_comes_from(around: Any) -> None:
    calls: list[Any] = []

    async def model(call: ModelCall, next: Any) -> ModelReply:
        calls.append(call)
        return await next(call)

    async def tool(call: ToolCall, next: Any) -> Any:
        calls.append(call)
        return await next(call)

    around(Only(model, tool))
    program = tool_user(Call("ping", {"word": "x"}, id="c1"))
    result = await run(program)
    first, used, second = calls
    assert first.agent == used.agent == "a"
    assert first.node is used.node is program
    assert first.run == used.run == second.run == result[0].run_id
    assert isinstance(first.model, ScriptedModel)
    assert first.stream is False
    assert first.ctx.agent_name == "a"
    assert (used.name, used.args, used.call_id, used.long_running) == (
        "ping",
        {"word": "x"},
        "c1",
        False,
    )
    assert isinstance(used.tool, FunctionTool)


async def test_a_reply_can_be_given_without_the_model(around: Any) -> None:
    async def cached(call: ModelCall, next: Any) -> ModelReply:
        content = types.Content(role="model", parts=[types.Part(text="cached")])
        return ModelReply([LlmResponse(content=content)])

    around(Only(cached))
    a = agent("a")
    assert (await run(a)).text == "cached"
    assert model_of(a).calls == ()


async def test_requests_arguments_results_and_state_can_be_changed(around: Any) -> None:
    async def model(call: ModelCall, next: Any) -> ModelReply:
        call.request.config.system_instruction = "changed"
        call.ctx.state["seen"] = (call.ctx.state.get("seen") or 0) + 1
        return await next(call)

    async def tool(call: ToolCall, next: Any) -> Any:
        call.args["word"] = "changed"
        return (await next(call)).upper()

    around(Only(model, tool))
    program = tool_user()
    result = await run(program)
    assert result.state == {"seen": 2}
    assert [r.result for e in result for r in e.tool_responses] == [{"result": "CHANGED"}]
    assert {asked.system for asked in model_of(program).calls} == {"changed"}


async def test_each_run_has_fresh_middlewares(around: Any) -> None:
    made: list[Any] = []
    around(Trace("m", [], made))
    backend = ADKBackend()
    compiled = backend.compile(tool_user_forever())
    await asyncio.gather(*[backend.run(compiled, "hi") for _ in range(3)])
    assert len(made) == 3


def tool_user_forever() -> AgentNode:
    return agent("a", model=ScriptedModel(default="x"))


async def test_an_agent_of_parallel_branches_may_share_a_model(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    model = ScriptedModel(default="x", latency=0.005)
    await run(par(*[agent(f"a{n}", model=model) for n in range(4)]))
    assert sorted(log) == sorted(
        [f"m > a{n} 0" for n in range(4)] + [f"m < a{n}" for n in range(4)]
    )
    assert len(model.calls) == 4


# --- retry and errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_a_model_call_can_be_tried_again(around: Any, config: ExecutionConfig) -> None:
    around(Retry())
    a = agent("a", FlapError("1"), FlapError("2"), "at last")
    result = await run(a, config=config)
    assert result.text == "at last"
    assert len(model_of(a).calls) == 3


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_errors_of_models_keep_their_type(around: Any, config: ExecutionConfig) -> None:
    around(Retry(), Trace("m", []))
    a = agent("a", *[FlapError(str(n)) for n in range(3)])
    with pytest.raises(FlapError, match="2"):
        await run(a, config=config)


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_errors_of_middlewares_keep_their_type(around: Any, config: ExecutionConfig) -> None:
    async def broken(call: ModelCall, next: Any) -> ModelReply:
        raise FlapError("mine")

    around(Only(broken))
    with pytest.raises(FlapError, match="mine"):
        await run(agent("a"), config=config)


async def test_a_tool_call_can_be_tried_again(around: Any) -> None:
    around(Retry())
    failures = [FlapError("1"), FlapError("2")]

    def flaky() -> str:
        """Fails twice."""
        if failures:
            raise failures.pop()
        return "ok"

    result = await run(agent("a", Call("flaky"), "done", tools=[flaky]))
    assert [r.result for e in result for r in e.tool_responses] == [{"result": "ok"}]


async def test_errors_of_tools_keep_their_type(around: Any) -> None:
    around(Retry())

    def broken() -> str:
        """Fails."""
        raise FlapError("always")

    with pytest.raises(FlapError, match="always"):
        await run(agent("a", Call("broken"), "done", tools=[broken]))


async def test_plugins_and_callbacks_stand_outside_the_onion(around: Any) -> None:
    log: list[str] = []
    around(Trace("m", log))

    class Other(BasePlugin):
        async def before_model_callback(self, **kwargs: Any) -> None:
            log.append("plugin before")

        async def after_model_callback(self, **kwargs: Any) -> None:
            log.append("plugin after")

        async def on_model_error_callback(self, **kwargs: Any) -> None:
            log.append("plugin error")

    def before(callback_context: Any, llm_request: Any) -> None:
        log.append("agent before")

    a = agent("a", callbacks=(("before_model", (Ref.to(before),)),))
    await by_runner(to_app(a, plugins=[Other(name="other")]))
    assert log == ["plugin before", "agent before", "m > a 0", "m < a", "plugin after"]


# --- streaming -----------------------------------------------------------------------------------


async def test_fragments_go_out_while_the_call_runs(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    a = agent("a", reply(chunks=("one ", "two"), pause=0.005))
    backend = ADKBackend()
    async with aclosing(backend.stream(backend.compile(a, SSE), "hi")) as events:
        first = await anext(events)
        assert (first.content, first.is_partial) == ("one ", True)
        assert log == ["m > a 0"]
        rest = [(e.content, e.is_partial) async for e in events]
    assert rest == [("two", True), ("one two", False)]
    assert log == ["m > a 0", "m < a"]


async def test_what_has_begun_to_stream_is_not_started_again(around: Any) -> None:
    class Breaks(BaseLlm):
        calls: int = 0

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            calls.append(1)
            content = types.Content(role="model", parts=[types.Part(text="par")])
            yield LlmResponse(content=content, partial=True)
            raise FlapError("mid")

    calls: list[int] = []
    around(Retry())
    with pytest.raises(FlapError, match="mid"):
        await run(agent("a", model=Breaks(model="m")), config=SSE)
    assert calls == [1]


async def test_a_model_is_some_fragments_ahead_of_its_reader_and_no_more(around: Any) -> None:
    sent: list[int] = []

    async def chatty(call: ModelCall, next: Any) -> ModelReply:
        for word in range(100):
            sent.append(word)
            content = types.Content(role="model", parts=[types.Part(text=str(word))])
            await call.emit(LlmResponse(content=content, partial=True))
        return await next(call)

    around(Only(chatty))
    backend = ADKBackend()
    async with aclosing(backend.stream(backend.compile(agent("a"), SSE), "hi")) as events:
        assert (await anext(events)).content == "0"
        await asyncio.sleep(0.01)
        assert len(sent) <= 40  # 2.x takes one event ahead of the reader
        rest = [e.content async for e in events]
        assert rest[:99] == [str(word) for word in range(1, 100)]


@pytest.mark.parametrize("config", [ExecutionConfig(), SSE], ids=["whole", "streamed"])
async def test_a_time_limit_may_stand_inside(around: Any, config: ExecutionConfig) -> None:
    async def limited(call: ModelCall, next: Any) -> ModelReply:
        async with asyncio.timeout(0.02):
            return await next(call)

    around(Only(limited))
    with pytest.raises(TimeoutError):
        await run(agent("a", model=ScriptedModel(default="x", latency=5)), config=config)


async def test_closing_early_ends_the_call_and_leaves_no_task(around: Any) -> None:
    ended: list[str] = []

    async def watched(call: ModelCall, next: Any) -> ModelReply:
        try:
            return await next(call)
        finally:
            ended.append("closed")

    around(Only(watched))
    a = agent("a", reply(chunks=("one ", "two", "three"), pause=5))
    backend = ADKBackend()
    stream = backend.stream(backend.compile(a, SSE), "hi")
    await anext(stream)
    await stream.aclose()
    assert ended == ["closed"]
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_early_after_it_has_failed_is_the_end_of_it(around: Any) -> None:
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))

    async def fails(call: ModelCall, next: Any) -> ModelReply:
        content = types.Content(role="model", parts=[types.Part(text="one")])
        await call.emit(LlmResponse(content=content, partial=True))
        raise ConnectionError("cut")

    around(Only(fails))
    backend = ADKBackend()
    stream = backend.stream(backend.compile(agent("a"), SSE), "hi")
    assert (await anext(stream)).content == "one"
    await stream.aclose()
    gc.collect()
    assert told == []


# --- every place where a call is made ------------------------------------------------------------


async def test_agents_that_are_tools_pass_through_the_same_middlewares(around: Any) -> None:
    log: list[Any] = []
    made: list[Any] = []
    around(Trace("m", log, made))
    expert = agent("expert", Call("ping"), "knows", tools=[ping])
    boss = agent("boss", Call("expert", {"request": "?"}), "done", agent_tools=(expert,))
    assert (await run(boss)).text == "done"
    assert log == [
        "m > boss 0",
        "m < boss",
        "m > expert",
        "m > expert 0",
        "m < expert",
        "m > ping",
        "m < ping pong",
        "m > expert 1",
        "m < expert",
        "m < expert knows",
        "m > boss 1",
        "m < boss",
    ]
    assert len(made) == 1


async def test_delegates_take_part_with_an_inherited_model(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    kid = AgentNode("kid", description="knows")
    boss = agent(
        "boss", Call("transfer_to_agent", {"agent_name": "kid"}), "from kid", delegates=(kid,)
    )
    assert (await run(boss)).text == "from kid"
    assert [line for line in log if "> kid" in line] == ["m > kid 0"]


async def test_built_agents_take_part_and_stay_as_they_were(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    tool = FunctionTool(ping)
    model = ScriptedModel(Call("ping"), "done")
    mine = LlmAgent(name="mine", model=model, tools=[tool, ping])
    await run(built(mine))
    assert log[:3] == ["m > mine 0", "m < mine", "m > ping"]
    assert not is_site(model)
    assert not is_site(tool)
    assert getattr(mine, "tools") == [tool, ping]  # noqa: B009  # half typed by ADK


async def test_tools_of_toolsets_take_part(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))

    class Box(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            return [FunctionTool(ping)]

        async def close(self) -> None:
            log.append("closed")

    model = ScriptedModel(Call("box_ping"), "done")
    box = Box(tool_name_prefix="box")
    a = AgentNode("a", model=Ref.to(model), tools=(ToolSpec(Ref(box, "box")),))
    assert (await run(a)).text == "done"
    assert "m > box_ping" in log
    assert log[-1] == "closed"


async def test_a_model_known_by_name_takes_part(
    around: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[Any] = []
    around(Trace("m", log))

    async def answer(
        self: Gemini, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="hello")]))

    monkeypatch.setattr(Gemini, "generate_content_async", answer)
    for name in ("gemini-2.5-flash", None):
        log.clear()
        assert (await run(AgentNode("a", model=name))).text == "hello"
        assert log == ["m > a 0", "m < a"]


async def test_long_running_tools_run_once_and_say_so(around: Any) -> None:
    seen: list[bool] = []

    async def watch(call: ToolCall, next: Any) -> Any:
        seen.append(call.long_running)
        return await next(call)

    around(Only(tool=watch))

    def later() -> None:
        """Takes long."""

    tool = ToolSpec(Ref(LongRunningFunctionTool(later), "later"))
    a = agent("a", Call("later", id="c1")).replace(tools=(tool,))
    result = await run(seq(a, agent("never")))
    assert seen == [True]
    assert [p.id for p in result.pending] == ["c1"]
    assert "never" not in {e.author for e in result}


async def test_a_tool_that_returns_none_runs_once(around: Any) -> None:
    ran: list[int] = []
    around(Trace("m", []))

    def void() -> None:
        """Nothing."""
        ran.append(1)

    await run(agent("a", Call("void"), "done", tools=[void]))
    assert ran == [1]


async def test_models_called_elsewhere_are_not_wrapped(around: Any) -> None:
    """A model that calls another one, as ADK's FallbackModel does, is one call."""
    log: list[Any] = []
    around(Trace("m", log))
    inner = make_site(ScriptedModel(default="inner"))

    class Outer(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            async with aclosing(inner.generate_content_async(llm_request, stream)) as responses:
                async for response in responses:
                    yield response

    assert (await run(agent("a", model=Outer(model="outer")))).text == "inner"
    assert log == ["m > a 0", "m < a"]


async def test_runs_without_middlewares_beside_those_with_are_untouched(around: Any) -> None:
    log: list[Any] = []
    shared = ScriptedModel(default="x")
    plain = ADKBackend().compile(agent("b", model=shared))
    around(Trace("m", log))
    wrapped = ADKBackend().compile(agent("a", model=shared))
    backend = ADKBackend()
    await asyncio.gather(backend.run(wrapped, "1"), backend.run(plain, "2"))
    assert log == ["m > a 0", "m < a"]


# --- the plugin ----------------------------------------------------------------------------------


async def test_the_app_has_our_plugin_first(around: Any) -> None:
    around(Trace("m", []))
    other = BasePlugin(name="other")
    plugins = to_app(agent("a"), plugins=[other]).plugins
    assert [each.name for each in plugins] == [NAME, "other"]


async def test_a_bare_root_agent_brings_the_plugin_along(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    root = to_agent(tool_user())
    await by_runner(root)
    assert log[:3] == ["m > a 0", "m < a", "m > ping"]


async def test_the_plugin_is_installed_once_for_all_runs_of_a_runner(around: Any) -> None:
    from google.adk.apps.app import App
    from google.adk.runners import InMemoryRunner

    log: list[Any] = []
    around(Trace("m", log))
    runner = InMemoryRunner(app=App(name="x", root_agent=to_agent(tool_user_forever())))
    for _ in range(2):
        session = await runner.session_service.create_session(app_name="x", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="hi")])
        running = runner.run_async(user_id="u", session_id=session.id, new_message=message)
        async with aclosing(running) as events:
            assert [e.author async for e in events] == ["a"]
    assert log == ["m > a 0", "m < a"] * 2
    ours = [p for p in runner.plugin_manager.plugins if isinstance(p, MiddlewarePlugin)]
    assert len(ours) == 1


async def test_somebody_elses_plugin_manager_is_left_as_it_is(around: Any) -> None:
    from google.adk.apps.app import App
    from google.adk.plugins.plugin_manager import PluginManager
    from google.adk.runners import InMemoryRunner

    log: list[Any] = []

    class Own(PluginManager):
        async def run_after_model_callback(self, **kwargs: Any) -> Any:
            log.append("asked")
            return await super().run_after_model_callback(**kwargs)

    around(Trace("m", log))
    runner = InMemoryRunner(app=App(name="x", root_agent=to_agent(agent("a"))))
    runner.plugin_manager = Own(runner.plugin_manager.plugins)
    session = await runner.session_service.create_session(app_name="x", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    running = runner.run_async(user_id="u", session_id=session.id, new_message=message)
    async with aclosing(running) as events:
        assert [e.author async for e in events] == ["a"]
    assert log == ["m > a 0", "m < a", "asked"]


async def test_an_inner_flow_stands_in_the_outer_ones_middlewares(around: Any) -> None:
    log: list[Any] = []
    around(Trace("inner", log))
    inner = to_agent(agent("a"))
    around(Trace("outer", log))
    await run(seq(built(inner), agent("b")))
    assert log == [
        "outer > a 0",
        "inner > a 0",
        "inner < a",
        "outer < a",
        "outer > b 0",
        "outer < b",
    ]


async def test_streaming_under_a_foreign_runner(around: Any) -> None:
    log: list[Any] = []
    around(Trace("m", log))
    root = to_agent(agent("a", reply(chunks=("one ", "two"))))
    events = await by_runner(root, run_config=RunConfig(streaming_mode=StreamingMode.SSE))
    assert [e.partial for e in events] == [True, True, False]
    assert log == ["m > a 0", "m < a"]


@pytest.mark.parametrize("thing", [42, "x", Trace, ping])
def test_what_is_no_middleware_is_refused(around: Any, thing: Any) -> None:
    around(thing)
    with pytest.raises(UsageError, match="no middleware"):
        to_app(agent("a"))


async def test_a_pass_may_add_one_with_any_hook(around: Any) -> None:
    seen: list[str] = []

    class Sees:
        async def before_agent(self, ctx: Any, agent_name: str) -> None:
            seen.append(agent_name)

    around(Sees())
    await run(agent("a", "A"))
    assert seen == ["a"]


# --- objects stay what they were -----------------------------------------------------------------


class Slotted(BaseTool):
    __slots__ = ("extra",)

    def __init__(self) -> None:
        super().__init__(name="slotted", description="x")
        self.extra: list[Any] = [1]

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return self.extra


def objects() -> list[Any]:
    return [
        FunctionTool(ping),
        LongRunningFunctionTool(ping),
        AgentTool(LlmAgent(name="x")),
        Slotted(),
        Gemini(model="gemini-2.5-flash"),
        ScriptedModel("x"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_site_is_of_its_own_type(number: int) -> None:
    thing = objects()[number]
    kind: type[Any] = thing.__class__
    before = dict(thing.__dict__)
    site = make_site(thing)
    assert site is thing
    assert is_site(site)
    assert isinstance(site, kind)
    assert (type(site).__name__, type(site).__module__) == (kind.__name__, kind.__module__)
    assert type(site).__qualname__ == kind.__qualname__
    assert site.__dict__ == before
    assert type(make_site(site)).__mro__.count(kind) == 1
    assert type(make_site(objects()[number])) is type(site)


@pytest.mark.parametrize("number", range(6))
def test_copies_of_a_site_are_sites(number: int) -> None:
    site = make_site(objects()[number])
    for twin in (copy.copy(site), copy.deepcopy(site)):
        assert twin is not site
        assert type(twin) is type(site)
        assert twin.name == site.name if isinstance(site, BaseTool) else twin.model == site.model
    if isinstance(site, Slotted):
        assert copy.copy(site).extra is site.extra
        assert copy.deepcopy(site).extra == [1]
        assert copy.deepcopy(site).extra is not site.extra
    if isinstance(site, BaseLlm):
        assert type(site.model_copy()) is type(site)
        assert type(site.model_copy(deep=True)) is type(site)


@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_site_is_pickled_as_what_it_was(number: int) -> None:
    thing = objects()[number]
    loaded = pickle.loads(pickle.dumps(make_site(objects()[number])))
    assert type(loaded) is type(thing)
    assert b"adk_fluent" not in pickle.dumps(make_site(objects()[4]))


def test_a_copy_of_something_that_holds_itself() -> None:
    tool = Slotted()
    tool.extra = [tool]
    twin = copy.deepcopy(make_site(tool))
    assert twin.extra == [twin]


def test_nothing_is_logged_by_making_sites(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for thing in objects():
            make_site(thing)
    assert caplog.records == []
