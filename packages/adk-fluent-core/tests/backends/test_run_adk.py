"""Running on ADK: events, state, sessions, ends of every kind, and ADK's own ways of running."""

from __future__ import annotations

import asyncio
import copy
import gc
import sqlite3
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import (
    agent,
    built,
    by_runner,
    each,
    fallback,
    fn,
    loop,
    model_of,
    par,
    race,
    raiser,
    run,
    seq,
    within,
    writer,
)
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it off our tools
from google.genai import types

from adk_fluent.backends._tables import Pass, PassList
from adk_fluent.backends.adk import ADKBackend, CompileContext, to_agent, to_app, to_runner
from adk_fluent.backends.adk._lowering import _compile as compiling
from adk_fluent.errors import (
    AgentReportedError,
    ExpectationError,
    SessionStoreError,
    UnknownNameError,
    UsageError,
)
from adk_fluent.ir import (
    AgentNode,
    ExecutionConfig,
    ExpectNode,
    Location,
    Match,
    Node,
    Ref,
    RouteNode,
    TapNode,
    ToolSpec,
    TransferNode,
    TransformNode,
)
from adk_fluent.protocol import AgentEvent, Backend, Usage
from adk_fluent.testing import Call, ScriptedModel, reply, rule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator
    from pathlib import Path

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.base_session_service import BaseSessionService

pytestmark = pytest.mark.adk


class BoomError(Exception):
    pass


class Scripted(BaseAgent):
    """An agent that does what it is told, as an agent of the user's would."""

    act: Any

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for fields in self.act(ctx):
            event = Event(author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch)
            for name, value in fields.items():
                setattr(event, name, value)
            yield event


def scripted(name: str, act: Any) -> Node:
    return built(Scripted(name=name, act=act))


def says(text: str, **delta: Any) -> dict[str, Any]:
    return {
        "content": types.Content(role="model", parts=[types.Part(text=text)]),
        "actions": EventActions(state_delta=delta),
    }


def slow(
    name: str,
    seconds: float = 30.0,
    ended: list[str] | None = None,
    begun: asyncio.Event | None = None,
) -> Node:
    async def act(ctx: InvocationContext) -> AsyncIterator[dict[str, Any]]:
        if begun is not None:
            begun.set()
        try:
            await asyncio.sleep(seconds)
            yield says(name, **{name: True})
        finally:
            if ended is not None:
                ended.append(name)

    return scripted(name, act)


async def no_task_left() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- what comes back -----------------------------------------------------------------------------


async def test_a_run_gives_text_state_usage_and_session() -> None:
    first = agent("a", reply("A", usage=None), writes="x")
    result = await run(seq(first, fn("f", lambda s: {"y": s["x"] * 2}), agent("b", "B")), "hi")
    assert result.text == "B"
    assert result.state == {"x": "A", "y": "AA"}
    assert result.session_id
    assert (result.user_id, result.app_name) == ("user", "adk_fluent_app")
    assert result.errors == []
    assert result.pending == []


async def test_events_carry_position_node_and_run() -> None:
    a, b = agent("a"), agent("b")
    result = await run(seq(a, par(b, loop(writer("w", n=1), 2)), name="pipe"))
    assert [(e.path, e.node, e.author) for e in result] == [
        ("s0", "a", "a"),
        *sorted(
            [
                ("s1.p0", "b", "b"),
                ("s1.p1.l0", "w", "pipe"),
                ("s1.p1.l1", "w", "pipe"),
            ],
            key=[(e.path, e.node, e.author) for e in result].index,
        ),
    ]
    assert {e.branch for e in result} == {None, "par.b", "par.loop"}
    assert len({e.run_id for e in result}) == 1
    assert {e.attempt is None for e in result if e.path == "s0"} == {True}
    assert all(e.attempt for e in result if e.path != "s0")


async def test_every_run_has_an_identity_of_its_own() -> None:
    backend = ADKBackend()
    program = backend.compile(agent("a"))
    first = await backend.run(program, "1", session_id="s")
    second = await backend.run(program, "2", session_id="s")
    assert first[0].run_id != second[0].run_id


async def test_every_kind_of_step_runs_on_adk() -> None:
    seen: list[Any] = []

    def look(state: Any) -> None:
        seen.append(state["n"])

    program = seq(
        writer("items", items=["x", "y"], go="left"),
        each("items", fn("up", lambda s: {"r": s["_item"].upper()}), result_key="r"),
        RouteNode("way", "go", (Match("eq", "go", "left"),), (writer("left", side="L"),)),
        fallback(raiser("bad", BoomError("no")), writer("good", good=True)),
        race(writer("fast", won="fast"), slow("late")),
        loop(fn("count", lambda s: {"n": (s.get("n") or 0) + 1}), 3),
        within(writer("quick", quick=True), 5),
        TapNode("look", Ref.to(look)),
        ExpectNode("check", Match("eq", "n", 3)),
        TransformNode("drop", semantics="delete_keys", affected_keys=("go",)),
        TransferNode("again", "count"),
        agent("end"),
    )
    result = await run(program)
    assert result.state == {
        "items": ["x", "y"],
        "results": ["X", "Y"],
        "side": "L",
        "good": True,
        "won": "fast",
        "n": 4,
        "quick": True,
    }
    assert result.text == "end"
    assert seen == [3]
    assert [e.transfer_to for e in result if e.transfer_to] == ["count"]


async def test_the_state_functions_see_is_read_only_and_live() -> None:
    def change(state: Any) -> None:
        state["x"] = 1

    with pytest.raises(TypeError, match="a function over state only reads it"):
        await run(fn("change", change))
    kept: list[Any] = []
    await run(seq(TapNode("keep", Ref.to(kept.append)), writer("w", x=1)))
    assert kept[0]["x"] == 1


async def test_a_function_may_be_async() -> None:
    async def work(state: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"x": 1}

    assert (await run(fn("work", work))).state == {"x": 1}


async def test_parts_and_contents_are_messages_too() -> None:
    a = agent("a", model=ScriptedModel(default="ok"))
    image = types.Part.from_bytes(data=b"x", mime_type="image/png")
    await run(a, ["look", image])
    asked = model_of(a).calls[0].raw.contents[0]
    assert [part.text for part in asked.parts] == ["look", None]
    with pytest.raises(UsageError):
        await run(a, [])


async def test_usage_of_all_calls_is_added_up() -> None:
    used = Usage(prompt=3, output=2)
    result = await run(seq(agent("a", reply("A", usage=used)), agent("b", reply("B", usage=used))))
    assert (result.usage.prompt, result.usage.output) == (6, 4)


async def test_an_argument_nobody_knows_is_refused() -> None:
    with pytest.raises(UnknownNameError) as caught:
        await run(agent("a"), sesion_id="x")
    assert caught.value.nearest == "session_id"
    stream = ADKBackend().stream(ADKBackend().compile(agent("a")), "hi", usr_id="x")
    with pytest.raises(UnknownNameError):
        await anext(stream)


def test_it_is_a_backend() -> None:
    backend: Backend[Any] = ADKBackend()
    assert isinstance(backend, Backend)


# --- streaming -----------------------------------------------------------------------------------


async def test_events_come_as_they_happen() -> None:
    goes_on = asyncio.Event()

    async def wait(state: Any) -> dict[str, Any]:
        await goes_on.wait()
        return {"x": 1}

    backend = ADKBackend()
    program = backend.compile(seq(agent("a"), fn("wait", wait)))
    async with aclosing(backend.stream(program, "hi")) as events:
        first = await anext(events)
        assert first.content == "a"
        goes_on.set()
        assert [e.state_delta async for e in events] == [{"x": 1}]


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_closing_a_stream_early_ends_everything(after: int) -> None:
    ended: list[str] = []
    begun = {name: asyncio.Event() for name in "bcd"}
    b, c, d = (slow(name, ended=ended, begun=event) for name, event in begun.items())
    backend = ADKBackend()
    program = backend.compile(seq(writer("w", x=1), agent("a"), within(par(b, race(c, d)), 60)))
    stream = backend.stream(program, "hi", session_id="s")
    for _ in range(after):
        await anext(stream)
    if after == 2:
        waiting = asyncio.ensure_future(anext(stream))
        for event in begun.values():
            await event.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert sorted(ended) == ["b", "c", "d"]
    await stream.aclose()
    await no_task_left()


async def test_a_cancelled_run_leaves_no_task() -> None:
    ended: list[str] = []
    begun = {name: asyncio.Event() for name in "ab"}
    a, b = (slow(name, ended=ended, begun=event) for name, event in begun.items())
    running = asyncio.ensure_future(run(par(a, within(b, 60))))
    for event in begun.values():
        await event.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(ended) == ["a", "b"]
    await no_task_left()


# --- errors --------------------------------------------------------------------------------------


def alone(node: Node) -> Node:
    return node


def later(node: Node) -> Node:
    return seq(agent("a"), node)


def beside(node: Node) -> Node:
    return par(slow("s"), node)


def in_time(node: Node) -> Node:
    return within(node, 9)


@pytest.mark.parametrize("wrap", [alone, later, beside, in_time])
async def test_an_error_keeps_its_type_and_tells_its_place(wrap: Any) -> None:
    bad = raiser("bad", BoomError("no")).replace(location=Location("shop.py", 4))
    with pytest.raises(BoomError, match="no") as caught:
        await run(wrap(bad))
    assert "in node 'bad' at shop.py:4" in caught.value.__notes__
    await no_task_left()


async def test_an_error_of_a_model_keeps_its_type() -> None:
    with pytest.raises(BoomError, match="down"):
        await run(seq(agent("a", BoomError("down")), agent("b")))


async def test_an_error_of_a_tool_keeps_its_type() -> None:
    def broken() -> None:
        """Does not work."""
        raise BoomError("tool")

    with pytest.raises(BoomError, match="tool"):
        await run(agent("a", Call("broken"), "never", tools=[broken]))


async def test_what_was_committed_before_an_error_stays() -> None:
    backend = ADKBackend()
    program = backend.compile(seq(writer("w", x=1), raiser("bad", BoomError("no"))))
    with pytest.raises(BoomError):
        await backend.run(program, "hi", session_id="s")
    session = await backend.session_service.get_session(
        app_name="adk_fluent_app", user_id="user", session_id="s"
    )
    assert session is not None
    assert session.state["x"] == 1


async def test_a_fallback_takes_over_from_an_error_event() -> None:
    refused = agent("refused", reply(error_code="SAFETY", error_message="no"), writes="x")
    result = await run(fallback(refused, agent("second", "yes")))
    assert result.text == "yes"
    assert result.errors == []
    assert [e.error.code for e in result if e.error] == ["SAFETY"]
    with pytest.raises(AgentReportedError) as caught:
        await run(fallback(refused_again(), refused_again("b")))
    assert caught.value.error_code == "SAFETY"


def refused_again(name: str = "a") -> AgentNode:
    return agent(name, reply(error_code="SAFETY", error_message="no"))


@pytest.mark.parametrize("mode", ["none", "sse"])
async def test_an_empty_answer_is_an_answer_on_every_version(mode: Any) -> None:
    config = ExecutionConfig(streaming_mode=mode)
    result = await run(fallback(agent("empty", reply("")), agent("second")), config=config)
    assert "second" not in {e.author for e in result}


async def test_without_a_fallback_an_error_event_is_reported() -> None:
    result = await run(seq(refused_again(), agent("b")))
    assert [str(e) for e in result.errors] == ["SAFETY: no"]
    assert result.text == "b"


async def test_a_failed_expectation_is_an_error() -> None:
    with pytest.raises(ExpectationError):
        await run(ExpectNode("check", Match("eq", "n", 3)))


async def test_an_agent_may_end_a_loop() -> None:
    async def act(ctx: InvocationContext) -> AsyncIterator[dict[str, Any]]:
        n = (ctx.session.state.get("n") or 0) + 1
        yield {"actions": EventActions(state_delta={"n": n}, escalate=n == 2)}

    result = await run(loop(scripted("count", act), 9))
    assert result.state == {"n": 2}


# --- state ---------------------------------------------------------------------------------------


async def test_temporary_keys_live_as_long_as_the_run(service: BaseSessionService) -> None:
    backend = ADKBackend(session_service=service)
    program = backend.compile(
        seq(
            writer("w", **{"temp:x": 1, "y": 2}),
            agent("a", "AA", writes="temp:z"),
            fn("read", lambda s: {"seen": [s.get("temp:x"), s.get("temp:z")]}),
        )
    )
    result = await backend.run(program, "hi", session_id="s")
    assert result.state == {"y": 2, "seen": [1, "AA"]}
    again = backend.compile(fn("look", lambda s: {"left": sorted(k for k in s if "temp" in k)}))
    assert (await backend.run(again, "hi", session_id="s")).state["left"] == []


async def test_temporary_keys_are_not_shared_with_an_agent_that_is_a_tool() -> None:
    tool = seq(
        fn("look", lambda s: {"in": [s.get("temp:x"), s.get("y")], "temp:t": 4}),
        agent("last", "L"),
        name="tool",
    )
    boss = agent("boss", Call("tool", {"request": "go"}), "done", agent_tools=(tool,))
    outside = fn("outside", lambda s: {"out": [s.get("temp:x"), s.get("temp:t")]})
    result = await run(seq(writer("w", **{"temp:x": 1, "y": 2}), boss, outside))
    assert (result.state["in"], result.state["out"]) == ([None, 2], [1, None])


async def test_a_template_of_an_agent_that_is_a_tool_misses_temporary_keys() -> None:
    tool = agent("tool", "T", instruction="{temp:x}")
    boss = agent("boss", Call("tool", {"request": "go"}), "done", agent_tools=(tool,))
    with pytest.raises(KeyError, match="temp:x"):
        await run(seq(writer("w", **{"temp:x": 1}), boss))


async def test_keys_of_users_and_apps_outlive_a_session(service: BaseSessionService) -> None:
    backend = ADKBackend(session_service=service)
    program = backend.compile(writer("w", **{"user:u": 1, "app:a": 2, "s": 3}))
    await backend.run(program, "hi")
    result = await backend.run(backend.compile(agent("a")), "hi")
    assert result.state == {"user:u": 1, "app:a": 2}


async def test_replacing_a_dict_really_replaces_it(service: BaseSessionService) -> None:
    backend = ADKBackend(session_service=service)
    program = backend.compile(
        seq(
            writer("one", d={"a": 1, "n": {"x": 1, "y": 2}}, e={"a": 1}),
            writer("two", d={"b": 2, "n": {"y": 3}}, e={"a": 2, "b": 3}),
        )
    )
    result = await backend.run(program, "hi", session_id="s")
    expected = {"d": {"b": 2, "n": {"y": 3}}, "e": {"a": 2, "b": 3}}
    assert result.state == expected
    kept = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert kept is not None
    assert kept.state == expected


async def test_a_race_undoes_the_losers_and_isolates_them(service: BaseSessionService) -> None:
    async def lose(ctx: InvocationContext) -> AsyncIterator[dict[str, Any]]:
        yield says("lost", x="loser", only="loser")
        await asyncio.sleep(30)

    async def win(ctx: InvocationContext) -> AsyncIterator[dict[str, Any]]:
        await asyncio.sleep(0.05)
        yield says("won", saw=ctx.session.state.get("x"), y="winner")

    backend = ADKBackend(session_service=service)
    program = backend.compile(
        seq(writer("w", x="start"), race(scripted("loser", lose), scripted("winner", win)))
    )
    result = await backend.run(program, "hi", session_id="s")
    assert result.state == {"x": "start", "saw": "start", "y": "winner"}
    assert result.text == "won"
    again = await backend.run(
        backend.compile(fn("f", lambda s: {"z": sorted(k for k in s if s[k] is not None)})),
        "hi",
        session_id="s",
    )
    assert again.state["z"] == ["saw", "x", "y"]


async def test_templates_in_map_items_see_their_own_item() -> None:
    model = ScriptedModel(
        rules=[rule(lambda asked: True, reply=lambda asked: asked.system.split(" ")[1])]
    )
    worker = AgentNode("worker", model=Ref.to(model), instruction="do {_item} now", writes_keys=())
    result = await run(
        seq(writer("w", items=[f"i{n}" for n in range(6)]), each("items", worker, concurrency=3))
    )
    assert result.state["results"] == [f"i{n}" for n in range(6)]
    assert result.text.split("\n\n") == [f"i{n}" for n in range(6)]


# --- sessions ------------------------------------------------------------------------------------


async def test_without_an_id_every_run_has_a_new_session() -> None:
    backend = ADKBackend()
    program = backend.compile(fn("f", lambda s: {"n": (s.get("n") or 0) + 1}))
    first, second = await backend.run(program, "hi"), await backend.run(program, "hi")
    assert first.session_id != second.session_id
    assert (first.state, second.state) == ({"n": 1}, {"n": 1})


async def test_a_session_goes_on_and_is_made_when_it_is_not_there(
    service: BaseSessionService,
) -> None:
    backend = ADKBackend(session_service=service)
    program = backend.compile(fn("f", lambda s: {"n": (s.get("n") or 0) + 1}))
    for n in (11, 12):
        result = await backend.run(program, "hi", session_id="mine", user_id="ann", state={"n": 10})
        assert (result.state, result.session_id) == ({"n": n}, "mine")
    other = await backend.run(program, "hi", session_id="mine", user_id="bob")
    assert other.state == {"n": 1}


async def test_another_backend_on_the_same_store_goes_on(service: BaseSessionService) -> None:
    program = seq(agent("a", "said"), name="p")
    first = await ADKBackend(session_service=service).run(ADKBackend().compile(program), "1")
    model = ScriptedModel(default="x")
    later = ADKBackend().compile(agent("a", model=model))
    await ADKBackend().run(later, "2", session_id=first.session_id, session_service=service)
    assert [turn.text for turn in model.calls[0].turns] == ["1", "said", "2"]


async def test_a_damaged_store_is_told_from_other_errors(
    store: BaseSessionService, path: Path
) -> None:
    await asyncio.to_thread(path.write_bytes, b"this is no database" * 100)
    with pytest.raises(SessionStoreError, match="cannot be read or written") as caught:
        await run(agent("a"), session_service=store)
    assert "not a database" in str(caught.value)


async def test_a_session_of_another_version_is_told_from_other_errors(
    store: BaseSessionService, path: Path
) -> None:
    await run(agent("a"), session_service=store, session_id="s")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE events SET event_data = ?", ('{"author": 5}',))
    with pytest.raises(SessionStoreError, match="author"):
        await run(agent("a"), session_service=store, session_id="s")


# --- runs beside each other ----------------------------------------------------------------------


async def test_runs_of_one_app_do_not_mix(service: BaseSessionService) -> None:
    model = ScriptedModel(
        rules=[rule(lambda asked: True, reply=lambda asked: asked.turns[0].text * 2)]
    )
    echo = agent("echo", model=model, writes="x")
    program = seq(
        echo, par(fn("f", lambda s: {"y": s["x"] + "!"}), fn("g", lambda s: {"z": s["x"]}))
    )
    backend = ADKBackend(session_service=service)
    compiled = backend.compile(program)
    await backend.run(
        compiled, "first"
    )  # ADK 1.25 makes its tables in the first run, without a lock
    results = await asyncio.gather(*[backend.run(compiled, f"m{n}") for n in range(8)])
    assert [r.text for r in results] == [f"m{n}m{n}" for n in range(8)]
    assert [r.state["y"] for r in results] == [f"m{n}m{n}!" for n in range(8)]
    assert len({r.session_id for r in results}) == 8


async def test_two_streams_in_one_task_may_be_read_in_turns() -> None:
    backend = ADKBackend()
    compiled = backend.compile(seq(agent("a"), par(agent("b"), agent("c")), agent("d")))
    streams = [backend.stream(compiled, "hi") for _ in range(2)]
    seen: list[list[AgentEvent]] = [[], []]
    for _ in range(4):
        for stream, events in zip(streams, seen, strict=True):
            events.append(await anext(stream))
    for stream in streams:
        assert [e async for e in stream] == []
    assert [sorted(e.author for e in events) for events in seen] == [list("abcd")] * 2


# --- what lives as long as a run -----------------------------------------------------------------


@pytest.fixture
def scoped(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A layer whose pass opens resources and registers clean-up; the log of what happened."""
    log: list[str] = []

    @asynccontextmanager
    async def opened(ctx: InvocationContext) -> AsyncGenerator[None]:
        log.append(f"open {ctx.session.user_id}")
        try:
            yield
        finally:
            await asyncio.sleep(0)
            log.append("close")

    async def last() -> None:
        await asyncio.sleep(0)
        log.append("last")

    def register(root: Node, cx: CompileContext) -> Node:
        cx.add_resource(opened)
        cx.add_resource(lambda ctx: plainly(log))
        cx.on_close(last)
        cx.on_close(lambda: log.append("before last"))
        return root

    passes: PassList[CompileContext] = PassList()
    passes.add(Pass("toy", register))
    monkeypatch.setattr(compiling, "passes", passes)
    return log


@contextmanager
def plainly(log: list[str]) -> Generator[None]:
    log.append("open plain")
    try:
        yield
    finally:
        log.append("close plain")


OPENED = ["open user", "open plain"]
CLOSED = ["close plain", "close", "before last", "last"]


async def test_resources_open_and_close_around_a_run(scoped: list[str]) -> None:
    backend = ADKBackend()
    compiled = backend.compile(seq(fn("f", lambda s: scoped.append("step")), agent("a")))
    assert scoped == []
    for _ in range(2):
        await backend.run(compiled, "hi")
    assert scoped == [*OPENED, "step", *CLOSED] * 2


async def test_resources_close_after_an_error(scoped: list[str]) -> None:
    with pytest.raises(BoomError):
        await run(par(slow("s"), raiser("bad", BoomError("no"))))
    assert scoped == [*OPENED, *CLOSED]


async def test_resources_close_when_a_stream_is_closed_early(scoped: list[str]) -> None:
    backend = ADKBackend()
    stream = backend.stream(backend.compile(seq(agent("a"), slow("s"))), "hi")
    await anext(stream)
    await stream.aclose()
    assert scoped == [*OPENED, *CLOSED]
    await no_task_left()


async def test_resources_close_when_a_run_is_cancelled(scoped: list[str]) -> None:
    running = asyncio.ensure_future(run(par(slow("a"), slow("b"))))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert scoped == [*OPENED, *CLOSED]


async def test_resources_close_when_opening_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    def fail(ctx: Any) -> Any:
        raise BoomError("no database")

    def register(root: Node, cx: CompileContext) -> Node:
        cx.add_resource(lambda ctx: plainly(log))
        cx.add_resource(fail)
        cx.on_close(lambda: log.append("closed"))
        return root

    passes: PassList[CompileContext] = PassList()
    passes.add(Pass("toy", register))
    monkeypatch.setattr(compiling, "passes", passes)
    with pytest.raises(BoomError, match="no database"):
        await run(agent("a"))
    assert log == ["open plain", "close plain", "closed"]


async def test_resources_close_under_a_foreign_runner(scoped: list[str]) -> None:
    await by_runner(to_agent(agent("a")))
    assert scoped == ["open u", "open plain", *CLOSED]


class Toolset(BaseToolset):
    """Counts how often it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        return []

    async def close(self) -> None:
        self.closed += 1


async def test_toolsets_are_closed_after_the_last_of_several_runs() -> None:
    toolset = Toolset()
    goes_on = asyncio.Event()

    async def wait(state: Any) -> None:
        if state.get("slow"):
            await goes_on.wait()

    backend = ADKBackend()
    worker = agent("a", tools=(), model=ScriptedModel(default="a")).replace(
        tools=(ToolSpec(Ref.to(toolset)),)
    )
    compiled = backend.compile(seq(worker, fn("wait", wait)))
    late = asyncio.ensure_future(backend.run(compiled, "hi", state={"slow": True}))
    await asyncio.sleep(0.05)
    await backend.run(compiled, "hi")
    assert toolset.closed == 0
    goes_on.set()
    await late
    assert toolset.closed == 1
    await backend.run(compiled, "hi")
    assert toolset.closed == 2


# --- ADK's own ways of running -------------------------------------------------------------------


def tool_user() -> tuple[Node, Any]:
    def remember(word: str, tool_context: ToolContext) -> str:
        """Keeps a word."""
        tool_context.state["word"] = word
        return "kept"

    a = agent("a", Call("remember", {"word": "hello"}), "done", tools=[remember], writes="said")
    return seq(a, fn("f", lambda s: {"loud": s["word"].upper()}), agent("b", "B")), a


async def test_run_app_and_bare_agent_do_the_same() -> None:
    ways: list[list[tuple[Any, ...]]] = []
    for way in ("run", "app", "agent", "runner"):
        program, _ = tool_user()
        if way == "run":
            events = [e.raw for e in await run(program)]
        elif way == "runner":
            runner = to_runner(program, ExecutionConfig(app_name="x"))
            session = await runner.session_service.create_session(app_name="x", user_id="u")
            message = types.Content(role="user", parts=[types.Part(text="hi")])
            events = [
                e
                async for e in runner.run_async(
                    user_id="u", session_id=session.id, new_message=message
                )
            ]
        else:
            events = await by_runner(to_app(program) if way == "app" else to_agent(program))
        ways.append([(e.author, e.actions.state_delta, text_of(e)) for e in events])
    assert ways[0] == ways[1] == ways[2] == ways[3]
    assert ways[0][-1] == ("b", {}, "B")


def text_of(event: Event) -> str:
    return "".join(p.text or "" for p in (event.content.parts if event.content else None) or ())


async def test_a_compiled_pipeline_survives_clone_and_copy() -> None:
    root = to_agent(seq(agent("a"), par(agent("b"), writer("w", x=1)), agent("c")))
    for twin in (
        root.clone(),
        root.model_copy(),
        copy.copy(root),
        copy.deepcopy(root),
        root.clone({"name": "other"}),
    ):
        events = await by_runner(twin)
        assert sorted(e.author for e in events) == sorted(["a", "b", twin.name, "c"])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ADK's CLI loads much, and all of it warns
async def test_a_module_level_root_agent_is_found_by_adks_loader(tmp_path: Path) -> None:
    from google.adk.cli.utils.agent_loader import AgentLoader

    app = tmp_path / "loaded_by_adk"  # it stays imported: no other test may use the name
    app.mkdir()
    (app / "__init__.py").write_text("from . import agent\n")
    (app / "agent.py").write_text(
        "from adk_fluent.backends.adk import to_agent\n"
        "from adk_fluent.ir import AgentNode, FunctionNode, Ref, SequenceNode\n"
        "def count(state):\n"
        "    return {'n': 1}\n"
        "root_agent = to_agent(SequenceNode('pipe', (\n"
        "    AgentNode('a', mock=Ref('hello', 'mock')), FunctionNode('count', Ref.to(count)))))\n"
    )
    loaded = AgentLoader(str(tmp_path)).load_agent("loaded_by_adk")
    events = await by_runner(loaded)
    assert [(e.author, e.actions.state_delta) for e in events] == [("a", {}), ("pipe", {"n": 1})]


async def test_a_second_turn_starts_at_the_root_again() -> None:
    backend = ADKBackend()
    a, b = agent("a"), agent("b")
    program = backend.compile(seq(a, b))
    for _ in range(2):
        await backend.run(program, "hi", session_id="s")
    assert [len(model_of(each_).calls) for each_ in (a, b)] == [2, 2]


async def test_transfer_within_a_leaf_and_then_the_flow_goes_on() -> None:
    kid = agent("kid", "from kid", description="knows")
    boss = agent("boss", Call("transfer_to_agent", {"agent_name": "kid"}), delegates=(kid,))
    last = agent("last")
    result = await run(seq(boss, last))
    assert [e.author for e in result if e.content] == ["kid", "last"]
    assert [e.path for e in result] == ["s0", "s0", "s0", "s1"]
    assert result.text == "last"


async def test_the_flow_may_transfer_to_a_delegate() -> None:
    kid = agent("kid", "from kid")
    boss = agent("boss", "from boss", delegates=(kid,))
    result = await run(seq(boss, TransferNode("hand_over", "kid")))
    assert [e.content for e in result if e.content] == ["from boss", "from kid"]
    assert result.text == "from kid"


async def test_a_pipeline_may_be_a_tool() -> None:
    pipe = seq(agent("x", "X"), par(agent("y", "Y"), agent("z", "Z")), agent("w", "W"), name="pipe")
    boss = agent("boss", Call("pipe", {"request": "go"}), "done", agent_tools=(pipe,))
    result = await run(seq(boss, agent("last", "L")))
    assert [r.result for e in result for r in e.tool_responses] == [{"result": "W"}]
    assert [e.content for e in result if e.content] == ["done", "L"]


# --- flows below flows ---------------------------------------------------------------------------


async def test_a_flow_may_be_a_step_of_another_flow() -> None:
    inner = to_agent(seq(agent("x", "X"), par(agent("y", "Y"), agent("z", "Z")), name="inner"))
    result = await run(seq(agent("a", "A"), loop(built(inner), 2), name="outer"))
    assert [e.path for e in result if e.author in ("a", "x")] == ["s0", "s1.l0.s0", "s1.l1.s0"]
    assert len({e.run_id for e in result}) == 1
    assert result.text == "Y\n\nZ"
    attempts = {e.attempt for e in result if e.author == "y"}
    assert len(attempts) == 2


async def test_a_flow_may_be_a_delegate() -> None:
    pipe = seq(agent("x", "X"), agent("y", "Y"), name="pipe")
    boss = agent("boss", Call("transfer_to_agent", {"agent_name": "pipe"}), delegates=(pipe,))
    result = await run(seq(boss, agent("last", "L")))
    assert [e.content for e in result if e.content] == ["X", "Y", "L"]
    assert result.text == "L"


async def test_what_a_discarded_attempt_of_an_inner_flow_wrote_is_undone_and_hidden() -> None:
    inner = to_agent(
        seq(
            fallback(
                seq(agent("bad", "SECRET", writes="x"), raiser("no", BoomError("no"))),
                agent("good", "G"),
            ),
            name="inner",
        )
    )
    last = agent("last")
    result = await run(seq(loop(built(inner), 2), last))
    assert result.state == {}
    assert [t for t in (turn.text for turn in model_of(last).calls[0].turns) if "SECRET" in t] == []
    assert result.text == "last"


# --- size ----------------------------------------------------------------------------------------


def deep(levels: int) -> Node:
    node: Node = fn("f", lambda s: {"n": (s.get("n") or 0) + 1})
    for level in range(levels):
        kind = level % 4
        if kind == 0:
            node = seq(node, name=f"s{level}")
        elif kind == 1:
            node = loop(node, 1, name=f"l{level}")
        elif kind == 2:
            node = fallback(node, name=f"f{level}")
        else:
            node = par(node, name=f"p{level}")
    return node


async def test_500_deep() -> None:
    assert (await run(seq(deep(500), agent("a")))).state == {"n": 1}


@pytest.mark.full
async def test_10_000_wide() -> None:
    width = 10_000
    branches = [fn(f"f{n}", lambda s, n=n: {f"k{n}": n}) for n in range(width)]
    result = await run(par(*branches))
    assert len(result.state) == width
    gc.collect()
