"""What type checkers know about recorders, recordings and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from google.adk.sessions.session import Session

from adk_fluent import Agent
from adk_fluent.debug import (
    EventChange,
    EventDiff,
    Interaction,
    LLMInteraction,
    Recorder,
    Recording,
    ReplayerBackend,
    ReplayReport,
    TimeTravel,
    ToolInteraction,
    diff_events,
    recorder,
    replay,
)
from adk_fluent.protocol import AgentEvent, Redactor

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

agent = Agent("a")


async def travels(sessions: BaseSessionService, session: Session) -> None:
    travel = TimeTravel(sessions)
    assert_type(await travel.state_at(session, 3), dict[str, Any])
    result = await agent.run("hello", session_service=sessions)
    fork = await travel.fork(result, at=result[0].id, state={"vip": True}, edit={0: "Hello"})
    assert_type(fork, Session)
    await travel.fork(session, at=1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def promised() -> None:
    with Recorder(capture_state=False, redact=Redactor()) as kept:
        assert_type(kept, Recorder)
        events = await agent.run("hello", middleware=[kept, recorder()])
    Recorder(strem="run.jsonl")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    recording = Recording.load("run.json")
    assert_type(recording, Recording)
    assert_type(recording.events, list[AgentEvent])
    assert_type(recording.llm_interactions, list[LLMInteraction])
    assert_type(recording.get_tool_interactions(), list[ToolInteraction])
    assert_type(recording.state_at(0), dict[str, Any])
    backend = ReplayerBackend(recording, "live", tools={"refund": "live"})
    assert_type(backend.unused, list[Interaction])
    await agent.run("hello", backend=backend)
    diff = diff_events(recording.events, events)
    assert_type(diff, EventDiff)
    assert_type(diff.first, EventChange | None)
    assert_type(diff.summary, str)
    assert_type(replay(agent, recording), ReplayReport)

    ReplayerBackend(recording, on_mismatch="explode")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Recorder(redact=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    diff_events(3, events)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
