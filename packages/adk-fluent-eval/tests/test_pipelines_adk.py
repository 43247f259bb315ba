"""Suites run against whatever runs on ADK, each run of a case in a world of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    adk_agent,
    agent,
    calling,
    case,
    desk,
    lookup,
    loop,
    outcome_of,
    passes,
    report_of,
    says,
    scripted,
    sequence,
    suite_of,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent, Fallback, FanOut, Loop, Pipeline, Resource, Route, map_over
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import BuildError
from adk_fluent.eval import EvalError, FluentCase, FluentEvalSuite, Status
from adk_fluent.ir import AppNode
from adk_fluent.testing import Asked, Call, reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

GRAPHS = not adk_version.startswith("1.")


# --- what runs -----------------------------------------------------------------------------------


PIPELINES: dict[str, tuple[Callable[[], Any], str]] = {
    "agent": (lambda: agent("a"), "a"),
    "pipeline": (lambda: agent("a") >> agent("b"), "b"),
    "named pipeline": (lambda: Pipeline("p", agent("a"), agent("b")), "b"),
    "fan out": (lambda: FanOut("f", agent("a"), agent("b")), "a\n\nb"),
    "loop": (lambda: Loop("l", agent("a"), max=2), "a"),
    "route": (
        lambda: agent("a", "x", writes="k") >> Route("k").eq("x", agent("b")).otherwise(agent("c")),
        "b",
    ),
    "fallback": (lambda: Fallback("f", agent("a", ValueError("no")), agent("b")), "b"),
    "map over": (lambda: _listed >> map_over("items", agent("a")) >> agent("b"), "b"),
    "function": (lambda: Pipeline("p", _listed, agent("a")), "a"),
    "ir": ((agent("a") >> agent("b")).to_ir, "b"),
    "app ir": (
        lambda: AppNode("shop", agent("a").to_ir(), execution=ExecutionConfig(app_name="shop")),
        "a",
    ),
    "agent of ADK": (lambda: adk_agent("a"), "a"),
    "ADK in ours": (lambda: agent("a") >> adk_agent("b"), "b"),
    "ours as ADK": ((agent("a") >> agent("b")).to_agent, "b"),
    "sequence of ADK": (
        lambda: sequence("s", adk_agent("a"), adk_agent("b")),
        "b",
    ),
    "loop of ADK": (
        lambda: loop("s", adk_agent("a")),
        "a",
    ),
    "app": (lambda: App(name="shop", root_agent=adk_agent("a")), "a"),
    "ours as app": (lambda: agent("a").to_app(), "a"),
    "tree": (
        lambda: LlmAgent(
            name="root",
            model=says(calling(Call("transfer_to_agent", {"agent_name": "b"}))),
            sub_agents=[adk_agent("a"), adk_agent("b")],
        ),
        "b",
    ),
}


def _listed(state: Any) -> dict[str, Any]:
    return {"items": [1, 2]}


@pytest.mark.parametrize("kind", PIPELINES)
@pytest.mark.parametrize("stored", [False, True], ids=["memory", "sqlite"])
async def test_whatever_runs_is_run(kind: str, stored: bool, tmp_path: Path) -> None:
    make, answer = PIPELINES[kind]
    service = SqliteSessionService(str(tmp_path / "s.db")) if stored else None
    outcome = await outcome_of(
        make(), options={"session_service": service}, expected_response_contains=answer
    )
    assert outcome.status is Status.PASSED, (outcome.reasons, outcome.turns)
    assert outcome.response == answer


@pytest.mark.skipif(not GRAPHS, reason="google-adk 1.x has no graphs")
async def test_a_workflow() -> None:
    from google.adk.workflow import START, Workflow

    def upper(node_input: Any) -> str:
        return "DONE"

    graph: Any = Workflow(name="w", edges=[(START, adk_agent("a"), upper)])
    outcome = await passes(graph)
    assert [each.author for each in outcome.turns[0].steps if each.text] == ["a"]
    in_app: Any = App(name="shop", root_agent=Workflow(name="w", edges=[(START, adk_agent("a"))]))
    assert (await passes(in_app)).response == "a"


@pytest.mark.parametrize("config", [ExecutionConfig(), ExecutionConfig(streaming_mode="sse")])
async def test_streaming_changes_nothing_of_what_is_seen(config: ExecutionConfig) -> None:
    asked: list[bool] = []

    def answer(it: Asked) -> Any:
        asked.append(it.stream)
        return reply(chunks=["Half ", "and half"])

    ir = AppNode("p", agent("a", answer, writes="k").to_ir(), execution=config)
    outcome = await passes(ir, expected_response_contains="half and half")
    assert asked == [config.streaming_mode == "sse"]
    assert outcome.response == "Half and half"
    assert [step.text for step in outcome.turns[0].steps if step.text] == ["Half and half"]
    assert outcome.turns[0].model_calls == 1
    assert outcome.tokens.output == 4  # ScriptedModel takes 4 characters for a token
    assert outcome.state == {"k": "Half and half"}


@pytest.mark.parametrize(
    "pipeline", [None, 7, "desk", Agent, LlmAgent, [agent], {}], ids=lambda each: str(each)[:20]
)
async def test_anything_else_is_refused(pipeline: Any) -> None:
    with pytest.raises(EvalError) as caught:
        await outcome_of(pipeline)
    assert "builder" in str(caught.value) or "FluentEvalSuite(pipeline=...)" in str(caught.value)


async def test_what_cannot_be_compiled_is_an_error_of_the_suite() -> None:
    model = says("x")
    with pytest.raises(BuildError, match="two different agents are called 'a'"):
        await outcome_of(Agent("a", model) >> Agent("a", says("y")))
    assert model.calls == ()


# --- functions that make it ----------------------------------------------------------------------


async def test_a_function_makes_one_for_each_run() -> None:
    made: list[Agent] = []

    def make() -> Agent:
        made.append(Agent("a", scripted("only once")))
        return made[-1]

    suite = suite_of(make, case("Hi", id="x"), case("Ho", id="y"), num_runs=2)
    report = await suite.run()
    assert [each.response for each in report.outcomes] == ["only once"] * 4
    assert len(made) == 4
    suite.check()
    assert len(made) == 5


@pytest.mark.parametrize("fails_at", [1, 2])
async def test_a_function_that_fails(fails_at: int) -> None:
    made: list[int] = []

    def make() -> Agent:
        made.append(1)
        if len(made) == fails_at:
            raise ConnectionError("no database")
        return agent("a")

    if fails_at == 1:
        with pytest.raises(EvalError, match=r"make\(\): ConnectionError: no database"):
            await report_of(make, case("Hi", id="x"))
        return
    report = await report_of(make, case("Hi", id="x"), case("Ho", id="y"), parallelism=1)
    assert [each.status for each in report.outcomes] == [Status.PASSED, Status.ERROR]
    assert report.outcomes[1].error == "ConnectionError: no database"


async def test_a_function_that_makes_no_pipeline() -> None:
    async def make() -> Agent:
        return agent("a")

    def wants(name: str) -> Agent:
        return agent(name)

    with pytest.raises(EvalError) as caught:
        await outcome_of(make)
    assert caught.value.what == "the function that makes the pipeline is async"
    assert caught.value.help is not None
    assert "def" in caught.value.help
    with pytest.raises(EvalError) as caught:
        await outcome_of(wants)
    assert caught.value.what == "the function that makes the pipeline takes arguments"
    assert "lambda: wants(...)" in str(caught.value.help)
    with pytest.raises(EvalError, match="nothing that runs"):
        await outcome_of(lambda: "x")


# --- middlewares, resources, plugins -------------------------------------------------------------


class Counts:
    """A middleware that counts."""

    def __init__(self) -> None:
        self.models = 0
        self.tools: list[str] = []
        self.closed = 0

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.models += 1
        return await next(call)

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        self.tools.append(call.name)
        return await next(call)

    async def close(self) -> None:
        self.closed += 1


class Tools(BaseToolset):
    """A toolset that counts how often it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    async def get_tools(self, readonly_context: Any = None) -> Any:
        return [FunctionTool(lookup)]

    async def close(self) -> None:
        self.closed += 1


class Plugin(BasePlugin):
    """A plugin that notes what it sees."""

    def __init__(self, name: str = "mine") -> None:
        super().__init__(name=name)
        self.log: list[str] = []

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        self.log.append("run")

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        self.log.append(tool.name)

    async def close(self) -> None:
        self.log.append("close")


async def test_middlewares_stand_around_each_run_and_are_closed_once() -> None:
    counts = Counts()
    program = desk().middleware(counts)
    report = await report_of(program, case("Hi", id="x"), case("Ho", id="y"), num_runs=2)
    assert report.pass_rate == 1.0
    assert (counts.models, counts.tools, counts.closed) == (8, ["lookup"] * 4, 1)


@pytest.mark.parametrize("stop", ["end", "error", "left", "fail fast"])
async def test_what_was_opened_is_closed_however_it_ends(stop: str) -> None:
    tools, counts = Tools(), Counts()
    call = says(calling(Call("lookup", {"order": "A1"})))
    program = Agent("desk", call).tool(tools).middleware(counts)
    cases = [case("Hi", id=str(number)) for number in range(4)]
    if stop == "error":
        program = Agent("desk", says(ValueError("no"))).tool(tools).middleware(counts)
    suite = suite_of(program, *cases)
    if stop == "left":
        stream = suite.stream(parallelism=1)
        async for _ in stream:
            break
        await stream.aclose()
    elif stop == "fail fast":
        suite.cases[0].expected_response_contains = "nothing of the kind"
        await suite.run(parallelism=1, fail_fast=True)
    else:
        await suite.run()
    assert (tools.closed, counts.closed) == (1, 1)


async def test_a_toolset_that_several_parts_share_is_closed_once() -> None:
    tools = Tools()
    call = calling(Call("lookup", {"order": "A1"}))
    leaf = LlmAgent(name="leaf", model=says(call), tools=[tools])
    root = sequence("root", adk_agent("a"), leaf)
    parts = [None, "leaf", "root"]
    await report_of(root, *(case("Hi", id=str(part), target_node=part) for part in parts))
    assert tools.closed == 1


async def test_what_a_function_makes_is_closed_when_its_run_ends() -> None:
    made: list[tuple[Tools, Plugin]] = []

    def make() -> App:
        assert all(tools.closed and "close" in plugin.log for tools, plugin in made)
        made.append((Tools(), Plugin()))
        leaf = LlmAgent(name="leaf", model=says("a"), tools=[made[-1][0]])
        return App(name="shop", root_agent=leaf, plugins=[made[-1][1]])

    report = await report_of(make, case(), num_runs=3, parallelism=1)
    assert report.pass_rate == 1.0
    assert [(tools.closed, plugin.log) for tools, plugin in made] == [(1, ["run", "close"])] * 3


async def test_what_runs_have_at_the_same_time_is_closed_after_the_last_of_them() -> None:
    plugin, all_are_here = Plugin(), asyncio.Barrier(3)

    async def answer(_: Any) -> str:
        await all_are_here.wait()
        return "a"

    app = App(name="shop", root_agent=adk_agent("a", answer), plugins=[plugin])
    report = await report_of(lambda: app, case(), num_runs=3, parallelism=3)
    assert report.pass_rate == 1.0
    assert plugin.log == [*["run"] * 3, "close"]


@pytest.mark.parametrize("what", ["plugin", "toolset", "middleware"])
async def test_what_fails_to_close_hides_no_results(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    class StuckPlugin(Plugin):
        async def close(self) -> None:
            raise RuntimeError("it is stuck")

    class StuckTools(Tools):
        async def close(self) -> None:
            raise RuntimeError("it is stuck")

    class Stuck(Counts):
        async def close(self) -> None:
            raise RuntimeError("it is stuck")

    other = Plugin("other")
    program: Any = desk().middleware(Stuck())
    if what == "plugin":
        program = App(name="shop", root_agent=adk_agent("a"), plugins=[StuckPlugin(), other])
    elif what == "toolset":
        stuck = LlmAgent(name="a", model=says("a"), tools=[StuckTools()])
        program = App(name="shop", root_agent=stuck, plugins=[other])
    report = await report_of(program, case())
    assert report.pass_rate == 1.0
    assert "could not be closed" in caplog.text
    assert "it is stuck" in caplog.text
    assert what == "middleware" or "close" in other.log


async def test_resources_are_made_for_each_run() -> None:
    log: list[str] = []

    def shelf() -> Iterator[list[str]]:
        log.append("open")
        yield []
        log.append("close")

    def put(order: str, shelf: list[str]) -> str:
        """Put an order on a shelf."""
        shelf.append(order)
        return f"{len(shelf)} on it"

    program = desk(Call("put", {"order": "A1"}), tools=(put,)).inject(shelf=Resource(shelf))
    report = await report_of(
        program, case(expected_response_contains="1 on it"), num_runs=3, parallelism=1
    )
    assert report.pass_rate == 1.0
    assert log == ["open", "close"] * 3


async def test_resources_of_the_app_are_shared_until_the_pipeline_is_closed() -> None:
    log: list[str] = []

    async def pool() -> AsyncIterator[str]:
        log.append("open")
        yield "pool"
        log.append("close")

    def use(state: Any, pool: str) -> dict[str, Any]:
        return {"used": pool}

    program = (agent("a") >> use).inject(pool=Resource(pool, scope="app"))
    report = await report_of(program, case(state_assertions={"used": "pool"}), num_runs=3)
    assert report.pass_rate == 1.0
    assert log == ["open"]
    await program.aclose()
    assert log == ["open", "close"]


async def test_plugins_of_the_app_come_before_those_of_the_run() -> None:
    own, more = Plugin("own"), Plugin("more")
    app = App(name="shop", root_agent=desk().to_agent(), plugins=[own])
    report = await report_of(app, case(), plugins=[more])
    assert report.pass_rate == 1.0
    assert own.log == ["run", "lookup", "close"]
    assert more.log == ["run", "lookup"]  # whoever gave it may want it for another run
    assert app.plugins == [own]


async def test_two_plugins_of_one_name_are_told_apart_before_anything_runs() -> None:
    model = says("x")
    app = App(name="shop", root_agent=LlmAgent(name="a", model=model), plugins=[Plugin()])
    with pytest.raises(EvalError, match="two plugins are called 'mine'"):
        await report_of(app, case(), plugins=[Plugin()])
    assert model.calls == ()


async def test_an_app_keeps_what_it_is_set_to() -> None:
    app = App(name="shop", root_agent=adk_agent("a"), plugins=[])
    before = app.model_copy()
    service = InMemorySessionService()
    report = await report_of(app, case(), session_service=service)
    assert report.pass_rate == 1.0
    assert app.name == before.name
    assert app.root_agent is before.root_agent


# --- worlds apart --------------------------------------------------------------------------------


def remember(tool_context: Any) -> dict[str, Any]:
    """Count how often this was called, for everyone, for the user, and in the session."""
    seen = {scope: tool_context.state.get(f"{scope}n", 0) + 1 for scope in ("", "user:", "app:")}
    for scope, number in seen.items():
        tool_context.state[f"{scope}n"] = number
    return seen


ONCE = {"n": 1, "user:n": 1, "app:n": 1}


def _shared(kind: str, tmp_path: Path) -> Any:
    if kind == "none":
        return None
    return (
        InMemorySessionService() if kind == "memory" else SqliteSessionService(str(tmp_path / "s"))
    )


@pytest.mark.parametrize("kind", ["none", "memory", "sqlite"])
@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_state_of_users_and_of_the_app_never_leaks(
    kind: str, built: str, tmp_path: Path
) -> None:
    model = says(calling(Call("remember")))
    ours = Agent("a", model).tool(remember)
    program = ours if built == "ours" else LlmAgent(name="a", model=model, tools=[remember])
    service = _shared(kind, tmp_path)
    cases = [case("Hi", id=str(number), state_assertions=ONCE) for number in range(3)]
    report = await report_of(program, *cases, session_service=service, num_runs=2)
    assert [each.reasons for each in report.outcomes] == [[]] * 6
    assert [each.state for each in report.outcomes] == [ONCE] * 6
    again = await report_of(program, *cases, session_service=service)
    assert [each.state for each in again.outcomes] == [ONCE] * 3


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_state_that_is_there_already_is_left_alone(kind: str, tmp_path: Path) -> None:
    service = _shared(kind, tmp_path)
    await service.create_session(app_name="shop", user_id="u", state={"app:n": 7, "user:n": 7})
    app = App(
        name="shop",
        root_agent=LlmAgent(name="a", model=says(calling(Call("remember"))), tools=[remember]),
    )
    report = await report_of(app, case(state_assertions=ONCE), session_service=service)
    assert report.outcomes[0].reasons == []
    session = await service.create_session(app_name="shop", user_id="u")
    assert dict(session.state) == {"app:n": 7, "user:n": 7}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_sessions_are_kept_where_it_was_asked_for(kind: str, tmp_path: Path) -> None:
    service = _shared(kind, tmp_path)
    report = await report_of(
        desk(), case("Hi", id="x"), case("Ho", id="y"), session_service=service, num_runs=2
    )
    outcomes = report.outcomes
    assert len({each.session_id for each in outcomes}) == 4
    assert len({each.user_id for each in outcomes}) == 4
    for each in outcomes:
        session = await service.get_session(
            app_name=f"adk_fluent_app_{each.user_id.replace('-', '_')}",
            user_id=each.user_id,
            session_id=each.session_id,
        )
        assert session is not None
        texts = [e.content.parts[0].text for e in session.events if e.author == "user"]
        assert texts == [each.input]


async def test_artifacts_and_memories_are_of_one_run() -> None:
    async def keep(tool_context: Any) -> list[str]:
        """Keep a file of the user."""
        there = await tool_context.list_artifacts()
        part = types.Part.from_bytes(data=b"x", mime_type="text/plain")
        await tool_context.save_artifact("user:note", part)
        return there

    from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService

    program = LlmAgent(name="a", model=says(calling(Call("keep"))), tools=[keep])
    for service in (None, InMemoryArtifactService()):
        report = await report_of(
            program,
            case(expected_response_contains="[]"),
            num_runs=3,
            parallelism=1,
            artifact_service=service,
        )
        assert [each.reasons for each in report.outcomes] == [[]] * 3


async def test_initial_state_is_of_one_run() -> None:
    def grow(tool_context: Any) -> list[int]:
        """Add to the list."""
        tool_context.state["items"].append(1)
        tool_context.state["items"] = tool_context.state["items"]
        return tool_context.state["items"]

    given = {"items": [0], "user:tier": "gold", "app:name": "shop"}
    program = LlmAgent(name="a", model=says(calling(Call("grow"))), tools=[grow])
    report = await report_of(
        program,
        case(initial_state=given, state_assertions=given | {"items": [0, 1]}),
        num_runs=3,
        parallelism=1,
    )
    assert [each.reasons for each in report.outcomes] == [[]] * 3
    assert given["items"] == [0]


# --- order ---------------------------------------------------------------------------------------


async def test_results_are_those_of_their_cases_in_the_order_of_the_suite() -> None:
    """Whatever is done first: the later, the faster."""

    async def answer(it: Asked) -> str:
        number = int(it.prompt.rsplit(maxsplit=1)[-1])
        await asyncio.sleep((6 - number) * 0.01)
        return f"answer {number}"

    cases = [
        FluentCase(f"say {number}", id=f"c{number}", expected_response_contains=f"answer {number}")
        for number in range(6)
    ]
    suite = FluentEvalSuite("s", agent("a", answer), cases)
    came = [each.id async for each in suite.stream()]
    assert sorted(came) == [f"c{number}" for number in range(6)]
    assert came != sorted(came)
    report = await suite.run(num_runs=2)
    assert report.pass_rate == 1.0
    assert [each.key for each in report.outcomes] == [
        (f"c{number}", run) for number in range(6) for run in (1, 2)
    ]
    assert all(each.response == f"answer {each.id[1:]}" for each in report.outcomes)
    assert {key: each.eval_id for key, each in report.native_results.items()} == {
        each.key: each.id for each in report.outcomes
    }
    assert all(
        report.native_results[each.key].session_id == each.session_id for each in report.outcomes
    )


async def test_runs_of_one_suite_at_the_same_time_stay_apart() -> None:
    async def answer(it: Asked) -> str:
        await asyncio.sleep(0.01)
        return it.prompt

    suite = suite_of(agent("a", answer), *(case(f"say {n}", id=str(n)) for n in range(4)))
    reports = await asyncio.gather(*(suite.run() for _ in range(3)))
    assert [each.pass_rate for each in reports] == [1.0] * 3
    assert all(each.response == each.input for report in reports for each in report.outcomes)


async def test_parallelism_is_as_asked() -> None:
    now = most = 0

    async def answer(it: Asked) -> str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1
        return "ok"

    cases = [case(str(number), id=str(number)) for number in range(6)]
    for limit in (1, 3):
        most = 0
        await report_of(agent("a", answer), *cases, parallelism=limit)
        assert most == limit


# --- other models --------------------------------------------------------------------------------


@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_one_model_in_the_place_of_all(built: str) -> None:
    own, other = says("own"), scripted(default="other", model="other-1")
    program: Any = (
        Agent("a", own) >> Agent("b", own)
        if built == "ours"
        else sequence("s", *(LlmAgent(name=each, model=own) for each in ("a", "b")))
    )
    report = await report_of(program, case(expected_response_contains="other"), model=other)
    assert report.pass_rate == 1.0
    assert report.outcomes[0].model == "other-1"
    assert (len(own.calls), len(other.calls)) == (0, 2)
    report = await report_of(program, case(expected_response_contains="own"))
    assert report.pass_rate == 1.0
    assert report.outcomes[0].model == ""
