"""Every way to write to a session is held to the schema, on every version and service of ADK."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]
)
from google.adk.agents.sequential_agent import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK resolves it
from service_kit import IDS, KINDS, Desk, by_key, ids, opening, said, values

from adk_fluent import Agent, FanOut, gate, map_over
from adk_fluent.state import (
    SchemaSessionService,
    SessionScoped,
    StateSchema,
    StateTypeError,
)
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # SequentialAgent, on 2.x
]

WRITE = reply(Call("write", {}))


@pytest.fixture(params=KINDS)
async def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[[], BaseSessionService]]:
    async with opening(request.param, tmp_path) as open_:
        yield open_


def writing(delta: dict[str, Any]) -> Callable[..., str]:
    def write(tool_context: ToolContext) -> str:
        """Write something."""
        for key, value in delta.items():
            tool_context.state[key] = value
        return "written"

    return write


def agent(name: str = "clerk", *replies: Any, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(*replies, default="done"), **more)


def with_tool(delta: dict[str, Any]) -> LlmAgent:
    return agent("clerk", WRITE, tools=[writing(delta)])


def in_turn(*agents: BaseAgent) -> BaseAgent:
    return SequentialAgent(name="all", sub_agents=list(agents))  # pyright: ignore[reportDeprecated]


def calling(delta: dict[str, Any]) -> Callable[..., None]:
    def callback(callback_context: Any) -> None:
        callback_context.state.update(delta)

    return callback


class Custom(BaseAgent):
    delta: dict[str, Any]

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        actions = EventActions(state_delta=dict(self.delta))
        yield Event(author=self.name, invocation_id=ctx.invocation_id, actions=actions)


class Plugin(BasePlugin):
    def __init__(self, delta: dict[str, Any]) -> None:
        super().__init__(name="plugged")
        self.delta = delta

    async def before_agent_callback(self, *, agent: BaseAgent, callback_context: Any) -> None:
        for key, value in self.delta.items():
            callback_context.state[key] = value


@dataclass
class Way:
    """A way to write: an agent that does, or what a session or a run is given."""

    root: Callable[[dict[str, Any]], BaseAgent] = lambda _: agent()
    plugins: Callable[[dict[str, Any]], list[BasePlugin]] = lambda _: []
    start: bool = False
    run: bool = False
    by: str = ""
    config: RunConfig = field(default_factory=RunConfig)


WAYS: dict[str, Way] = {
    "a tool": Way(with_tool, by="tool 'write' of agent 'clerk'"),
    "a tool, streamed": Way(
        with_tool,
        by="tool 'write' of agent 'clerk'",
        config=RunConfig(streaming_mode=StreamingMode.SSE),
    ),
    "a tool of an agent below": Way(
        lambda delta: in_turn(agent("first"), with_tool(delta)),
        by="tool 'write' of agent 'clerk'",
    ),
    "a tool of an agent that is a tool": Way(
        lambda delta: agent(
            "boss",
            reply(Call("clerk", {"request": "go"})),
            tools=[AgentTool(agent=with_tool(delta))],
        ),
        by="tool 'clerk' of agent 'boss'",
    ),
    "an agent that control went to": Way(
        lambda delta: agent(
            "boss",
            reply(Call("transfer_to_agent", {"agent_name": "clerk"})),
            sub_agents=[with_tool(delta)],
        ),
        by="tool 'write' of agent 'clerk'",
    ),
    "a callback before the agent": Way(
        lambda delta: agent(before_agent_callback=calling(delta)),
        by="agent 'clerk'",
    ),
    "a callback after the agent": Way(
        lambda delta: agent(after_agent_callback=calling(delta)),
        by="agent 'clerk'",
    ),
    "a plugin": Way(plugins=lambda delta: [Plugin(delta)], by="agent 'clerk'"),
    "a custom agent": Way(lambda delta: Custom(name="own", delta=delta), by="agent 'own'"),
    "what a session starts with": Way(start=True, by="create_session(state=...)"),
    "what a run is given": Way(run=True, by="the state_delta of a run"),
}


async def go(way: Way, delta: dict[str, Any], service: BaseSessionService) -> None:
    app = App(name="shop", root_agent=way.root(delta), plugins=way.plugins(delta))
    runner = Runner(app=app, session_service=service)
    await service.create_session(**IDS, state=delta if way.start else None)
    run = runner.run_async(
        user_id=IDS["user_id"],
        session_id=IDS["session_id"],
        new_message=said(),
        state_delta=delta if way.run else None,
        run_config=way.config,
    )
    async for _ in run:
        continue


async def stored(service: BaseSessionService) -> Session | None:
    return await service.get_session(**IDS)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_values_are_encoded_whoever_writes_them(
    way: Way, opened: Callable[[], BaseSessionService]
) -> None:
    await go(way, by_key(values()), SchemaSessionService(opened(), Desk))
    session = await stored(opened())
    assert session is not None
    assert session.state["when"] == "2024-02-29T12:00:00Z"
    assert session.state["user:seen"] == "2024-01-02"
    desk = Desk.bind(session)
    assert {name: getattr(desk, name) for name in values()} == values()


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ({"inten": "x"}, "writes 'inten', which Desk does not declare"),
        ({"count": "x"}, "Desk.count: int cannot be given 'x' (str) by"),
        ({"user:tier": 3}, "Desk.tier: str ('user:tier') cannot be given 3 (int) by"),
        ({"app:rat": 1}, "writes 'app:rat', which Desk does not declare"),
    ],
)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_what_breaks_the_schema_is_refused_whoever_writes_it(
    way: Way, delta: dict[str, Any], said: str, opened: Callable[[], BaseSessionService]
) -> None:
    wrong = {"intent": "refund", **delta}
    service = SchemaSessionService(opened(), Desk)
    with pytest.raises(StateTypeError) as caught:
        await go(way, wrong, service)
    assert said in caught.value.what
    assert way.by in caught.value.what
    assert caught.value.key == next(iter(delta))
    session = await stored(opened())
    if way.start:
        assert session is None
    else:
        assert session is not None
        assert wrong.keys().isdisjoint(session.state)
        assert all(not event.actions.state_delta for event in session.events)


async def test_output_key(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk)
    with pytest.raises(StateTypeError) as caught:
        await go(Way(lambda _: agent("clerk", "so", output_key="inten")), {}, service)
    assert str(caught.value) == (
        "agent 'clerk' writes 'inten', which Desk does not declare\n"
        "  where: node 'clerk'\n"
        "  found: a value of type str\n"
        "  help: did you mean 'intent'?"
    )
    session = await stored(opened())
    assert session is not None
    assert [event.author for event in session.events] == ["user"]


async def test_an_output_key_of_a_declared_field_is_stored(
    opened: Callable[[], BaseSessionService],
) -> None:
    service = SchemaSessionService(opened(), Desk)
    await go(Way(lambda _: agent("clerk", "so", output_key="user:tier")), {}, service)
    session = await stored(opened())
    assert session is not None
    assert session.state == {"user:tier": "so"}


# --- pipelines of ours ----------------------------------------------------------------------------


class Lines(StateSchema):
    topics: SessionScoped[list[str]]
    lines: SessionScoped[list[str]]


@pytest.mark.parametrize("approved", [True, False])
async def test_pipelines_of_ours_write_no_key_of_their_own_that_is_refused(
    approved: bool, opened: Callable[[], BaseSessionService]
) -> None:
    """Journals, items of a map and answers of a gate are no matter of the user's schema."""
    service = SchemaSessionService(opened(), Lines)
    each = Agent("each").mock("a line")
    flow = (
        (lambda state: {"topics": ["a", "b"]})  # pyright: ignore[reportUnknownLambdaType]
        >> map_over("topics", each, output_key="lines")
        >> gate(lambda state: bool(state["lines"]), message="Go on?")
        >> Agent("last").mock("done")
    )
    where: dict[str, Any] = {"user_id": "ann", "session_id": "1"}
    first = await flow.run("hi", session_service=service, **where)
    answer = first.pending[0].answer(approved)
    done = await flow.resume(answer, session_service=service, **where)
    assert done.state["gate"]["approved"] is approved
    assert Lines.bind(done).lines == ["a line", "a line"]


async def test_branches_and_what_a_function_returns(
    opened: Callable[[], BaseSessionService],
) -> None:
    service = SchemaSessionService(opened(), Desk)
    wide = FanOut(Agent("a").mock("x").writes("intent"), Agent("b").mock("y").writes("user:tier"))
    flow = wide >> (lambda state: by_key({"when": values()["when"]}))  # pyright: ignore[reportUnknownLambdaType]
    result = await flow.run("hi", session_service=service, state={"price": values()["price"]})
    desk = Desk.bind(result)
    assert (desk.intent, desk.tier) == ("x", "y")
    session = await service.get_session(
        app_name=result.app_name, user_id=result.user_id, session_id=result.session_id
    )
    assert session is not None
    assert Desk.bind(session).when == values()["when"]
    assert Desk.bind(session).price == values()["price"]


@pytest.mark.parametrize("kind", ["run", "ask", "to_runner"])
async def test_a_pipeline_of_ours_is_refused_what_breaks_the_schema(
    kind: str, opened: Callable[[], BaseSessionService]
) -> None:
    service = SchemaSessionService(opened(), Desk)
    flow = Agent("first").mock("x") >> Agent("clerk").mock("so").writes("inten")

    async def on_a_runner() -> None:
        runner = flow.to_runner(session_service=service)
        await service.create_session(app_name=runner.app_name, user_id="u", session_id="1")
        async for _ in runner.run_async(user_id="u", session_id="1", new_message=said()):
            continue

    starts: dict[str, Callable[[], Any]] = {
        "run": lambda: flow.run("hi", session_service=service),
        "ask": lambda: asyncio.to_thread(flow.ask, "hi", session_service=service),
        "to_runner": on_a_runner,
    }
    with pytest.raises(StateTypeError, match="agent 'clerk' writes 'inten'"):
        await starts[kind]()


# --- what is not refused --------------------------------------------------------------------------


async def append(service: BaseSessionService, delta: dict[str, Any], **more: Any) -> Session:
    session = await service.get_session(**IDS) or await service.create_session(**IDS)
    event = Event(author="clerk", actions=EventActions(state_delta=delta), **more)
    assert await service.append_event(session=session, event=event) is event
    return session


async def test_none_makes_absent_and_always_may(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk)
    await append(service, {"count": 3, "user:tier": "gold"})
    await append(service, {"count": None, "user:tier": None, "not_declared": None})
    session = await stored(opened())
    assert session is not None
    assert {value for value in session.state.values() if value is not None} == set()


async def test_keys_of_adk_and_of_ours_pass(opened: Callable[[], BaseSessionService]) -> None:
    keys = (
        *("_adk_activated_skill_clerk", "_adk_fluent_flow:x", "user:_adkf_version:Desk"),
        *("__session_metadata__", "_code_execution_context", "_vmaas_sandbox_name"),
        *("adk_oauth2_123", "oauth2_1__existing_exchanged_credential", "bigquery_token_cache"),
        *("model_consult:judge:session_uses", "save_files_as_artifacts_plugin:pending_delta"),
        *("temp:_adk_grounding_metadata", "temp:multimodal_tool_results_plugin:current_turn_parts"),
    )
    service = SchemaSessionService(opened(), Desk)
    await append(service, dict.fromkeys(keys, 1))
    session = await stored(opened())
    assert session is not None
    assert {key for key in keys if not key.startswith("temp:")} == session.state.keys()


@pytest.mark.parametrize(
    "name",
    [
        "google.adk.code_executors.code_executor_context:_CONTEXT_KEY",
        "google.adk.code_executors.code_executor_context:_INPUT_FILE_KEY",
        "google.adk.code_executors.code_executor_context:_ERROR_COUNT_KEY",
        "google.adk.code_executors.code_executor_context:_CODE_EXECUTION_RESULTS_KEY",
        "google.adk.tools.set_model_response_tool:MODEL_JSON_RESPONSE_KEY",
        "google.adk.tools.bigquery.bigquery_credentials:BIGQUERY_TOKEN_CACHE_KEY",
        "google.adk.integrations.bigquery.query_tool:BIGQUERY_SESSION_INFO_KEY",
        "google.adk.tools.spanner.spanner_credentials:SPANNER_TOKEN_CACHE_KEY",
        "google.adk.tools.bigtable.bigtable_credentials:BIGTABLE_TOKEN_CACHE_KEY",
        "google.adk.tools.pubsub.pubsub_credentials:PUBSUB_TOKEN_CACHE_KEY",
        "google.adk.tools.data_agent.credentials:DATA_AGENT_TOKEN_CACHE_KEY",
        "google.adk.integrations.gcs.gcs_credentials:GCS_TOKEN_CACHE_KEY",
        "google.adk.evaluation.request_intercepter_plugin:_LLM_REQUEST_ID_KEY",
        "google.adk.cli.trigger_routes:TRIGGER_DELIVERY_STATE_KEY",
        "google.adk.auth._auth_resume:_OAUTH_STATE_KEY_PREFIX",
        "google.adk.auth._auth_resume:_OAUTH_CREDENTIAL_KEY_PREFIX",
    ],
)
async def test_keys_that_adk_itself_names_pass(name: str) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    module, _, attribute = name.partition(":")
    try:
        key = getattr(pytest.importorskip(module, exc_type=ImportError), attribute)
    except AttributeError:
        pytest.skip("this ADK has no such key")
    service = SchemaSessionService(InMemorySessionService(), Desk)
    await append(service, {key: 1})


async def test_credentials_of_adk_pass_under_any_key() -> None:
    from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = SchemaSessionService(InMemorySessionService(), Desk)
    credential = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k")
    await append(service, {"my_service": credential})
    with pytest.raises(StateTypeError):
        await append(service, {"my_service": "k"})


async def test_a_key_that_is_no_text() -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    event = Event(author="clerk")
    event.actions.state_delta[3] = "x"  # pyright: ignore[reportArgumentType]
    service = SchemaSessionService(InMemorySessionService(), Desk)
    session = await service.create_session(**IDS)
    with pytest.raises(StateTypeError, match="state keys are text"):
        await service.append_event(session=session, event=event)


async def test_a_slip_in_the_scope_is_no_key_of_a_library() -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = SchemaSessionService(InMemorySessionService(), Desk)
    for key, meant in (("usr:tier", "user:tier"), ("tier", "user:tier"), ("app:count", "count")):
        with pytest.raises(StateTypeError) as caught:
            await append(service, {key: "gold"})
        assert (
            caught.value.help == f"did you mean {meant!r}, the key of that name in another scope?"
        )


async def test_keys_for_one_run_are_checked_too(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk)
    await append(service, {"temp:scratch": 3, "count": 1})
    for wrong in ({"temp:scratch": "x"}, {"temp:scratched": 3}):
        with pytest.raises(StateTypeError):
            await append(service, wrong)
    session = await stored(opened())
    assert session is not None
    assert session.state == {"count": 1}


async def test_other_keys_may_be_allowed(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk, extra="allow")
    await append(service, {"other": [1], "user:other": "x", "count": 1, "temp:thing": object()})
    with pytest.raises(StateTypeError, match=r"Desk\.count"):
        await append(service, {"other": 2, "count": "x"})
    session = await stored(opened())
    assert session is not None
    assert session.state == {"other": [1], "user:other": "x", "count": 1}


async def test_partial_events_are_never_stored_and_never_refused(
    opened: Callable[[], BaseSessionService],
) -> None:
    service = SchemaSessionService(opened(), Desk)
    session = await append(service, {"inten": "x"}, partial=True)
    assert session.events == []
    assert session.state == {}


@pytest.mark.parametrize(
    "actions",
    [
        {"agent_state": {"at": 1}},
        {"end_of_agent": True},
        {"compaction": {"start_timestamp": 1.0, "end_timestamp": 2.0, "compacted_content": said()}},
        {"artifact_delta": {"a.txt": 1}},
    ],
)
async def test_events_that_write_no_state(
    actions: dict[str, Any], opened: Callable[[], BaseSessionService]
) -> None:
    service = SchemaSessionService(opened(), Desk)
    session = await service.create_session(**IDS)
    event = Event(author="clerk", actions=EventActions(**actions))
    await service.append_event(session=session, event=event)
    kept = await stored(opened())
    assert kept is not None
    [same] = kept.events
    [(name, value)] = actions.items()
    assert getattr(same.actions, name) == getattr(event.actions, name)
    assert value


async def test_what_was_stored_before_can_be_gone_back_to(
    opened: Callable[[], BaseSessionService],
) -> None:
    """A session may have keys of times before the schema, which ADK writes again to rewind."""
    session = await opened().create_session(**IDS)
    for at in (1, 2):
        actions = EventActions(state_delta={"legacy": at})
        event = Event(author="clerk", invocation_id=f"run {at}", actions=actions)
        await opened().append_event(session=session, event=event)
    app = App(name="shop", root_agent=agent())
    runner = Runner(app=app, session_service=SchemaSessionService(opened(), Desk))
    where = {"user_id": IDS["user_id"], "session_id": IDS["session_id"]}
    await runner.rewind_async(**where, rewind_before_invocation_id="run 2")
    kept = await stored(opened())
    assert kept is not None
    assert kept.state == {"legacy": 1}


async def test_an_event_may_have_no_state(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk)
    session = await append(service, {})
    [event] = session.events
    assert event.actions.state_delta == {}


# --- a warning instead ----------------------------------------------------------------------------


async def test_a_warning_is_logged_once_for_each_key(
    opened: Callable[[], BaseSessionService], caplog: pytest.LogCaptureFixture
) -> None:
    service = SchemaSessionService(opened(), Desk, enforce="warn")
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        for _ in range(2):
            await append(service, {"inten": "x", "count": "three", "when": values()["when"]})
    told = [each.getMessage() for each in caplog.records if each.name == "adk_fluent"]
    slip, wrong = told
    assert slip.startswith("state is written past its schema: agent 'clerk' writes 'inten', which")
    assert "Desk.count: int cannot be given 'three' (str) by agent 'clerk'" in wrong
    session = await stored(opened())
    assert session is not None
    assert session.state == {"inten": "x", "count": "three", "when": "2024-02-29T12:00:00Z"}


async def test_programs_that_make_up_keys_do_not_fill_memory_and_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = SchemaSessionService(InMemorySessionService(), Desk, enforce="warn")
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        await append(service, {f"key_{at}": at for at in range(1_100)})
    assert len(caplog.records) == 1_000


# --- after a refusal ------------------------------------------------------------------------------


async def test_the_live_session_does_not_keep_what_was_refused(
    opened: Callable[[], BaseSessionService],
) -> None:
    """ADK's contexts write to it at once, before the event is stored."""
    from google.adk.sessions.state import State

    service = SchemaSessionService(opened(), Desk)
    session = await append(service, {"count": 1, "intent": "x"})
    delta: dict[str, Any] = {}
    state = State(session.state, delta)
    state["count"], state["inten"], state["temp:scratch"] = 2, "y", 5
    assert session.state["count"] == 2
    event = Event(author="clerk", actions=EventActions(state_delta=delta))
    with pytest.raises(StateTypeError):
        await service.append_event(session=session, event=event)
    assert session.state == {"count": 1, "intent": "x", "temp:scratch": 5}
    assert len(session.events) == 1
    del event.actions.state_delta["inten"]
    await service.append_event(session=session, event=event)  # as it can be stored now
    assert session.state["count"] == 2


async def test_what_somebody_else_has_written_meanwhile_is_not_taken_back() -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = SchemaSessionService(InMemorySessionService(), Desk)
    session = await append(service, {"count": 1})
    event = Event(author="clerk", actions=EventActions(state_delta={"count": 2, "inten": "y"}))
    session.state["count"] = 7
    with pytest.raises(StateTypeError):
        await service.append_event(session=session, event=event)
    assert session.state == {"count": 7}


async def test_an_event_that_is_stored_twice_is_encoded_once() -> None:
    """As when a store was busy, and the caller tries again with the same event."""
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    service = SchemaSessionService(InMemorySessionService(), Desk)
    session = await service.create_session(**IDS)
    event = Event(author="clerk", actions=EventActions(state_delta=by_key(values())))
    await service.append_event(session=session, event=event)
    once = dict(event.actions.state_delta)
    await service.append_event(session=session, event=event)
    assert event.actions.state_delta == once


async def test_appends_at_the_same_time(opened: Callable[[], BaseSessionService]) -> None:
    service = SchemaSessionService(opened(), Desk)
    named = [ids(str(at)) for at in range(8)]
    sessions = [await service.create_session(**each) for each in named]

    async def write(session: Session, at: int) -> None:
        for turn in range(5):
            delta = {"count": at * 10 + turn, "when": values()["when"]}
            if at == 3 and turn == 4:
                delta["count"] = "x"
            event = Event(author="clerk", actions=EventActions(state_delta=delta))
            await service.append_event(session=session, event=event)

    done = await asyncio.gather(*map(write, sessions, range(8)), return_exceptions=True)
    assert [type(each).__name__ for each in done].count("StateTypeError") == 1
    kept = [await opened().get_session(**each) for each in named]
    assert [each.state["count"] for each in kept if each is not None] == [
        *(at * 10 + (3 if at == 3 else 4) for at in range(8))
    ]
