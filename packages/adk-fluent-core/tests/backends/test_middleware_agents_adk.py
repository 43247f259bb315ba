"""Hooks of steps around agents that a model hands over to, and around agents that are tools."""

from __future__ import annotations

import asyncio
import copy
import pickle
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from adk_middlewares import SSE, WHERE, OwnError, content, made_of, noting, ping, text_of
from adk_programs import agent, model_of, run, seq
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from adk_fluent import Agent, gate
from adk_fluent.backends.adk import to_app
from adk_fluent.backends.adk._hooks._sites import is_site, make_site
from adk_fluent.errors import RunError, UsageError
from adk_fluent.extend import to_agent_event
from adk_fluent.ir import TransferNode
from adk_fluent.protocol import HOOKS_OF_RUNS, AgentEvent, AgentReply
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentCall, NextAgent

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

KINDS = pytest.mark.parametrize("kind", ["delegate", "tool"])
#: The hooks of a step, in their order.
STEP = ("before_agent", "wrap_agent", "after_agent")


def boss(kind: str, spec: Builder, *, name: str = "spec") -> Agent:
    """An agent that hands over to another one, or calls it."""
    if kind == "delegate":
        hands_over = Call("transfer_to_agent", {"agent_name": name})
        return Agent("boss", ScriptedModel(default=reply(hands_over))).delegates(spec)
    calls = ScriptedModel(Call(name, {"request": "go"}), "done")
    return Agent("boss", calls).agent_tool(spec)


def spec_of(*replies: Any) -> Agent:
    return Agent("spec", ScriptedModel(*replies))


def answered(kind: str, text: str) -> str:
    """What a run answers whose other agent says a text."""
    return text if kind == "delegate" else "done"


def results_of(result: Any) -> list[Any]:
    return [each.result for event in result for each in event.tool_responses]


def about(log: list[str], name: str = "spec") -> list[str]:
    """The hooks of the steps of an agent, of a log that `noting` makes."""
    hooks = [line.partition(" ") for line in log]
    return [hook for hook, _, whose in hooks if whose == name and hook in STEP]


def named(log: list[str], tag: str, *hooks: str) -> Any:
    """Notes hooks of steps with a tag, both sides of `wrap_agent`."""

    async def before_agent(ctx: Any, name: str) -> None:
        log.append(f"{tag} before {name}")

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        log.append(f"{tag} > {call.name}")
        made = await next(call)
        log.append(f"{tag} < {call.name} {made.text}")
        return made

    async def after_agent(ctx: Any, name: str) -> None:
        log.append(f"{tag} after {name}")

    async def on_agent_error(ctx: Any, name: str, error: Exception) -> None:
        log.append(f"{tag} failed {name} {type(error).__name__}")

    made = {
        "before_agent": before_agent,
        "wrap_agent": wrap_agent,
        "after_agent": after_agent,
        "on_agent_error": on_agent_error,
    }
    return made_of(**{name: hook for name, hook in made.items() if not hooks or name in hooks})


# --- order and what is told ----------------------------------------------------------------------


async def test_an_agent_that_a_callback_adds_as_a_tool_is_a_step_too() -> None:
    tool = AgentTool(LlmAgent(name="spec", model=ScriptedModel("says")))

    def adds(callback_context: Any, llm_request: Any) -> None:
        llm_request.append_tools([tool])

    log: list[str] = []
    calls = ScriptedModel(Call("spec", {"request": "go"}), "done")
    pipeline = Agent("boss", calls).before_model(adds)
    result = await pipeline.middleware(named(log, "out", "wrap_agent")).run("hi")
    assert result.text == "done"
    assert log == ["out > boss", "out > spec", "out < spec says", "out < boss done"]


@KINDS
async def test_the_first_is_the_outermost_and_all_stand_inside_the_step(kind: str) -> None:
    log: list[str] = []
    pipeline = boss(kind, spec_of("says")).middleware(named(log, "out"), named(log, "in"))
    result = await pipeline.run("hi")
    assert result.text == answered(kind, "says")
    inside = log[log.index("in > boss") + 1 : log.index(f"in < boss {result.text}")]
    assert inside == [
        *("out before spec", "in before spec", "out > spec", "in > spec"),
        *("in < spec says", "out < spec says", "in after spec", "out after spec"),
    ]


@KINDS
async def test_each_step_is_seen_once(kind: str) -> None:
    log: list[str] = []
    pipeline = boss(kind, spec_of("says")) >> Agent("b").mock("B")
    await pipeline.middleware(noting(log)).run("hi")
    for name in ("boss", "spec", "b"):
        assert about(log, name) == list(STEP), name


@KINDS
async def test_a_step_knows_where_it_is(kind: str) -> None:
    calls: list[AgentCall] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        if call.name == "spec":
            calls.append(call)
            assert call.ctx.agent_name == "spec"
            assert call.state["seen"] == len(calls) - 1
            call.ctx.state["seen"] = len(calls)
        return await next(call)

    async def before_run(ctx: Any) -> None:
        ctx.state["seen"] = 0

    model = ScriptedModel(default=reply(Call("transfer_to_agent", {"agent_name": "spec"})))
    top = boss(kind, Agent("spec").mock("says"))
    if kind == "delegate":
        top = Agent("boss", model).delegates(Agent("spec").mock("says"))
    else:
        asks = (Call("spec", {"request": "go"}), "done")
        top = Agent("boss", ScriptedModel(*asks, *asks)).agent_tool(Agent("spec").mock("says"))
    stack = made_of(wrap_agent=wrap_agent, before_run=before_run)
    result = await (Agent("a").mock("A") >> top * 2).middleware(stack).run("hi")
    assert [call.iteration for call in calls] == [0, 1]
    paths = [event.path for event in result if event.author == "boss"]
    assert [call.path for call in calls] == list(dict.fromkeys(paths))
    assert {call.run for call in calls} == {result[0].run_id}
    assert [call.node and call.node.name for call in calls] == ["spec"] * 2
    assert [call.resumed for call in calls] == [False] * 2
    assert result.state["seen"] == 2


@pytest.mark.parametrize("mode", ["whole", "streamed"])
async def test_who_hands_over_in_a_tool_encloses_who_it_hands_over_to(mode: str) -> None:
    log: list[str] = []
    inner = ScriptedModel(default="inner says")
    hands_over = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    spec = Agent("spec", hands_over).delegates(Agent("inner", inner))
    options: Any = {"config": SSE} if mode == "streamed" else {}
    pipeline = boss("tool", spec)
    result = await pipeline.middleware(named(log, "m", "wrap_agent")).run("hi", **options)
    assert log == [
        *("m > boss", "m > spec", "m > inner"),
        *("m < inner inner says", "m < spec inner says", "m < boss done"),
    ]
    assert results_of(result) == [{"result": "inner says"}]
    # and everybody is told what they are told without middlewares
    plain = ScriptedModel(default="inner says")
    hands_over = ScriptedModel(Call("transfer_to_agent", {"agent_name": "inner"}))
    await boss("tool", Agent("spec", hands_over).delegates(Agent("inner", plain))).run("hi")
    assert [turn.text for turn in inner.calls[0].turns] == [
        turn.text for turn in plain.calls[0].turns
    ]


async def test_handing_over_from_one_to_the_next_is_nested() -> None:
    log: list[str] = []
    third = Agent("third").mock("three")
    second = Agent("spec", ScriptedModel(Call("transfer_to_agent", {"agent_name": "third"})))
    pipeline = boss("delegate", second.delegates(third))
    await pipeline.middleware(named(log, "m", "wrap_agent")).run("hi")
    assert log == [
        *("m > boss", "m > spec", "m > third"),
        *("m < third three", "m < spec three", "m < boss three"),
    ]


async def test_who_is_handed_back_to_runs_once_more() -> None:
    log: list[str] = []
    model = ScriptedModel(Call("transfer_to_agent", {"agent_name": "spec"}), "back again")
    spec = spec_of(Call("transfer_to_agent", {"agent_name": "boss"}))
    pipeline = Agent("boss", model).delegates(spec)
    result = await pipeline.middleware(named(log, "m", "wrap_agent")).run("hi")
    assert result.text == "back again"
    assert log[:3] == ["m > boss", "m > spec", "m > boss"]


async def test_the_flow_itself_hands_over_to_a_delegate_which_is_then_a_step() -> None:
    log: list[str] = []
    kid = agent("kid", "from kid")
    top = agent("boss", "from boss", delegates=(kid,))
    from adk_fluent.backends.adk import ADKBackend
    from adk_fluent.config import ExecutionConfig

    program = seq(top, TransferNode("hand_over", "kid"))
    config = ExecutionConfig(middlewares=[noting(log)])
    backend = ADKBackend()
    result = await backend.run(backend.compile(program, config), "hi")
    assert result.text == "from kid"
    assert about(log, "kid") == list(STEP)


# --- what hooks do -------------------------------------------------------------------------------


@KINDS
async def test_before_agent_answers_as_if_the_agent_had(kind: str) -> None:
    log: list[str] = []

    async def before_agent(ctx: Any, name: str) -> Any:
        return content("instead") if name == "spec" else None

    model = ScriptedModel(default="never")
    pipeline = boss(kind, Agent("spec", model).writes("answer")).middleware(
        named(log, "out"), made_of(before_agent=before_agent), named(log, "in")
    )
    result = await pipeline.run("hi")
    assert result.text == answered(kind, "instead")
    assert result.state == {"answer": "instead"}
    assert model.calls == ()
    assert [each for each in log if each.endswith("spec")] == ["out before spec", "out after spec"]
    if kind == "tool":
        assert results_of(result) == [{"result": "instead"}]


@KINDS
async def test_after_agent_says_more(kind: str) -> None:
    async def after_agent(ctx: Any, name: str) -> Any:
        return content("and more") if name == "spec" else None

    spec = spec_of("says").writes("answer")
    result = await boss(kind, spec).middleware(made_of(after_agent=after_agent)).run("hi")
    assert result.state == {"answer": "says"}  # what is said besides is not its answer
    if kind == "delegate":
        said = [(event.author, event.content) for event in result if event.content]
        assert said == [("spec", "says"), ("spec", "and more")]
    else:
        assert results_of(result) == [{"result": "and more"}]


@KINDS
@pytest.mark.parametrize("hook", ["before_agent", "after_agent"])
async def test_what_hooks_write_is_kept(kind: str, hook: str, store: BaseSessionService) -> None:
    async def write(ctx: Any, name: str) -> None:
        if name == "spec":
            ctx.state["seen"] = ctx.state.get("seen", 0) + 1

    spec = Agent("spec").instruct("Seen: {seen?}").mock("says")
    pipeline = boss(kind, spec).middleware(made_of(**{hook: write}))
    result = await pipeline.run("hi", session_id="s", session_service=store)
    assert result.state["seen"] == 1
    stored = await store.get_session(**WHERE)
    assert stored is not None
    assert stored.state["seen"] == 1


@KINDS
async def test_what_hooks_write_before_it_the_agent_sees(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        call.ctx.state["who"] = call.name
        return await next(call)

    model = ScriptedModel(default="says")
    spec = Agent("spec", model).instruct("You are {who}.")
    result = await boss(kind, spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert "You are spec." in model.calls[0].system
    assert result.state == {"who": "spec"}


@KINDS
async def test_a_reply_is_put_in_the_place_of_another(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        made = await next(call)
        if call.name != "spec":
            return made
        assert (made.text, made.state_delta, made.paused) == ("says", {"answer": "says"}, False)
        return replace(made, text=f"<{made.text}>", state_delta={"answer": "mine", "more": 1})

    spec = spec_of("says").writes("answer")
    result = await boss(kind, spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert result.text == answered(kind, "<says>")
    assert result.state == {"answer": "mine", "more": 1}
    if kind == "tool":
        assert results_of(result) == [{"result": "<says>"}]


@KINDS
async def test_an_agent_is_tried_again(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        try:
            return await next(call)
        except ConnectionError:
            return await next(call)

    spec = spec_of(ConnectionError("reset"), "at last")
    result = await boss(kind, spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert result.text == answered(kind, "at last")


@KINDS
@pytest.mark.parametrize("said", ["refused", ""])
async def test_an_agent_is_refused(kind: str, said: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        return AgentReply(said) if call.name == "spec" else await next(call)

    model = ScriptedModel(default="never")
    top = boss(kind, Agent("spec", model))
    result = (
        await (top >> Agent("b").mock("B")).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    )
    assert model.calls == ()
    assert result.text == "B"
    texts = [event.content for event in result if event.content]
    if kind == "delegate":  # and who has handed over is not asked once more
        assert texts == [each for each in (said, "B") if each]
        assert len([event for event in result if event.transfer_to]) == 1
    else:
        assert texts == ["done", "B"]
        assert results_of(result) == [{"result": said}]


@KINDS
async def test_an_error_is_made_good(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        try:
            return await next(call)
        except ConnectionError:
            return AgentReply("closed", {"why": "down"})

    spec = spec_of(ConnectionError("reset"))
    result = await boss(kind, spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert result.text == answered(kind, "closed")
    assert result.state == {"why": "down"}


# --- errors --------------------------------------------------------------------------------------


@KINDS
async def test_errors_keep_their_type_and_are_told_of_from_inside(kind: str) -> None:
    log: list[str] = []
    pipeline = boss(kind, spec_of(OwnError("no"))).middleware(named(log, "m", "on_agent_error"))
    with pytest.raises(OwnError, match="no"):
        await pipeline.run("hi")
    assert log == ["m failed spec OwnError", "m failed boss OwnError"]


@KINDS
@pytest.mark.parametrize("hook", [*STEP, "on_agent_error", "on_event"])
async def test_what_a_hook_raises_keeps_its_type(kind: str, hook: str) -> None:
    async def fails(*args: Any) -> Any:
        what: Any = args[0]
        name = args[1] if isinstance(args[1], str) else getattr(what, "name", "")
        if name == "spec" or getattr(args[1], "author", "") == "spec":
            raise OwnError(hook)
        following: Any = args[1]
        return await following(what) if hook == "wrap_agent" else None

    says = ConnectionError("reset") if hook == "on_agent_error" else "says"
    with pytest.raises(OwnError, match=hook):
        await boss(kind, spec_of(says)).middleware(made_of(**{hook: fails})).run("hi")


@KINDS
async def test_what_hooks_write_when_an_agent_fails_is_kept(
    kind: str, store: BaseSessionService
) -> None:
    async def on_agent_error(ctx: Any, name: str, error: Exception) -> None:
        ctx.state[f"failed_{name}"] = True

    pipeline = boss(kind, spec_of(OwnError("no")))
    with pytest.raises(OwnError):
        await pipeline.middleware(made_of(on_agent_error=on_agent_error)).run(
            "hi", session_id="s", session_service=store
        )
    stored = await store.get_session(**WHERE)
    assert stored is not None
    assert stored.state["failed_boss"] is True
    assert stored.state["failed_spec"] is True


@KINDS
async def test_an_observer_stops_nothing(kind: str) -> None:
    async def fails(*args: Any) -> Any:
        raise ValueError("the observer's own")

    stack = made_of(**dict.fromkeys([*STEP, "on_event"], fails))
    type(stack).observer = True
    result = await boss(kind, spec_of("says")).middleware(stack).run("hi")
    assert result.text == answered(kind, "says")


@KINDS
@pytest.mark.parametrize("how", ["two at once", "after its end", "not awaited"])
async def test_an_agent_runs_once_at_a_time(kind: str, how: str) -> None:
    kept: list[Any] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> Any:
        if call.name != "spec":
            made = await next(call)
            return await kept[0]() if kept else made
        if how == "two at once":
            await asyncio.gather(next(call), next(call))
        if how == "after its end":
            kept.append(lambda: next(call))
            return await next(call)
        task = asyncio.ensure_future(next(call))
        await asyncio.sleep(0)
        assert not task.done()
        return AgentReply("early")

    running = boss(kind, spec_of(reply("x", latency=0.02)))
    running = running.middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    if how == "not awaited":
        result = await running
        assert result.text == answered(kind, "early")
        assert "x" not in [event.content for event in result]
        return
    with pytest.raises(UsageError, match="spec cannot be run"):
        await running


@KINDS
async def test_what_cancels_itself_is_an_error(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        if call.name == "spec":
            raise asyncio.CancelledError
        return await next(call)

    with pytest.raises(RunError, match="spec was cancelled from inside"):
        await boss(kind, spec_of("says")).middleware(made_of(wrap_agent=wrap_agent)).run("hi")


# --- time limits, streams, closing early ---------------------------------------------------------


@KINDS
async def test_a_time_limit_may_stand_around_it(kind: str) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        if call.name != "spec":
            return await next(call)
        try:
            async with asyncio.timeout(0.05):
                return await next(call)
        except TimeoutError:
            return AgentReply("too late")

    spec = spec_of(reply("x", latency=60))
    result = await boss(kind, spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert result.text == answered(kind, "too late")
    assert asyncio.all_tasks() == {asyncio.current_task()}


@KINDS
async def test_a_run_with_too_little_time_leaves_nothing_behind(kind: str) -> None:
    log: list[str] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        if call.name == "spec":
            limit.reschedule(asyncio.get_running_loop().time() + 0.05)
        try:
            return await next(call)
        finally:
            log.append(call.name)

    pipeline = boss(kind, spec_of(reply("x", latency=60)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            await pipeline.middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    for _ in range(5):
        await asyncio.sleep(0)
    assert log == ["spec", "boss"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_fragments_go_out_while_it_runs() -> None:
    log: list[str] = []
    spec = spec_of(reply(chunks=("one ", "two"), pause=0.005))
    pipeline = boss("delegate", spec).middleware(named(log, "m"))
    async with aclosing(pipeline.stream("hi", config=SSE)) as events:
        async for event in events:
            if event.content:
                assert (event.content, event.is_partial) == ("one ", True)
                assert log[-1] == "m > spec"
                break
        rest = [(event.content, event.is_partial) async for event in events if event.content]
    assert rest == [("two", True), ("one two", False)]
    assert log[-1] == "m after boss"


async def test_closing_early_ends_it_and_leaves_no_task() -> None:
    ended: list[str] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        try:
            return await next(call)
        finally:
            ended.append(call.name)

    spec = spec_of(reply(chunks=("one ", "two"), pause=5))
    pipeline = boss("delegate", spec).middleware(made_of(wrap_agent=wrap_agent))
    stream = pipeline.stream("hi", config=SSE)
    async for event in stream:
        if event.content:
            break
    await stream.aclose()
    for _ in range(5):
        await asyncio.sleep(0)
    assert ended == ["spec", "boss"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_agents_that_are_called_at_the_same_time() -> None:
    most, now = 0, 0
    names: list[str] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        nonlocal most, now
        if call.name == "boss":
            return await next(call)
        now += 1
        most = max(most, now)
        call.ctx.state[call.name] = call.name
        made = await next(call)
        names.append(f"{call.name} {made.text}")
        now -= 1
        return made

    calls = [Call(name, {"request": "go"}) for name in ("x", "y", "x")]
    slow = {n: ScriptedModel(default=reply(n.upper(), latency=0.05)) for n in "xy"}
    top = Agent("boss", ScriptedModel(reply(*calls), "done"))
    top = top.agent_tool(Agent("x", slow["x"])).agent_tool(Agent("y", slow["y"]))
    result = await top.middleware(made_of(wrap_agent=wrap_agent)).run("hi")
    assert sorted(names) == ["x X", "x X", "y Y"]
    assert most == 3
    assert result.state == {"x": "x", "y": "y"}


# --- waiting and going on ------------------------------------------------------------------------


def later(word: str) -> None:
    """Takes its time."""


@pytest.mark.parametrize("asks", ["tool", "confirmation"])
async def test_who_waits_goes_on_inside_its_hooks(asks: str, store: BaseSessionService) -> None:
    seen: list[Any] = []
    log: list[str] = []

    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        made = await next(call)
        seen.append((call.name, call.resumed, made.paused, made.text))
        return made

    if asks == "tool":
        spec = spec_of(Call("later", {"word": "w"}), "says").tool(LongRunningFunctionTool(later))
    else:
        spec = spec_of(Call("ping", {"word": "w"}), "says").tool(ping, require_confirmation=True)
    pipeline = boss("delegate", spec) >> Agent("b").mock("B")
    pipeline = pipeline.middleware(made_of(wrap_agent=wrap_agent), noting(log, state=True))
    options: Any = {"session_id": "s", "session_service": store}
    paused = await pipeline.run("hi", **options)
    assert [(each[:3]) for each in seen if each[0] != "pipeline"] == [
        ("spec", False, True),
        ("boss", False, True),
    ]
    assert "after_agent spec" not in log
    seen.clear()
    log.clear()
    (asked,) = paused.pending
    result = await pipeline.resume(asked.answer(True), **options)
    assert result.text == "B"
    assert [each for each in seen if each[0] in ("spec", "boss")] == [
        ("spec", True, False, "says"),
        ("boss", True, False, "says"),
    ]
    assert about(log) == list(STEP)
    assert result.state["after_agent"]


async def test_who_still_waits_for_another_answer_is_not_done() -> None:
    log: list[str] = []
    both = reply(Call("ping", {"word": "a"}, id="1"), Call("ping", {"word": "b"}, id="2"))
    spec = spec_of(both, "first", "both").tool(ping, require_confirmation=True)
    pipeline = boss("delegate", spec).middleware(named(log, "m", "after_agent"))
    options: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    result = await pipeline.run("hi", **options)
    while result.pending:
        assert log == []
        result = await pipeline.resume(result.pending[0].answer(True), **options)
    assert log == ["m after spec", "m after boss"]


async def test_nobody_ends_what_waits() -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        made = await next(call)
        return AgentReply("done") if call.name == "spec" else made

    spec = spec_of(Call("later", {"word": "w"}), "says").tool(LongRunningFunctionTool(later))
    with pytest.raises(UsageError, match="spec waits for an answer"):
        await boss("delegate", spec).middleware(made_of(wrap_agent=wrap_agent)).run("hi")


async def test_a_second_turn_has_its_hooks_too() -> None:
    log: list[str] = []
    pipeline = boss("delegate", Agent("spec").mock("says")).middleware(noting(log))
    options: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    for _ in range(2):
        log.clear()
        assert (await pipeline.run("hi", **options)).text == "says"
        assert (about(log, "boss"), about(log)) == (list(STEP), list(STEP))


# --- parts of a pipeline -------------------------------------------------------------------------


@KINDS
async def test_around_the_agent_alone(kind: str) -> None:
    log: list[str] = []
    spec = spec_of("says").middleware(noting(log), scope="agent")
    await (boss(kind, spec) >> Agent("b").mock("B")).run("hi")
    hooks = {each.partition(" ")[0] for each in log}
    assert hooks.isdisjoint(HOOKS_OF_RUNS)
    assert about(log) == list(STEP)
    assert log.count("on_event") == 1
    assert not any(each.endswith((" boss", " b")) for each in log)


@KINDS
async def test_around_a_part_above_it(kind: str) -> None:
    log: list[str] = []
    part = boss(kind, spec_of("says")).middleware(noting(log), scope="agent")
    await (Agent("a").mock("A") >> part).run("hi")
    assert (about(log, "a"), about(log, "boss"), about(log)) == ([], list(STEP), list(STEP))


@KINDS
@pytest.mark.parametrize("inner", ["delegate", "tool"])
async def test_what_is_below_such_an_agent_is_part_of_it_once(kind: str, inner: str) -> None:
    log: list[str] = []
    calls = Call("transfer_to_agent", {"agent_name": "low"})
    if inner == "tool":
        calls = Call("low", {"request": "go"})
    spec = spec_of(calls, "says")
    low = Agent("low").mock("low says")
    spec = spec.delegates(low) if inner == "delegate" else spec.agent_tool(low)
    await boss(kind, spec.middleware(noting(log), scope="agent")).run("hi")
    assert (about(log, "boss"), about(log), about(log, "low")) == ([], list(STEP), list(STEP))
    models = [each for each in log if each.startswith("wrap_model_call")]
    assert models.count("wrap_model_call low") == 1
    assert log.count("on_event") == {"delegate": 3, "tool": 4}[inner]


@KINDS
@pytest.mark.parametrize("scope", ["pipeline", "agent"])
async def test_who_only_looks_sees_each_event_as_it_was_changed(kind: str, scope: Any) -> None:
    changed, seen = list[Any](), list[Any]()

    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent:
        changed.append(replace(event, custom_metadata={"seen": len(changed)}).to_dict())
        return AgentEvent.from_dict(changed[-1])

    def see_event(ctx: Any, event: Event) -> None:
        seen.append(to_agent_event(event).to_dict())

    around = made_of(on_event=on_event, see_event=see_event)
    part = boss(kind, spec_of("says")).middleware(around, scope=scope)
    result = await (Agent("a").mock("A") >> part).run("hi")
    assert seen == changed
    inside = result if scope == "pipeline" else result[1:]
    assert len(seen) == len(inside) + (1 if kind == "tool" else 0)


@KINDS
async def test_a_pipeline_below_an_agent_asks_each_hook_once(kind: str) -> None:
    whole, part = list[str](), list[str]()
    x = Agent("x").mock("X").middleware(noting(part), scope="agent")
    spec = (x >> Agent("y").mock("Y")).named("spec")
    result = await boss(kind, spec).middleware(noting(whole)).run("hi")
    assert result.text == answered(kind, "Y")
    for name in ("spec", "x", "y"):
        assert about(whole, name) == list(STEP), name
    assert (about(part, "x"), about(part, "y")) == (list(STEP), [])
    assert part.count("on_event") == 1
    texts = [event.content for event in result if event.content]
    assert whole.count("on_event") == len(result) + (2 if kind == "tool" else 0), texts


@KINDS
async def test_a_pipeline_below_an_agent_is_inside_what_is_around_that(kind: str) -> None:
    log: list[str] = []
    pipe = (Agent("x").mock("X") >> Agent("y").mock("Y")).named("pipe")
    spec = boss(kind, pipe, name="pipe").clone("spec").middleware(noting(log), scope="agent")
    await boss("delegate", spec).run("hi")
    assert about(log, "boss") == []
    for name in ("spec", "pipe", "x", "y"):
        assert about(log, name) == list(STEP), name
    assert log.count("wrap_model_call x") == 1


# --- events of agents that are tools -------------------------------------------------------------


async def test_events_of_an_agent_that_is_a_tool_are_seen_and_changed() -> None:
    seen: list[AgentEvent] = []

    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        seen.append(event)
        if event.author == "spec" and event.content:
            return replace(event, content=f"{event.content}!", state_delta={"answer": "mine"})
        return None

    spec = spec_of(Call("ping", {"word": "hi"}), "says").tool(ping).writes("answer")
    pipeline = Agent("a").mock("A") >> boss("tool", spec)
    result = await pipeline.middleware(made_of(on_event=on_event)).run("hi")
    assert results_of(result) == [{"result": "says!"}]
    assert result.state == {"answer": "mine"}
    inside = [event for event in seen if event.author == "spec"]
    assert [bool(event.tool_calls) for event in inside] == [True, False, False]
    assert {(event.path, event.node, event.run_id) for event in inside} == {
        ("s1", "boss", result[0].run_id)
    }
    assert [event for event in result if event.author == "spec"] == []


async def test_an_event_of_a_tool_keeps_its_own_metadata() -> None:
    kept: list[Any] = []

    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        if event.author != "spec":
            return None
        kept.append(event.raw)
        return replace(event, custom_metadata={"mine": 1})

    await boss("tool", spec_of("says")).middleware(made_of(on_event=on_event)).run("hi")
    assert [event.custom_metadata for event in kept] == [{"mine": 1}]


async def test_events_of_a_pipeline_that_is_a_tool_are_seen_once() -> None:
    seen: list[Any] = []

    async def on_event(ctx: Any, event: AgentEvent) -> AgentEvent | None:
        seen.append((event.author, event.content))
        return replace(event, content=f"{event.content}!") if event.author == "y" else None

    pipe = (Agent("x").mock("X") >> Agent("y").mock("Y")).named("spec")
    result = await boss("tool", pipe).middleware(made_of(on_event=on_event)).run("hi")
    assert [each for each in seen if each[0] in ("x", "y")] == [("x", "X"), ("y", "Y")]
    assert results_of(result) == [{"result": "Y!"}]


async def test_a_tool_that_runs_an_agent_closes_no_middleware() -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    stack = made_of(close=close)
    pipeline = boss("tool", spec_of("says")).middleware(stack)
    await pipeline.run("hi")
    assert closed == []
    await to_app(pipeline.to_ir()).plugins[0].close()
    assert closed == ["closed"]


# --- agents that were built by hand --------------------------------------------------------------


@pytest.mark.parametrize("way", ["delegate", "tool", "toolset", "sequence"])
async def test_agents_that_were_built_by_hand(way: str) -> None:
    log: list[str] = []
    spec = LlmAgent(name="spec", model=ScriptedModel(default="says"))
    calls = ScriptedModel(Call("spec", {"request": "go"}), "done")

    class Box(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> Any:
            return [AgentTool(spec)]

        async def close(self) -> None:
            log.append("box closed")

    top: Any
    if way == "delegate":
        hands_over = ScriptedModel(Call("transfer_to_agent", {"agent_name": "spec"}))
        top = LlmAgent(name="boss", model=hands_over, sub_agents=[spec])
    elif way == "sequence":
        top = SequentialAgent(name="boss", sub_agents=[spec])  # pyright: ignore[reportDeprecated]
    else:
        tool = AgentTool(spec) if way == "tool" else Box()
        top = LlmAgent(name="boss", model=calls, tools=[tool])
    pipeline = Agent("a").mock("A") >> top
    await pipeline.middleware(noting(log)).run("hi")
    assert (about(log, "boss"), about(log)) == (list(STEP), list(STEP))
    assert log.index("wrap_agent boss") < log.index("before_agent spec")
    assert is_site(spec) is (way == "toolset")  # of all others a copy runs


def test_a_site_of_an_agent_stays_what_it_was() -> None:
    inner = LlmAgent(name="inner", model="gemini-2.5-flash")
    made = make_site(LlmAgent(name="spec", model="gemini-2.5-flash", sub_agents=[inner]))
    assert is_site(made)
    assert type(made).__name__ == "LlmAgent"
    assert isinstance(made, LlmAgent)
    for twin in (copy.copy(made), made.model_copy(), made.clone()):
        assert type(twin) is type(made)
        assert twin.name == "spec"
    loaded = pickle.loads(pickle.dumps(make_site(LlmAgent(name="spec", model="m"))))
    assert type(loaded) is LlmAgent


async def test_without_middlewares_no_agent_is_a_site() -> None:
    kid = agent("kid", "from kid")
    program = agent("boss", "x", delegates=(kid,), agent_tools=(agent("tool", "t"),))
    root: Any = to_app(program).root_agent
    (made,) = root.sub_agents
    assert not is_site(made)
    assert not is_site(made.sub_agents[0])
    assert not is_site(made.tools[0].agent)
    assert (await run(program)).text == "x"
    assert model_of(kid).calls == ()


async def test_gates_below_an_agent_go_on_inside_its_hooks() -> None:
    log: list[str] = []
    pipe = (Agent("x").mock("X") >> gate(message="Go on?") >> Agent("y").mock("Y")).named("pipe")
    pipeline = boss("delegate", pipe, name="pipe").middleware(noting(log))
    options: Any = {"session_id": "s", "session_service": InMemorySessionService()}
    paused = await pipeline.run("hi", **options)
    assert about(log, "pipe") == ["before_agent", "wrap_agent"]
    log.clear()
    result = await pipeline.resume(paused.pending[0].answer(True), **options)
    assert result.text == "Y"
    assert (about(log, "pipe"), about(log, "x"), about(log, "y")) == (list(STEP), [], list(STEP))


async def test_what_is_stored_is_what_is_seen(store: BaseSessionService) -> None:
    async def wrap_agent(call: AgentCall, next: NextAgent) -> AgentReply:
        made = await next(call)
        return replace(made, text="better") if call.name == "spec" else made

    pipeline = boss("delegate", spec_of("says")).middleware(made_of(wrap_agent=wrap_agent))
    result = await pipeline.run("hi", session_id="s", session_service=store)
    stored = await store.get_session(**WHERE)
    assert stored is not None
    said = [text_of(each.content) for each in stored.events if each.content]
    assert [each for each in said if each] == ["hi", "says", "better"]
    assert result.text == "better"
