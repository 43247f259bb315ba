"""Real ADK runs; every field of AgentEvent is filled by an event of at least one of them."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # here in every version
)
from google.adk.apps.app import App, EventsCompactionConfig, ResumabilityConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.auth.auth_credential import AuthCredential, AuthCredentialTypes, OAuth2Auth
from google.adk.auth.auth_tool import AuthConfig
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK reads it off our tools
from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk import to_agent
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.ir import AdkAgentNode, Ref
from adk_fluent.protocol import (
    AgentEvent,
    ErrorInfo,
    Pending,
    RunResult,
    ToolCallInfo,
    ToolResponseInfo,
    Usage,
)
from adk_fluent.testing import Call, ScriptedModel, Thought, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

    from google.adk.agents.invocation_context import InvocationContext

pytestmark = [
    pytest.mark.adk,
    # ADK says so of features that these tests are about
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

SCENARIOS: list[Callable[[], Coroutine[Any, Any, list[AgentEvent]]]] = []


def scenario(
    function: Callable[[], Coroutine[Any, Any, list[AgentEvent]]],
) -> Callable[[], Coroutine[Any, Any, list[AgentEvent]]]:
    SCENARIOS.append(function)
    return function


class Session:
    """An app in a session of its own."""

    def __init__(self, root: BaseAgent, **app: Any) -> None:
        self.service = InMemorySessionService()
        self.runner = Runner(
            app=App(name="app", root_agent=root, **app),
            session_service=self.service,
            artifact_service=InMemoryArtifactService(),
        )
        self.id = ""

    async def send(self, message: str | types.Part = "hi", **config: Any) -> list[AgentEvent]:
        if not self.id:
            session = await self.service.create_session(app_name="app", user_id="u")
            self.id = session.id
        part = types.Part(text=message) if isinstance(message, str) else message
        stream = self.runner.run_async(
            user_id="u",
            session_id=self.id,
            new_message=types.Content(role="user", parts=[part]),
            run_config=RunConfig(**config),
        )
        async with aclosing(stream) as events:
            return [to_agent_event(event) async for event in events]

    async def kept(self) -> list[AgentEvent]:
        session = await self.service.get_session(app_name="app", user_id="u", session_id=self.id)
        assert session is not None
        return [to_agent_event(event) for event in session.events]


def llm(*replies: Any, name: str = "desk", **settings: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(*replies), **settings)


class Own(BaseAgent):
    """An agent that yields what it is told, as the flow root does."""

    make: Any

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for event in self.make(ctx):
            event.invocation_id = ctx.invocation_id
            yield event


class Branching(BaseAgent):
    """Runs its sub-agents on branches of their own."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for agent in self.sub_agents:
            inner = ctx.model_copy(update={"branch": f"{self.name}.{agent.name}"})
            async with aclosing(agent.run_async(inner)) as events:
                async for event in events:
                    yield event


def only(events: Sequence[AgentEvent], **fields: Any) -> AgentEvent:
    (found,) = [e for e in events if all(getattr(e, name) == v for name, v in fields.items())]
    return found


# --- what a model says ---------------------------------------------------------------------------


@scenario
async def an_answer() -> list[AgentEvent]:
    return await Session(llm("hello")).send()


async def test_an_answer() -> None:
    (event,) = await an_answer()
    raw = event.raw
    assert isinstance(raw, Event)
    assert (event.author, event.content) == ("desk", "hello")
    assert (event.is_final, event.is_partial) == (True, False)
    assert (event.id, event.timestamp) == (raw.id, raw.timestamp)
    assert event.id
    assert event.timestamp > 1_700_000_000
    assert event.invocation_id == raw.invocation_id
    assert event.invocation_id
    assert event.metadata["finish_reason"] == "STOP"
    assert event.branch is None
    assert event.usage == Usage.from_genai(raw.usage_metadata)
    assert event.usage is not None
    # positions belong to our own flow: where others have theirs, the last answer is the answer
    assert event.path is None
    assert RunResult([event]).text == "hello"


async def test_adks_own_path_is_told_where_it_has_one() -> None:
    (event,) = await an_answer()
    if CAPS.event_output:
        assert "desk" in event.metadata["node_path"]
    else:
        assert "node_path" not in event.metadata


@scenario
async def a_stream() -> list[AgentEvent]:
    session = Session(llm(reply(Thought("hm"), "and", chunks=["he", "llo"])))
    return await session.send(streaming_mode=StreamingMode.SSE)


async def test_a_stream() -> None:
    events = await a_stream()
    assert [(e.content, e.is_partial, e.is_final) for e in events] == [
        ("he", True, False),
        ("llo", True, False),
        (None, True, False),
        ("and", True, False),
        ("helloand", False, True),
    ]
    assert RunResult(events).text == "helloand"


async def test_a_call_in_a_fragment_is_no_call_yet() -> None:
    call = types.FunctionCall(name="f", args={"half": 1}, id="c")
    content = types.Content(role="model", parts=[types.Part(function_call=call)])
    fragment = Event(author="a", content=content, partial=True, long_running_tool_ids={"c"})
    assert to_agent_event(fragment).tool_calls == []
    assert to_agent_event(fragment).pending == ()


@scenario
async def thoughts_and_cached_tokens() -> list[AgentEvent]:
    usage = Usage(prompt=100, cached=80, output=5, thoughts=20, tool=3, audio=10)
    return await Session(llm(reply(Thought("secretly"), "aloud", usage=usage))).send()


async def test_thoughts_and_cached_tokens() -> None:
    (event,) = await thoughts_and_cached_tokens()
    assert event.content == "aloud"
    assert event.usage == Usage(prompt=100, cached=80, output=5, thoughts=20, tool=3, audio=10)


@scenario
async def an_error() -> list[AgentEvent]:
    return await Session(llm(reply(error_code="SAFETY", error_message="blocked"))).send()


async def test_an_error() -> None:
    (event,) = await an_error()
    assert event.error == ErrorInfo("SAFETY", "blocked")
    assert event.content is None
    assert event.is_final


async def test_an_error_that_is_an_enum_or_has_no_code() -> None:
    by_enum = LlmResponse.create(
        types.GenerateContentResponse(
            candidates=[types.Candidate(finish_reason=types.FinishReason.SAFETY)]
        )
    )
    (event,) = await Session(llm(by_enum)).send()
    assert event.error is not None
    assert (event.error.code, type(event.error.code)) == ("SAFETY", str)
    nameless = to_agent_event(Event(author="a", error_message="oh"))
    assert nameless.error == ErrorInfo("UNKNOWN_ERROR", "oh")


@scenario
async def facts_about_an_answer() -> list[AgentEvent]:
    source = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://example.com"))
    response = LlmResponse(
        content=types.Content(role="model", parts=[types.Part(text="see")]),
        grounding_metadata=types.GroundingMetadata(grounding_chunks=[source]),
        citation_metadata=types.CitationMetadata(citations=[types.Citation(title="t")]),
        avg_logprobs=-0.5,
        model_version="m-001",
        output_transcription=types.Transcription(text="heard", finished=True),
        turn_complete=True,
        interrupted=False,
    )
    return await Session(llm(response)).send()


async def test_facts_about_an_answer() -> None:
    (event,) = await facts_about_an_answer()
    metadata = {key: event.metadata[key] for key in event.metadata if key != "node_path"}
    assert metadata == {
        "grounding": {"grounding_chunks": [{"web": {"uri": "https://example.com"}}]},
        "citations": {"citations": [{"title": "t"}]},
        "avg_logprobs": -0.5,
        "model_version": "m-001",
        "output_transcription": {"text": "heard", "finished": True},
        "turn_complete": True,
        "interrupted": False,
    }


@scenario
async def branches() -> list[AgentEvent]:
    root = Branching(name="root", sub_agents=[llm("x", name="a"), llm("y", name="b")])
    return await Session(root).send()


async def test_branches() -> None:
    assert [(e.author, e.branch) for e in await branches()] == [("a", "root.a"), ("b", "root.b")]


@scenario
async def what_the_user_attached() -> list[AgentEvent]:
    return await Session(llm("hello")).send(custom_metadata={"ticket": 7})


async def test_what_the_user_attached() -> None:
    (event,) = await what_the_user_attached()
    assert event.custom_metadata == {"ticket": 7}


# --- tools ---------------------------------------------------------------------------------------


@scenario
async def a_tool_with_state_and_an_artifact() -> list[AgentEvent]:
    async def book(order: str, tool_context: ToolContext) -> dict[str, Any]:
        """Books."""
        tool_context.state["booked"] = order
        tool_context.state["user:seen"] = True
        await tool_context.save_artifact("bill.txt", types.Part(text="bill"))
        return {"number": 42}

    call = reply("One moment.", Call("book", {"order": "A1"}, id="c1"))
    return await Session(llm(call, "done", tools=[book])).send()


async def test_a_tool_with_state_and_an_artifact() -> None:
    called, returned, said = await a_tool_with_state_and_an_artifact()
    assert called.content == "One moment."
    assert called.tool_calls == [ToolCallInfo("book", {"order": "A1"}, "c1")]
    assert (called.is_final, called.pending) == (False, ())
    assert returned.tool_responses == [ToolResponseInfo("book", {"number": 42}, "c1")]
    assert returned.state_delta == {"booked": "A1", "user:seen": True}
    assert returned.artifact_delta == {"bill.txt": 0}
    assert not returned.is_final
    assert said.content == "done"
    returned.state_delta.clear()
    assert returned.raw.actions.state_delta["booked"] == "A1"


@scenario
async def leaving_a_loop() -> list[AgentEvent]:
    return await Session(llm(Call("exit_loop"), tools=[exit_loop])).send()


async def test_leaving_a_loop() -> None:
    events = await leaving_a_loop()
    event = only(events, escalate=True)
    assert event.metadata["skip_summarization"] is True
    assert event.is_final
    assert event.tool_responses[0].tool_name == "exit_loop"


@scenario
async def a_transfer() -> list[AgentEvent]:
    boss = llm(
        Call("transfer_to_agent", {"agent_name": "kid"}),
        name="boss",
        sub_agents=[llm("mine now", name="kid", description="Helps.")],
    )
    return await Session(boss).send()


async def test_a_transfer() -> None:
    events = await a_transfer()
    event = only(events, transfer_to="kid")
    assert event.author == "boss"
    assert (events[-1].author, events[-1].content) == ("kid", "mine now")


@scenario
async def a_long_running_tool() -> list[AgentEvent]:
    def approve(amount: int) -> None:
        """Asks the boss."""

    tool = LongRunningFunctionTool(approve)
    return await Session(
        llm(Call("approve", {"amount": 9}, id="c1"), "waiting", tools=[tool])
    ).send()


async def test_a_long_running_tool() -> None:
    events = await a_long_running_tool()
    asks = Pending("c1", "tool", "approve", "desk", payload={"amount": 9})
    event = only(events, pending=(asks,))
    assert event.tool_calls == [ToolCallInfo("approve", {"amount": 9}, "c1")]
    assert event.is_final


# --- questions -----------------------------------------------------------------------------------


def refund(order: str) -> str:
    """Pays back."""
    return f"refunded {order}"


def confirming() -> Session:
    tool = FunctionTool(refund, require_confirmation=True)
    return Session(llm(Call("refund", {"order": "A1"}, id="c1"), "it is done", tools=[tool]))


@scenario
async def a_confirmation() -> list[AgentEvent]:
    return await confirming().send()


async def test_a_confirmation() -> None:
    events = await a_confirmation()
    (asks,) = RunResult(events).pending
    assert (asks.kind, asks.name, asks.author) == ("confirmation", "refund", "desk")
    assert asks.payload == {"order": "A1"}
    assert "refund" in asks.message
    # the event before it holds the same request, under an id that cannot be answered
    event = next(e for e in events if "requested_tool_confirmations" in e.metadata)
    assert event.pending == ()
    assert list(event.metadata["requested_tool_confirmations"]) == ["c1"]
    assert [call.tool_name for e in events for call in e.tool_calls] == ["refund"]


async def test_a_confirmation_is_answered_by_its_id() -> None:
    session = confirming()
    (asks,) = RunResult(await session.send()).pending
    answer = types.FunctionResponse(
        id=asks.id, name="adk_request_confirmation", response={"confirmed": True}
    )
    events = await session.send(types.Part(function_response=answer))
    result = next(e for e in events if e.tool_responses).tool_responses[0]
    assert result == ToolResponseInfo("refund", {"result": "refunded A1"}, "c1")
    assert RunResult([*await session.kept()]).pending == []
    told = next(e for e in await session.kept() if e.author == "user" and e.tool_responses)
    assert told.tool_responses[0].call_id == asks.id


def oauth() -> AuthConfig:
    from fastapi.openapi.models import OAuth2, OAuthFlowAuthorizationCode, OAuthFlows

    flow = OAuthFlowAuthorizationCode(
        authorizationUrl="https://id.example/auth",
        tokenUrl="https://id.example/token",
        scopes={"read": "reads"},
    )
    return AuthConfig(
        auth_scheme=OAuth2(flows=OAuthFlows(authorizationCode=flow)),
        raw_auth_credential=AuthCredential(
            auth_type=AuthCredentialTypes.OAUTH2,
            oauth2=OAuth2Auth(client_id="desk-app", client_secret="s3cr3t"),
        ),
    )


@scenario
async def an_auth_request() -> list[AgentEvent]:
    def calendar(tool_context: ToolContext) -> str:
        """Reads the calendar."""
        tool_context.request_credential(oauth())
        return "needs sign-in"

    return await Session(llm(Call("calendar", id="c1"), "sign in first", tools=[calendar])).send()


async def test_an_auth_request() -> None:
    events = await an_auth_request()
    (asks,) = RunResult(events).pending
    assert (asks.kind, asks.author) == ("auth", "desk")
    oauth2 = asks.payload["exchangedAuthCredential"]["oauth2"]
    assert oauth2["clientId"] == "desk-app"
    assert oauth2["authUri"].startswith("https://id.example/auth?")
    event = next(e for e in events if "requested_auth_configs" in e.metadata)
    assert list(event.metadata["requested_auth_configs"]) == ["c1"]
    assert event.pending == ()


async def test_no_secret_leaves_an_auth_request() -> None:
    events = await an_auth_request()
    for event in events:
        assert "s3cr3t" not in repr(event)
        assert "s3cr3t" not in str(event.to_dict())


def test_no_secret_leaves_a_call_or_an_action() -> None:
    """ADK 2.x drops secrets from what it makes, but not from what an older one left behind."""
    config = oauth()
    told: dict[str, Any] = config.model_dump(mode="json", by_alias=True)
    told["rawAuthCredential"]["oauth2"]["clientSecret"] = "s3cr3t"
    args = {"functionCallId": "c1", "authConfig": told}
    call = types.FunctionCall(id="q", name="adk_request_credential", args=args)
    event = to_agent_event(
        Event(
            author="desk",
            content=types.Content(role="model", parts=[types.Part(function_call=call)]),
            actions=EventActions(requested_auth_configs={"c1": config}),
        )
    )
    assert event.pending[0].payload["rawAuthCredential"]["oauth2"]["clientId"] == "desk-app"
    assert "c1" in event.metadata["requested_auth_configs"]
    assert "s3cr3t" not in repr(event)
    assert "s3cr3t" not in str(event.to_dict())


def test_no_secret_leaves_an_auth_answer() -> None:
    credential = {"authType": "apiKey", "apiKey": "s3cr3t", "keep": [{"access_token": "s3cr3t"}]}
    response = types.FunctionResponse(
        id="q", name="adk_request_credential", response={"exchangedAuthCredential": credential}
    )
    part = types.Part(function_response=response)
    event = to_agent_event(Event(author="user", content=types.Content(role="user", parts=[part])))
    assert event.tool_responses[0].result == {
        "exchangedAuthCredential": {"authType": "apiKey", "keep": [{}]}
    }


def asking(ctx: InvocationContext) -> list[Event]:
    """The flow root's question at a gate."""
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    args: dict[str, Any] = {
        "interruptId": "g1",
        "message": "Ship it?",
        "payload": {"order": "A1"},
        "response_schema": schema,
    }
    call = types.FunctionCall(id="g1", name="adk_request_input", args=args)
    gate = {"id": "g1", "kind": "gate", "name": "ship"}
    return [
        Event(
            author="root",
            content=types.Content(parts=[types.Part(function_call=call)]),
            long_running_tool_ids={"g1"},
            custom_metadata={METADATA_KEY: {"run": "r1", "pending": [gate]}},
        )
    ]


@scenario
async def a_gate() -> list[AgentEvent]:
    return await Session(Own(name="root", make=asking)).send()


async def test_a_gate() -> None:
    (event,) = await a_gate()
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    asks = Pending("g1", "gate", "ship", "root", "Ship it?", {"order": "A1"}, schema)
    assert event.pending == (asks,)
    assert event.tool_calls == []
    assert event.run_id == "r1"


async def test_a_question_is_repeated_by_a_stamp_alone() -> None:
    def hold(ctx: InvocationContext) -> list[Event]:
        content = types.Content(role=None, parts=[types.Part(text="Still waiting.")])
        gate = {"id": "g1", "kind": "gate", "name": "ship", "message": "Ship it?"}
        stamp = {"run": "r1", "pending": [gate]}
        return [Event(author="root", content=content, custom_metadata={METADATA_KEY: stamp})]

    (event,) = await Session(Own(name="root", make=hold)).send()
    (asked,) = event.pending
    assert asked == Pending(
        "g1", "gate", "ship", message="Ship it?", response_schema=asked.response_schema
    )
    assert asked.response_schema is not None  # that of an approval goes without saying
    assert set(asked.response_schema["properties"]) == {"approved", "note"}
    assert event.content == "Still waiting."


@pytest.mark.skipif(not CAPS.workflow, reason="only ADK 2.x asks for input by itself")
async def test_an_input_request_of_a_workflow() -> None:
    from google.adk.events.request_input import RequestInput
    from google.adk.workflow import START, Workflow

    def ask() -> Any:
        return RequestInput(message="How many?", payload={"max": 3}, response_schema=int)

    root: Any = Workflow(name="flow", edges=[(START, ask)])
    events = await Session(root).send()
    (asks,) = RunResult(events).pending
    assert (asks.kind, asks.message, asks.payload) == ("input", "How many?", {"max": 3})
    assert asks.response_schema == {"type": "integer"}


# --- the flow root's stamps ----------------------------------------------------------------------


@scenario
async def stamps() -> list[AgentEvent]:
    def events(ctx: InvocationContext) -> list[Event]:
        stamp = {"path": "s2.p1", "node": "merge", "attempt": "3.7", "run": "r1", "why": "step"}
        gone = {"path": "s2", "node": "try", "discarded": ["3"], "run": "r1", "why": "discarded"}
        write = EventActions(state_delta={"k": 1})
        return [
            Event(author="root", actions=write, custom_metadata={METADATA_KEY: stamp, "ticket": 7}),
            Event(author="root", custom_metadata={METADATA_KEY: gone}),
        ]

    return await Session(Own(name="root", make=events)).send()


async def test_stamps() -> None:
    step, gone = await stamps()
    assert (step.path, step.node, step.attempt) == ("s2.p1", "merge", "3.7")
    assert (step.run_id, step.metadata["why"]) == ("r1", "step")
    assert step.custom_metadata == {"ticket": 7}
    assert (gone.discarded, gone.attempt, gone.custom_metadata) == (("3",), None, {})
    assert "node_path" not in step.metadata


async def test_somebody_elses_metadata_under_our_key_is_left_alone() -> None:
    event = to_agent_event(Event(author="a", custom_metadata={METADATA_KEY: "theirs"}))
    assert event.custom_metadata == {METADATA_KEY: "theirs"}
    assert event.path is None


# --- what is kept in a session -------------------------------------------------------------------


@scenario
async def a_compaction() -> list[AgentEvent]:
    long = "All about the order. " * 40
    summarizer = LlmEventSummarizer(llm=ScriptedModel(default="in short"))
    compaction = EventsCompactionConfig(
        summarizer=summarizer, compaction_interval=2, overlap_size=0
    )
    root = to_agent(AdkAgentNode("desk", Ref.to(llm(long, long, long))))  # 2.0 skips an LlmAgent
    session = Session(root, events_compaction_config=compaction)
    await session.send(long)
    await session.send(long)
    return await session.kept()


async def test_a_compaction() -> None:
    event = next(e for e in await a_compaction() if "compaction" in e.metadata)
    told = event.metadata["compaction"]
    assert told["start_timestamp"] < told["end_timestamp"]
    assert told["compacted_content"]["parts"] == [{"text": "in short"}]
    assert "start_timestamp" in event.to_dict()["metadata"]["compaction"]


@scenario
async def a_rewind() -> list[AgentEvent]:
    session = Session(llm("one", "two", output_key="said"))
    await session.send()
    (second,) = await session.send()
    await session.runner.rewind_async(
        user_id="u", session_id=session.id, rewind_before_invocation_id=second.invocation_id
    )
    return await session.kept()


async def test_a_rewind() -> None:
    events = await a_rewind()
    assert events[0].author == "user"
    assert events[0].content == "hi"
    assert events[-1].metadata["rewind_before_invocation_id"] == events[-2].invocation_id
    assert events[-1].state_delta == {"said": "one"}


@scenario
async def a_resumable_run() -> list[AgentEvent]:
    def events(ctx: InvocationContext) -> list[Event]:
        return [Event(author="root", actions=EventActions(agent_state={"at": 2}))]

    root = Own(name="root", make=events)
    resumable = ResumabilityConfig(is_resumable=True)
    first = await Session(root, resumability_config=resumable).send()
    return first + await Session(llm("x"), resumability_config=resumable).send()


async def test_a_resumable_run() -> None:
    events = await a_resumable_run()
    assert events[0].agent_state == {"at": 2}
    assert only(events, end_of_agent=True).author == "desk"


# --- what only some versions have ----------------------------------------------------------------


@scenario
async def output() -> list[AgentEvent]:
    if not CAPS.workflow:
        return []
    from google.adk.workflow import START, Workflow

    def total() -> dict[str, int]:
        return {"total": 3}

    def choose() -> Any:
        return Event(route=False, output="x")  # pyright: ignore[reportCallIssue]  # 2.x takes it

    root: Any = Workflow(name="flow", edges=[(START, choose), (choose, {False: total})])
    return await Session(root).send()


@pytest.mark.skipif(not CAPS.event_output, reason="events of ADK 1.x have no output and no route")
async def test_output_and_route() -> None:
    events = await output()
    last = events[-1]
    assert last.output == {"total": 3}
    assert last.metadata["node_path"].startswith("flow@1/total")
    assert last.metadata["output_for"][-1] == "flow@1"
    assert only(events, output="x").metadata["route"] is False


@pytest.mark.skipif(
    "render_ui_widgets" not in EventActions.model_fields, reason="ADK renders widgets from 1.39 on"
)
async def test_widgets() -> None:
    from google.adk.events.ui_widget import UiWidget

    def show(tool_context: ToolContext) -> str:
        """Shows."""
        tool_context.render_ui_widget(UiWidget(id="w", provider="mcp", payload={"a": 1}))
        return "shown"

    events = await Session(llm(Call("show"), "there", tools=[show])).send()
    widgets = [e.metadata["render_ui_widgets"] for e in events if "render_ui_widgets" in e.metadata]
    assert widgets == [[{"id": "w", "provider": "mcp", "payload": {"a": 1}}]]


@pytest.mark.skipif(
    "transfer_reason" not in EventActions.model_fields, reason="ADK 2.x gives reasons for transfers"
)
def test_a_reason_for_a_transfer() -> None:
    actions: Any = EventActions
    event = Event(author="a", actions=actions(transfer_to_agent="b", transfer_reason="why not"))
    assert to_agent_event(event).metadata["transfer_reason"] == "why not"


# --- all together --------------------------------------------------------------------------------


async def test_every_field_is_filled_by_a_real_event() -> None:
    empty = AgentEvent("")
    unfilled = {f.name for f in fields(AgentEvent)}
    if not CAPS.event_output:
        unfilled.remove("output")  # see test_output_and_route
    for each in SCENARIOS:
        for event in await each():
            unfilled -= {name for name in unfilled if getattr(event, name) != getattr(empty, name)}
            # what JSON can hold comes back
            again = AgentEvent.from_dict(event.to_dict())
            assert again.to_dict() == event.to_dict()
    assert unfilled == set()


def test_every_field_of_adks_event_has_a_place() -> None:
    """A version of ADK that tells something new fails here, not silently."""
    from adk_fluent.backends.adk._session import _events

    told = set(_events._FIELDS) | {
        "author",
        "branch",
        "content",
        "custom_metadata",
        "error_code",
        "error_message",
        "id",
        "invocation_id",
        "long_running_tool_ids",
        "node_info",
        "output",
        "partial",
        "timestamp",
        "usage_metadata",
    }
    read_otherwise = {"actions", "isolation_scope"}  # the latter is ADK's own affair, it says
    assert set(Event.model_fields) - told - read_otherwise == set()
    done = {*_events._ACTIONS, "state_delta", "artifact_delta", "transfer_to_agent", "escalate"}
    done |= {"end_of_agent", "agent_state"}
    done |= {"requested_tool_confirmations", "requested_auth_configs"}
    assert set(EventActions.model_fields) - done == set()
