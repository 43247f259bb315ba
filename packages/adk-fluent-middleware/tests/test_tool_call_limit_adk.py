"""Limits of tool calls, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.tools import LongRunningFunctionTool
from kit import SSE, TWO_TOOLS, clerk, search, until

from adk_fluent import Agent, gate
from adk_fluent.errors import UsageError
from adk_fluent.middleware import (
    CallLimitError,
    ToolCallLimitMiddleware,
    tool_approval,
    tool_call_limit,
)
from adk_fluent.protocol import Middleware, classify
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

REFUSED = "This tool was not called and will not be again: its limit is reached."


class Tools:
    """Tools that take their time, and how often they were called."""

    def __init__(self, latency: float = 0.0) -> None:
        self.calls: list[str] = []
        self.latency = latency

    async def search(self, word: str) -> str:
        """Look something up."""
        self.calls.append(word)
        await asyncio.sleep(self.latency)
        return f"found {word}"

    async def other(self, word: str) -> str:
        """Do something else."""
        self.calls.append(word)
        return f"did {word}"


def searches(count: int, tool: str = "search") -> Any:
    """So many calls at the same time."""
    return reply(*(Call(tool, {"word": f"{tool}{n}"}) for n in range(count)))


def results(result: Any) -> list[Any]:
    return [each.result for event in result for each in event.tool_responses]


def refused(result: Any) -> int:
    return sum(each == {"error": REFUSED} for each in results(result))


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    tools = Tools()
    model = ScriptedModel(*[searches(1)] * 5, default="done")
    limit = tool_call_limit(per_run=3)
    with pytest.raises(
        CallLimitError, match="search is not called: the calls of this run"
    ) as caught:
        await Agent("a", model).tool(tools.search).middleware(limit).run("hi")
    assert len(tools.calls) == 3
    assert (caught.value.limit, caught.value.node) == (3, "a")
    assert classify(caught.value) == "permanent"
    what = {"adk_fluent__limit": "tool_call_limit", "gen_ai__tool__name": "search"}
    assert metrics("adk_fluent.limit.denials", **what) == 1


async def test_streamed() -> None:
    """Each call has a result, so that Gemini takes the history; what is said is streamed."""
    limit = tool_call_limit(per_run=1, on_exceeded="stop")
    with GeminiEmulator(TWO_TOOLS[0], reply(chunks=["do", "ne"])) as gemini:
        result = await clerk(gemini, limit).run("hi", config=SSE)
        assert result.text == "done"
        assert [each.content for each in result if each.is_partial and each.content] == ["do", "ne"]
        told = [each["response"] for each in gemini.requests[1].results]
    assert told == [{"result": "found x"}, {"error": REFUSED}]


@pytest.mark.parametrize("left", [0, 1, 3, 7, 8, 9])
async def test_parallel_tools(left: int) -> None:
    """Exactly as many calls are made as are left, and every one has a result."""
    tools = Tools(latency=0.01)
    limit = tool_call_limit(per_run=left, on_exceeded="stop")
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    with GeminiEmulator(searches(8), "done", "Hello again.") as gemini:
        pipeline = Agent("a", gemini.model()).tool(tools.search).middleware(limit)
        result = await pipeline.run("hi", **job)
        assert result.text == "done"
        assert len(results(result)) == 8
        assert len(tools.calls) == min(left, 8)
        assert refused(result) == 8 - min(left, 8)
        assert (await pipeline.run("And now?", **job)).text == "Hello again."


async def test_cancelled() -> None:
    """A call that was cut off was made."""
    tools = Tools(latency=60)
    limit = tool_call_limit(per_session=1)
    pipeline = (
        Agent("a", ScriptedModel(*[searches(1)] * 3, default="done"))
        .tool(tools.search)
        .middleware(limit)
    )
    running = asyncio.ensure_future(pipeline.run("hi", session_id="s1"))
    await until(lambda: bool(tools.calls))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(CallLimitError, match="this session"):
        await pipeline.run("hi", session_id="s1")
    assert len(tools.calls) == 1


async def test_error_after_the_first_partial() -> None:
    """A stream that breaks calls no tools; one that calls some and breaks then has called them."""
    tools = Tools()
    limit = tool_call_limit(per_session=2)
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(searches(1), half, half, searches(1), "done", searches(1)) as gemini:
        pipeline = Agent("a", gemini.model()).tool(tools.search).middleware(limit)
        for _ in range(2):
            with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
                await pipeline.run("hi", session_id="s1", config=SSE)
        assert (await pipeline.run("hi", session_id="s1")).text == "done"
        with pytest.raises(CallLimitError, match="this session"):
            await pipeline.run("hi", session_id="s1")
    assert len(tools.calls) == 2


async def test_concurrent() -> None:
    """Branches share what a run may; runs at the same time have it each for themselves."""
    tools = Tools(latency=0.01)
    limit = tool_call_limit(per_run=3, on_exceeded="stop")

    def branch(name: str) -> Builder:
        model = ScriptedModel(rules=[rule("[result search", reply="done")], default=searches(2))
        return Agent(name, model).tool(tools.search)

    pipeline = (branch("a") | branch("b") | branch("c")).middleware(limit)
    made = await asyncio.gather(*(pipeline.run("hi") for _ in range(3)))
    assert [refused(each) for each in made] == [3, 3, 3]
    assert len(tools.calls) == 9


# --- whose calls are counted together ------------------------------------------------------------


async def test_single_tools_have_limits_of_their_own() -> None:
    tools = Tools()
    model = ScriptedModel(
        searches(2), searches(2, "other"), searches(1), searches(1, "other"), "done"
    )
    limit = tool_call_limit(tools={"search": 1, "other": 4}, per_run=3, on_exceeded="stop")
    agent = Agent("a", model).tool(tools.search).tool(tools.other)
    result = await agent.middleware(limit).run("hi")
    assert tools.calls == ["search0", "other0", "other1"]
    assert refused(result) == 3
    with pytest.raises(CallLimitError, match="the calls of search in this run") as caught:
        await (
            Agent("a", ScriptedModel(searches(1)))
            .tool(tools.search)
            .middleware(tool_call_limit(tools={"search": 0}))
            .run("hi")
        )
    assert caught.value.limit == 0


async def test_a_session_is_counted_on_by_another_process() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    tools = Tools()
    for n in (2, 3, 3):
        limit = tool_call_limit(per_session=3, on_exceeded="stop")
        pipeline = Agent("a", ScriptedModel(searches(2), "done")).tool(tools.search)
        result = await pipeline.middleware(limit).run("hi", **job)
        assert result.state["adk_fluent_tool_calls"] == {"search": n}
    assert len(tools.calls) == 3


async def test_a_run_that_waited_for_an_answer_goes_on_counting() -> None:
    sessions = InMemorySessionService()
    tools = Tools()

    def pipeline() -> Builder:  # another process has all of it anew, but for the session
        first = Agent("a", ScriptedModel(searches(2), "A")).tool(tools.search)
        second = Agent("b", ScriptedModel(searches(2), "B")).tool(tools.search)
        made = (first >> gate(message="Go on?", name="go") >> second).named("desk")
        return made.middleware(tool_call_limit(per_run=3, on_exceeded="stop"))

    job: Any = {"session_id": "s1", "session_service": sessions}
    asked = await pipeline().run("hi", **job)
    done = await pipeline().resume(asked.pending[0].answer(True), **job)
    assert done.text == "B"
    assert len(tools.calls) == 3


async def test_agents_in_tools_call_tools_of_the_run() -> None:
    tools = Tools()
    expert = Agent("expert", ScriptedModel(searches(2), "an answer")).tool(tools.search)
    model = ScriptedModel(Call("expert", {"request": "x"}), searches(1), "done")
    pipeline = Agent("a", model).agent_tool(expert).tool(tools.search)
    result = await pipeline.middleware(tool_call_limit(per_run=3, on_exceeded="stop")).run("hi")
    assert result.text == "done"
    assert len(tools.calls) == 2  # and the expert itself is the third
    assert refused(result) == 1


async def test_tools_in_threads_are_counted_exactly() -> None:
    """Of runs in two event loops, which share a session's account."""
    limit = tool_call_limit(per_session=5, on_exceeded="stop")
    tools = [Tools(0.01), Tools(0.01)]

    def work(mine: Tools) -> None:
        pipeline = Agent("a", ScriptedModel(searches(4), "done")).tool(mine.search)
        asyncio.run(pipeline.middleware(limit).run("hi", session_id="s1"))

    threads = [threading.Thread(target=work, args=(each,)) for each in tools]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(len(each.calls) for each in tools) == 5


# --- tools that are unlike others ----------------------------------------------------------------


async def test_a_tool_that_takes_its_time_is_not_waited_for_when_it_was_not_called() -> None:
    begun: list[str] = []

    def order(what: str) -> None:
        """Order something; it comes later."""
        begun.append(what)

    limit = tool_call_limit(tools={"order": 0}, on_exceeded="stop")
    with GeminiEmulator(Call("order", {"what": "ink"}), "I cannot.") as gemini:
        pipeline = Agent("a", gemini.model()).tool(LongRunningFunctionTool(order))
        result = await pipeline.middleware(limit).run("hi")
        assert (result.text, result.pending, begun) == ("I cannot.", [], [])
        assert gemini.requests[1].results[0]["response"] == {"error": REFUSED}


async def test_a_question_whether_to_call_is_no_call() -> None:
    """A person is asked, and the call that is made then is the first one."""
    tools = Tools()
    limit = tool_call_limit(per_session=1, on_exceeded="stop")
    agent = Agent("a", ScriptedModel(searches(1), "done", "late"))
    pipeline = agent.tool(tools.search, require_confirmation=True).middleware(limit)
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    asked = await pipeline.run("hi", **job)
    assert tools.calls == []
    done = await pipeline.resume(asked.pending[0].answer(True), **job)
    assert (tools.calls, refused(done)) == (["search0"], 0)


async def test_a_tool_that_failed_was_called() -> None:
    def search(word: str) -> str:
        """Look something up."""
        raise ValueError(word)

    limit = tool_call_limit(per_session=1)
    pipeline = (
        Agent("a", ScriptedModel(*[searches(1)] * 3, default="done")).tool(search).middleware(limit)
    )
    with pytest.raises(ValueError, match="search0"):
        await pipeline.run("hi", session_id="s1")
    with pytest.raises(CallLimitError):
        await pipeline.run("hi", session_id="s1")


@pytest.mark.parametrize("limits", [{"per_run": 0}, {"per_session": 0}, {"tools": {"x": 0}}])
async def test_handing_over_is_no_work(limits: Any) -> None:
    b = Agent("b", ScriptedModel("B")).instruct("Answer.")
    a = Agent("a", ScriptedModel(Call("transfer_to_agent", {"agent_name": "b"}))).delegates(b)
    desk = a.middleware(tool_call_limit(**limits)).allow("MDW003")
    assert (await desk.run("hi")).text == "B"


async def test_handing_over_counts_where_it_is_named() -> None:
    b = Agent("b", ScriptedModel("B")).instruct("Answer.")
    a = Agent("a", ScriptedModel(Call("transfer_to_agent", {"agent_name": "b"}))).delegates(b)
    with pytest.raises(CallLimitError, match="transfer_to_agent"):
        await a.middleware(tool_call_limit(tools={"transfer_to_agent": 0})).run("hi")


# --- what it is given ----------------------------------------------------------------------------


async def test_the_model_is_told_what_one_wants() -> None:
    tools = Tools()
    limit = tool_call_limit(per_run=0, on_exceeded="stop", message="Ask a colleague.")
    model = ScriptedModel(searches(1), "done")
    result = await Agent("a", model).tool(tools.search).middleware(limit).run("hi")
    assert results(result) == [{"error": "Ask a colleague."}]


def test_it_is_a_middleware() -> None:
    made = ToolCallLimitMiddleware(tools={"search": 2})
    assert isinstance(made, Middleware)
    assert (made.per_run, made.per_session, made.on_exceeded) == (None, None, "error")


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"per_run": -1}, "per_run"),
        ({"per_run": "3"}, "per_run"),
        ({"per_session": 1.5}, "per_session"),
        ({"tools": {"a": -1}}, "tools"),
        ({"tools": ["a"]}, "tools"),
        ({"per_run": 1, "on_exceeded": "end"}, "on_exceeded"),
        ({"per_run": 1, "state_key": ""}, "state_key"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"tool_call_limit\({option}=\.\.\.\)") as caught:
        ToolCallLimitMiddleware(**options)
    assert __file__ in str(caught.value)


def test_no_limit_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="no limit"):
        tool_call_limit()


# --- around a part -------------------------------------------------------------------------------


async def test_a_part_is_counted_over_the_runs_of_a_session() -> None:
    limit = tool_call_limit(per_session=1, on_exceeded="stop")
    results: list[Any] = []
    for _ in range(2):
        model = ScriptedModel(Call("search", {"word": "x"}), "done")
        part = Agent("a", model).tool(search).middleware(limit, scope="agent")
        result = await (part >> Agent("b").mock("B")).named("desk").run("hi", session_id="s1")
        results += [each.result for event in result for each in event.tool_responses]
    assert [sorted(each) for each in results] == [["result"], ["error"]]


async def test_a_part_that_waits_goes_on_counting() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    model = ScriptedModel(
        *(Call("search", {"word": "x"}), Call("search", {"word": "y"}), "done"), default="ok"
    )

    def pipeline() -> Builder:  # another process has all of it anew, but for the session
        limit = tool_call_limit(per_run=1, on_exceeded="stop")
        part = Agent("a", model).tool(search).middleware(tool_approval(), limit, scope="agent")
        return (part >> Agent("b").mock("B")).named("desk")

    result = await pipeline().run("hi", **job)
    said: list[Any] = []
    while result.pending:
        answers = [each.answer(True) for each in result.pending]
        result = await pipeline().resume(*answers, **job)
        said += [each.result for event in result for each in event.tool_responses]
    assert {"result": "found x"} in said
    assert {"result": "found y"} not in said
