"""Going on with runs that failed or were cut off, in one process.

For processes that are killed see tests-integration/test_kill.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections import Counter
from contextlib import aclosing, suppress
from datetime import date
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import (
    agent,
    each,
    fallback,
    fn,
    loop,
    model_of,
    par,
    race,
    raiser,
    seq,
    turns,
    within,
    writer,
)

from adk_fluent.backends import _owner
from adk_fluent.backends.adk import ADKBackend, to_app
from adk_fluent.errors import PlanChangedError, SessionError, StepTimeoutError, UnstorableValueError
from adk_fluent.ir import ExecutionConfig, GateNode, LoopNode, Ref, RouteNode, TapNode
from adk_fluent.protocol import Resume

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.ir import FunctionNode, Node
    from adk_fluent.protocol import AgentEvent, Answer, RunResult

pytestmark = [
    pytest.mark.adk,
    # ADK says so of what lets `run_async(invocation_id=...)` in
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

APP = "adk_fluent_app"
KEY = "_adk_fluent_flow:pipe"
DURABLE = ExecutionConfig(resumable=True)
IDS: dict[str, Any] = {"user_id": "user", "session_id": "s"}
NOTHING = "there is no run to go on with in this session"


class BoomError(Exception):
    """What fails on purpose."""


class Desk:
    """One session, and the runs made in it.

    Attributes:
        calls: What functions made here were called, in order.
        broken: Whether those that break do so now.
        reached: Set when one that hangs was reached.
        together: In so many branches.
    """

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.backend = ADKBackend(session_service=service)
        self.calls: list[str] = []
        self.broken = True
        self.reached = asyncio.Event()
        self.together = 1

    # --- steps ---------------------------------------------------------------------------------

    def count(self, name: str) -> FunctionNode:
        """Counts itself."""

        def counts(state: Any) -> dict[str, int]:
            self.calls.append(name)
            return {name: (state.get(name) or 0) + 1}

        return fn(name, counts)

    def fails(self, name: str) -> FunctionNode:
        """Counts itself, or fails."""

        def counts(state: Any) -> dict[str, int]:
            self.calls.append(name)
            if self.broken:
                raise BoomError(name)
            return {name: (state.get(name) or 0) + 1}

        return fn(name, counts)

    def hangs(self, name: str, when: Callable[[Any], bool] = lambda _: True) -> FunctionNode:
        """Counts itself, or hangs."""

        async def counts(state: Any) -> dict[str, int]:
            self.calls.append(name)
            if self.broken and when(state):
                if self.calls.count(name) >= self.together:
                    self.reached.set()
                await asyncio.Event().wait()
            return {name: (state.get(name) or 0) + 1}

        return fn(name, counts)

    # --- runs ----------------------------------------------------------------------------------

    async def run(
        self,
        root: Node,
        message: str | Answer = "hi",
        config: ExecutionConfig = DURABLE,
        **options: Any,
    ) -> RunResult:
        return await self.backend.run(self.backend.compile(root, config), message, **IDS, **options)

    async def resume(
        self, root: Node, *answers: Answer, config: ExecutionConfig = DURABLE
    ) -> RunResult:
        self.broken = False
        return await self.backend.run(self.backend.compile(root, config), Resume(answers), **IDS)

    async def cut_off(self, root: Node, *, after: str | None = None, **options: Any) -> None:
        """Run, and be cancelled from outside in the step that hangs.

        Args:
            root: What runs.
            after: A key that is written before, in a branch beside that step.
            **options: Of the run.
        """
        running = asyncio.ensure_future(self.run(root, **options))
        reached = asyncio.ensure_future(self.reached.wait())
        await asyncio.wait([running, reached], return_when=asyncio.FIRST_COMPLETED)
        while after is not None and after not in (await self.session()).state:  # noqa: ASYNC110  # a store tells nobody
            await asyncio.sleep(0.01)
        reached.cancel()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def session(self) -> Session:
        session = await self.service.get_session(app_name=APP, **IDS)
        assert session is not None
        return session

    async def journal(self, **changes: Any) -> dict[str, Any]:
        """What is written down, after some changes to it."""
        from google.adk.events.event import Event
        from google.adk.events.event_actions import EventActions

        session = await self.session()
        entry: dict[str, Any] = {**json.loads(session.state[KEY]), **changes}
        if changes:
            delta = EventActions(state_delta={KEY: json.dumps(entry)})
            event = Event(author="pipe", invocation_id=entry["invocation_id"], actions=delta)
            await self.service.append_event(session, event)
        return entry


@pytest.fixture
def desk(service: BaseSessionService) -> Desk:
    return Desk(service)


@pytest.fixture
def here(memory: BaseSessionService) -> Desk:
    """In memory, for what does not depend on where sessions are kept."""
    return Desk(memory)


# --- going on ------------------------------------------------------------------------------------


async def test_a_run_that_is_cancelled_from_outside_goes_on(desk: Desk) -> None:
    first, last = agent("first", writes="one"), agent("last")
    root = seq(first, desk.count("a"), desk.hangs("b"), last)
    await desk.cut_off(root)
    result = await desk.resume(root)
    assert result.state == {"one": "first", "a": 1, "b": 1}
    assert result.text == "last"
    assert desk.calls == ["a", "b", "b"]
    assert len(model_of(first).calls) == 1
    assert turns(last) == ["hi", "first: first"]
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root)


async def test_a_failed_step_is_done_again_and_none_before_it(desk: Desk) -> None:
    first, last = agent("first"), agent("last")
    root = seq(first, desk.count("a"), desk.fails("b"), last)
    with pytest.raises(BoomError):
        await desk.run(root)
    assert (await desk.journal())["status"] == "failed"
    result = await desk.resume(root)
    assert result.state == {"a": 1, "b": 1}
    assert desk.calls == ["a", "b", "b"]
    assert len(model_of(first).calls) == 1


async def test_it_may_fail_as_often_as_it_likes(here: Desk) -> None:
    root = seq(here.count("a"), here.fails("b"), here.count("c"))
    compiled = here.backend.compile(root, DURABLE)
    with pytest.raises(BoomError):
        await here.run(root)
    for _ in range(3):
        with pytest.raises(BoomError):
            await here.backend.run(compiled, Resume(()), **IDS)
    assert (await here.resume(root)).state == {"a": 1, "b": 1, "c": 1}
    assert here.calls == ["a", *"bbbbb", "c"]


async def test_a_model_that_fails_is_asked_again(desk: Desk) -> None:
    from adk_fluent.testing import reply

    asks = agent("asks", reply(raises=BoomError("no quota")), "an answer", writes="x")
    root = seq(desk.count("a"), asks, desk.count("b"))
    with pytest.raises(BoomError):
        await desk.run(root)
    result = await desk.resume(root)
    assert result.state == {"a": 1, "x": "an answer", "b": 1}
    assert turns(asks) == ["hi"]


async def test_what_failed_after_an_approval_is_not_approved_again(desk: Desk) -> None:
    root = seq(desk.count("a"), GateNode("ok", message="May I?"), desk.fails("b"))
    asked = await desk.run(root)
    answer = asked.pending[0].answer(True)
    with pytest.raises(BoomError):
        await desk.backend.run(desk.backend.compile(root, DURABLE), Resume((answer,)), **IDS)
    result = await desk.resume(root)
    assert result.pending == []
    assert {key: result.state[key] for key in "ab"} == {"a": 1, "b": 1}
    with pytest.raises(SessionError, match="not open any more"):
        await desk.resume(root, answer)


async def test_a_new_message_begins_anew_and_the_failed_run_is_gone(desk: Desk) -> None:
    root = seq(desk.count("a"), desk.fails("b"))
    with pytest.raises(BoomError):
        await desk.run(root)
    desk.broken = False
    result = await desk.run(root, "again")
    assert result.state == {"a": 2, "b": 1}
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root)


async def test_a_runner_of_adks_own_goes_on_by_the_invocation(desk: Desk) -> None:
    from google.adk.runners import Runner

    root = seq(agent("first"), desk.count("a"), desk.hangs("b"), agent("last"))
    await desk.cut_off(root)
    desk.broken = False
    id = (await desk.journal())["invocation_id"]
    runner = Runner(app=to_app(root, DURABLE), session_service=desk.service)
    events = [event async for event in runner.run_async(invocation_id=id, **IDS)]
    assert [e.author for e in events if e.content is not None] == ["last"]
    state = (await desk.session()).state
    assert {key: value for key, value in state.items() if value is not None} == {"a": 1, "b": 1}


async def test_agents_are_told_what_the_user_said_at_the_start(here: Desk) -> None:
    middle, end = agent("mid", history="input"), agent("end")
    root = seq(here.hangs("a"), middle, end)
    await here.cut_off(root)
    await here.resume(root)
    assert turns(middle) == ["hi"]
    assert turns(end) == ["hi", "mid: mid"]


async def test_an_agent_goes_on_after_the_tool_it_has_called(desk: Desk) -> None:
    from adk_fluent.testing import Call, reply

    called: list[int] = []

    def tool() -> str:
        called.append(1)
        return "found"

    asks = agent(
        "asks", reply(Call("tool")), reply(raises=BoomError("no quota")), "done", tools=[tool]
    )
    root = seq(asks, desk.count("a"))
    with pytest.raises(BoomError):
        await desk.run(root)
    result = await desk.resume(root)
    assert result.text == "done"
    assert len(called) == 1
    assert len(model_of(asks).calls) == 3


async def test_a_tool_that_was_cut_off_leaves_no_call_behind(desk: Desk) -> None:
    from adk_fluent.testing import Call, reply

    async def tool() -> str:
        if desk.broken:
            desk.reached.set()
            await asyncio.Event().wait()
        return "found"

    asks = agent("asks", reply(Call("tool")), reply(Call("tool")), "done", tools=[tool])
    root = seq(asks, desk.count("a"))
    await desk.cut_off(root)
    assert (await desk.resume(root)).text == "done"
    assert turns(asks, 1) == ["hi"]


# --- arrangements --------------------------------------------------------------------------------


def reads(function: Callable[[Any], object]) -> Ref:
    return Ref.to(function)


def is_second(name: str) -> Callable[[Any], bool]:
    return lambda state: state.get(name) == 1


SHAPES: dict[str, Callable[[Desk], Node]] = {
    "loop": lambda d: loop(seq(d.count("a"), d.hangs("b", is_second("b")), name="body"), 3),
    "until": lambda d: LoopNode(
        "until",
        seq(d.count("a"), d.hangs("b", is_second("b")), name="body"),
        9,
        reads(lambda state: state.get("b") == 3),
    ),
    "route": lambda d: RouteNode(
        "route",
        tests=(reads(lambda state: not state.get("a")),),
        branches=(seq(d.count("a"), d.hangs("b"), name="body"),),
        default=d.count("never"),
    ),
    "parallel": lambda d: par(
        seq(d.count("a"), d.hangs("b"), name="one"), seq(d.count("c"), d.count("e"), name="two")
    ),
    "map": lambda d: each(
        "list",
        seq(d.count("a"), d.hangs("b", lambda s: s.get("item") == 2), name="body"),
        item_key="item",
        output_key="all",
        result_key="b",
        concurrency=1,
    ),
    "fallback": lambda d: fallback(
        seq(writer("w", lost=1), raiser("r", BoomError("lost")), name="one"),
        seq(d.count("a"), d.hangs("b"), name="two"),
    ),
    "race": lambda d: race(
        seq(writer("w", lost=1), raiser("r", BoomError("lost")), name="one"),
        seq(d.count("a"), d.hangs("b"), name="two"),
    ),
    "timeout": lambda d: within(seq(d.count("a"), d.hangs("b"), name="body"), 60),
}
ENDS: dict[str, dict[str, Any]] = {
    "loop": {"a": 3, "b": 3},
    "until": {"a": 3, "b": 3},
    "parallel": {"a": 1, "b": 1, "c": 1, "e": 1},
    "map": {"all": [1, 1, 1], "list": [1, 2, 3]},
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_arrangement_goes_on_inside(desk: Desk, shape: str) -> None:
    root = seq(desk.count("before"), SHAPES[shape](desk), desk.count("after"))
    after = "e" if shape == "parallel" else None
    await desk.cut_off(root, after=after, state={"list": [1, 2, 3]} if shape == "map" else {})
    written = list(desk.calls)
    result = await desk.resume(root)
    end = {"before": 1, **ENDS.get(shape, {"a": 1, "b": 1}), "after": 1}
    assert result.state == end
    assert desk.calls[len(written)] == "b"
    assert written[-1] == "b" or shape == "parallel"


async def test_a_timeout_strikes_once_more(here: Desk) -> None:
    late = within(seq(here.hangs("b"), name="body"), 0.05)
    root = seq(here.count("a"), late, here.count("c"))
    with pytest.raises(StepTimeoutError):
        await here.run(root)
    assert (await here.resume(root)).state == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("beside", [False, True])
async def test_a_branch_that_failed_is_gone_on_with(desk: Desk, beside: bool) -> None:
    """Where two fail in the same moment, both are."""
    other = desk.fails("d") if beside else desk.count("d")
    branches = [
        seq(desk.count("a"), desk.fails("b"), name="one"),
        seq(desk.count("c"), other, name="two"),
    ]
    root = seq(par(*branches), desk.count("e"))
    with pytest.raises(BoomError):
        await desk.run(root)
    assert (await desk.resume(root)).state == dict.fromkeys("abcde", 1)


def coordinator(desk: Desk) -> Any:
    """An agent that hands over to a pipeline, whose third step hangs."""
    from adk_fluent.testing import Call, ScriptedModel, reply

    inner = seq(
        agent("x", history="transcript"), desk.count("a"), desk.hangs("b"), agent("z"), name="inner"
    )
    to_inner = reply(Call("transfer_to_agent", {"agent_name": "inner"}))
    return agent("boss", model=ScriptedModel(default=to_inner), delegates=(inner,))


async def test_a_pipeline_below_an_agent_goes_on_inside(desk: Desk) -> None:
    boss = coordinator(desk)
    root = seq(desk.count("before"), boss, desk.count("after"))
    await desk.cut_off(root)
    result = await desk.resume(root)
    assert result.state == {"before": 1, "a": 1, "b": 1, "after": 1}
    assert result.text == "z"
    assert desk.calls == ["before", "a", "b", "b", "after"]
    assert len(model_of(boss).calls) == 2  # it was in flight


async def test_pipelines_below_the_items_of_a_map_are_told_apart(desk: Desk) -> None:
    boss = coordinator(desk)
    root = seq(each("list", boss, output_key="all"), desk.count("after"))
    desk.together = 2
    await desk.cut_off(root, state={"list": [1, 2]})
    assert Counter(desk.calls) == {"a": 2, "b": 2}
    result = await desk.resume(root)
    assert result.state["after"] == 1
    assert len(result.state["all"]) == 2
    assert Counter(desk.calls) == {"a": 2, "b": 4, "after": 1}


@pytest.mark.full
async def test_of_many_items_only_those_are_written_that_a_step_changes(desk: Desk) -> None:
    body = seq(desk.count("a"), desk.hangs("b", lambda s: s["item"] == 300), name="body")
    many = each("list", body, item_key="item", output_key="all", result_key="b", concurrency=1)
    root = seq(many, desk.count("after"))
    await desk.cut_off(root, state={"list": list(range(400))})
    result = await desk.resume(root)
    assert (result.state["all"], result.state["after"]) == ([1] * 400, 1)
    assert Counter(desk.calls) == {"a": 400, "b": 401, "after": 1}
    session = await desk.session()
    left = {k: v for k, v in session.state.items() if k.startswith(KEY) and v is not None}
    assert left == {}
    written = [
        sum(len(text or "") for key, text in delta.items() if key.startswith(KEY))
        for event in session.events
        if (delta := event.actions.state_delta)
    ]
    usual = sorted(written)[len(written) // 2]
    assert usual * 4 < max(written)  # where it goes on all of it is written


# --- who may go on -------------------------------------------------------------------------------


async def test_a_pipeline_of_other_steps_is_refused(desk: Desk) -> None:
    root = seq(agent("first"), desk.count("a"), desk.hangs("b"))
    await desk.cut_off(root)
    other = seq(agent("first"), desk.hangs("b"))
    with pytest.raises(PlanChangedError, match=r"pipe was changed since its run was cut off"):
        await desk.resume(other)
    assert (await desk.resume(root)).state == {"a": 1, "b": 1}


@pytest.mark.parametrize("first", [None, 60.0])
async def test_how_long_a_run_may_take_is_no_part_of_it(desk: Desk, first: float | None) -> None:
    """It may be set, changed or dropped by whoever goes on; below agents, too."""
    configs = {each: ExecutionConfig(resumable=True, timeout_seconds=each) for each in (None, 60.0)}
    root = seq(
        desk.count("before"),
        coordinator(desk),
        GateNode("ask"),
        desk.fails("after"),
    )
    await desk.cut_off(root, config=configs[first])
    then = configs[60.0 if first is None else None]
    result = await desk.resume(root, config=then)
    assert desk.calls == ["before", "a", "b", "b"]
    desk.broken = True
    [question] = result.pending
    with pytest.raises(BoomError):
        await desk.run(root, question.answer(), config=configs[first])
    result = await desk.resume(root, config=then)
    assert {key: result.state[key] for key in ("before", "a", "b", "after")} == {
        "before": 1,
        "a": 1,
        "b": 1,
        "after": 1,
    }


async def test_a_time_that_was_too_short_may_be_left_out(here: Desk) -> None:
    root = seq(here.count("a"), here.hangs("b"), here.count("c"))
    with pytest.raises(StepTimeoutError):
        await here.run(root, config=ExecutionConfig(resumable=True, timeout_seconds=0.5))
    assert (await here.resume(root)).state == {"a": 1, "b": 1, "c": 1}
    assert here.calls == ["a", "b", "b", "c"]


async def test_another_model_or_instruction_is_taken(desk: Desk) -> None:
    def root(text: str) -> Node:
        return seq(
            agent("first", instruction=text),
            desk.hangs("b"),
            agent("last", text, instruction=text),
        )

    await desk.cut_off(root("old"))
    assert (await desk.resume(root("new"))).text == "new"


async def test_nobody_goes_on_with_a_run_that_goes_on(here: Desk) -> None:
    root = seq(here.count("a"), here.hangs("b"))
    running = asyncio.ensure_future(here.run(root))
    await here.reached.wait()
    with pytest.raises(SessionError, match="is still going on in this session"):
        await here.backend.run(here.backend.compile(root, DURABLE), Resume(()), **IDS)
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert (await here.resume(root)).state == {"a": 1, "b": 1}


def owner(pid: int) -> str:
    return f"{_owner._this_process(pid)}/elsewhere"


#: Who has the run, how many seconds ago they gave a sign of life, and whether they count as alive.
OWNERS: dict[str, tuple[Callable[[], str], float, bool]] = {
    "living process": (lambda: owner(os.getppid()), 1, True),
    "number of a process that is over": (
        lambda: f"{_owner._HOST}/{os.getppid()}/1/elsewhere",
        1,
        False,
    ),
    "other machine": (lambda: "elsewhere/1/1/x", 1, True),
    "other machine, silent": (lambda: "elsewhere/1/1/x", 61, False),
    "no name at all": (lambda: "somebody", 61, False),
}


@pytest.mark.parametrize("who", OWNERS)
async def test_who_counts_as_alive(here: Desk, who: str) -> None:
    if who.startswith("number") and not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells in a file when a process was started")
    name, ago, alive = OWNERS[who]
    root = seq(here.count("a"), here.hangs("b"))
    await here.cut_off(root)
    saved = (await here.journal())["saved"]
    await here.journal(owner=name(), saved=saved - ago)
    if alive:
        with pytest.raises(SessionError, match="its owner is ") as raised:
            await here.resume(root)
        assert "on another machine when it has given no sign of life for a minute" in str(
            raised.value
        )
    else:
        assert (await here.resume(root)).state == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("store", "how"),
    [
        *product(["sqlite", "database"], ["cancelled", "closed"]),
        ("sqlite", "overtaken"),  # in a database 1.25 does not mind
    ],
    indirect=["store"],
)
async def test_another_process_need_not_wait_for_a_run_that_was_cut_off_here(
    store: BaseSessionService, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.adk.events.event import Event

    desk = Desk(store)
    root = seq(desk.count("before"), coordinator(desk), desk.count("after"))
    if how == "cancelled":
        await desk.cut_off(root)
    else:
        desk.broken = False
        async with aclosing(
            desk.backend.stream(desk.backend.compile(root, DURABLE), "hi", **IDS)
        ) as running:
            async for event in running:
                if event.node == "a":
                    break
            if how == "overtaken":
                await store.append_event(await desk.session(), Event(author="other"))
                with pytest.raises(SessionError, match="another run wrote"):
                    await anext(running)
    assert (await desk.journal())["owner"] == ""
    name = owner(os.getppid()).rpartition("/")[0]

    def other_process(_: int) -> str:
        return name

    monkeypatch.setattr(_owner, "_this_process", other_process)
    written = list(desk.calls)
    result = await desk.resume(root)
    assert (result.text, result.state["after"]) == ("z", 1)
    assert desk.calls[len(written) :] == ["b", "after"]


def test_this_process_has_a_name() -> None:
    assert owner(os.getpid()).startswith(f"{platform.node().replace('/', '-')}/{os.getpid()}/")


# --- what there is to go on with ------------------------------------------------------------------


async def test_there_may_be_nothing_to_go_on_with(desk: Desk) -> None:
    root = seq(desk.count("a"), agent("x"))
    with pytest.raises(SessionError, match="there is no session 's'"):
        await desk.resume(root)
    await desk.service.create_session(app_name=APP, **IDS)
    with pytest.raises(SessionError, match=NOTHING) as raised:
        await desk.resume(root)
    assert "ExecutionConfig(resumable=True)" in str(raised.value)
    await desk.run(root)
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root)
    assert (await desk.session()).state["a"] == 1


@pytest.mark.parametrize("kind", ["adk", "mock"])
async def test_a_new_run_that_fails_takes_the_place_of_one_that_failed(kind: str) -> None:
    """Also where it need not be kept: what is kept must be true."""
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    from adk_fluent.backends.mock import mock_backend

    broken = True

    def breaks(state: Any) -> dict[str, Any]:
        if broken:
            raise BoomError
        return {"for": state["message"]}

    def hears(state: Any) -> dict[str, Any]:
        return {"message": f"{state.get('message', '')}!"}

    backend: Any = ADKBackend(session_service=InMemorySessionService())
    if kind == "mock":
        backend = mock_backend()
    root = seq(fn("hears", hears), fn("breaks", breaks))
    for config in (DURABLE, ExecutionConfig()):
        with pytest.raises(BoomError):
            await backend.run(backend.compile(root, config), "hi", **IDS)
    broken = False
    result = await backend.run(backend.compile(root, DURABLE), Resume(()), **IDS)
    assert result.state == {"message": "!!", "for": "!!"}
    assert [event.node for event in result] == ["breaks"]


async def test_a_run_that_only_got_its_message_has_not_begun(desk: Desk) -> None:
    from google.adk.events.event import Event
    from google.genai import types

    said = types.Content(role="user", parts=[types.Part(text="hi")])
    session = await desk.service.create_session(app_name=APP, **IDS)
    await desk.service.append_event(
        session, Event(author="user", invocation_id="e-1", content=said)
    )
    root = seq(desk.count("a"))
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root)
    assert (await desk.run(root)).state == {"a": 1}


def asks_in_vain(desk: Desk) -> Node:
    """A gate, another one whose payload cannot be made at first, and a step."""

    def shown(state: Any) -> str:
        desk.calls.append("shown")
        if desk.broken:
            raise BoomError
        return "this"

    first = GateNode("first", reads(lambda state: state["early"]))
    return seq(desk.count("a"), first, GateNode("ask", payload=Ref.to(shown)))


@pytest.mark.parametrize(("resumable", "waited"), [(True, False), (False, True)])
async def test_a_payload_that_failed_is_made_again_and_nothing_before_it(
    desk: Desk, resumable: bool, waited: bool
) -> None:
    root, config = asks_in_vain(desk), ExecutionConfig(resumable=resumable)
    said: str | Answer = "hi"
    if waited:
        said = (await desk.run(root, config=config, state={"early": True})).pending[0].answer()
    with pytest.raises(BoomError):
        await desk.run(root, said, config=config, state={"early": False})
    [question] = (await desk.resume(root, config=config)).pending
    assert (question.payload, desk.calls) == ("this", ["a", "shown", "shown"])


async def test_a_payload_that_failed_before_anybody_waited_leaves_nothing(desk: Desk) -> None:
    root, config = asks_in_vain(desk), ExecutionConfig()
    with pytest.raises(BoomError):
        await desk.run(root, config=config, state={"early": False})
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root, config=config)


async def test_what_is_not_resumable_is_not_kept(desk: Desk) -> None:
    root = seq(desk.count("a"), desk.fails("b"))
    with pytest.raises(BoomError):
        await desk.run(root, config=ExecutionConfig())
    assert KEY not in (await desk.session()).state
    with pytest.raises(SessionError, match=NOTHING):
        await desk.resume(root, config=ExecutionConfig())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "a newer version of adk-fluent-core wrote where the run"),
        ({"position": None}, "does not say where a run stands"),
        ({"more": 1}, "does not say where a run stands"),
    ],
)
async def test_a_journal_that_cannot_be_read_is_refused(
    here: Desk, changes: dict[str, Any], says: str
) -> None:
    root = seq(here.count("a"), here.hangs("b"))
    await here.cut_off(root)
    await here.journal(**changes)
    with pytest.raises(SessionError, match=says):
        await here.resume(root)


NO_JSON: dict[str, tuple[Callable[[Desk], Node], str]] = {
    "item": (lambda d: each("list", d.count("a"), item_key="item"), "list"),
    "result": (
        lambda d: each(
            "ok", seq(d.count("a"), fn("b", lambda _: {"r": {1}}), d.hangs("c")), result_key="r"
        ),
        "r",
    ),
    "attempt": (
        lambda d: fallback(seq(fn("a", lambda _: {"tags": {1}}), d.hangs("b")), agent("c")),
        "tags",
    ),
    "before": (
        lambda d: fallback(seq(fn("a", lambda _: {"list": 1}), d.hangs("b")), agent("c")),
        "list",
    ),
}


@pytest.mark.parametrize("kept", NO_JSON)
async def test_what_is_no_json_cannot_be_resumable(here: Desk, kept: str) -> None:
    make, key = NO_JSON[kept]
    with pytest.raises(UnstorableValueError) as raised:
        await here.run(seq(make(here), here.count("z")), state={"list": [{1, 2}], "ok": [1, 2]})
    error = raised.value
    assert error.what.startswith("where the run stands cannot be written down")
    assert error.key == key
    assert error.found is not None
    assert error.found.startswith(f"state[{key!r}]")
    assert error.found.endswith("is a set")
    assert "write a list: sorted(...); a run that pauses, or is resumable, keeps" in str(error.help)


async def test_what_no_open_step_wrote_is_not_kept(here: Desk) -> None:
    """A date in state is nobody's business where nothing can be undone to it."""

    def shape(name: str) -> Node:
        asks = seq(GateNode("ask"), fn("a", lambda _: {"a": 1}))
        return {
            "map": each("list", asks),
            "fallback": fallback(asks, agent("x")),
            "timeout": within(seq(fn("late", lambda _: {"late": {1}}), asks), 60),
            "parallel": par(asks, agent("x")),
        }[name]

    config = ExecutionConfig(resumable=True, timeout_seconds=60)
    start = {"list": [1], "when": date(2026, 1, 1)}
    for name in ("map", "fallback", "timeout", "parallel"):
        root = seq(fn("due", lambda _: {"due": date(2026, 1, 2)}), shape(name), here.count("z"))
        result = await here.run(root, config=config, state=start)
        result = await here.resume(root, *[each.answer() for each in result.pending], config=config)
        assert (result.pending, result.state["due"]) == ([], date(2026, 1, 2))


async def test_what_is_temporary_is_gone(here: Desk) -> None:
    root = seq(
        writer("w", **{"temp:x": 1, "y": 1}),
        here.hangs("b"),
        fn("r", lambda s: {"seen": [s.get("temp:x"), s.get("y")]}),
    )
    await here.cut_off(root)
    assert (await here.resume(root)).state["seen"] == [None, 1]


# --- what is seen of it --------------------------------------------------------------------------


async def test_nothing_of_the_bookkeeping_is_seen(desk: Desk) -> None:
    told: list[AgentEvent] = []

    class Told:
        def on_event(self, event: AgentEvent) -> None:
            told.append(event)

    root = seq(
        agent("first"),
        desk.count("a"),
        par(desk.count("c"), agent("d")),
        TapNode("t", reads(lambda _: None)),
    )
    events = await desk.run(root, listeners=[Told()])
    assert [each.node for each in events][:2] == ["first", "a"]
    assert sorted(str(each.node) for each in events[2:]) == ["c", "d"]
    for event in (*events, *told):
        assert event.content is not None or event.state_delta
        assert not [key for key in event.state_delta if key.startswith("_adk_fluent")]
    assert not [key for key in events.state if key.startswith("_adk_fluent")]
    assert (await desk.session()).state.get(KEY) is None


async def test_an_agent_that_has_spoken_speaks_elsewhere(desk: Desk) -> None:
    """ADK makes a note of who spoke, and would look for whom they had handed over to."""
    body = seq(agent("x"), desk.hangs("b", lambda s: s.get("item") == 1), name="body")
    root = seq(each("list", body, item_key="item", output_key="all", concurrency=1))
    await desk.cut_off(root, state={"list": [1, 2]})
    assert (await desk.resume(root)).state["all"] == ["x", "x"]
