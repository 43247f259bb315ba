"""Middlewares around a part of a pipeline: all in it passes through them, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import SSE, made_of, noting, says
from adk_programs import by_runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent import Agent, FanOut, gate
from adk_fluent._middlewares import register_middleware, unregister_middleware
from adk_fluent.config import ExecutionConfig
from adk_fluent.contracts import check_all
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import MiddlewareRef, from_json, registry_of, to_json
from adk_fluent.protocol import HOOKS_OF_RUNS, AgentEvent, Middleware, MiddlewareDesc
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from adk_fluent.protocol import (
        AgentCall,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        RunCall,
    )

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


class Models:
    """Notes which agents call their models."""

    def __init__(self) -> None:
        self.agents: list[str] = []

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.agents.append(call.agent)
        return await next(call)


def said(name: str) -> Agent:
    return Agent(name).mock(name.upper())


async def test_one_agent_alone_passes_through_it() -> None:
    log = Models()
    pipeline = said("a") >> said("b").middleware(log, scope="agent") >> said("c")
    assert (await pipeline.run("hi")).text == "C"
    assert log.agents == ["b"]


async def test_a_whole_part_passes_through_it() -> None:
    log = Models()
    part = (said("b") >> said("c") * 2).middleware(log, scope="agent")
    await (said("a") >> part >> said("d")).run("hi")
    assert log.agents == ["b", "c", "c"]


async def test_parallel_branches_have_each_their_own() -> None:
    left, right = Models(), Models()
    both = FanOut(
        said("a").middleware(left, scope="agent"), said("b").middleware(right, scope="agent")
    )
    await both.run("hi")
    assert (left.agents, right.agents) == (["a"], ["b"])


async def test_inner_ones_stand_inside_outer_ones_and_those_inside_the_run() -> None:
    order: list[str] = []

    def named(name: str) -> Any:
        async def wrap_model_call(call: ModelCall, next: NextModel) -> ModelReply:
            order.append(name)
            return await next(call)

        return made_of(wrap_model_call=wrap_model_call)

    inner = said("a").middleware(named("agent"), scope="agent")
    inner = inner.middleware(named("inside"), scope="agent")
    part = (inner >> said("b")).middleware(named("part"), scope="agent")
    await part.middleware(named("run")).run("hi")
    assert order == ["run", "part", "agent", "inside", "run", "part"]


async def test_all_hooks_but_those_of_runs_are_asked() -> None:
    log: list[str] = []
    model = ScriptedModel(Call("ping", {"word": "hi"}), "done")

    def ping(word: str) -> str:
        """Answers."""
        return word

    inside = Agent("b", model).tool(ping).middleware(noting(log), scope="agent")
    await (said("a") >> inside >> said("c")).run("hi")
    hooks = {each.partition(" ")[0] for each in log}
    assert hooks.isdisjoint(HOOKS_OF_RUNS)
    assert {"before_agent", "wrap_agent", "after_agent", "on_event"} <= hooks
    assert {"before_model", "wrap_model_call", "after_model"} <= hooks
    assert {"before_tool", "wrap_tool_call", "after_tool"} <= hooks
    assert not any(each.endswith((" a", " c")) for each in log)
    assert log.count("on_event") == 3  # the call, its result, the answer


async def test_what_its_hooks_write_is_kept() -> None:
    around = noting([], state=True)
    result = await (said("a").middleware(around, scope="agent") >> said("b")).run("hi")
    assert {"before_agent", "after_agent", "before_model", "after_model"} <= set(result.state)


async def test_steps_inside_are_enclosed_and_others_not() -> None:
    names: list[str] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        names.append(call.name)
        made = await next(call)
        return replace(made, text=f"<{made.text}>") if call.name == "b" else made

    around: Any = made_of(wrap_agent=wrap_agent)
    part = (said("b") >> said("c")).named("part").middleware(around, scope="agent")
    result = await (said("a") >> part).run("hi")
    assert names == ["part", "b", "c"]
    assert [each.content for each in result if each.content] == ["A", "B", "<B>", "C"]


async def test_events_of_the_part_alone_can_be_changed() -> None:
    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        return replace(event, content=f"{event.content}!") if event.content else None

    around: Any = made_of(on_event=on_event)
    result = await (said("a") >> said("b").middleware(around, scope="agent") >> said("c")).run("hi")
    assert [each.content for each in result if each.content] == ["A", "B!", "C"]


async def test_each_run_has_an_instance_of_its_own() -> None:
    class Counts:
        made: list[Counts] = []  # noqa: RUF012  # of the test

        def __init__(self) -> None:
            self.calls = 0

        def new(self) -> Counts:
            Counts.made.append(Counts())
            return Counts.made[-1]

        async def before_model(self, ctx: Any, request: Any) -> None:
            self.calls += 1

    pipeline = (said("a") >> said("b")).middleware(Counts(), scope="agent")
    await asyncio.gather(pipeline.run("hi"), pipeline.run("hi"))
    assert [each.calls for each in Counts.made] == [2, 2]


async def test_delegates_and_agents_that_are_tools() -> None:
    delegated, tooled, above = Models(), Models(), Models()
    specialist = Agent("specialist").mock("from the specialist")
    helper = Agent("helper").mock("helped")
    model = ScriptedModel(
        Call("helper", {"request": "x"}),
        Call("transfer_to_agent", {"agent_name": "specialist"}),
    )
    clerk = (
        Agent("clerk", model)
        .agent_tool(helper.middleware(tooled, scope="agent"))
        .delegates(specialist.middleware(delegated, scope="agent"))
    )
    result = await clerk.middleware(above, scope="agent").run("hi")
    assert result.text == "from the specialist"
    assert (delegated.agents, tooled.agents) == (["specialist"], ["helper"])
    assert above.agents == ["clerk", "helper", "clerk", "specialist"]


async def test_what_it_answers_stays_in_the_part() -> None:
    async def before_model(ctx: Any, request: Any) -> Any:
        return says("instead")

    around: Any = made_of(before_model=before_model)
    pipeline = said("a").middleware(around, scope="agent") >> said("b")
    result = await pipeline.run("hi")
    assert [each.content for each in result if each.content] == ["instead", "B"]


async def test_a_run_that_waits_goes_on_inside_it() -> None:
    log = Models()
    part = (said("a") >> gate(message="Go on?") >> said("b")).middleware(log, scope="agent")
    pipeline = part >> said("c")
    service = InMemorySessionService()
    first = await pipeline.run("hi", session_service=service, session_id="s")
    again = await pipeline.resume(
        first.pending[0].answer(True), session_service=service, session_id="s"
    )
    assert again.text == "C"
    assert log.agents == ["a", "b"]


async def test_streamed() -> None:
    log = Models()
    model = ScriptedModel(reply(chunks=["do", "ne"]))
    pipeline = Agent("a", model).middleware(log, scope="agent") >> said("b")
    result = await pipeline.run("hi", config=SSE)
    assert [each.content for each in result if each.is_partial][:2] == ["do", "ne"]
    assert log.agents == ["a"]


@pytest.mark.parametrize("way", ["run", "app", "agent"])
async def test_however_it_is_run(way: str) -> None:
    log = Models()
    pipeline = said("a") >> said("b").middleware(log, scope="agent")
    if way == "run":
        await pipeline.run("hi")
    else:
        await by_runner(pipeline.to_app() if way == "app" else pipeline.to_agent())
    assert log.agents == ["b"]


def test_a_part_stays_whole() -> None:
    """What passes through a middleware of its own does not melt into the pipeline around it."""
    part = (said("a") >> said("b")).middleware(Models(), scope="agent")
    text = (part >> said("c")).explain()
    assert "middleware Models" in text
    assert check_all(part >> said("c")).ok


def test_a_copy_has_it_too_and_what_was_made_before_has_not() -> None:
    agent = said("a")
    before = agent >> said("b")
    agent.middleware(Models(), scope="agent")
    assert "Models" not in before.explain()
    assert "Models" in agent.clone("other").explain()
    assert "Models" in (agent >> said("b")).explain()


def test_written_down_and_read_again() -> None:
    node = (said("a") >> said("b").middleware(Models(), scope="agent")).to_ir()
    again = from_json(to_json(node), registry=registry_of(node))
    assert again == node


def test_hooks_of_runs_alone_are_refused() -> None:
    async def before_run(ctx: Any) -> None: ...

    def see_event(ctx: Any, event: Any) -> None: ...

    around: Any = made_of(before_run=before_run)
    with pytest.raises(UsageError, match="hooks of whole runs only") as caught:
        said("a").middleware(around, scope="agent")
    assert __file__ in str(caught.value)
    looks: Any = made_of(before_run=before_run, see_event=see_event)
    assert said("a").middleware(looks, scope="agent")


class Wary:
    """Stands around whole runs only, whatever its hooks are."""

    async def before_model(self, ctx: Any, request: Any) -> None: ...

    def refuses_scope(self) -> str | None:
        return "wary() looks at whole runs"


def test_one_that_refuses_to_stand_around_a_part_is_refused_where_it_is_given() -> None:
    with pytest.raises(UsageError, match="looks at whole runs") as caught:
        said("a").middleware(Wary(), scope="agent")
    assert __file__ in str(caught.value)
    assert said("a").middleware(Wary()).ask("hi") == "A"


async def test_one_that_is_named_and_refuses_is_refused_where_it_is_made() -> None:
    register_middleware(MiddlewareDesc("wary", "Looks.", Wary))
    try:
        part = said("a").middleware(MiddlewareRef("wary"), scope="agent")
        with pytest.raises(UsageError, match="looks at whole runs"):
            await (part >> said("b")).run("hi")
    finally:
        unregister_middleware("wary")


async def test_each_is_told_once_that_a_run_begins_and_of_the_place_of_calls() -> None:
    begun: list[tuple[str, str, Any, bool]] = []
    runs: list[str] = []
    paths: dict[str, str] = {}
    ended: list[tuple[str, type]] = []

    class Told:
        def __init__(self) -> None:
            self.run = ""

        def new(self) -> Told:
            return Told()

        def begin_run(self, call: RunCall) -> None:
            self.begin_part("", call)

        def end_run(self, status: str, error: BaseException | None) -> None:
            ended.append((status, type(error)))

        def begin_part(self, name: str, call: RunCall) -> None:
            self.run = call.run
            whose = f"{call.app_name}/{call.user_id}/{call.session_id}"
            begun.append((name, whose, call.ctx.session.state.get("seen"), call.resumed))

        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            runs.extend((self.run, call.run))
            paths[call.agent] = call.path
            call.ctx.state["seen"] = True
            return await next(call)

    part = (said("a") >> gate(message="Go on?") >> said("b")).named("part")
    pipeline = part.middleware(Told(), scope="agent") >> said("c").middleware(Told())
    job: Any = {"session_service": InMemorySessionService(), "session_id": "s"}
    first = await pipeline.run("hi", **job)
    second = await pipeline.resume(first.pending[0].answer(True), **job)
    whose = f"{ExecutionConfig().app_name}/user/s"
    assert begun == [
        ("", whose, None, False),
        ("part", whose, None, False),
        ("", whose, True, True),
        ("part", whose, True, True),
    ]
    assert ended == [("waiting", type(None)), ("completed", type(None))]
    assert len(set(runs)) == 1
    assert paths == {e.node: e.path for e in (*first, *second) if e.author in "abc"}


async def test_each_is_told_how_a_run_ends_that_is_cancelled() -> None:
    ended: list[tuple[str, type]] = []
    waits = asyncio.Event()

    class Told(Middleware):
        def end_run(self, status: str, error: BaseException | None, /) -> None:
            ended.append((status, type(error)))

    async def stay(state: Any) -> None:
        waits.set()
        await asyncio.Event().wait()

    running = asyncio.create_task((said("a") >> stay).middleware(Told()).run("hi"))
    await waits.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stream = said("a").middleware(Told()).stream("hi")
    async for _ in stream:
        break
    await stream.aclose()
    assert ended == [("cancelled", asyncio.CancelledError), ("cancelled", GeneratorExit)]


def test_a_wrong_scope_is_refused() -> None:
    scope: Any = "everything"
    with pytest.raises(UnknownNameError, match="scope is one of"):
        said("a").middleware(Models(), scope=scope)
