"""ExecutionConfig: every field has its effect in every way of running, and a RunConfig wins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from adk_programs import (
    agent,
    built,
    by_runner,
    fallback,
    model_of,
    par,
    raiser,
    run,
    seq,
    turns,
)
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # here in every version
)
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends.adk import ADKBackend, to_agent, to_app, to_content
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._config import merged, run_config
from adk_fluent.backends.adk._lowering import _compile as compiling
from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.errors import StepTimeoutError, UnsupportedConfigError, UsageError
from adk_fluent.ir import CompactionConfig, ExecutionConfig, Node, Ref
from adk_fluent.protocol import Usage
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.protocol import AgentEvent

    Way = Callable[[Node, ExecutionConfig], Awaitable[list[AgentEvent]]]

pytestmark = [
    pytest.mark.adk,
    # ADK says so of compaction, also of the configuration a user writes
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]


async def by_run(node: Node, config: ExecutionConfig) -> list[AgentEvent]:
    return await run(node, config=config)


async def by_app(node: Node, config: ExecutionConfig) -> list[AgentEvent]:
    return [to_agent_event(e) for e in await by_runner(to_app(node, config))]


async def by_agent(node: Node, config: ExecutionConfig) -> list[AgentEvent]:
    return [to_agent_event(e) for e in await by_runner(to_agent(node, config))]


@pytest.fixture(params=[by_run, by_app, by_agent])
def way(request: pytest.FixtureRequest) -> Way:
    return request.param


class Slow(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        await asyncio.sleep(30)
        return
        yield


def ping() -> str:
    """Answers."""
    return "pong"


def talker(calls: int) -> Node:
    return agent("talker", *[Call("ping")] * calls, "done", tools=[ping])


# --- one field after the other -------------------------------------------------------------------


async def test_max_llm_calls(way: Way) -> None:
    with pytest.raises(LlmCallsLimitExceededError):
        await way(talker(3), ExecutionConfig(max_llm_calls=3))
    assert (await way(talker(2), ExecutionConfig(max_llm_calls=3)))[-1].content == "done"


async def test_max_llm_calls_counts_every_agent_of_a_run(way: Way) -> None:
    with pytest.raises(LlmCallsLimitExceededError):
        await way(seq(agent("a"), par(agent("b"), agent("c"))), ExecutionConfig(max_llm_calls=2))


async def test_timeout_seconds(way: Way) -> None:
    program = seq(agent("a"), built(Slow(name="slow")), name="shop")
    with pytest.raises(StepTimeoutError, match=r"shop: no result within 0\.1 s") as caught:
        await way(program, ExecutionConfig(timeout_seconds=0.1))
    assert caught.value.seconds == 0.1
    assert isinstance(caught.value, TimeoutError)


async def test_a_run_in_time_is_not_changed_by_the_timeout(way: Way) -> None:
    program = seq(agent("a"), par(agent("b"), agent("c")))
    events = await way(program, ExecutionConfig(timeout_seconds=30))
    assert sorted(e.author for e in events) == ["a", "b", "c"]
    assert {e.branch for e in events} == {None, "par.b", "par.c"}


async def test_streaming_mode(way: Way) -> None:
    a = agent("a", reply(chunks=("hello ", "there")))
    events = await way(seq(a), ExecutionConfig(streaming_mode="sse"))
    assert [(e.content, e.is_partial) for e in events] == [
        ("hello ", True),
        ("there", True),
        ("hello there", False),
    ]
    assert {e.path for e in events} == {"s0"}
    assert model_of(a).calls[0].stream is True


async def test_without_a_streaming_mode_nothing_is_partial(way: Way) -> None:
    a = agent("a", reply(chunks=("hello ", "there")))
    assert [e.is_partial for e in await way(a, ExecutionConfig())] == [False]


async def test_custom_metadata(way: Way) -> None:
    config = ExecutionConfig(custom_metadata={"tenant": "x"})
    program = seq(agent("a"), par(agent("b"), agent("c")))
    events = await way(program, config)
    assert [e.custom_metadata for e in events] == [{"tenant": "x"}] * 3
    assert all(e.path and e.node for e in events)


async def test_default_model(way: Way) -> None:
    model = ScriptedModel(default="by default")
    own = agent("own", "mine")
    program = seq(own, own.replace(name="bare", model=None))
    events = await way(program, ExecutionConfig(default_model=Ref.to(model)))
    assert [e.content for e in events] == ["mine", "by default"]


async def test_app_name() -> None:
    config = ExecutionConfig(app_name="shop")
    assert to_app(agent("a"), config).name == "shop"
    assert (await run(agent("a"), config=config)).app_name == "shop"
    with pytest.raises(UnsupportedConfigError, match="an agent has no app_name"):
        to_agent(agent("a"), config)


# --- a RunConfig of the caller's -----------------------------------------------------------------


async def test_what_a_caller_set_on_run_config_wins() -> None:
    config = ExecutionConfig(
        max_llm_calls=1, streaming_mode="sse", custom_metadata={"a": 1, "b": 1}
    )
    given = RunConfig(max_llm_calls=10, streaming_mode=StreamingMode.NONE, custom_metadata={"b": 2})
    for root in (to_app(talker(2), config), to_agent(talker(2), config)):
        events = [to_agent_event(e) for e in await by_runner(root, run_config=given)]
        assert events[-1].content == "done"
        assert not any(e.is_partial for e in events)
        assert [e.custom_metadata for e in events] == [{"a": 1, "b": 2}] * len(events)


def test_only_what_the_caller_left_alone_is_filled_in() -> None:
    config = ExecutionConfig(max_llm_calls=7, streaming_mode="sse", custom_metadata={"a": 1})
    both = merged(RunConfig(max_llm_calls=3), config)
    assert both.max_llm_calls == 3
    assert both.streaming_mode is StreamingMode.SSE
    assert both.custom_metadata == {"a": 1}
    assert merged(None, config).max_llm_calls == 7
    assert merged(RunConfig(custom_metadata=None), config).custom_metadata == {"a": 1}


def test_a_default_configuration_leaves_a_run_config_alone() -> None:
    given = RunConfig()
    assert merged(given, ExecutionConfig()) is given
    assert run_config(ExecutionConfig()).model_fields_set == set()


async def test_the_callers_run_config_is_not_changed() -> None:
    given = RunConfig()
    await by_runner(to_agent(agent("a"), ExecutionConfig(max_llm_calls=5)), run_config=given)
    assert given.model_fields_set == set()
    assert given.max_llm_calls != 5


# --- compaction ----------------------------------------------------------------------------------

COMPACTING = ExecutionConfig(compaction=CompactionConfig(interval=2, overlap=0))


def rooms(node: Node, config: ExecutionConfig) -> dict[str, App]:
    return {
        "app": to_app(node, config),
        "agent": App(name=config.app_name, root_agent=to_agent(node, config)),
    }


@pytest.mark.parametrize("room", ["app", "agent"])
# not the one for all databases: it rounds the times of events, and ADK 1.39 takes some of those
# that are summarised for newer than their summary
@pytest.mark.parametrize("service", ["memory", "sqlite"], indirect=True)
async def test_old_turns_are_summarised_once(room: str, service: BaseSessionService) -> None:
    writer = ScriptedModel(default="SUMMARY", model="writer")
    a = agent("a", "reply")
    config = ExecutionConfig(
        compaction=CompactionConfig(interval=2, overlap=0), default_model=Ref.to(writer)
    )
    app = rooms(seq(a, agent("b", "more")), config)[room]
    await service.create_session(app_name=app.name, user_id="u", session_id="s")
    for turn in ("one", "two", "three"):
        await by_runner(app, turn, service=service, session_id="s")
    session = await service.get_session(app_name=app.name, user_id="u", session_id="s")
    assert session is not None
    summaries = [e for e in session.events if e.actions.compaction]
    assert len(summaries) == 1
    assert len(writer.calls) == 1
    seen = [text.removeprefix("model: ") for text in turns(a)]  # 1.x: said by an agent "model"
    assert seen == ["SUMMARY", "three"]


async def test_the_first_agents_model_writes_summaries_without_a_default_one() -> None:
    a = agent("a", "reply")
    service = InMemorySessionService()
    app = to_app(a, COMPACTING)
    await service.create_session(app_name=app.name, user_id="u", session_id="s")
    for turn in ("one", "two"):
        await by_runner(app, turn, service=service, session_id="s")
    assert len(model_of(a).calls) == 3
    assert "one" in model_of(a).calls[-1].prompt


async def test_compaction_works_by_run_too() -> None:
    a = agent("a", "reply")
    backend = ADKBackend()
    program = backend.compile(a, COMPACTING)
    for turn in ("one", "two"):
        await backend.run(program, turn, session_id="s")
    assert len(model_of(a).calls) == 3


async def test_an_app_with_compaction_of_its_own_is_left_to_it() -> None:
    theirs = ScriptedModel(default="THEIRS", model="theirs")
    root = to_agent(agent("a", "reply"), COMPACTING)
    app = App(
        name="x",
        root_agent=root,
        events_compaction_config=EventsCompactionConfig(
            summarizer=LlmEventSummarizer(theirs), compaction_interval=2, overlap_size=0
        ),
    )
    service = InMemorySessionService()
    await service.create_session(app_name="x", user_id="u", session_id="s")
    for turn in ("one", "two"):
        await by_runner(app, turn, service=service, session_id="s")
    assert len(theirs.calls) <= 1


def test_a_bare_agent_cannot_summarise_where_adk_has_no_door_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compiling, "CAPS", replace(CAPS, sliding_window=False))
    with pytest.raises(UnsupportedConfigError, match="only under an App") as caught:
        to_agent(agent("a"), COMPACTING)
    assert caught.value.field == "compaction"
    assert to_app(agent("a"), COMPACTING).events_compaction_config is not None


def test_compaction_values_adk_refuses_are_explained() -> None:
    with pytest.raises(UsageError, match="refuses this CompactionConfig") as caught:
        to_app(agent("a"), ExecutionConfig(compaction=CompactionConfig(token_threshold=10)))
    assert "event_retention_size" in str(caught.value)


def test_an_agent_of_adks_brings_its_model_for_summaries() -> None:
    model = ScriptedModel(default="x")
    root = to_agent(built(LlmAgent(name="mine", model=model)), COMPACTING)
    assert root.name == "mine_flow"
    assert to_content("x").role == "user"


@pytest.mark.parametrize("room", ["app", "agent"])
async def test_summaries_by_size_disturb_no_step_of_a_run(
    room: str, service: BaseSessionService
) -> None:
    """Newer versions of ADK summarise in the middle of a run, also for a step on a copy."""
    writer = ScriptedModel(default="SUMMARY", model="writer")
    config = ExecutionConfig(
        compaction=CompactionConfig(
            interval=100, overlap=0, token_threshold=10, event_retention_size=1
        ),
        default_model=Ref.to(writer),
    )

    def big(name: str, **fields: Any) -> Any:
        said = reply("x" * 50, usage=Usage(prompt=1000, output=10))
        return agent(name, *[said] * 9, **fields)

    program = seq(
        big("a"),
        fallback(seq(big("b"), raiser("no", ValueError("no")), name="first"), big("c")),
        par(big("d"), seq(big("e"), big("f"), name="line")),
        big("g", history="own"),
        big("h"),
    )
    app = rooms(program, config)[room]
    await service.create_session(app_name=app.name, user_id="u", session_id="s")
    for turn in ("one", "two", "three"):
        events = await by_runner(app, turn, service=service, session_id="s")
        said = [e.author for e in events if e.content]
        assert sorted(said) == sorted("abcdefgh")
    assert writer.calls
