"""The few tools that a model is shown of many."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.tools import FunctionTool, LongRunningFunctionTool
from google.genai import types
from kit import SSE

from adk_fluent import Agent, Loop
from adk_fluent.errors import UsageError
from adk_fluent.middleware import ToolSelectorMiddleware, retry, tool_selector
from adk_fluent.protocol import Middleware
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, Thought, reply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kit import Measured

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import ModelCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),
]


class Shelf:
    """Ten tools, ``tool_0`` to ``tool_9``, and which of them were called."""

    def __init__(self, count: int = 10) -> None:
        self.called: list[str] = []
        self.tools = [self._tool(n) for n in range(count)]

    def _tool(self, n: int) -> FunctionTool:
        def function(x: str) -> str:
            self.called.append(f"tool_{n}")
            return f"{n} of {x}"

        function.__name__, function.__doc__ = f"tool_{n}", f"Does thing {n}."
        return FunctionTool(function)

    def on(self, model: Any, *middlewares: Any, more: Iterable[Any] = ()) -> Builder:
        made: Builder = Agent("clerk", model)
        for each in (*self.tools, *more):
            made = made.tool(each)
        for each in middlewares:
            made = made.middleware(each)
        return made


def picks(*names: str) -> str:
    return json.dumps({"tools": list(names)})


def shown(model: ScriptedModel) -> list[tuple[str, ...]]:
    """The tools that each call declared."""
    return [each.tools for each in model.calls]


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    small = ScriptedModel(picks("tool_7", "tool_2"))
    model, shelf = ScriptedModel(Call("tool_7", {"x": "a"}), "done"), Shelf()
    result = await shelf.on(model, tool_selector(max_tools=3, model=small)).run("do the seventh")
    assert result.text == "done"
    assert shown(model) == [("tool_2", "tool_7")] * 2
    assert shelf.called == ["tool_7"]
    (asked,) = small.calls
    assert "- tool_7: Does thing 7." in asked.prompt
    assert "user: do the seventh" in asked.prompt
    assert "at most 3" in asked.system
    assert asked.tools == ()
    assert metrics("adk_fluent.selector.choices", adk_fluent__outcome="chosen") == 1


async def test_streamed() -> None:
    """Over Gemini: it is sent only the declarations that were chosen."""
    with GeminiEmulator(picks("tool_1"), reply(chunks=["a", "b"])) as gemini:
        desk = Shelf().on(gemini.model(), tool_selector(max_tools=2))
        result = await desk.run("hi", config=SSE)
        assert result.text == "ab"
        assert [each.content for each in result if each.is_partial][:2] == ["a", "b"]
        choosing, answering = gemini.requests
        assert (choosing.tools, answering.tools) == ((), ("tool_1",))
        assert choosing.config["responseMimeType"] == "application/json"
        assert not choosing.stream


async def test_parallel_tools() -> None:
    """Calls of tools that are not shown run: ADK knows them."""
    shelf, small = Shelf(), ScriptedModel(picks("tool_1"))
    model = ScriptedModel(reply(Call("tool_1", {"x": "a"}), Call("tool_9", {"x": "b"})), "done")
    await shelf.on(model, tool_selector(max_tools=1, model=small)).run("hi")
    assert shown(model) == [("tool_1",)] * 2
    assert sorted(shelf.called) == ["tool_1", "tool_9"]


async def test_cancelled() -> None:
    """Who chooses may be cut off; the model is not called then."""
    model, small = ScriptedModel("done"), ScriptedModel(reply(picks("tool_1"), latency=60))
    running = asyncio.ensure_future(
        Shelf().on(model, tool_selector(max_tools=1, model=small)).run("hi")
    )
    async with asyncio.timeout(10):
        while not small.calls:  # noqa: ASYNC110  # models tell nobody
            await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.calls == ()


async def test_error_after_the_first_partial() -> None:
    with GeminiEmulator(picks("tool_1"), reply(chunks=["Half an ", "answer"], fault="cut")) as g:
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await Shelf().on(g.model(), tool_selector(max_tools=1)).run("hi", config=SSE)
        assert len(g.requests) == 2


async def test_concurrent() -> None:
    """Runs side by side, all with one middleware, choose each for itself."""
    small = ScriptedModel(default=lambda asked: picks(asked.prompt.rpartition("user: ")[2][:6]))
    shared = tool_selector(max_tools=1, model=small)
    models = [ScriptedModel("done") for _ in range(8)]
    await asyncio.gather(
        *(Shelf().on(model, shared).run(f"tool_{n}") for n, model in enumerate(models))
    )
    assert [shown(model) for model in models] == [[(f"tool_{n}",)] for n in range(8)]


# --- when it chooses -----------------------------------------------------------------------------


async def test_few_tools_are_left_alone() -> None:
    model, small = ScriptedModel("done"), ScriptedModel()
    await Shelf(3).on(model, tool_selector(max_tools=3, model=small)).run("hi")
    assert small.calls == ()
    assert len(shown(model)[0]) == 3


async def test_the_choice_stays_while_an_agent_answers_and_is_made_anew_after_that() -> None:
    small = ScriptedModel(picks("tool_1"), picks("tool_2"))
    call = Call("tool_1", {"x": "a"})
    model = ScriptedModel(call, call, "one", "two")
    desk = Shelf().on(model, tool_selector(max_tools=1, model=small))
    await desk.run("hi", session_id="s")
    await desk.run("again", session_id="s")
    assert shown(model) == [("tool_1",)] * 3 + [("tool_2",)]
    assert len(small.calls) == 2


async def test_an_agent_that_has_other_tools_by_now_is_chosen_for_again() -> None:
    small = ScriptedModel(picks("tool_1"), picks("more"))
    model = ScriptedModel(Call("tool_1", {"x": "a"}), "done")

    def more(x: str) -> str:
        """Does more."""
        return x

    def grow(callback_context: Any, llm_request: Any) -> None:
        if len(llm_request.contents) > 1:
            llm_request.append_tools([FunctionTool(more)])

    desk: Any = Shelf().on(model)
    middleware = tool_selector(max_tools=1, model=small)
    await desk.before_model(grow).middleware(middleware).run("hi")
    assert shown(model) == [("tool_1",), ("more",)]


async def test_each_round_of_a_loop_chooses() -> None:
    small = ScriptedModel(picks("tool_1"), picks("tool_2"))
    model = ScriptedModel("one", "two")
    loop = Loop("loop", Shelf().on(model), max=2)
    await loop.middleware(tool_selector(max_tools=1, model=small)).run("hi")
    assert shown(model) == [("tool_1",), ("tool_2",)]


async def test_nothing_is_left_behind_when_a_run_is_over() -> None:
    middleware = tool_selector(max_tools=1, model=ScriptedModel(picks("tool_1")))
    await Shelf().on(ScriptedModel("done"), middleware).run("hi")
    assert vars(middleware)["_chosen"] == {}


async def test_a_call_that_is_made_again_is_shown_the_same() -> None:
    small = ScriptedModel(picks("tool_1"))
    model = ScriptedModel(ConnectionError("reset"), "done")
    again = retry(backoff_base=0.0)
    await Shelf().on(model, again, tool_selector(max_tools=1, model=small)).run("hi")
    assert shown(model) == [("tool_1",)] * 2
    assert len(small.calls) == 1


# --- how it chooses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "no JSON",
        '{"tools": "tool_1"}',
        '{"names": ["tool_1"]}',
        '["tool_1"]',
        picks("unknown"),
        reply(),
        reply(error_code="SAFETY", error_message="blocked"),
        ConnectionError("reset"),
        reply(status=503),
    ],
)
async def test_if_the_choice_fails_all_tools_are_shown(
    said: Any, caplog: pytest.LogCaptureFixture, metrics: Measured
) -> None:
    model, small = ScriptedModel(Call("tool_1", {"x": "a"}), "done"), ScriptedModel(said)
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        result = await Shelf().on(model, tool_selector(max_tools=1, model=small)).run("hi")
    assert result.text == "done"
    assert [len(each) for each in shown(model)] == [10, 10]
    assert len(small.calls) == 1  # nor is the one who chooses asked in vain again
    assert "shows clerk all tools" in caplog.text
    assert metrics("adk_fluent.selector.choices", adk_fluent__outcome="failed") == 1


@pytest.mark.parametrize(
    ("said", "names"),
    [
        (f"```json\n{picks('tool_3')}\n```", ("tool_3",)),
        (picks("tool_3", "unknown"), ("tool_3",)),
        (picks("tool_9", "tool_9", "tool_3", "tool_1"), ("tool_3", "tool_9")),
        (picks(), ()),
    ],
)
async def test_what_is_made_of_a_choice(said: str, names: tuple[str, ...]) -> None:
    model = ScriptedModel("done")
    middleware = tool_selector(max_tools=2, model=ScriptedModel(said))
    await Shelf().on(model, middleware).run("hi")
    assert shown(model) == [names]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_may_choose(is_async: bool) -> None:
    seen: list[Any] = []

    def chosen(call: ModelCall, tools: Mapping[str, str]) -> list[str]:
        seen.append((call.agent, call.request.contents[-1].parts[0].text, tools["tool_4"]))
        return ["tool_4"]

    async def later(call: ModelCall, tools: Mapping[str, str]) -> list[str]:
        await asyncio.sleep(0)
        return chosen(call, tools)

    model = ScriptedModel("done")
    select: Any = later if is_async else chosen
    await Shelf().on(model, tool_selector(max_tools=2, select=select)).run("hi")
    assert shown(model) == [("tool_4",)]
    assert seen == [("clerk", "hi", "Does thing 4.")]


async def test_without_a_model_the_agents_own_chooses() -> None:
    model = ScriptedModel(picks("tool_5"), "done")
    await Shelf().on(model, tool_selector(max_tools=2)).run("hi")
    assert shown(model) == [(), ("tool_5",)]


async def test_a_model_may_be_named() -> None:
    with GeminiEmulator(picks("tool_5")) as gemini:
        model = ScriptedModel("done")
        with pytest.MonkeyPatch.context() as patched:
            for name, value in gemini.env.items():
                patched.setenv(name, value)
            middleware = tool_selector(max_tools=2, model="gemini-2.5-flash-lite")
            await Shelf().on(model, middleware).run("hi")
        assert [each.model for each in gemini.requests] == ["gemini-2.5-flash-lite"]
    assert shown(model) == [("tool_5",)]


async def test_the_conversation_is_told_in_order_and_without_thoughts() -> None:
    chooses = reply(Thought("Which one?"), picks("tool_1"))
    small = ScriptedModel(picks("tool_1"), chooses)
    first = reply(Thought("Hm."), Call("tool_1", {"x": "a"}))
    model = ScriptedModel(first, "It is 1.", "done")
    desk = Shelf().on(model, tool_selector(max_tools=1, model=small))
    await desk.run("first", session_id="s")
    await desk.run("second", session_id="s")
    told = small.calls[1].prompt.partition("<conversation>\n")[2].partition("\n</conversation>")[0]
    assert told.splitlines() == [
        "user: first",
        'model calls tool_1: {"x": "a"}',
        'tool_1 returns: {"result": "1 of a"}',
        "model: It is 1.",
        "user: second",
    ]
    assert shown(model) == [("tool_1",)] * 3


async def test_a_long_conversation_is_cut_at_its_beginning() -> None:
    small = ScriptedModel(picks("tool_1"))
    await (
        Shelf().on(ScriptedModel("done"), tool_selector(max_tools=1, model=small)).run("x" * 20_000)
    )
    assert len(small.calls[0].prompt) < 9_000


# --- what is always shown ------------------------------------------------------------------------


async def test_what_is_always_shown_does_not_count() -> None:
    model = ScriptedModel("done")
    small = ScriptedModel(picks("tool_1", "tool_2"))
    middleware = tool_selector(max_tools=2, always=["tool_9"], model=small)
    await Shelf().on(model, middleware).run("hi")
    assert shown(model) == [("tool_1", "tool_2", "tool_9")]
    assert "tool_9" not in small.calls[0].prompt


async def test_tools_of_adk_and_those_that_run_long_are_always_shown() -> None:
    def later(what: str) -> None:
        """Takes days."""

    model = ScriptedModel("done")
    middleware = tool_selector(max_tools=1, model=ScriptedModel(picks("tool_1")))
    desk: Any = Shelf().on(model, more=[LongRunningFunctionTool(later)])
    desk = desk.delegates(Agent("other", ScriptedModel()))
    await desk.middleware(middleware).run("hi")
    assert sorted(shown(model)[0]) == ["later", "tool_1", "transfer_to_agent"]


async def test_built_in_tools_and_shared_objects_are_left_alone() -> None:
    from adk_fluent.middleware._tools._selector_adk import show

    declared = [types.FunctionDeclaration(name=name) for name in ("a", "b")]
    mixed = types.Tool(function_declarations=declared, google_search=types.GoogleSearch())
    plain = types.Tool(function_declarations=list(declared))
    search = types.Tool(url_context=types.UrlContext())

    class Request:
        config = types.GenerateContentConfig(tools=[mixed, plain, search])

    request: Any = Request()
    show(request, lambda name: False)
    assert request.config.tools == [
        types.Tool(google_search=types.GoogleSearch()),
        types.Tool(url_context=types.UrlContext()),
    ]
    assert len(mixed.function_declarations or ()) == len(plain.function_declarations or ()) == 2


async def test_what_a_request_allows_by_name_stays() -> None:
    calling = types.FunctionCallingConfig(
        mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["tool_8"]
    )
    model = ScriptedModel("done")
    middleware = tool_selector(max_tools=1, model=ScriptedModel(picks("tool_1")))

    def allow(callback_context: Any, llm_request: Any) -> None:
        llm_request.config.tool_config = types.ToolConfig(function_calling_config=calling)

    desk: Any = Shelf().on(model)
    await desk.before_model(allow).middleware(middleware).run("hi")
    assert shown(model) == [("tool_1", "tool_8")]


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(ToolSelectorMiddleware(), Middleware)
    assert "always" in (tool_selector.DESC.config_schema or {})["properties"]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"max_tools": 0}, "max_tools"),
        ({"max_tools": "3"}, "max_tools"),
        ({"always": "tool"}, "always"),
        ({"model": ""}, "model"),
        ({"model": 3}, "model"),
        ({"model": ScriptedModel}, "model"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"tool_selector\({option}=\.\.\.\)") as caught:
        ToolSelectorMiddleware(**options)
    assert __file__ in str(caught.value)
